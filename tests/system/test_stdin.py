"""Standard input of a command: files, devices, bytes; nothing that could hold the worker up."""

import os
import socket
from pathlib import Path

import pytest

from queuectl.system.process import CannotStart
from queuectl.system.stdin import hold, open_file


def test_a_file_is_read_from_its_beginning_and_waits_for_what_it_reads(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(b"line\n")

    fd = open_file(str(tmp_path / "in"))
    seen = os.read(fd, 100), os.get_blocking(fd), os.get_inheritable(fd)
    os.close(fd)

    assert seen == (b"line\n", True, False)


def test_a_device_can_be_read() -> None:
    fd = open_file("/dev/zero")
    seen = os.read(fd, 2)
    os.close(fd)

    assert seen == b"\0\0"


def test_what_is_missing_or_no_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(tmp_path / "socket"))
    before = len(os.listdir("/proc/self/fd"))

    said = {}
    for name in ("missing", ".", "pipe", "socket"):
        with pytest.raises(CannotStart) as error:
            open_file(str(tmp_path / name))
        said[name] = error.value.reason.removeprefix(f"cannot read standard input from {tmp_path / name}: ")
        assert (error.value.code, error.value.is_passing) == (126, False)

    assert said == {
        "missing": "No such file or directory",
        ".": "it is a folder",
        "pipe": "it is neither a file nor a device",
        "socket": "No such device or address",
    }
    assert len(os.listdir("/proc/self/fd")) == before
    listener.close()


@pytest.mark.parametrize("data", [b"", b"x", bytes(range(256)) * 10_000])
def test_bytes_are_held_as_they_are(data: bytes) -> None:
    with open(hold(data), "rb") as file:
        assert not os.get_inheritable(file.fileno())
        assert file.read() == data
