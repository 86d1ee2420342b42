"""Processes as the kernel sees them: who they are across a reuse of pids, and who belongs together, mark or no mark."""

import os
import shlex
import signal
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.program import Cli, lines_of, pids_with, wait_for
from tests.scenarios.working import marked, wait_for_workers, workers_of

FREE_FD = 9


class Process(NamedTuple):
    """One process; two that had the same pid differ in when they were born (clock ticks since boot)."""

    pid: int
    born: int


class Links(NamedTuple):
    """What ties a process to others, and how it is doing."""

    born: int
    state: str
    parent: int
    group: int
    session: int


class Guard:
    """A lock that a command and all it starts hold open: tells who lives, and whether two runs ever overlapped."""

    def __init__(self, folder: Path, name: str) -> None:
        self._lock = folder / f"{name}.lock"
        self._ledger = folder / f"{name}.ledger"

    def around(self, line: str) -> str:
        """Return a shell line that takes the lock, says that it runs, and goes on; the lock ends with its last process.

        Every descendant inherits the open file, whatever it does to its session, parents and environment.
        """
        lock, ledger = shlex.quote(str(self._lock)), shlex.quote(str(self._ledger))
        return (
            f"exec {FREE_FD}>>{lock}; flock -n {FREE_FD} || echo OVERLAP >>{ledger}; "
            f"echo run $QUEUECTL_RUN >>{ledger}; {line}"
        )

    def once(self, line: str) -> str:
        """Return a shell line whose first run is that line, and whose later ones end at once, well."""
        return self.around(f"test $QUEUECTL_RUN = 1 || exit 0; {line}")

    @property
    def lines(self) -> list[str]:
        """What the runs said, `OVERLAP` among it when one began before all of the last was gone."""
        return list(lines_of(self._ledger))

    def wait_for_run(self, number: int) -> None:
        """Wait until a run has begun."""
        wait_for(lambda: f"run {number}" in self.lines or None, f"run {number}")

    def holders(self) -> set[Process]:
        """Return the living processes that have the lock open."""
        held = (process_of(pid) for pid in _pids() if _link(f"/proc/{pid}/fd/{FREE_FD}") == str(self._lock))
        return living(process for process in held if process is not None)


class Guards:
    """The guards of one test, by name."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._guards: dict[str, Guard] = {}

    def __call__(self, name: str) -> Guard:
        """Return the guard of that name."""
        return self._guards.setdefault(name, Guard(self._folder, name))

    def holders(self) -> set[Process]:
        """Return the living processes that have any of the locks open."""
        return set().union(*(guard.holders() for guard in self._guards.values()))


def process_of(pid: int) -> Process | None:
    """Return the process that has a pid now."""
    links = links_of(pid)
    return None if links is None else Process(pid, links.born)


def living(processes: Iterable[Process]) -> set[Process]:
    """Return those that still live: not gone, no zombie, and no other process under the same pid."""
    found = {process: links_of(process.pid) for process in processes}
    return {
        process
        for process, links in found.items()
        if links is not None and links.born == process.born and links.state not in "ZX"
    }


def family_of(leader: int) -> set[Process]:
    """Return a process, its group and session, and all their descendants."""
    table = {pid: links for pid in _pids() if (links := links_of(pid)) is not None and links.state not in "ZX"}
    members = {pid for pid, links in table.items() if leader in (pid, links.group, links.session)}
    while grown := {pid for pid, links in table.items() if links.parent in members} - members:
        members |= grown
    return {Process(pid, table[pid].born) for pid in members}


def links_of(pid: int) -> Links | None:
    """Read what the kernel says of a process; None means there is none."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return Links(int(fields[19]), fields[0], int(fields[1]), int(fields[2]), int(fields[3]))


def name_of(process: Process) -> str:
    """Return the name of the program a process runs; `stopped` for one that was told to stand still."""
    links = links_of(process.pid)
    if links is None:
        return "gone"
    try:
        return "stopped" if links.state == "T" else Path(f"/proc/{process.pid}/comm").read_text().strip()
    except OSError:
        return "gone"


def worker_pid(cli: Cli) -> int:
    """Return the pid of the one living worker."""
    (worker,) = wait_for_workers(cli, 1)
    return int(str(worker["pid"]))


def worker_pids(cli: Cli) -> list[int]:
    """Return the pids of the living workers."""
    return [int(str(worker["pid"])) for worker in workers_of(cli)]


def commands_of(cli: Cli, *job_ids: str) -> list[int]:
    """Return the processes of the runs of jobs that are under way, by their mark."""
    return [pid for job_id in job_ids for pid in marked(cli.job(job_id))]


def send(number: signal.Signals, *pids: int) -> None:
    """Send a signal to processes of this test; one that is gone already does not matter."""
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue


def cut_power(cli: Cli, *, spared: Iterable[int] = ()) -> None:
    """Kill all that is of a home at one stroke; supervisors and workers stand still first, so none sees another die."""
    ours = {int(str(row["pid"])) for row in cli.json("worker", "list", "--all") if row["state"] == "live"}
    everyone = set(pids_with("QUEUECTL_HOME", cli.target.home.root)) - set(spared)
    send(signal.SIGSTOP, *ours & everyone)
    send(signal.SIGKILL, *ours & everyone, *everyone - ours)


@contextmanager
def standing_still(*pids: int) -> Iterator[None]:
    """Stop processes for a while (SIGSTOP); those that still live go on afterwards, whatever happened meanwhile."""
    stopped = [process for pid in pids if (process := process_of(pid)) is not None]
    send(signal.SIGSTOP, *pids)
    try:
        yield
    finally:
        send(signal.SIGCONT, *(process.pid for process in living(stopped)))


def _link(path: str) -> str | None:
    try:
        return os.readlink(path)
    except OSError:
        return None


def _pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]
