"""Output of one run: a pipe on one side, memory or a bounded file on the other. The command is never slowed for it.

Short output stays in memory. After a while, or past the size kept in the database, a file takes it, moved by splice so
that it never passes through this process. The file holds the head; what follows goes into two segment files that take
turns, so that head and newest tail are within the limit at every moment. `finish` joins them.
"""

import fcntl
import os
import sys
import termios

from queuectl.model.value import Value

CHUNK = 1 << 20
PIPE_BYTES = 1 << 20
NOTICE_BYTES = 128
NOT_WRITTEN = b"[queuectl: the output could not be written to disk"


class Kept(Value):
    """What is left of a run's output."""

    total_bytes: int
    file: str | None
    tail: bytes


class Output:
    """The output of one run, from its first byte to `finish`."""

    def __init__(self, path: str, *, tail_bytes: int, max_bytes: int) -> None:
        self.read_fd, self._write_fd = os.pipe2(os.O_CLOEXEC)
        self._path = path
        self._tail_bytes = tail_bytes
        self._head_limit = max_bytes // 2
        self._segment_limit = (max_bytes - self._head_limit - NOTICE_BYTES) // 2
        self._held = b""
        self._total = 0
        self._file: _Sink | None = None
        self._segments: list[_Sink] = []
        self._dropped = 0
        self.trouble: str | None = None

    @property
    def write_fd(self) -> int:
        """The end the command gets."""
        return self._write_fd

    def started(self) -> None:
        """Let go of the command's end, once the command has it."""
        os.close(self._write_fd)
        self._write_fd = -1
        os.set_blocking(self.read_fd, False)

    def pump(self) -> bool:
        """Take what is in the pipe, a bounded amount at a turn; False means its end was reached."""
        if self._file is None and self.trouble is None:
            return self._pump_to_memory()
        return self._pump_to_file()

    def open_file(self) -> None:
        """Give the output a file from now on: what was held goes first. A run that printed nothing needs none."""
        if self._file is not None or self.trouble is not None or not self._total:
            return
        try:
            self._file = _Sink.create(self._path, self._head_limit)
            self._write_held()
        except OSError as error:
            self._give_up(error)

    def finish(self) -> Kept:
        """Take the rest, close everything and return what is kept. What outlives the command is not waited for."""
        if self._write_fd >= 0:
            os.close(self._write_fd)
            self._write_fd = -1
            os.set_blocking(self.read_fd, False)
        # What is in the pipe now, and no more: somebody left in the background may print without end.
        end = self._total + _waiting(self.read_fd)
        while self._total < end and self.pump():
            pass
        os.close(self.read_fd)
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
        self._held += data
        self._total += len(data)
        if len(self._held) > self._tail_bytes:
            self.open_file()
            _grow_pipe(self.read_fd)
        return True

    def _pump_to_file(self) -> bool:
        sink = self._sink()
        try:
            moved = sink.splice(self.read_fd) if sink else len(self._discard())
        except BlockingIOError:
            return True
        except OSError as error:
            self._give_up(error)
            return True
        self._total += moved
        return moved > 0

    def _write_held(self) -> None:
        """Write what was held in memory, within the same limits as all that follows."""
        while self._held and (sink := self._sink()) is not None:
            taken = self._held[: sink.free]
            sink.write(taken)
            self._held = self._held[len(taken) :]

    def _sink(self) -> "_Sink | None":
        """Return the file that takes the next bytes: the head, then the segments in turn; None once writing failed."""
        if self.trouble is not None or self._file is None:
            return None
        if self._file.free:
            return self._file
        if self._segments and self._segments[-1].free:
            return self._segments[-1]
        try:
            if len(self._segments) == 2:
                self._dropped += self._segments.pop(0).remove()
            self._segments.append(_Sink.create(f"{self._path}.part", self._segment_limit))
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
        """Put notice and segments behind the head, and remove the segments."""
        assert self._file is not None
        if self._dropped:
            self._file.write(f"\n[queuectl: {self._dropped} bytes left out here]\n".encode())
        while self._segments:
            self._segments[0].append_to(self._file)
            self._segments.pop(0).remove()

    def _close(self, file: "_Sink") -> Kept:
        """Close what is open; segments that could not be joined are read for the tail and removed."""
        newest = (self._segments or [file])[-1]
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
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return None
    parts = [part for _, part in sorted(_parts_of(path))]
    file = _Sink(path, fd, 0)
    total = file.measure()
    try:
        if parts:
            file.write(b"\n[queuectl: its worker was lost; output may be missing here]\n")
        for part in parts:
            segment = _Sink(part, os.open(part, os.O_RDWR | os.O_CLOEXEC), 0)
            total += segment.measure()
            segment.append_to(file)
            segment.remove()
    except OSError:
        pass  # what could not be joined is lost; the run is on record all the same
    tail = file.last(tail_bytes)
    file.close()
    return Kept(total_bytes=total, file=path, tail=tail)


