"""Standard input of a command: a file of this host, or bytes kept elsewhere."""

import fcntl
import os
import stat

from queuectl.system.process import CANNOT_RUN, NO_ROOM, CannotStart, word_of


def open_file(path: str) -> int:
    """Open a file for a command to read; only files and devices, since a pipe without a writer would hold us up."""
    try:
        # Without waiting: the open of a pipe returns when somebody writes into it, which may be never.
        fd = os.open(word_of(path), os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError as error:
        raise _cannot_read(path, error.strerror or str(error), is_passing=error.errno in NO_ROOM) from None
    mode = os.fstat(fd).st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISCHR(mode)):
        os.close(fd)
        raise _cannot_read(path, "it is a folder" if stat.S_ISDIR(mode) else "it is neither a file nor a device")
    fcntl.fcntl(fd, fcntl.F_SETFL, fcntl.fcntl(fd, fcntl.F_GETFL) & ~os.O_NONBLOCK)
    return fd


def hold(data: bytes) -> int:
    """Return a descriptor from which exactly these bytes can be read, held in memory by the kernel."""
    fd = -1
    try:
        fd = os.memfd_create("queuectl-stdin", os.MFD_CLOEXEC)
        left = memoryview(data)
        while left:
            left = left[os.write(fd, left) :]
        os.lseek(fd, 0, os.SEEK_SET)
    except OSError as error:
        if fd >= 0:
            os.close(fd)
        reason = f"cannot hold its standard input in memory: {error.strerror}"
        raise CannotStart(CANNOT_RUN, reason, is_passing=True) from None
    return fd


def _cannot_read(path: str, why: str, *, is_passing: bool = False) -> CannotStart:
    return CannotStart(CANNOT_RUN, f"cannot read standard input from {path}: {why}", is_passing=is_passing)
