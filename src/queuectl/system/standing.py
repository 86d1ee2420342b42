"""Standing: an output as it stands at one moment, in pieces of which any part is read without the rest.

How it is read as it grows is in reading.py. The files are held open: what is joined, dropped or removed meanwhile
changes nothing of what was there.
"""

import os

from queuectl.system.output import left_out, newest_file, parts_of
from queuectl.system.reading import tail_behind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from queuectl.system.output import Kept

CHUNK = 256 << 10
MOST_TRIES = 100


class Standing:
    """What there is of an output, from its first byte to its `size`."""

    def __init__(self, pieces: "Sequence[bytes | Held]") -> None:
        self._pieces = tuple(pieces)
        self.size = sum(map(len, pieces))

    def __add__(self, other: "Standing") -> "Standing":
        return Standing((*self._pieces, *other._pieces))

    def read(self, start: int, end: int) -> "Iterator[bytes]":
        """Yield the bytes from one place up to another."""
        for piece in self._pieces:
            size = len(piece)
            if start < size and end > 0:
                first, last = max(start, 0), min(end, size)
                yield from (piece[first:last],) if isinstance(piece, bytes) else piece.read(first, last)
            start, end = start - size, end - size


class Held:
    """A file that is held open, up to the size that it had."""

    def __init__(self, path: str, size: int | None = None) -> None:
        self._fd = -1
        self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        state = os.fstat(self._fd)
        self.changed_ns = state.st_mtime_ns
        self._size = state.st_size if size is None else min(size, state.st_size)

    def __len__(self) -> int:
        return self._size

    def __del__(self) -> None:
        # Whoever asked may be gone before the first byte was sent: then nobody else would close it.
        if self._fd >= 0:
            os.close(self._fd)

    def read(self, start: int, end: int) -> "Iterator[bytes]":
        """Yield the bytes from one place up to another, some at a time."""
        while start < end and (data := os.pread(self._fd, min(CHUNK, end - start), start)):
            start += len(data)
            yield data


def so_far(path: str, *, since_ms: int = 0) -> Standing:
    """Return what a run under way has written up to now; a file from before `since_ms` is an earlier run's."""
    for _ in range(MOST_TRIES):
        name = newest_file(path)
        if name is None:
            break
        # Before the head is opened: without segments it is whole, or there was no need for one yet.
        parts = parts_of(name)
        try:
            head = Held(name, parts[0].head_bytes if parts else None)
            behind = [Held(part.path) for part in parts]
        except OSError:
            continue  # joined, dropped or removed just now
        if head.changed_ns < since_ms * 1_000_000:
            break
        missing = parts[0].begin - len(head) if parts else 0
        return Standing([head, *([left_out(missing)] if missing else ()), *behind])
    return Standing(())


def whole_of(kept: "Kept") -> Standing:
    """Return what is kept of a run that is over: its file, where that can be read, and what could not be written."""
    try:
        pieces = [Held(kept.file)] if kept.file is not None else []
    except OSError:
        pieces = []
    size = sum(map(len, pieces))
    return Standing([*pieces, *tail_behind(kept, size, has_file=bool(pieces))])
