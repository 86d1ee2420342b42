"""Sink: one file that output is written into, with its size. What goes into which file is decided in output.py."""

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

CHUNK = 1 << 20


class Sink:
    """A file being written, with its size."""

    def __init__(self, path: str, fd: int, limit: int) -> None:
        self.path = path
        self._fd = fd
        self.size = 0
        self._limit = limit

    @classmethod
    def create(cls, path: str, limit: int) -> "Sink":
        """Create a file that no earlier run has used, for at most `limit` bytes."""
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        for name in successors(path):
            try:
                return cls(name, os.open(name, flags, 0o600), limit)
            except FileExistsError:
                continue
        raise FileExistsError(f"{path} and its successors exist")

    def measure(self) -> int:
        """Go to the end of a file that another process wrote, and return how many bytes it holds."""
        self.size = os.lseek(self._fd, 0, os.SEEK_END)
        return self.size

    @property
    def free(self) -> int:
        """How many bytes it may still take."""
        return self._limit - self.size

    def splice(self, source: int) -> int:
        """Move bytes from a pipe without copying them through this process; 0 means the pipe has ended."""
        moved = os.splice(source, self._fd, min(CHUNK, self.free))
        self.size += moved
        return moved

    def write(self, data: bytes) -> None:
        """Write bytes at the end."""
        done = 0
        while done < len(data):
            done += self.write_some(data[done:])

    def write_some(self, data: bytes) -> int:
        """Write as many of the bytes at the end as the kernel takes at once; return how many."""
        done = os.write(self._fd, data)
        self.size += done
        return done

    def cut(self, size: int) -> None:
        """Drop what stands behind so many bytes, and go on there."""
        os.ftruncate(self._fd, size)
        os.lseek(self._fd, size, os.SEEK_SET)
        self.size = size

    def last(self, count: int) -> bytes:
        """Return the end of the file."""
        return os.pread(self._fd, count, max(0, self.size - count))

    def append_to(self, other: "Sink") -> None:
        """Copy all of it behind another file, in the kernel."""
        done = 0
        while done < self.size:
            sent = os.sendfile(other._fd, self._fd, done, min(CHUNK, self.size - done))
            if sent == 0:
                break
            done += sent
            other.size += sent

    def remove(self) -> int:
        """Close and delete it; return how many bytes it had."""
        self.close()
        os.unlink(self.path)
        return self.size

    def close(self) -> None:
        """Close it; closing twice is fine."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def successors(path: str) -> "Iterator[str]":
    """Yield the names an output may have, in the order they are taken: earlier files may be in its way."""
    yield path
    for number in range(2, 1000):
        yield f"{path}.{number}"
