"""Locks of other processes on a file, as the kernel lists them."""

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


def holders(path: str, first: int, last: int) -> list[int]:
    """Return the other processes that hold a record lock on some byte of a file, from `first` to `last`."""
    try:
        inode = os.stat(path).st_ino
    except OSError:
        return []
    pids = {
        pid
        for pid, number, start, end in _record_locks()
        if number == inode and start <= last and end >= first and pid not in (0, os.getpid())
    }
    return sorted(pid for pid in pids if _may_have_open(pid, path))


def program_of(pid: int) -> str:
    """Return the name of the program a process runs; empty for one that is gone."""
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return ""


def _record_locks() -> "Iterator[tuple[int, int, int, int]]":
    try:
        with open("/proc/locks", encoding="ascii", errors="replace") as file:
            lines = file.readlines()
    except OSError:
        return
    for line in lines:
        words = line.split()
        if len(words) == 8 and words[1] == "POSIX":
            end = 1 << 62 if words[7] == "EOF" else int(words[7])
            yield int(words[4]), int(words[5].rpartition(":")[2]), int(words[6]), end


def _may_have_open(pid: int, path: str) -> bool:
    """Tell a file from one of another disk with the same number; of a process we may not look into, believe it."""
    folder = f"/proc/{pid}/fd"
    try:
        return any(_is_same(f"{folder}/{name}", path) for name in os.listdir(folder))
    except OSError:
        return True


def _is_same(one: str, other: str) -> bool:
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False
