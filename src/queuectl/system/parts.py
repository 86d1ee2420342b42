"""Parts: files that are being written and get their real name when they are whole.

Whoever writes one holds a lock on it meanwhile: what a killed process left can be told from what is under way.
"""

import errno
import fcntl
import os
import secrets

from queuectl.errors import StoreUnreachable
from queuectl.system.home import remove_file, sync_folder

SUFFIX = ".part"
_NO_LINKS = frozenset({errno.EPERM, errno.EACCES, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})
_BESIDE = ("", "-wal", "-shm", "-journal")


class Part:
    """An empty file under a name that nobody can guess, for its owner alone; locked until it is closed."""

    def __init__(self, folder: str, prefix: str) -> None:
        self.path = ""
        try:
            self._fd = self._make(folder, prefix)
            while not os.path.exists(self.path):  # somebody who tidied up was quicker than our lock
                os.close(self._fd)
                self._fd = self._make(folder, prefix)
        except OSError as error:
            raise StoreUnreachable(
                f"cannot create {self.path}: {error.strerror}", hint="check the folder and the disk"
            ) from None

    def _make(self, folder: str, prefix: str) -> int:
        self.path = os.path.join(folder, f"{prefix}{secrets.token_hex(8)}{SUFFIX}")
        fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        fcntl.flock(fd, fcntl.LOCK_EX)
        return fd

    def close(self) -> None:
        """Remove it, unless it has its real name by now, and what SQLite left beside it."""
        _remove(self.path)
        os.close(self._fd)


def put_in_place(part: str, path: str, *, force: bool) -> None:
    """Give a part that is whole its name, for good; what is there already is replaced only by `force`."""
    if force:
        os.replace(part, path)
    else:
        try:
            os.link(part, path)  # unlike a rename it never takes the place of what came there meanwhile
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            _rename(part, path)
    sync_folder(os.path.dirname(path))


def remove_left_parts(folder: str, prefix: str) -> None:
    """Remove the parts of a folder that begin so and that nobody writes any more."""
    try:
        names = os.listdir(folder)
    except OSError:
        return
    for name in names:
        if name.startswith(prefix) and name.endswith(SUFFIX):
            _remove_if_left(os.path.join(folder, name))


def _rename(part: str, path: str) -> None:
    """Rename on a file system without links, where nothing is to be replaced as far as can be known."""
    if os.path.lexists(path):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
    os.rename(part, path)


def _remove_if_left(path: str) -> None:
    try:
        fd = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return  # a link, or another's: not one of ours
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _remove(path)
    except OSError:
        pass  # its writer lives
    finally:
        os.close(fd)


def _remove(path: str) -> None:
    for end in _BESIDE:
        remove_file(f"{path}{end}")
