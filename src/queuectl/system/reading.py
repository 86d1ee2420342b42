"""Reading the output of a run, also while it is written: where a reader stands, whatever becomes of the files.

Writing is in output.py. A reader is in the head, where its place is an offset in the file, or behind it, where its
place is counted in the whole output: the segments come and go, and their names say where each begins. Once the run is
over, all is in one file again, with a notice where something was dropped; from that notice the reader knows its place.
"""

import os

from queuectl.system.output import LEFT_OUT, NOT_WRITTEN, NOTICE_BYTES, left_out, newest_file, parts_of, size_so_far

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from queuectl.system.output import Kept, Part

CHUNK = 64 << 10
LEAST_HEAD_BYTES = 32 << 10  # half of the smallest max_output_bytes: before that, there is no segment to look for


class Reader:
    """One reader of one output: every byte is given once and in order, and what was dropped is counted.

    Ask for `more` while the run is under way, for the `rest` once it is over. A file that was last written before
    `since_ms` is an earlier run's, and left alone.
    """

    def __init__(self, path: str, *, since_ms: int = 0) -> None:
        self._path = path
        self._since_ms = since_ms
        self._name = path
        self._fd = -1
        self._at = 0
        self._head_bytes: int | None = None
        self._place = 0
        self._part_fd = -1
        self._part_begin = -1

    @property
    def place(self) -> int:
        """How many bytes of the whole output lie behind the reader, dropped ones included."""
        return self._at if self._head_bytes is None else self._place

    @property
    def is_open(self) -> bool:
        """Whether there was a file to read."""
        return self._fd >= 0

    def size_now(self) -> int:
        """Return how many bytes the whole output has now."""
        return size_so_far(self._path) if self._open() else 0

    def close(self) -> None:
        """Let go of the files."""
        for fd in (self._fd, self._part_fd):
            if fd >= 0:
                os.close(fd)
        self._fd = self._part_fd = -1

    def more(self) -> "Iterator[bytes]":
        """Yield what has been written so far and was not given yet."""
        if self._head_bytes is None:
            yield from self._more_of_head()
        if self._head_bytes is not None:
            yield from self._more_of_parts()

    def rest(self, kept: "Kept | None") -> "Iterator[bytes]":
        """Yield what is left of an output that is over; None means that what was kept of it is not known any more."""
        if kept is not None and kept.file is not None:
            self._take(kept.file)
        if self._fd >= 0:
            if self._head_bytes is not None:
                yield from self._read_part()
                yield from self._step_into_joined(kept.total_bytes if kept else None)
            yield from self._read_file()
        if kept is not None:
            yield from tail_behind(kept, self.place, has_file=self._fd >= 0)

    def go_to_last_lines(self, count: int) -> None:
        """Step over all that is written so far but the last lines; not a byte more is read than that takes."""
        if not self._open():
            return
        lines = _Lines(count)
        parts = parts_of(self._name)
        for part in reversed(parts):
            try:
                fd = os.open(part.path, os.O_RDONLY | os.O_CLOEXEC)
            except FileNotFoundError:
                self.go_to_last_lines(count)  # it was joined or dropped just now
                return
            begin = lines.begin_in(fd, os.fstat(fd).st_size)
            if begin is not None:
                self._leave_head(part.head_bytes)
                self._enter(part, fd)
                self._place = part.begin + begin
                return
            os.close(fd)
        size = parts[0].head_bytes if parts else os.fstat(self._fd).st_size
        self._at = lines.begin_in(self._fd, size) or 0

    def _open(self) -> bool:
        """Open the file that the run writes; False means that there is none yet."""
        if self._fd >= 0:
            return True
        name = newest_file(self._path)
        if name is None:
            return False
        try:
            fd = os.open(name, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return False
        if os.fstat(fd).st_mtime_ns < self._since_ms * 1_000_000:
            os.close(fd)
            return False
        self._fd, self._name = fd, name
        return True

    def _take(self, name: str) -> None:
        """Read from the file that is on record; should another have been taken for it, begin anew."""
        try:
            fd = os.open(name, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return
        if self._fd >= 0 and os.path.sameopenfile(fd, self._fd):
            os.close(fd)
            return
        self.close()
        self._fd, self._name, self._at, self._head_bytes = fd, name, 0, None

    def _more_of_head(self) -> "Iterator[bytes]":
        if not self._open():
            return
        yield from self._read_file()
        if self._at < LEAST_HEAD_BYTES:
            return
        parts = parts_of(self._name)
        if not parts or self._at > parts[0].head_bytes:
            return  # no segment yet; or they are being joined, and what stands behind the head is the rest
        head_bytes = parts[0].head_bytes
        yield from self._read_file(head_bytes)
        self._leave_head(head_bytes)

    def _leave_head(self, head_bytes: int) -> None:
        self._head_bytes = self._place = self._at = head_bytes

    def _more_of_parts(self) -> "Iterator[bytes]":
        while True:
            parts = parts_of(self._name)  # before reading: a segment is whole once there is another behind it
            yield from self._read_part()
            following = [part for part in parts if part.begin >= self._place and part.begin != self._part_begin]
            if not following:
                return
            part = following[0]
            try:
                fd = os.open(part.path, os.O_RDONLY | os.O_CLOEXEC)
            except FileNotFoundError:
                continue  # dropped or joined since
            missing = part.begin - self._place
            self._enter(part, fd)
            if missing:
                yield left_out(missing)

    def _enter(self, part: "Part", fd: int) -> None:
        if self._part_fd >= 0:
            os.close(self._part_fd)
        self._part_fd, self._part_begin, self._place = fd, part.begin, part.begin

    def _step_into_joined(self, total: int | None) -> "Iterator[bytes]":
        """Find the place in the joined file that the reader has reached behind the head."""
        assert self._head_bytes is not None
        size = os.fstat(self._fd).st_size
        if size <= self._head_bytes:
            return  # the segments could not be joined
        found = None
        if size != total:
            found = LEFT_OUT.match(os.pread(self._fd, NOTICE_BYTES, self._head_bytes))
        behind = self._head_bytes + (len(found[0]) if found else 0)
        begin = self._head_bytes + (int(found[1]) if found else 0)
        missing = begin - self._place
        self._place = max(self._place, begin)
        self._at = behind + self._place - begin
        if missing > 0:
            yield left_out(missing)

    def _read_file(self, end: int | None = None) -> "Iterator[bytes]":
        while end is None or self._at < end:
            data = os.pread(self._fd, CHUNK if end is None else min(CHUNK, end - self._at), self._at)
            if not data:
                return
            self._at += len(data)
            yield data

    def _read_part(self) -> "Iterator[bytes]":
        while self._part_fd >= 0 and (data := os.pread(self._part_fd, CHUNK, self._place - self._part_begin)):
            self._place += len(data)
            yield data


def tail_behind(kept: "Kept", place: int, *, has_file: bool) -> "Iterator[bytes]":
    """Yield what the database alone keeps of an output that is over, less what was given up to `place`."""
    newest = kept.tail
    if kept.tail.startswith(NOT_WRITTEN):
        notice, _, newest = kept.tail.partition(b"\n")
        yield (b"\n" if place else b"") + notice + b"\n"
        if kept.total_bytes - len(newest) > place:
            yield left_out(kept.total_bytes - len(newest) - place)
    elif has_file:
        return
    given = place - (kept.total_bytes - len(newest))
    if newest[max(0, given) :]:
        yield newest[max(0, given) :]


def last_lines(kept: "Kept", count: int) -> "Iterator[bytes]":
    """Yield the last lines of an output that is over, read from its end."""
    reader = Reader(kept.file or "")
    is_written = not kept.tail.startswith(NOT_WRITTEN)
    if kept.file is None or not is_written:
        lines = kept.tail.split(b"\n")
        held = len(lines) - (lines[-1] == b"")
        if kept.file is None or held >= count:
            yield b"\n".join(lines[-count - (lines[-1] == b"") :])
            return
        count -= held
    try:
        reader._take(kept.file)
        reader.go_to_last_lines(count)
        yield from reader.rest(kept)
    finally:
        reader.close()


class _Lines:
    """Looks for the begin of the last lines from the end on; a newline that ends the output ends its last line."""

    def __init__(self, count: int) -> None:
        self._wanted = count
        self._is_at_end = True

    def begin_in(self, fd: int, end: int) -> int | None:
        """Return where in a file they begin; None means further ahead than this file."""
        while end > 0:
            start = max(0, end - CHUNK)
            data = os.pread(fd, end - start, start)
            if self._is_at_end and data:
                self._is_at_end = False
                self._wanted += data.endswith(b"\n")
            at = len(data)
            while (at := data.rfind(b"\n", 0, at)) >= 0:
                self._wanted -= 1
                if self._wanted == 0:
                    return start + at + 1
            end = start
        return None
