"""An output as it stands at one moment: any part of it, without the rest, whatever becomes of the files."""

import os
from pathlib import Path

import pytest

from queuectl.system import output
from queuectl.system.output import Kept, left_out
from queuectl.system.reading import Reader
from queuectl.system.standing import Standing, so_far, whole_of
from tests.system.printing import LIMIT, Command, count_bytes_read, fail_on_files, numbered, pending

LONG = numbered(3 * LIMIT)


@pytest.fixture
def command(tmp_path: Path) -> Command:
    """A command whose output is kept as the smallest limit allows."""
    return Command(tmp_path / "1.1.log")


def prints(command: Command, data: bytes) -> None:
    """Print, and have it all taken."""
    command.prints(data)
    while pending(command.output.read_fd):
        command.output.pump()


def all_of(found: Standing) -> bytes:
    return b"".join(found.read(0, found.size))


def test_a_command_that_printed_nothing_yet_has_nothing(command: Command) -> None:
    assert so_far(str(command.path)).size == 0
    command.ends()


def test_what_is_there_is_what_a_reader_reads(command: Command) -> None:
    for data in (LONG[: LIMIT // 4], LONG[LIMIT // 4 : LIMIT], LONG[LIMIT:]):
        prints(command, data)
        reader = Reader(str(command.path))

        found = so_far(str(command.path))

        assert all_of(found) == b"".join(reader.more())
        assert found.size == len(all_of(found))
        reader.close()
    command.ends()


def test_a_part_is_read_without_the_rest(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    prints(command, LONG)
    found = so_far(str(command.path))
    whole = all_of(found)
    taken = count_bytes_read(monkeypatch)

    for start in (0, LIMIT // 2 - 5, LIMIT // 2 + 20, found.size - 10):
        assert b"".join(found.read(start, start + 10)) == whole[start : start + 10]

    assert 0 < sum(taken) <= 40
    command.ends()


def test_what_is_joined_or_dropped_meanwhile_can_still_be_read(command: Command) -> None:
    prints(command, LONG[: 2 * LIMIT])
    found = so_far(str(command.path))
    before = all_of(found)

    prints(command, LONG[2 * LIMIT :])
    kept = command.ends()

    assert all_of(found) == before
    assert all_of(whole_of(kept)) == Path(str(kept.file)).read_bytes()


def test_segments_that_go_between_the_look_and_the_opening_are_looked_for_again(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    prints(command, LONG)
    kept: list[Kept] = []
    parts_of = output.parts_of

    def look_and_join(path: str) -> object:
        parts = parts_of(path)
        if not kept:
            kept.append(command.ends())
        return parts

    monkeypatch.setattr("queuectl.system.standing.parts_of", look_and_join)

    assert all_of(so_far(str(command.path))) == Path(str(kept[0].file)).read_bytes()


def test_the_file_of_an_earlier_run_is_left_alone(command: Command) -> None:
    prints(command, LONG[:LIMIT])
    changed_ms = os.stat(command.path).st_mtime_ns // 1_000_000

    assert so_far(str(command.path), since_ms=changed_ms + 10_000).size == 0
    assert so_far(str(command.path), since_ms=changed_ms).size > 0
    command.ends()


def test_what_could_not_be_written_stands_behind_what_was(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    prints(command, LONG[:LIMIT])
    fail_on_files(monkeypatch, "splice")
    prints(command, LONG[LIMIT:])
    kept = command.ends()
    reader = Reader("")

    assert all_of(whole_of(kept)) == b"".join(reader.rest(kept))
    reader.close()


def test_where_the_file_is_gone_there_is_what_was_kept_with_the_run() -> None:
    kept = Kept(total_bytes=100, file="/nowhere/1.1.log", tail=b"the end\n")

    assert all_of(whole_of(kept)) == b"the end\n"


def test_streams_stand_behind_each_other() -> None:
    found = Standing([b"one", b""]) + Standing([left_out(3)])

    assert b"".join(found.read(2, 6)) == b"e" + left_out(3)[:3]
    assert list(found.read(found.size, found.size + 5)) == []
