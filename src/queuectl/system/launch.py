"""Launch: the start and the end of a plain command in one call each, by a compiled module, where that was built.

Plain is a command that asks nothing of its process, names its program by a path and prints into one pipe. Every other
one, and all of them where the module is missing (no C compiler when queuectl was installed) or of another version, is
started step by step: process.py, output.py.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

    from queuectl.system.liveness import StartNote

Landed = tuple[int, int, int, bytes | None, float]
"""Its status as wait(2) has it, microseconds of processor time, KiB of memory, what it printed, when it was over.

What it printed is None where that was too much: it waits in the pipe, which is open still.
"""


_VERSION = 1
_built: "ModuleType | None"
try:
    from queuectl.system import _launch as _built
except ImportError:  # it is quicker with it, and nearly the same without
    _built = None
# What is installed from a clone (pip install -e) follows the clone, but nobody builds this anew then.
_launch = _built if getattr(_built, "VERSION", None) == _VERSION else None


def is_compiled() -> bool:
    """Whether commands are started by the compiled module."""
    return _launch is not None


def is_of_another_version() -> bool:
    """Whether the module is there, and is left alone, since it was not built from what this program came with."""
    return _built is not None and _launch is None


def launch(
    argv: list[str],
    variables: tuple[bytes, bytes],
    folder: str,
    signals: bytes,
    stdin: int,
    note: "StartNote",
    others: int,
    patience_ms: int,
    most_bytes: int,
) -> "tuple[int, int, int, Landed | None] | None":
    """Note a command, start it in a session of its own, note its pid; return pid, pidfd, and where its output comes.

    `signals` are those to be reset (process.changed_signals), a byte each. With some patience it waits a moment for the
    end, as long as nothing is to be read of `others`, and collects what ended then as `land` does. None means that it
    was not started, and nothing is left of the try: who does it step by step learns why.
    """
    if _launch is None:
        return None
    launched: tuple[int, int, int, Landed | None] | None = _launch.launch(
        argv, variables, folder, signals, stdin, note, others, patience_ms, most_bytes
    )
    return launched


def land(pid: int, pidfd: int, output: int, most_bytes: int) -> "Landed | None":
    """Collect a command of `launch` that has ended, and close what led to it; None: it has not."""
    assert _launch is not None
    landed: Landed | None = _launch.land(pid, pidfd, output, most_bytes)
    return landed
