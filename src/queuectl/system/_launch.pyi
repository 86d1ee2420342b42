from queuectl.system.launch import Command, Landed, Launched, Noted, Notes

VERSION: int

def launch(
    commands: list[Command],
    signals: bytes,
    input: int,  # noqa: A002
    notes: Notes,
    others: int,
    patience_ms: int,
    until_s: float,
    most: int,
    /,
) -> tuple[list[Noted], Launched | None]: ...
def land(pid: int, pidfd: int, output: int, most: int, /) -> Landed | None: ...
