"""The log file that several processes append to: no line is lost or mixed, and old files are few."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from queuectl.errors import StoreUnreachable
from queuectl.system import logfile
from queuectl.system.logfile import LogFile

WRITERS = 4
LINES = 1500
WRITER = """
import sys
from queuectl.system.logfile import LogFile

path, name, lines, max_bytes, kept = sys.argv[1:]
log = LogFile(path, max_bytes=int(max_bytes), kept=int(kept))
print("ready", flush=True)
sys.stdin.readline()
for number in range(int(lines)):
    log.write(f"{name} {number} {'x' * (number % 50)}\\n")
"""


def test_lines_are_appended_to_what_is_there(tmp_path: Path) -> None:
    path = tmp_path / "queuectl.log"
    path.write_text("before\n")

    log = LogFile(str(path))
    log.write("after\n")
    log.close()

    assert path.read_text() == "before\nafter\n"


def test_a_new_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    LogFile(str(tmp_path / "queuectl.log")).close()

    assert (tmp_path / "queuectl.log").stat().st_mode & 0o777 == 0o600


def test_a_full_file_is_moved_aside_and_the_oldest_forgotten(tmp_path: Path) -> None:
    log = LogFile(str(tmp_path / "queuectl.log"), max_bytes=10)

    for number in range(10):
        log.write(f"line {number:06}\n")
    log.close()

    files = sorted(path.name for path in tmp_path.iterdir())
    assert files == ["queuectl.log", *(f"queuectl.log.{number}" for number in range(1, logfile.KEPT + 1))]
    assert (tmp_path / "queuectl.log").read_text() == "line 000009\n"
    assert (tmp_path / "queuectl.log.3").read_text() == "line 000006\n"


def test_several_processes_rotate_without_losing_or_mixing_a_line(tmp_path: Path) -> None:
    path = tmp_path / "queuectl.log"

    run_writers(path, max_bytes=2_000, kept=10_000)

    said = [line for file in tmp_path.iterdir() for line in file.read_text().splitlines()]
    expected = [f"{name} {number} {'x' * (number % 50)}" for name in range(WRITERS) for number in range(LINES)]
    assert sorted(said) == sorted(expected)
    assert len(list(tmp_path.iterdir())) > 50


def test_several_processes_keep_only_so_many_files(tmp_path: Path) -> None:
    path = tmp_path / "queuectl.log"

    run_writers(path, max_bytes=2_000, kept=logfile.KEPT)

    assert len(list(tmp_path.iterdir())) == logfile.KEPT + 1
    for file in tmp_path.iterdir():
        assert file.stat().st_size < 2_000 + WRITERS * 70


def test_a_rotation_that_fails_neither_loses_the_line_nor_locks_the_others_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "queuectl.log"
    log, other = (LogFile(str(path), max_bytes=10) for _ in range(2))
    log.write("a line that fills it\n")

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", refuse)
        log.write("kept all the same\n")
    thread = threading.Thread(target=other.write, args=("from another\n",), daemon=True)
    thread.start()
    thread.join(timeout=60)

    assert not thread.is_alive()
    assert (tmp_path / "queuectl.log.1").read_text() == "a line that fills it\nkept all the same\n"
    assert path.read_text() == "from another\n"


def test_a_log_that_cannot_be_opened_says_which_and_why(tmp_path: Path) -> None:
    with pytest.raises(StoreUnreachable, match=f"cannot write {tmp_path}: Is a directory"):
        LogFile(str(tmp_path))


def refuse(*_: object) -> None:
    raise OSError("read-only")


def run_writers(path: Path, *, max_bytes: int, kept: int) -> None:
    """Let processes write at the same time, from a common start, to the end."""
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path), str(name), str(LINES), str(max_bytes), str(kept)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in range(WRITERS)
    ]
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
    for writer in writers:
        writer.communicate(timeout=60)
        assert writer.returncode == 0
