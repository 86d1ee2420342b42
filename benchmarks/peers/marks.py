"""Marks: how all processes of a peer are found, whoever started them, to be weighed and ended."""

import os
import signal
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from benchmarks.processes import children, pss_mb

MARK = "BENCH_ROOM"
"""The variable that all processes of a room carry; its value is the folder of the room."""
DEADLINE_S = 10
STEADY_MB = 0.2


def marked(mark: str) -> list[int]:
    """Return the processes that carry a mark."""
    wanted = f"{MARK}={mark}".encode()
    return [pid for pid in _pids() if wanted in _environ(pid).split(b"\0")]


def with_descendants(pids: Iterable[int]) -> set[int]:
    """Return processes and all that they started."""
    found: set[int] = set()
    open_pids = list(pids)
    while open_pids:
        pid = open_pids.pop()
        found.add(pid)
        open_pids += children(pid)
    return found


def steady_mb(mark: str) -> float:
    """Return the memory of all that carries a mark, once it no longer changes."""
    until = time.monotonic() + DEADLINE_S
    last = float("inf")
    while time.monotonic() < until:
        try:
            found = pss_mb(marked(mark))
        except (FileNotFoundError, ProcessLookupError):
            continue  # one of them has just ended
        if abs(found - last) <= STEADY_MB:
            return found
        last = found
        time.sleep(0.1)
    raise TimeoutError(f"the memory still changes after {DEADLINE_S} s")


def end_marked(mark: str) -> None:
    """End every process that carries a mark at once, and come back when none is left."""
    until = time.monotonic() + DEADLINE_S
    while pids := marked(mark):
        if time.monotonic() > until:
            raise TimeoutError(f"processes {pids} do not end")
        for pid in pids:
            _end(pid)
        time.sleep(0.002)


def _end(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass  # it was quicker


def _pids() -> Iterator[int]:
    return (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit())


def _environ(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return b""  # gone, or another user's
