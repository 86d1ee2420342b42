"""End notes: how runs ended that are not settled yet, as whoever finds the worker dead reads them."""

import os
from pathlib import Path

import pytest

from queuectl.system.endnotes import EndNotes, path_of, read_end_notes


def test_what_was_written_is_read_until_it_is_settled(tmp_path: Path) -> None:
    lock = str(tmp_path / "w.lock")
    notes = EndNotes(lock)

    assert notes.open()
    assert notes.add(7, 2, '{"cpu_ms": 1, "output_tail": "é\\n"}')
    written = read_end_notes(lock)
    notes.clear()

    assert written == {(7, 2): {"cpu_ms": 1, "output_tail": "é\n"}}
    assert read_end_notes(lock) == {}


def test_a_worker_that_never_took_ahead_has_none(tmp_path: Path) -> None:
    lock = str(tmp_path / "w.lock")

    assert not EndNotes(lock).add(1, 1, "{}")
    assert read_end_notes(lock) is None


def test_a_line_that_was_cut_off_says_nothing(tmp_path: Path) -> None:
    lock = str(tmp_path / "w.lock")
    notes = EndNotes(lock)
    notes.open()
    notes.add(1, 1, '{"cpu_ms": 1}')

    with open(path_of(lock), "ab") as file:
        file.write(b'[2, 1, {"cpu_m\n[3]\n\0\0\0\n"x"\n')

    assert read_end_notes(lock) == {(1, 1): {"cpu_ms": 1}}


def test_a_disk_that_takes_no_more_is_told(tmp_path: Path) -> None:
    notes = EndNotes(str(tmp_path / "w.lock"))
    notes.open()
    full = os.open("/dev/full", os.O_WRONLY)
    os.dup2(full, notes._fd, inheritable=False)
    os.close(full)

    assert not notes.add(1, 1, "{}")
    notes.remove()


def test_whoever_adds_lines_in_our_place_may_leave_one_cut_off(tmp_path: Path) -> None:
    lock = str(tmp_path / "w.lock")
    notes = EndNotes(lock)
    before = notes.lend()
    notes.open()

    os.write(notes.lend(), b'[1, 1, {"cpu_ms": 1}]\n[2, 1, {"cp')
    notes.add(3, 1, '{"cpu_ms": 3}')
    written = read_end_notes(lock)
    notes.clear()

    assert before == -1
    assert written == {(1, 1): {"cpu_ms": 1}, (3, 1): {"cpu_ms": 3}}
    assert read_end_notes(lock) == {}


def test_they_go_with_the_worker(tmp_path: Path) -> None:
    lock = str(tmp_path / "w.lock")
    notes = EndNotes(lock)
    notes.open()

    notes.remove()

    assert not os.path.exists(path_of(lock))
    assert notes.open()


def test_a_line_that_was_cut_off_spoils_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = str(tmp_path / "w.lock")
    notes = EndNotes(lock)
    notes.open()
    write = os.write
    with monkeypatch.context() as full:
        full.setattr(os, "write", lambda fd, line: write(fd, line[:9]))
        is_written = notes.add(1, 1, '{"cpu_ms": 1}')

    assert not is_written
    assert notes.add(2, 1, '{"cpu_ms": 2}')
    assert read_end_notes(lock) == {(2, 1): {"cpu_ms": 2}}
