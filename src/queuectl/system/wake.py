"""Wake-up on one host: who makes work ready touches a file; idle workers watch it through inotify."""

import os
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queuectl.system.home import Home

_IN_ATTRIB = 0x00000004
_IN_IGNORED = 0x00008000
_IN_NONBLOCK = os.O_NONBLOCK
_IN_CLOEXEC = os.O_CLOEXEC


def touch(home: "Home") -> None:
    """Wake the idle workers of this home. Never fails: a worker that is not woken looks by itself a little later."""
    try:
        os.utime(home.wake)
    except FileNotFoundError:
        try:
            os.close(os.open(home.wake, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
        except OSError:
            pass
    except OSError:
        pass


class WakeWatch:
    """A descriptor that turns readable when the wake file is touched; None where the kernel has no inotify."""

    def __init__(self, home: "Home") -> None:
        touch(home)
        self._home = home
        self.fd = _watch(home.wake)

    def drain(self) -> None:
        """Take in what was seen, so that the descriptor rests again; a file that was removed is made anew."""
        seen = 0
        if self.fd is not None:
            try:
                while events := os.read(self.fd, 4096):
                    for _, mask, _, _ in struct.iter_unpack("iIII", events):
                        seen |= mask
            except BlockingIOError:
                pass
            if seen & _IN_IGNORED:
                touch(self._home)
                _add_watch(self.fd, self._home.wake)

    def close(self) -> None:
        """Stop watching."""
        if self.fd is not None:
            os.close(self.fd)


def _watch(path: str) -> int | None:
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "inotify_init1"):
        return None
    fd = int(libc.inotify_init1(_IN_NONBLOCK | _IN_CLOEXEC))
    if fd < 0:
        return None  # out of watches; the poll remains
    if not _add_watch(fd, path):
        os.close(fd)
        return None
    return fd


def _add_watch(fd: int, path: str) -> bool:
    import ctypes

    return int(ctypes.CDLL(None, use_errno=True).inotify_add_watch(fd, os.fsencode(path), _IN_ATTRIB)) >= 0
