"""Reading an output while it is written: every byte once and in order, whatever becomes of the files meanwhile."""

import os
import re
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queuectl.system import reading
from queuectl.system.output import Kept, left_out, salvage
from queuectl.system.reading import Reader, last_lines
from tests.system.printing import LIMIT, NOTICE, TAIL, Command, assert_exact, fail_on_files, numbered, pending

STEPS = st.one_of(
    st.tuples(st.just("print"), st.integers(1, 60_000)),
    st.tuples(st.just("read"), st.integers(1, 4)),
    st.tuples(st.just("open"), st.just(0)),
)


@pytest.fixture
def command(tmp_path: Path) -> Command:
    """A command whose output is kept as the smallest limit allows."""
    return Command(tmp_path / "1.1.log")


@pytest.fixture
def reader(command: Command) -> Reader:
    return Reader(str(command.path))


def prints(command: Command, data: bytes) -> None:
    """Print, and have it all taken."""
    command.prints(data)
    while pending(command.output.read_fd):
        command.output.pump()


def read(reader: Reader) -> bytes:
    return b"".join(reader.more())


def rest(reader: Reader, kept: Kept | None) -> bytes:
    data = b"".join(reader.rest(kept))
    reader.close()
    return data


def test_output_is_read_as_it_grows_and_to_its_end(command: Command, reader: Reader) -> None:
    prints(command, b"one ")
    before_the_file = read(reader)
    command.output.open_file()
    first = read(reader)
    prints(command, b"two ")
    second = read(reader)
    command.prints(b"three")

    assert (before_the_file, first, second) == (b"", b"one ", b"two ")
    assert rest(reader, command.ends()) == b"three"


def test_output_that_never_had_a_file_comes_at_the_end(command: Command, reader: Reader) -> None:
    command.prints(b"short\n")

    assert read(reader) == b""
    assert rest(reader, command.ends()) == b"short\n"


def test_a_reader_that_keeps_up_sees_also_what_the_file_drops(command: Command, reader: Reader) -> None:
    data, seen = numbered(400_000), b""

    for start in range(0, len(data), 10_000):
        prints(command, data[start : start + 10_000])
        seen += read(reader)
    seen += rest(reader, command.ends())

    assert seen == data


def test_a_reader_that_falls_behind_is_told_how_much_it_missed(command: Command, reader: Reader) -> None:
    data = numbered(400_000)
    prints(command, data[:40_000])
    seen = read(reader)
    prints(command, data[40_000:])

    seen += read(reader)
    seen += rest(reader, command.ends())

    assert len(NOTICE.findall(seen)) == 1
    assert_exact(seen, data)


def test_a_reader_that_stopped_amid_the_segments_finds_its_place_in_the_joined_file(
    command: Command, reader: Reader
) -> None:
    data = numbered(500_000)
    prints(command, data[:45_000])
    seen = read(reader)
    prints(command, data[45_000:])

    seen += rest(reader, command.ends())

    assert_exact(seen, data)
    assert len(NOTICE.findall(seen)) == 1


def test_a_reader_of_a_job_that_is_gone_reads_what_it_still_holds(command: Command, reader: Reader) -> None:
    data = numbered(60_000)
    prints(command, data[:45_000])
    seen = read(reader)
    prints(command, data[45_000:])
    kept = command.ends()
    assert kept.file is not None
    os.unlink(kept.file)

    seen += rest(reader, None)

    assert seen == data


def test_a_reader_of_a_lost_run_reads_what_was_salvaged(command: Command, reader: Reader) -> None:
    data = numbered(300_000)
    prints(command, data[:50_000])
    seen = read(reader)
    prints(command, data[50_000:])

    seen += rest(reader, salvage(str(command.path), TAIL))

    assert_exact(seen, data)


@pytest.mark.parametrize("written, after", [(0, 300_000), (20_000, 300_000), (60_000, 300_000), (200_000, 9)])
def test_output_that_could_not_be_written_ends_with_its_newest_bytes_and_says_so(
    command: Command, reader: Reader, monkeypatch: pytest.MonkeyPatch, written: int, after: int
) -> None:
    data = numbered(written + after)
    prints(command, data[:written])
    seen = read(reader)
    for name in ("splice", "sendfile", "write"):
        fail_on_files(monkeypatch, name)

    command.prints(data[written:])
    seen += rest(reader, command.ends())

    told = re.search(rb"\n?\[queuectl: the output could not be written to disk: [^\n]*\]\n", seen)
    assert told
    assert_exact(seen.replace(told[0], b""), data)


def test_a_file_that_is_older_than_the_run_is_another_run_s(command: Command, tmp_path: Path) -> None:
    command.path.write_bytes(b"of a run that a power cut undid")
    os.utime(command.path, (1000, 1000))
    reader = Reader(str(command.path), since_ms=2_000_000)

    seen = read(reader)
    prints(command, numbered(20_000))
    seen += read(reader)
    seen += rest(reader, command.ends())

    assert seen == numbered(20_000)


