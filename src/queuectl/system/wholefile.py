"""Whole files: what is written takes its place when all of it is there, readable by its owner alone."""

import errno
import os
from contextlib import contextmanager

from queuectl.errors import BadInput, Refused, StoreFull
from queuectl.system.parts import Part, put_in_place

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
    folder = os.path.dirname(os.path.realpath(path))
    if not os.path.isdir(folder):
        raise BadInput(f"no folder {folder} for {path}", hint=f"create it: mkdir -p {folder}")
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
    part = Part(folder, f".{name}.")
    try:
        with open(part.path, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        put_in_place(part.path, path, force=force)
    finally:
        part.close()
