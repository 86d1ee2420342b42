"""What the kernel says of running processes: their CPU time, their memory and their children."""

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

BARE_INTERPRETER = "import sys; print(flush=True); sys.stdin.read()"


def cpu_s(pids: Iterable[int]) -> float:
    """Return the CPU time that all threads of some processes, each of which must live, have had, to the nanosecond."""
    return sum(map(_cpu_ns, pids)) / 1e9


def pss_mb(pids: Iterable[int]) -> float:
    """Return the memory of some processes; a page that several share counts in parts."""
    return sum(_pss_kb(Path(f"/proc/{pid}/smaps_rollup").read_text()) for pid in pids) / 1024


def children(pid: int) -> list[int]:
    """Return the processes that a process started."""
    return [int(word) for each in Path(f"/proc/{pid}/task").glob("*/children") for word in each.read_text().split()]


def bare_interpreter_mb() -> float:
    """Return the memory of a Python that does nothing."""
    with subprocess.Popen(
        [sys.executable, "-c", BARE_INTERPRETER], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as python:
        assert python.stdout is not None
        python.stdout.readline()
        found = pss_mb([python.pid])
        python.communicate()
    return found


def _cpu_ns(pid: int) -> int:
    ran = [int(each.read_text().split()[0]) for each in Path(f"/proc/{pid}/task").glob("*/schedstat")]
    if not ran:
        raise ProcessLookupError(f"process {pid} is gone, or the kernel does not count its CPU time")
    return sum(ran)


def _pss_kb(rollup: str) -> int:
    return next(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:"))
