"""Pick-ups: how long it takes from the commit of a job to the first act of its command, seen through a fifo."""

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
    """Add a job for an idle worker; return how long after its commit the command acts."""
    submit(database, [JobSpec(command=f": >{fifo}", cwd="/")], who="bench", environ={})
    return _until_opened(fifo)


def spawn_s(fifo: str) -> float:
    """Start the same command right here."""
    begun = time.perf_counter()
    pid = os.posix_spawn("/bin/sh", ["/bin/sh", "-c", f": >{fifo}"], os.environ)
    _until_opened(fifo)
    took = time.perf_counter() - begun
    os.waitpid(pid, 0)
    return took


def _until_opened(fifo: str) -> float:
    """Return how long it takes until somebody opens the other end; come back when it is closed."""
    begun = time.perf_counter()
    fd = os.open(fifo, os.O_RDONLY)
    took = time.perf_counter() - begun
    os.read(fd, 1)
    os.close(fd)
    return took
