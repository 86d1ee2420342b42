"""A command that prints, without the command: the end of its pipe, and the output that listens."""

import errno
import fcntl
import os
import re
import termios
from collections.abc import Sequence
from pathlib import Path

import pytest

from queuectl.system.masking import Mask
from queuectl.system.output import Kept, Output

KIB = 1 << 10
TAIL = 16 * KIB
LIMIT = 64 * KIB
NOTICE = re.compile(rb"\n\[queuectl: (\d+) bytes left out here\]\n")


class Command:
    """Stands for a command: the end of the pipe it would have, and the output that listens."""

    def __init__(
        self, path: Path, *, tail_bytes: int = TAIL, max_bytes: int = LIMIT, secrets: Sequence[bytes] = ()
    ) -> None:
        self.path = path
        mask = Mask(secrets) if secrets else None
        self.output = Output(str(path), tail_bytes=tail_bytes, max_bytes=max_bytes, mask=mask)
        self._fd = os.dup(self.output.write_fd)
        self.output.started()
        os.set_blocking(self._fd, False)

    def prints(self, data: bytes) -> None:
        """Write all of it, while the output takes what the pipe cannot hold."""
        while data:
            try:
                data = data[os.write(self._fd, data) :]
            except BlockingIOError:
                assert self.output.pump()

    def prints_without_a_listener(self, data: bytes) -> bytes:
        """Write what the pipe holds, as a command does just before it exits; return what fitted."""
        try:
            return data[: os.write(self._fd, data)]
        except BlockingIOError:
            return b""

    def ends(self) -> Kept:
        """Exit, and return what is kept."""
        os.close(self._fd)
        return self.output.finish()


def numbered(count: int) -> bytes:
    """Return bytes that tell where in the stream they stand."""
    return b"".join(b"%07d\n" % number for number in range(count // 8 + 1))[:count]


def assert_exact(seen: bytes, data: bytes) -> None:
    """Whatever was left out was counted; everything else is there, once and in order."""
    place, end = 0, 0
    for notice in NOTICE.finditer(seen):
        piece = seen[end : notice.start()]
        assert data[place : place + len(piece)] == piece
        place += len(piece) + int(notice[1])
        end = notice.end()
    assert data[place:] == seen[end:]


def pending(fd: int) -> int:
    """Return how many bytes wait in a pipe."""
    return int.from_bytes(fcntl.ioctl(fd, termios.FIONREAD, bytes(4)), "little")


def fail_on_files(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Let a system call say that the disk is full whenever its target is a regular file."""
    real = getattr(os, name)
    place = 1 if name == "splice" else 0

    def full(*args: object) -> object:
        if os.path.isfile(f"/proc/self/fd/{args[place]}"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(*args)

    monkeypatch.setattr(os, name, full)


def count_bytes_read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that fills with how many bytes are asked for wherever a file is read at a place."""
    pread = os.pread
    asked: list[int] = []

    def counting(fd: int, count: int, place: int) -> bytes:
        asked.append(count)
        return pread(fd, count, place)

    monkeypatch.setattr(os, "pread", counting)
    return asked
