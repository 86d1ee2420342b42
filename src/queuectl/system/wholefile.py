"""Whole files: what is written takes its place when all of it is there, readable by its owner alone."""

import errno
import os
from contextlib import contextmanager

from queuectl.errors import BadInput, Refused, StoreFull
from queuectl.system.home import sync_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO


@contextmanager
def whole_file(path: str, *, force: bool) -> "Iterator[BinaryIO]":
    """Open a file for writing; it has its name when the statement ends well, else nothing is left of it.

    What exists is refused without `force`; a pipe or a device is written to as it is.
    """
    if os.path.isdir(path):
        raise BadInput(f"{path} is a folder", hint="name a file in it")
    try:
        if os.path.exists(path) and not os.path.isfile(path):
            with open(path, "wb") as file:
                yield file
            return
        if os.path.lexists(path) and not force:
            raise FileExistsError
        yield from _arriving(os.path.realpath(path), force=force)
    except FileExistsError:
        raise Refused(f"{path} exists", hint="name another file, or replace it with --force") from None
    except OSError as error:
        kind = StoreFull if error.errno in (errno.ENOSPC, errno.EDQUOT) else BadInput
        raise kind(f"cannot write {path}: {error.strerror}", hint="check the folder and the disk") from None


def _arriving(path: str, *, force: bool) -> "Iterator[BinaryIO]":
    folder, name = os.path.split(path)
    part = os.path.join(folder, f".{name}.{os.getpid()}.part")
    fd = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        with open(fd, "wb") as file:
            yield file
            file.flush()
            os.fsync(fd)
        if force:
            os.replace(part, path)
        else:
            _link(part, path)
        sync_folder(folder)
    finally:
        if os.path.lexists(part):
            os.unlink(part)


def _link(part: str, path: str) -> None:
    try:
        os.link(part, path)  # unlike a rename it never takes the place of what came there meanwhile
    except PermissionError:
        os.rename(part, path)  # a file system without links
