"""The ledger: what jobs write down about themselves, outside the queue. Whether it is right is for checker.py."""

import fcntl
import os
import shlex
from dataclasses import dataclass
from pathlib import Path

START = "start"
END = "end"
CHILD = "child"
OVERLAP = "overlap"
KILLS = "kills"

# Every process of a run inherits descriptor 9 and with it the lock of its job: a second copy is seen even when all
# that is left of the first is a child in the background. `read` and `echo` are of the shell itself, and an `echo` is
# one write to a file opened for appending: no line is slow, torn or out of order.
_WORDS = """\
export JOB="${{JOB:-$QUEUECTL_JOB_ID}}" RUN="${{RUN:-$QUEUECTL_RUN}}" WORKER="${{WORKER:-${{QUEUECTL_CLAIM%%:*}}}}"
note() {{ read -r up _ </proc/uptime; echo "$up $JOB $RUN $WORKER $*" >>{lines}; }}
begin() {{ exec 9>>{locks}/"$JOB"; flock -n 9 || note overlap; note start; }}
finish() {{ note end "$1"; exit "$1"; }}
kill_worker() {{ grep -qa queuectl.runtime.enlist /proc/$PPID/cmdline && note kills && kill -9 $PPID; }}
"""


@dataclass(frozen=True, kw_only=True)
class Line:
    """One thing a run said: when (seconds since boot), who, and what; `code` is the exit code it is about to have."""

    at: float
    job: str
    run: int
    worker: str
    what: str
    code: int | None = None


class Ledger:
    """The folder with the ledger, the locks of the jobs, and the shell words that write and take them."""

    def __init__(self, folder: Path) -> None:
        self._lines = folder / "ledger"
        self._locks = folder / "locks"
        self._words = folder / "words.sh"
        self._locks.mkdir(parents=True)
        self._lines.touch()
        self._words.write_text(_WORDS.format(lines=_quoted(self._lines), locks=_quoted(self._locks)))

    @property
    def words(self) -> str:
        """The shell line that gives a command `begin`, `finish`, `note` and `kill_worker`."""
        return f". {_quoted(self._words)}"

    @property
    def locks(self) -> Path:
        """The folder of the locks."""
        return self._locks

    def lines(self) -> list[Line]:
        """Return all that was written, in the order it was."""
        return [parsed(text) for text in self._lines.read_text().splitlines()]

    def held(self) -> list[str]:
        """Return the jobs of which some process still runs."""
        return [path.name for path in sorted(self._locks.iterdir()) if _is_held(path)]


def parsed(text: str) -> Line:
    """Read one line."""
    at, job, run, worker, what, *rest = text.split()
    return Line(at=float(at), job=job, run=int(run), worker=worker, what=what, code=int(rest[0]) if rest else None)


def _is_held(path: Path) -> bool:
    fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


def _quoted(path: Path) -> str:
    return shlex.quote(str(path))
