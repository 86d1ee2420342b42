"""Pick-ups: how long it takes from the call that adds a job to the first act of its command, seen through a fifo."""

import os
import time
from pathlib import Path

from queuectl.actions.submit import submit
from queuectl.model.job import JobSpec
from queuectl.store.database import Database


def make_fifo(folder: str) -> str:
    """Make the fifo that a command opens as its first act."""
    fifo = str(Path(folder, "fifo"))
    os.mkfifo(fifo)
    return fifo


def pick_up_s(database: Database, fifo: str) -> float:
    """Add a job for an idle worker; return how long after that was begun the command acts, the commit included."""
    begun = time.perf_counter()
    submit(database, [JobSpec(command=f": >{fifo}", cwd="/")], who="bench", environ={})
    return _opened_at(fifo) - begun


def spawn_s(fifo: str) -> float:
    """Start the same command right here."""
    begun = time.perf_counter()
    pid = os.posix_spawn("/bin/sh", ["/bin/sh", "-c", f": >{fifo}"], os.environ)
    took = _opened_at(fifo) - begun
    os.waitpid(pid, 0)
    return took


def _opened_at(fifo: str) -> float:
    """Return when somebody opened the other end, once it is closed."""
    fd = os.open(fifo, os.O_RDONLY)
    opened = time.perf_counter()
    os.read(fd, 1)
    os.close(fd)
    return opened
