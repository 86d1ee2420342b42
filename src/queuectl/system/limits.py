"""Limits: how many files this process may have open, and who else gets them."""

import os
import resource

FILES_PER_RUN = 9  # the process, and a pipe, a log and its two segments for each of two streams
OWN_FILES = 32


def slots_that_fit(wanted: int, files: int) -> int:
    """Return how many commands can run at once with so many open files; never none, or nothing would run."""
    return max(1, min(wanted, (files - OWN_FILES) // FILES_PER_RUN))


def most_open_files() -> int | None:
    """Return how many files a process of ours may open at most; None means any number."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return None if hard == resource.RLIM_INFINITY else hard


def allow_open_files(wanted: int) -> int:
    """Raise the limit of open files to `wanted` as far as the system lets us, and return what it is now.

    Commands inherit it, so it is left alone where it suffices.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return wanted
    allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    return allowed


def close_inherited_on_exec() -> None:
    """Keep descriptors we were started with to ourselves: a command has its three streams and nothing else."""
    for name in os.listdir("/proc/self/fd"):
        fd = int(name)
        if fd > 2:
            try:
                os.set_inheritable(fd, False)
            except OSError:
                pass  # the one that listed the folder
