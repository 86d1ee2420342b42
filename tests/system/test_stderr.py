"""Standard error: nobody is waited for who does not read."""

import os
import pty
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from queuectl.system.stderr import Stderr

PLENTY = 1 << 20


@contextmanager
def as_stderr(fd: int) -> Iterator[None]:
    """Have something else for standard error."""
    before = os.dup(2)
    os.dup2(fd, 2)
    try:
        yield
    finally:
        os.dup2(before, 2)
        os.close(before)


def pipe() -> tuple[int, int]:
    """Make a pipe."""
    return os.pipe2(os.O_CLOEXEC)


def terminal() -> tuple[int, int]:
    """Make a terminal that nobody looks at."""
    return pty.openpty()


def connection() -> tuple[int, int]:
    """Make a socket, as a supervisor of services gives one."""
    reading, writing = socket.socketpair()
    return reading.detach(), writing.detach()


@pytest.mark.parametrize("make", [pipe, terminal, connection])
def test_who_does_not_read_is_not_waited_for(make: Callable[[], tuple[int, int]]) -> None:
    reading, writing = make()
    with as_stderr(writing):
        stderr = Stderr()
        taken = 0
        while stderr.write(b"x" * 64):
            taken += 1
            assert taken < PLENTY
        seen = len(os.read(reading, 4096))
        while not stderr.write(b"y"):
            seen += len(os.read(reading, 4096))
        said = b""
        while not said.endswith(b"y"):
            said += os.read(reading, 4096)

    assert os.get_blocking(writing)
    assert taken
    assert seen
    for fd in (reading, writing):
        os.close(fd)


def test_the_rest_of_what_did_not_fit_comes_first() -> None:
    reading, writing = pipe()
    long = b"".join(b"%d\n" % number for number in range(PLENTY // 4))
    with as_stderr(writing):
        stderr = Stderr()
        assert stderr.write(long)
        assert not stderr.write(b"next\n")
        said = b""
        while not said.endswith(b"next\n"):
            said += os.read(reading, 1 << 16)
            stderr.write(b"" if stderr._rest else b"next\n")

    assert said.startswith(long + b"next\n")
    for fd in (reading, writing):
        os.close(fd)


def test_a_file_is_written_where_others_write_it_too(tmp_path: Path) -> None:
    path = tmp_path / "log"
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC)
    with as_stderr(fd):
        stderr = Stderr()
        assert stderr.write(b"one\n")
        os.write(2, b"two\n")
        assert stderr.write(b"three\n")
    os.close(fd)

    assert path.read_bytes() == b"one\ntwo\nthree\n"


def test_nobody_there_any_more_changes_nothing() -> None:
    reading, writing = pipe()
    with as_stderr(writing):
        stderr = Stderr()
        os.close(reading)
        assert stderr.write(b"one\n")
        assert Stderr().write(b"two\n")
    os.close(writing)
