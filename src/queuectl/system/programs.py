"""Programs: which file the first word of a command names."""

import errno
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


def resolve(program: bytes, env: "Mapping[bytes, bytes]", folder: bytes) -> bytes:
    """Find a program on the PATH the command itself will have, in the folder it will be in."""
    if b"/" in program:
        return program
    denied = False
    for place in env.get(b"PATH", os.fsencode(os.defpath)).split(b":"):
        path = os.path.join(folder, place or b".", program)
        if os.path.isfile(path):
            if os.access(path, os.X_OK):
                return path
            denied = True
    if denied:
        raise PermissionError(errno.EACCES, "permission denied")
    raise FileNotFoundError(errno.ENOENT, "not found on PATH")
