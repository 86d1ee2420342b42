"""Output of one run: a pipe on one side, memory or a bounded file on the other. The command is never slowed for it.

Short output stays in memory. After a while, or past the size kept in the database, a file takes it, moved by splice so
that it never passes through this process. The file holds the head; what follows goes into two segment files that take
turns, so that head and newest tail are within the limit at every moment. `finish` joins them. Each segment is named by
the length of the head and by where in the whole output it begins, so that a reader (reading.py) knows where it is.

Output with a mask passes through this process: whatever is kept, in memory or on disk, went through the mask before,
and all lengths and places are those of the masked output. What the mask holds back is nowhere but in memory.
"""

import fcntl
import os
import re
import sys
import termios

from queuectl.model.value import Value
from queuectl.system.sink import Sink, successors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from queuectl.system.masking import Mask

PIPE_BYTES = 1 << 20
NOTICE_BYTES = 128
NOT_WRITTEN = b"[queuectl: the output could not be written to disk"
LEFT_OUT = re.compile(rb"\n\[queuectl: (\d+) bytes left out here\]\n")


class Kept(Value):
    """What is left of a run's output."""

    total_bytes: int
    file: str | None
    tail: bytes


NOTHING_KEPT = Kept(total_bytes=0, file=None, tail=b"")


class Part(Value):
    """A segment behind the head of an output: `begin` is where in the whole output its first byte stands."""

    path: str
    head_bytes: int
    begin: int