def test_the_file_on_record_is_read_where_another_was_taken_for_it(command: Command, reader: Reader) -> None:
    command.path.write_bytes(b"of another queue in the same home")

    seen = read(reader)
    prints(command, numbered(20_000))
    end = rest(reader, command.ends())

    assert seen == b"of another queue in the same home"
    assert end == numbered(20_000)


@settings(max_examples=150, deadline=None)
@given(steps=st.lists(STEPS, max_size=25), is_lost=st.booleans())
def test_however_reading_and_writing_meet_every_byte_is_seen_once_or_counted(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int]], is_lost: bool
) -> None:
    command = Command(tmp_path_factory.mktemp("any") / "1.1.log")
    reader = Reader(str(command.path))
    data = numbered(sum(count for what, count in steps if what == "print"))
    seen, place = b"", 0

    for what, count in steps:
        if what == "print":
            prints(command, data[place : place + count])
            place += count
        elif what == "open":
            command.output.open_file()
        else:
            for _, piece in zip(range(count), reader.more(), strict=False):
                seen += piece
    command.output.open_file()
    kept = salvage(str(command.path), TAIL) if is_lost else command.ends()
    seen += rest(reader, kept)

    assert_exact(seen, data)


def test_a_reader_at_the_end_of_the_head_goes_on_in_a_file_that_is_being_joined(tmp_path: Path) -> None:
    path, head = tmp_path / "1.1.log", b"h" * (32 << 10)
    path.write_bytes(head)
    reader = Reader(str(path))
    seen = read(reader)

    part = tmp_path / f"1.1.log.part.{len(head)}.{len(head) + 100}"
    part.write_bytes(b"newest")
    with path.open("ab") as file:
        file.write(left_out(100) + b"new")
    seen += read(reader)
    with path.open("ab") as file:
        file.write(b"est")
    part.unlink()
    seen += rest(reader, Kept(total_bytes=len(head) + 106, file=str(path), tail=b"newest"))

    assert seen == head + left_out(100) + b"newest"


@pytest.mark.parametrize("turn", range(5))
def test_a_reader_beside_a_writer_sees_every_byte_once_or_counted(command: Command, reader: Reader, turn: int) -> None:
    data, kept, seen = numbered(3 << 20), [], b""

    def write() -> None:
        for start in range(0, len(data), 7_001 * (turn + 1)):
            prints(command, data[start : start + 7_001 * (turn + 1)])
        kept.append(command.ends())

    writing = threading.Thread(target=write)
    writing.start()
    while writing.is_alive():
        seen += read(reader)
    writing.join()
    seen += rest(reader, kept[0])

    assert_exact(seen, data)


@pytest.mark.parametrize("count", [1, 2, 3, 1000, 10_000, 100_000])
@pytest.mark.parametrize("end", [b"", b"\n", b"no newline at the end"])
def test_the_last_lines_of_an_output_under_way_are_those_of_all_of_it(
    command: Command, reader: Reader, count: int, end: bytes
) -> None:
    data = numbered(60_000) + end
    prints(command, data)
    seen_whole = b"".join(Reader(str(command.path)).more())

    reader.go_to_last_lines(count)

    assert read(reader) == lines_of(seen_whole, count)
    assert rest(reader, command.ends()) == b""


@pytest.mark.parametrize("size", [0, 10, 20_000, 400_000])
@pytest.mark.parametrize("count", [1, 7, 100_000])
def test_the_last_lines_of_an_output_that_is_over_are_those_of_all_that_is_kept(
    command: Command, size: int, count: int
) -> None:
    prints(command, numbered(size))
    kept = command.ends()
    whole = b"".join(Reader("").rest(kept))

    assert b"".join(last_lines(kept, count)) == lines_of(whole, count)


def test_the_last_lines_are_read_from_the_end(
    command: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "big.log"
    path.write_bytes(numbered(4 << 20))
    counted = []
    real = os.pread

    def pread(fd: int, count: int, at: int) -> bytes:
        counted.append(count)
        return real(fd, count, at)

    monkeypatch.setattr(os, "pread", pread)

    found = b"".join(last_lines(Kept(total_bytes=4 << 20, file=str(path), tail=b""), 3))

    assert found == numbered(4 << 20)[-24:]
    assert sum(counted) <= 3 * reading.CHUNK


def test_the_last_lines_of_output_that_could_not_be_written_are_those_in_the_database(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    prints(command, numbered(20_000))
    for name in ("splice", "sendfile", "write"):
        fail_on_files(monkeypatch, name)
    command.prints(b"lost\nlast\n")
    kept = command.ends()

    assert b"".join(last_lines(kept, 2)) == b"lost\nlast\n"
    assert b"".join(last_lines(kept, 100_000)).startswith(numbered(20_000))


def lines_of(data: bytes, count: int) -> bytes:
    """Return the last lines, a line being what ends with a newline or with the data."""
    return b"".join(re.findall(rb"[^\n]*\n|[^\n]+\Z", data)[-count:])


def test_the_limit_of_the_smallest_head_is_that_of_the_settings() -> None:
    assert reading.LEAST_HEAD_BYTES == LIMIT // 2
