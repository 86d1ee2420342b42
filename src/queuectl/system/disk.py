"""Disks and files as they are found: how much room is left, whose a file is and who else may reach it."""

import os

from queuectl.model.value import Value


class Space(Value):
    """The room of one file system, for those who are not root; `total_files` 0 means that files are not counted."""

    free_bytes: int
    total_bytes: int
    free_files: int
    total_files: int


class Owned(Value):
    """Whose a file or folder is, and who may do what with it."""

    path: str
    owner: int
    mode: int

    @property
    def is_readable_by_others(self) -> bool:
        """Whether somebody beside its owner may read it, or list it."""
        return bool(self.mode & 0o044)

    @property
    def is_writable_by_others(self) -> bool:
        """Whether somebody beside its owner may change it."""
        return bool(self.mode & 0o022)


def space_of(path: str) -> Space:
    """Return the room on the disk of a path; of a path that is not there yet, on that of the nearest folder above."""
    while not os.path.exists(path):
        path = os.path.dirname(path) or "."
    disk = os.statvfs(path)
    return Space(
        free_bytes=disk.f_bavail * disk.f_frsize,
        total_bytes=disk.f_blocks * disk.f_frsize,
        free_files=disk.f_favail,
        total_files=disk.f_files,
    )


def owned(path: str) -> Owned | None:
    """Return whose a path is; None where there is nothing, or nothing we may see."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return Owned(path=path, owner=found.st_uid, mode=found.st_mode & 0o777)


def size_of(path: str) -> int:
    """Return the size of a file; 0 where there is none."""
    try:
        return os.path.getsize(path)
    except OSError:
        return 0


def user_name(uid: int) -> str:
    """Return the name of a user, or the number of one without."""
    import pwd

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