class Output:
    """The output of one run, from its first byte to `finish`."""

    # How all begin; most commands print next to nothing, and then it stays like this.
    trouble: str | None = None
    _held = b""
    _taken = 0  # bytes out of the pipe; a mask makes more or less of them
    _total = 0
    _file: Sink | None = None
    _segments: "Sequence[Sink]" = ()
    _dropped = 0
    _is_blocking = True

    def __init__(
        self, path: str, *, tail_bytes: int, max_bytes: int, mask: "Mask | None" = None, read_fd: int | None = None
    ) -> None:
        """Make the pipe of a command; `read_fd` is that of one which has its end already."""
        self.read_fd, self.write_fd = os.pipe2(os.O_CLOEXEC) if read_fd is None else (read_fd, -1)
        self._path = path
        self._tail_bytes = tail_bytes
        self._max_bytes = max_bytes
        self.mask = mask

    def started(self) -> None:
        """Let go of the command's end, once the command has it."""
        os.close(self.write_fd)
        self.write_fd = -1

    def pump(self) -> bool:
        """Take what is in the pipe, a bounded amount at a turn; False means its end was reached."""
        if self._is_blocking:
            self._is_blocking = False
            os.set_blocking(self.read_fd, False)
        if self.mask is not None:
            return self._pump_through(self.mask)
        if self._file is None and self.trouble is None:
            return self._pump_to_memory()
        return self._pump_to_file()

    def open_file(self) -> None:
        """Give the output a file from now on: what was held goes first. A run that printed nothing needs none."""
        if self._file is not None or self.trouble is not None or not self._total:
            return
        try:
            self._file = Sink.create(self._path, self._max_bytes // 2)
            self._write_held()
        except OSError as error:
            self._give_up(error)

    def finish(self) -> Kept:
        """Take the rest, close everything and return what is kept. What outlives the command is not waited for."""
        if self.write_fd >= 0:
            self.started()
        # What is in the pipe now, and no more: somebody left in the background may print without end.
        end = self._taken + _waiting(self.read_fd)
        while self._taken < end and self.pump():
            pass
        if self.mask is not None:
            self._keep(self.mask.end())
        os.close(self.read_fd)
        if not self._total and self.trouble is None:
            return NOTHING_KEPT
        if self._file is None:
            return Kept(total_bytes=self._total, file=None, tail=self._tail(b""))
        try:
            if self.trouble is None:
                self._join()
        except OSError as error:
            self._give_up(error)
        return self._close(self._file)

    def _pump_to_memory(self) -> bool:
        try:
            data = os.read(self.read_fd, 65536)
        except BlockingIOError:
            return True
        if not data:
            return False
        self._taken += len(data)
        self._hold(data)
        return True

    def _hold(self, data: bytes) -> None:
        """Keep bytes in memory, and give them a file once they are too many for the database."""
        self._held += data
        self._total += len(data)
        if len(self._held) > self._tail_bytes:
            self.open_file()
            _grow_pipe(self.read_fd)

    def _pump_to_file(self) -> bool:
        sink = self._sink()
        try:
            moved = sink.splice(self.read_fd) if sink else len(self._discard())
        except BlockingIOError:
            return True
        except OSError as error:
            self._give_up(error)
            return True
        self._taken += moved
        self._total += moved
        return moved > 0

    def _pump_through(self, mask: "Mask") -> bool:
        try:
            data = os.read(self.read_fd, 65536)
        except BlockingIOError:
            return True
        self._taken += len(data)
        self._keep(mask.feed(data))
        return bool(data)

    def _keep(self, data: bytes) -> None:
        """Keep bytes that came through the mask where all bytes are kept by now."""
        if self._file is None and self.trouble is None:
            self._hold(data)
            return
        self._total += len(data)
        self._held += data
        try:
            self._write_held()
        except OSError as error:
            self._give_up(error)
        self._held = self._held[-self._tail_bytes :]

    def _write_held(self) -> None:
        """Write what was held in memory, within the same limits as all that follows."""
        while self._held and (sink := self._sink()) is not None:
            self._held = self._held[sink.write_some(self._held[: sink.free]) :]

    def _sink(self) -> Sink | None:
        """Return the file that takes the next bytes: the head, then the segments in turn; None once writing failed."""
        if self.trouble is not None or self._file is None:
            return None
        if self._file.free:
            return self._file
        if self._segments and self._segments[-1].free:
            return self._segments[-1]
        try:
            if len(self._segments) == 2:
                self._dropped += self._segments[0].remove()
                self._segments = self._segments[1:]
            begin = self._file.size + self._dropped + sum(segment.size for segment in self._segments)
            name = f"{self._file.path}.part.{self._file.size}.{begin}"
            limit = (self._max_bytes - self._max_bytes // 2 - NOTICE_BYTES) // 2
            self._segments = (*self._segments, Sink.create(name, limit))
        except OSError as error:
            self._give_up(error)
            return None
        return self._segments[-1]

    def _discard(self) -> bytes:
        """Keep the command going when nothing can be written: the newest bytes stay in memory."""
        data = os.read(self.read_fd, 65536)
        self._held = (self._held + data)[-self._tail_bytes :]
        return data

    def _join(self) -> None:
        """Put notice and segments behind the head, and remove the segments; the head stays as it was if that fails."""
        assert self._file is not None
        if self._segments:
            _join(self._file, self._file.size, self._dropped, self._segments)
            self._segments = ()

    def _close(self, file: Sink) -> Kept:
        """Close what is open; segments that could not be joined are read for the tail and removed."""
        newest = self._segments[-1] if self._segments else file
        tail = self._tail(newest.last(self._tail_bytes))
        for segment in self._segments:
            try:
                segment.remove()
            except OSError:
                pass  # it stays as rubbish; the run is not to suffer from it
        file.close()
        return Kept(total_bytes=self._total, file=file.path, tail=tail)

    def _tail(self, written: bytes) -> bytes:
        """Return the end of the output: what was written last and what is held, with a notice if writing failed."""
        newest = written + self._held
        if self.trouble is None:
            return newest[-self._tail_bytes :]
        notice = NOT_WRITTEN + f": {self.trouble}]\n".encode()
        return notice + newest[len(notice) - self._tail_bytes :]

    def _give_up(self, error: OSError) -> None:
        self.trouble = self.trouble or (error.strerror or str(error))


def salvage(path: str, tail_bytes: int) -> Kept | None:
    """Put together what is left of the output of a run that nobody finished; None means no file."""
    newest = newest_file(path)
    if newest is None:
        return None
    try:
        file = Sink(newest, os.open(newest, os.O_RDWR | os.O_CLOEXEC), 0)
    except OSError:
        return None
    total = file.measure()
    parts = parts_of(newest)
    segments: list[Sink] = []
    try:
        for part in parts:
            segments.append(Sink(part.path, os.open(part.path, os.O_RDWR | os.O_CLOEXEC), 0))
            total = part.begin + segments[-1].measure()
        if parts:
            _join(file, parts[0].head_bytes, parts[0].begin - parts[0].head_bytes, segments)
    except OSError:
        pass  # what could not be joined is lost; the run is on record all the same
    for segment in segments:
        segment.close()
    tail = file.last(tail_bytes)
    file.close()
    return Kept(total_bytes=total, file=newest, tail=tail)


def size_so_far(path: str) -> int:
    """Return how much a run under way has printed into its file; 0 where there is none."""
    newest = newest_file(path)
    if newest is None:
        return 0
    try:
        parts = parts_of(newest)
        return parts[-1].begin + os.stat(parts[-1].path).st_size if parts else os.stat(newest).st_size
    except FileNotFoundError:
        return 0  # it is being joined or removed just now


def newest_file(path: str) -> str | None:
    """Return the file that an output made at this path: the last successor, where earlier ones were in its way."""
    found = None
    for name in successors(path):
        if not os.path.exists(name):
            return found
        found = name
    return found


def ends_with(path: str, tail: bytes) -> bool:
    """Whether a file ends with these bytes."""
    try:
        with open(path, "rb") as file:
            size = file.seek(0, os.SEEK_END)
            return size >= len(tail) and os.pread(file.fileno(), len(tail), size - len(tail)) == tail
    except OSError:
        return False


def parts_of(path: str) -> list[Part]:
    """Return the segments of an output that is not joined yet, in order."""
    folder, name = os.path.split(path)
    prefix = f"{name}.part."
    found = []
    try:
        for entry in os.listdir(folder):
            if entry.startswith(prefix):
                head, _, begin = entry.removeprefix(prefix).partition(".")
                if head.isdigit() and begin.isdigit():
                    path = os.path.join(folder, entry)
                    found.append(Part(path=path, head_bytes=int(head), begin=int(begin)))
    except OSError:
        return []
    return sorted(found, key=lambda part: part.begin)


def left_out(count: int) -> bytes:
    """Return the line that stands where bytes are missing."""
    return f"\n[queuectl: {count} bytes left out here]\n".encode()


def _join(file: Sink, head_bytes: int, dropped: int, segments: "Sequence[Sink]") -> None:
    """Put notice and segments behind the head and remove them; on failure the file is the head alone, as before."""
    try:
        file.cut(head_bytes)  # somebody may have died amid this
        if dropped:
            file.write(left_out(dropped))
        for segment in segments:
            segment.append_to(file)
    except OSError:
        file.cut(head_bytes)
        raise
    for segment in segments:
        segment.remove()


def _waiting(fd: int) -> int:
    """Return how many bytes a pipe holds just now."""
    return int.from_bytes(fcntl.ioctl(fd, termios.FIONREAD, bytes(4)), sys.byteorder)


def _grow_pipe(fd: int) -> None:
    """Let a talkative command write a megabyte ahead; where the kernel refuses, the default does."""
    try:
        fcntl.fcntl(fd, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    except OSError:
        pass
