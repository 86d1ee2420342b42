"""Secrets: where a worker finds the values that its commands get by name alone. Hiding them is in masking.py.

Values are looked for at each start of a command, so that a changed file counts at once, and no message holds one.
"""

import os
import shlex
import stat

from queuectl.system.names import CREDENTIALS_VARIABLE, SECRET_PREFIX
from queuectl.system.process import CANNOT_RUN, NO_ROOM, CannotStart

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MAX_VARIABLE_BYTES = (128 << 10) - 1  # of NAME=VALUE, less the NUL behind it: the kernel takes no more


def find_secrets(names: "Sequence[str]", folder: str, environ: "Mapping[bytes, bytes]") -> dict[bytes, bytes]:
    """Return the values of secrets by name, from the environment of this process, its credentials or a folder.

    Raises CannotStart when one is missing or cannot be a variable. The first place that has it decides: a bad value
    there is not passed over for a good one further on.
    """
    return {name.encode(): _checked(name, *_find(name, folder, environ)) for name in names}


def _find(name: str, folder: str, environ: "Mapping[bytes, bytes]") -> tuple[bytes, str]:
    """Return the value of a secret and where it was found."""
    own = SECRET_PREFIX + name
    if own.encode() in environ:
        return environ[own.encode()], f"the variable {own} of the worker"
    credentials = os.fsdecode(environ.get(CREDENTIALS_VARIABLE.encode(), b""))
    if credentials:
        path = os.path.join(credentials, name)
        value = _read(name, path)
        if value is not None:
            return value, path
    path = os.path.join(folder, name)
    value = _read(name, path, is_private=True)
    if value is not None:
        return value, path
    if name.encode() in environ:
        return environ[name.encode()], f"the variable {name} of the worker"
    raise _missing(name, path, credentials)


def _read(name: str, path: str, *, is_private: bool = False) -> bytes | None:
    """Return what a file holds less its last newline; None means there is none. A private one is for us alone."""
    try:
        # Without O_NONBLOCK a pipe that nobody writes to would hold the worker up for ever.
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            status = os.fstat(fd)
            if not stat.S_ISREG(status.st_mode):
                raise _unusable(name, f"{path} is not a file", "put the value into a file of that name")
            if is_private:
                _refuse_shared(name, path, status)
            return os.read(fd, MAX_VARIABLE_BYTES + 2).removesuffix(b"\n")
        finally:
            os.close(fd)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise CannotStart(
            CANNOT_RUN, f"secret {name}: cannot read {path}: {error.strerror}", is_passing=error.errno in NO_ROOM
        ) from None


def _refuse_shared(name: str, path: str, status: os.stat_result) -> None:
    word = shlex.quote(path)
    if status.st_uid != os.geteuid():
        raise _unusable(name, f"{path} belongs to another user", f"run: sudo chown {os.geteuid()} {word}")
    if status.st_mode & 0o077:
        raise _unusable(
            name, f"{path} is open to other users, mode {status.st_mode & 0o777:o}", f"run: chmod 600 {word}"
        )
    folder = os.path.dirname(path)
    if os.stat(folder).st_mode & 0o022:
        raise _unusable(name, f"others may write to {folder}", f"run: chmod 700 {shlex.quote(folder)}")


def _checked(name: str, value: bytes, where: str) -> bytes:
    if not value:
        raise _unusable(name, f"{where} is empty", "put the value there")
    if b"\0" in value:
        raise _unusable(name, f"{where} holds a NUL", "a variable cannot: give the command a file instead")
    if len(name) + 1 + len(value) > MAX_VARIABLE_BYTES:
        raise _unusable(name, f"{where} is longer than a variable may be, 128 KiB", "give the command a file instead")
    return value


def _missing(name: str, path: str, credentials: str) -> CannotStart:
    credential = f"{os.path.join(credentials, name)}, " if credentials else ""
    folder = shlex.quote(os.path.dirname(path))
    return _unusable(
        name,
        f"not found as variable {SECRET_PREFIX}{name}, {credential}{path} or variable {name} of the worker",
        f"run: mkdir -p -m 700 {folder} && install -m 600 /dev/stdin {shlex.quote(path)}",
    )


def _unusable(name: str, why: str, remedy: str) -> CannotStart:
    return CannotStart(CANNOT_RUN, f"secret {name}: {why} ({remedy})")
