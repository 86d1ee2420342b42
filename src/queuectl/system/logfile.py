"""A log file that several processes append to and that is rotated by whichever finds it full."""

import fcntl
import os

from queuectl.errors import StoreUnreachable

MAX_BYTES = 10 << 20
KEPT = 3


class LogFile:
    """Appends whole lines; a line never mixes with another's, also across processes."""

    def __init__(self, path: str, *, max_bytes: int = MAX_BYTES, kept: int = KEPT) -> None:
        self._path = path
        self._max_bytes = max_bytes
        self._kept = kept
        try:
            self._fd = self._open()
        except OSError as error:
            raise StoreUnreachable(
                f"cannot write {path}: {error.strerror}", hint="set QUEUECTL_HOME to a folder you may write to"
            ) from None

    def write(self, text: str) -> None:
        """Append text that ends a line. A full disk costs the line, never the worker."""
        try:
            if os.fstat(self._fd).st_size >= self._max_bytes:
                self._rotate()
            os.write(self._fd, text.encode(errors="backslashreplace"))
        except OSError:
            pass

    def close(self) -> None:
        """Close the file."""
        os.close(self._fd)

    def _open(self) -> int:
        return os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)

    def _rotate(self) -> None:
        """Move the file aside unless another process just did, then go on in the one that is there.

        Where that cannot be done the old file grows on, and nobody is locked out.
        """
        fcntl.flock(self._fd, fcntl.LOCK_EX)
        try:
            if self._is_current():
                for number in range(self._kept - 1, 0, -1):
                    if os.path.exists(f"{self._path}.{number}"):
                        os.replace(f"{self._path}.{number}", f"{self._path}.{number + 1}")
                os.replace(self._path, f"{self._path}.1")
            fresh = self._open()
        except OSError:
            fcntl.flock(self._fd, fcntl.LOCK_UN)
            return
        os.close(self._fd)  # frees the lock
        self._fd = fresh

    def _is_current(self) -> bool:
        """Whether ours is still the file at the path; another process may be moving it aside right now."""
        try:
            return os.path.samestat(os.fstat(self._fd), os.stat(self._path))
        except FileNotFoundError:
            return False
