"""Usage: what the processes of running commands take of this host just now, as the kernel counts it."""

import os
import threading

from queuectl import clock
from queuectl.model.value import Value
from queuectl.system.process import Processes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

SETTLED_S = 0.5
"""Between two looks closer than this the kernel's ticks are too coarse to tell a share of a core from."""


class Usage(Value):
    """What a tree of processes takes: memory now, and CPU time since it began, of those it waited for as well."""

    processes: int
    memory_bytes: int
    cpu_ms: int
    cores: float | None = None
    """How many cores it kept busy since the last look at it; None where there was none before."""


class Meter:
    """Looks at trees of processes again and again, and so knows how busy each has been since the last look.

    May be shared by threads: whoever asks soon after another gets what that one saw.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seen: dict[int, tuple[float, Usage]] = {}

    def look(self, leaders: "Sequence[int]") -> dict[int, Usage]:
        """Return what the tree of each leader takes; those that are gone, or not known yet (0), are left out."""
        leaders = [leader for leader in leaders if leader > 0]
        if not leaders:
            return {}
        processes, at = Processes(), clock.boot_s()
        found = {leader: usage for leader in leaders if (usage := usage_of(processes, leader)) is not None}
        with self._lock:
            told = {leader: self._compared(leader, at, usage) for leader, usage in found.items()}
            self._seen = {leader: seen for leader, seen in self._seen.items() if leader in leaders}
        return told

    def _compared(self, leader: int, at: float, usage: Usage) -> Usage:
        before = self._seen.get(leader)
        if before is None or usage.cpu_ms < before[1].cpu_ms:  # the pid is another's by now
            self._seen[leader] = (at, usage)
            return usage
        passed_s = at - before[0]
        if passed_s < SETTLED_S:
            return usage.replace(cores=before[1].cores)
        told = usage.replace(cores=max(0.0, (usage.cpu_ms - before[1].cpu_ms) / 1000 / passed_s))
        self._seen[leader] = (at, told)
        return told


def usage_of(processes: Processes, leader: int) -> Usage | None:
    """Return what the tree of a leader takes, its group, session and descendants; None where all of it is gone."""
    counted = [count for pid in processes.of_leader(leader) if (count := _count(pid)) is not None]
    if not counted:
        return None
    return Usage(
        processes=len(counted),
        memory_bytes=sum(memory for memory, _ in counted),
        cpu_ms=sum(cpu for _, cpu in counted),
    )


def _count(pid: int) -> tuple[int, int] | None:
    """Return resident bytes and CPU milliseconds of a process and of the children it has waited for."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    ticks = sum(int(field) for field in fields[11:15])
    return int(fields[21]) * os.sysconf("SC_PAGE_SIZE"), ticks * 1000 // os.sysconf("SC_CLK_TCK")
