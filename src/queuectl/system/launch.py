"""Launch: the start and the end of plain commands, a call for each or for many, by a compiled module where it is built.

Plain is a command that asks nothing of its process, names its program by a path and prints into one pipe. Every other
one, and all of them where the module is missing (no C compiler when queuectl was installed) or of another version, is
started step by step: process.py, output.py.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

Command = tuple[int, int, list[str], tuple[bytes, bytes], str]
"""The number of its job and of its run, its words, its variables laid out in two parts, its folder."""

Notes = tuple[int, int, int, int, int]
"""Where what begins is noted: a descriptor, a place in its file, the bytes of a record; and where, how it ended.

The second descriptor is -1 where ends are not to be noted. The last number is that of the bytes of output a note of an
end may hold.
"""

Landed = tuple[int, int, int, bytes | None, float]
"""Its status as wait(2) has it, microseconds of processor time, KiB of memory, what it printed, when it was over.

What it printed is None where that was too much: it waits in the pipe, which is open still.
"""

Launched = tuple[int, int, int, float, Landed | None]
"""Its pid, its pidfd, where its output comes, when it began, and how it ended if it has."""

Noted = tuple[int, int, bytes, float, float]
"""Of one that did well, and of which that is noted: milliseconds of processor time, KiB, what it printed, its times."""

_VERSION = 2
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
    commands: list[Command],
    signals: bytes,
    stdin: int,
    notes: Notes,
    others: int,
    patience_ms: int,
    until_s: float,
    most_bytes: int,
) -> "tuple[list[Noted], Launched | None]":
    """Begin one command after the other, each noted and in a session of its own; return those noted, and the last.

    `signals` are those to be reset (process.changed_signals), a byte each. With some patience it waits a moment for the
    end of each, as long as nothing is to be read of `others`, and notes it. It goes on with the next one where that is
    done, and no moment of the boot-time clock has come; the last one comes back beside the others unless it is noted,
    too. Where none has begun, the time was up or the first could not be started: nothing is left of that try, and who
    does it step by step learns why.
    """
    if _launch is None:
        return [], None
    told: tuple[list[Noted], Launched | None] = _launch.launch(
        commands, signals, stdin, notes, others, patience_ms, until_s, most_bytes
    )
    return told


def land(pid: int, pidfd: int, output: int, most_bytes: int) -> "Landed | None":
    """Collect a command of `launch` that has ended, and close what led to it; None: it has not."""
    assert _launch is not None
    landed: Landed | None = _launch.land(pid, pidfd, output, most_bytes)
    return landed
