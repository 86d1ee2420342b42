"""Liveness: a worker holds a lock for as long as it lives; whoever can take that lock knows it is dead."""

import fcntl
import os
from enum import StrEnum

from queuectl.system.home import remove_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queuectl.system.home import Home


class Pulse(StrEnum):
    """What this host can know about a process by its lock."""

    ALIVE = "alive"
    DEAD = "dead"
    OUT_OF_SIGHT = "out of sight"


class LifeLock:
    """The lock one process holds from its start to its death, however it dies."""

    def __init__(self, home: "Home", worker_id: str) -> None:
        self.path = os.path.join(home.run, f"{worker_id}.lock")
        self._fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def release(self) -> None:
        """Remove the lock after the worker's row was closed."""
        remove_file(self.path)
        os.close(self._fd)


def pulse_of(lock_path: str, lock_host: str, this_host: str, *, pid: int | None = None) -> Pulse:
    """Tell whether the holder of a lock lives, at once, across pid reuse and reboots.

    A lock file that is not there proves nothing: it may have been removed, or lie in another container of this name.
    `pid`, where pids of the holder mean something here, then tells at least that nobody can be alive.
    """
    if lock_host != this_host:
        return Pulse.OUT_OF_SIGHT
    try:
        fd = os.open(lock_path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return Pulse.DEAD if pid is not None and not os.path.exists(f"/proc/{pid}") else Pulse.OUT_OF_SIGHT
    except OSError:
        return Pulse.OUT_OF_SIGHT
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return Pulse.ALIVE
    finally:
        os.close(fd)
    return Pulse.DEAD
