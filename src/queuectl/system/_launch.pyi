from queuectl.system.launch import Landed
from queuectl.system.liveness import StartNote

VERSION: int

def launch(
    argv: list[str],
    variables: tuple[bytes, bytes],
    folder: str,
    signals: bytes,
    input: int,  # noqa: A002
    note: StartNote,
    others: int,
    patience_ms: int,
    most: int,
    /,
) -> tuple[int, int, int, Landed | None] | None: ...
def land(pid: int, pidfd: int, output: int, most: int, /) -> Landed | None: ...
