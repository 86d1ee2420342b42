"""Wake-up on one host: who makes work ready, or changes jobs, touches a file; others watch it through inotify."""

import os

_IN_ATTRIB = 0x00000004
_IN_IGNORED = 0x00008000
_IN_NONBLOCK = os.O_NONBLOCK
_IN_CLOEXEC = os.O_CLOEXEC


def touch(path: str) -> None:
    """Wake those who watch a file. Never fails: whoever is not woken looks by itself a little later."""
    try:
        os.utime(path)
    except FileNotFoundError:
        try:
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
        except OSError:
            pass
    except OSError:
        pass


def can_watch(path: str) -> bool:
    """Whether the kernel lets this user watch one more file; nothing is touched."""
    fd = _watch(path)
    if fd is not None:
        os.close(fd)
    return fd is not None


class WakeWatch:
    """A descriptor that turns readable when a file is touched; None where the kernel has no inotify."""

    def __init__(self, path: str) -> None:
        touch(path)
        self._path = path
        self.fd = _watch(path)

    def drain(self) -> None:
        """Take in what was seen, so that the descriptor rests again; a file that was removed is made anew."""
        import struct  # who touches alone does without it

        seen = 0
        if self.fd is not None:
            try:
                while events := os.read(self.fd, 4096):
                    for _, mask, _, _ in struct.iter_unpack("iIII", events):
                        seen |= mask
            except BlockingIOError:
                pass
            if seen & _IN_IGNORED:
                touch(self._path)
                _add_watch(self.fd, self._path)

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
