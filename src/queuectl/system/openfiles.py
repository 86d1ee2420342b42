"""Open files: which processes of this host have a file open."""

import os


def holders_of(path: str) -> list[int]:
    """Return the other processes that have a file open, as far as this user may see."""
    wanted = os.path.realpath(path)
    return [pid for pid in _pids() if pid != os.getpid() and wanted in _open_in(pid)]


def _pids() -> list[int]:
    try:
        return sorted(int(name) for name in os.listdir("/proc") if name.isdigit())
    except OSError:
        return []


def _open_in(pid: int) -> set[str]:
    found = set()
    try:
        for name in os.listdir(f"/proc/{pid}/fd"):
            found.add(os.readlink(f"/proc/{pid}/fd/{name}"))
    except OSError:
        pass  # it ended meanwhile, or is another user's
    return found