def _parts_of(path: str) -> list[tuple[int, str]]:
    """Return the segments of an output with the time each was written last."""
    folder, name = os.path.split(path)
    try:
        parts = [entry for entry in os.scandir(folder) if entry.name.startswith(f"{name}.part")]
        return [(entry.stat().st_mtime_ns, entry.path) for entry in parts]
    except OSError:
        return []  # another supervisor joins them just now


class _Sink:
    """A file being written, with its size."""

    def __init__(self, path: str, fd: int, limit: int) -> None:
        self.path = path
        self._fd = fd
        self._size = 0
        self._limit = limit

    @classmethod
    def create(cls, path: str, limit: int) -> "_Sink":
        """Create a file that no earlier run has used, for at most `limit` bytes."""
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        for number in range(1, 1000):
            name = path if number == 1 else f"{path}.{number}"
            try:
                return cls(name, os.open(name, flags, 0o600), limit)
            except FileExistsError:
                continue
        raise FileExistsError(f"{path} and its successors exist")

    def measure(self) -> int:
        """Go to the end of a file that another process wrote, and return how many bytes it holds."""
        self._size = os.lseek(self._fd, 0, os.SEEK_END)
        return self._size

    @property
    def free(self) -> int:
        """How many bytes it may still take."""
        return self._limit - self._size

    def splice(self, source: int) -> int:
        """Move bytes from a pipe without copying them through this process; 0 means the pipe has ended."""
        moved = os.splice(source, self._fd, min(CHUNK, self.free))
        self._size += moved
        return moved

    def write(self, data: bytes) -> None:
        """Write bytes at the end."""
        done = 0
        while done < len(data):
            done += os.write(self._fd, data[done:])
        self._size += len(data)

    def last(self, count: int) -> bytes:
        """Return the end of the file."""
        return os.pread(self._fd, count, max(0, self._size - count))

    def append_to(self, other: "_Sink") -> None:
        """Copy all of it behind another file, in the kernel."""
        done = 0
        while done < self._size:
            sent = os.sendfile(other._fd, self._fd, done, min(CHUNK, self._size - done))
            if sent == 0:
                break
            done += sent
            other._size += sent

    def remove(self) -> int:
        """Close and delete it; return how many bytes it had."""
        self.close()
        os.unlink(self.path)
        return self._size

    def close(self) -> None:
        """Close it; closing twice is fine."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _waiting(fd: int) -> int:
    """Return how many bytes a pipe holds just now."""
    return int.from_bytes(fcntl.ioctl(fd, termios.FIONREAD, bytes(4)), sys.byteorder)


def _grow_pipe(fd: int) -> None:
    """Let a talkative command write a megabyte ahead; where the kernel refuses, the default does."""
    try:
        fcntl.fcntl(fd, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    except OSError:
        pass
