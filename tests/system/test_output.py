"""Output of one run, through real pipes: what is kept, where, and that the command is never held up."""

import fcntl
import gc
import itertools
import os
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queuectl.system.output import NOT_WRITTEN, Kept, salvage, size_so_far
from queuectl.system.output import parts_of as parts_of_file
from tests.program import wait_for
from tests.system.printing import LIMIT, NOTICE, TAIL, Command, fail_on_files, numbered, pending


@pytest.fixture
def command(tmp_path: Path) -> Command:
    """A command whose output is kept as the smallest limit allows."""
    return Command(tmp_path / "logs" / "1.1.log")


def test_short_output_makes_no_file(command: Command) -> None:
    command.prints(b"hello\n")

    kept = command.ends()

    assert kept == Kept(total_bytes=6, file=None, tail=b"hello\n")
    assert not command.path.parent.exists()


def test_no_output_at_all_makes_no_file_even_when_one_is_asked_for(command: Command) -> None:
    command.output.open_file()

    kept = command.ends()

    assert kept == Kept(total_bytes=0, file=None, tail=b"")


def test_output_past_the_size_kept_in_the_database_opens_a_file(command: Command) -> None:
    data = numbered(TAIL + 1)

    command.prints(data)
    kept = command.ends()

    assert kept.file == str(command.path)
    assert command.path.read_bytes() == data
    assert kept.tail == data[-TAIL:]


def test_a_file_asked_for_takes_what_was_held_and_what_follows(command: Command) -> None:
    command.prints(b"early ")
    command.output.pump()

    command.output.open_file()
    seen_live = command.path.read_bytes()
    command.prints(b"late")
    kept = command.ends()

    assert seen_live == b"early "
    assert command.path.read_bytes() == kept.tail == b"early late"


def test_a_file_is_never_reused(command: Command) -> None:
    command.path.parent.mkdir()
    command.path.write_bytes(b"of another run")

    command.prints(numbered(20_000))
    kept = command.ends()

    assert command.path.read_bytes() == b"of another run"
    assert kept.file == f"{command.path}.2"
    assert Path(kept.file).read_bytes() == numbered(20_000)


def test_a_file_is_for_its_owner_alone(command: Command) -> None:
    command.prints(numbered(20_000))

    command.ends()

    assert command.path.stat().st_mode & 0o777 == 0o600
    assert command.path.parent.stat().st_mode & 0o777 == 0o700


def test_binary_output_survives_byte_for_byte(command: Command) -> None:
    data = bytes(range(256)) * 150

    command.prints(data)
    kept = command.ends()

    assert command.path.read_bytes() == data
    assert kept.tail == data[-TAIL:]


def test_too_much_output_keeps_head_and_newest_tail_with_a_notice_between(command: Command) -> None:
    data = numbered(1 << 20)

    command.prints(data)
    kept = command.ends()

    log = command.path.read_bytes()
    head, dropped, tail = parts_of(log)
    assert (kept.total_bytes, dropped) == (len(data), len(data) - len(head) - len(tail))
    assert data.startswith(head)
    assert data.endswith(tail)
    assert len(log) <= LIMIT
    assert min(len(head), 2 * len(tail)) > LIMIT // 3
    assert os.listdir(command.path.parent) == [command.path.name]


def test_the_files_are_within_the_limit_at_every_moment(command: Command) -> None:
    data, sizes = numbered(400_000), []

    for start in range(0, len(data), 5_000):
        command.prints(data[start : start + 5_000])
        command.output.pump()
        if command.path.parent.exists():
            sizes.append(sum(file.stat().st_size for file in command.path.parent.iterdir()))
    command.ends()

    assert max(sizes) <= LIMIT


def test_a_burst_just_before_the_exit_is_kept_to_its_last_byte(command: Command) -> None:
    begun = numbered(TAIL + 8)
    command.prints(begun)
    command.output.pump()
    wait_for(lambda: pipe_size(command.output.read_fd) >= 1 << 20 or None, "a pipe of a megabyte")

    burst = command.prints_without_a_listener(numbered(1 << 20)[::-1])
    kept = command.ends()

    assert kept.total_bytes == len(begun) + len(burst)
    assert kept.tail.endswith(burst[-8_000:])


def test_who_keeps_the_pipe_open_is_not_waited_for(command: Command) -> None:
    left_behind = os.dup(command._fd)
    command.prints(b"done\n")

    kept = command.ends()
    os.close(left_behind)

    assert kept.tail == b"done\n"


def test_who_floods_the_pipe_after_the_end_does_not_hold_it_up(command: Command) -> None:
    flooding = os.dup(command._fd)
    os.set_blocking(flooding, True)
    flood = threading.Thread(target=write_until_it_breaks, args=(flooding,))
    flood.start()
    wait_for(lambda: command.output.pump() and command.path.exists(), "a file")

    kept = command.ends()
    flood.join(timeout=60)

    assert not flood.is_alive()
    assert kept.total_bytes > TAIL


@pytest.mark.parametrize("tail_bytes, max_bytes", [(1 << 10, 64 << 10), (64 << 10, 64 << 10), (1 << 20, 1 << 20)])
def test_the_limit_holds_for_a_first_read_larger_than_the_head(tmp_path: Path, tail_bytes: int, max_bytes: int) -> None:
    command = Command(tmp_path / "1.1.log", tail_bytes=tail_bytes, max_bytes=max_bytes)
    data = numbered(4 * max_bytes)

    command.prints(data)
    kept = command.ends()

    assert command.path.stat().st_size <= max_bytes
    assert kept.total_bytes == len(data)
    assert data.endswith(parts_of(command.path.read_bytes())[2])
    assert command.path.read_bytes()[-tail_bytes:] == kept.tail


def test_a_log_that_cannot_be_created_leaves_the_newest_bytes_and_a_notice(tmp_path: Path) -> None:
    (tmp_path / "logs").write_text("a file where the folder should be")
    command = Command(tmp_path / "logs" / "1.1.log")
    data = numbered(200_000)

    command.prints(data)
    kept = command.ends()

    notice, _, rest = kept.tail.partition(b"\n")
    assert notice.startswith(b"[queuectl: the output could not be written to disk: ")
    assert (kept.file, kept.total_bytes) == (None, 200_000)
    assert data.endswith(rest)
    assert len(kept.tail) == TAIL


@pytest.mark.parametrize(
    "written_before, after", [(20_000, 300_000), (60_000, 300_000), (200_000, 300_000), (32_000, 9)]
)
def test_a_disk_that_fills_up_keeps_the_command_going(
    command: Command, monkeypatch: pytest.MonkeyPatch, written_before: int, after: int
) -> None:
    data = numbered(written_before + after)
    command.prints(data[:written_before])
    while pending(command.output.read_fd):
        command.output.pump()
    before = open_descriptors()

    for name in ("splice", "sendfile", "write"):
        fail_on_files(monkeypatch, name)
    command.prints(data[written_before:])
    kept = command.ends()

    notice, _, rest = kept.tail.partition(b"\n")
    assert notice == b"[queuectl: the output could not be written to disk: No space left on device]"
    assert data.endswith(rest)
    assert len(kept.tail) == TAIL
    assert kept.total_bytes == len(data)
    assert os.listdir(command.path.parent) == [command.path.name]
    assert open_descriptors() < before


@settings(max_examples=150, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 90_000), max_size=12),
    looks=st.lists(st.sampled_from(["pump", "open", "nothing"]), max_size=12),
    limits=st.sampled_from([(1 << 10, 64 << 10), (16 << 10, 64 << 10), (64 << 10, 64 << 10), (16 << 10, 200_000)]),
)
def test_whatever_is_written_head_and_tail_of_it_are_kept(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], looks: list[str], limits: tuple[int, int]
) -> None:
    tail_bytes, max_bytes = limits
    command = Command(tmp_path_factory.mktemp("any") / "1.1.log", tail_bytes=tail_bytes, max_bytes=max_bytes)
    data = numbered(sum(sizes))

    ends = list(itertools.accumulate(sizes))
    for start, end, look in itertools.zip_longest([0, *ends], ends, looks[: len(ends)], fillvalue=None):
        command.prints(data[start or 0 : end or 0])
        if look == "pump":
            command.output.pump()
        elif look == "open":
            command.output.open_file()
    kept = command.ends()

    stored = kept.tail if kept.file is None else Path(kept.file).read_bytes()
    assert kept.total_bytes == len(data)
    assert len(stored) <= max_bytes
    assert stored.endswith(kept.tail)
    assert len(kept.tail) == min(tail_bytes, len(stored))
    if NOTICE.search(stored):
        head, dropped, tail = parts_of(stored)
        assert (data[: len(head)], data[len(data) - len(tail) :]) == (head, tail)
        assert len(head) + dropped + len(tail) == len(data)
    else:
        assert stored == data


def parts_of(log: bytes) -> tuple[bytes, int, bytes]:
    """Return the head, how much the notice says is missing, and the tail."""
    found = NOTICE.search(log)
    assert found, "no notice"
    return log[: found.start()], int(found[1]), log[found.end() :]


def pipe_size(fd: int) -> int:
    return fcntl.fcntl(fd, fcntl.F_GETPIPE_SZ)


def open_descriptors() -> int:
    gc.collect()  # what earlier tests left to it
    return len(os.listdir("/proc/self/fd"))


def write_until_it_breaks(fd: int) -> None:
    try:
        while True:
            os.write(fd, b"y\n" * 4096)
    except OSError:
        os.close(fd)


def test_what_a_lost_run_left_is_joined_and_its_segments_are_gone(tmp_path: Path) -> None:
    path = tmp_path / "7.1.log"
    path.write_bytes(b"head")
    (tmp_path / "7.1.log.part.4.109").write_bytes(b"newest")
    (tmp_path / "7.1.log.part.4.104").write_bytes(b"older")

    kept = salvage(str(path), tail_bytes=4)

    assert kept is not None
    assert (kept.total_bytes, kept.tail) == (115, b"west")
    assert path.read_bytes() == b"head\n[queuectl: 100 bytes left out here]\noldernewest"
    assert os.listdir(tmp_path) == ["7.1.log"]


def test_a_join_that_was_cut_off_is_done_again_from_the_head(tmp_path: Path) -> None:
    path = tmp_path / "7.1.log"
    path.write_bytes(b"head" + b"half of the old")
    (tmp_path / "7.1.log.part.4.4").write_bytes(b"half of the older segment")

    kept = salvage(str(path), tail_bytes=100)

    assert kept is not None
    assert kept.total_bytes == 29
    assert path.read_bytes() == kept.tail == b"headhalf of the older segment"


def test_a_lost_run_without_a_file_left_nothing(tmp_path: Path) -> None:
    assert salvage(str(tmp_path / "7.1.log"), tail_bytes=4) is None


def test_each_segment_is_named_by_the_head_and_by_where_it_begins(command: Command) -> None:
    data = numbered(200_000)

    command.prints(data)
    while pending(command.output.read_fd):
        command.output.pump()

    parts = parts_of_file(str(command.path))
    assert {part.head_bytes for part in parts} == {LIMIT // 2}
    for part in parts:
        written = Path(part.path).read_bytes()
        assert data[part.begin : part.begin + len(written)] == written
    assert size_so_far(str(command.path)) == len(data)
    command.ends()


def test_a_join_that_fails_leaves_the_head_as_it_was(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    data = numbered(60_000)
    command.prints(data)
    while pending(command.output.read_fd):
        command.output.pump()
    fail_on_files(monkeypatch, "sendfile")

    kept = command.ends()

    assert command.path.read_bytes() == data[: LIMIT // 2]
    assert data.endswith(kept.tail.partition(b"\n")[2])


SECRET = b"hunter2-correct-horse"


class TestMask:
    """Output in which values are hidden: whatever is kept of it, wherever, holds none of them."""

    @pytest.fixture
    def command(self, tmp_path: Path) -> Command:
        """A command with a secret."""
        return Command(tmp_path / "logs" / "1.1.log", secrets=[SECRET])

    def test_short_output_is_masked_in_memory(self, command: Command) -> None:
        command.prints(b"a " + SECRET + b" b\n")

        kept = command.ends()

        assert kept == Kept(total_bytes=8, file=None, tail=b"a *** b\n")

    @pytest.mark.parametrize("has_file", [False, True])
    def test_a_secret_that_comes_byte_by_byte_is_never_to_be_seen(self, command: Command, has_file: object) -> None:
        command.prints(b"key: ")
        command.output.pump()
        if has_file:
            command.output.open_file()

        for at in range(len(SECRET)):
            command.prints(SECRET[at : at + 1])
            command.output.pump()
            assert not has_file or at == len(SECRET) - 1 or command.path.read_bytes() == b"key: "
        kept = command.ends()

        assert kept.tail == b"key: ***"
        assert kept.total_bytes == 8

    def test_what_cannot_be_a_secret_any_more_is_seen_at_once(self, command: Command) -> None:
        command.prints(b"the hunter")
        command.output.pump()
        command.output.open_file()

        assert command.path.read_bytes() == b"the "
        command.prints(b"s wait")
        command.output.pump()
        assert command.path.read_bytes() == b"the hunters wait"
        command.ends()

    def test_a_run_that_ends_amid_a_secret_keeps_what_it_printed(self, command: Command) -> None:
        command.prints(SECRET + b" hunter")

        assert command.ends().tail == b"*** hunter"

    def test_output_that_is_held_back_whole_opens_no_file(self, command: Command) -> None:
        command.prints(SECRET[:-1])
        command.output.pump()
        command.output.open_file()
        assert not command.path.exists()

        command.prints(SECRET[-1:])

        assert command.ends() == Kept(total_bytes=3, file=None, tail=b"***")

    @pytest.mark.parametrize("before", range(LIMIT // 2 - len(SECRET) - 1, LIMIT // 2 + 2, 3))
    def test_a_secret_where_head_and_segment_meet_is_masked(self, command: Command, before: int) -> None:
        data = numbered(before) + SECRET + numbered(9_000)

        command.prints(data)
        while pending(command.output.read_fd):
            command.output.pump()
        live = b"".join(file.read_bytes() for file in command.path.parent.iterdir())
        assert (SECRET[:4] in live, len(live)) == (False, size_so_far(str(command.path)))
        kept = command.ends()

        assert command.path.read_bytes() == data.replace(SECRET, b"***")
        assert kept.total_bytes == len(data) - len(SECRET) + 3
        assert kept.tail == data.replace(SECRET, b"***")[-TAIL:]

    def test_lengths_and_places_are_those_of_the_masked_output(self, command: Command) -> None:
        data = b"".join(b"%07d %s\n" % (number, SECRET) for number in range(20_000))
        shown = data.replace(SECRET, b"***")

        command.prints(data)
        while pending(command.output.read_fd):
            command.output.pump()
        for part in parts_of_file(str(command.path)):
            written = Path(part.path).read_bytes()
            assert shown[part.begin : part.begin + len(written)] == written
        assert size_so_far(str(command.path)) == len(shown)
        kept = command.ends()

        head, dropped, tail = parts_of(command.path.read_bytes())
        assert kept.total_bytes == len(head) + dropped + len(tail) == len(shown)
        assert shown.startswith(head)
        assert shown.endswith(tail)
        assert command.path.stat().st_size <= LIMIT

    def test_a_lost_run_leaves_only_masked_bytes(self, command: Command) -> None:
        command.prints(numbered(40_000) + SECRET + b"\n" + SECRET[:-1])
        while pending(command.output.read_fd):
            command.output.pump()

        kept = salvage(str(command.path), tail_bytes=TAIL)

        assert kept is not None
        assert command.path.read_bytes() == numbered(40_000) + b"***\n"
        assert kept.tail.endswith(b"***\n")

    def test_a_disk_that_fills_up_leaves_masked_bytes_in_memory(
        self, command: Command, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        data = numbered(60_000) + SECRET + numbered(100)
        command.prints(data[:20_000])
        while pending(command.output.read_fd):
            command.output.pump()

        for name in ("sendfile", "write"):
            fail_on_files(monkeypatch, name)
        command.prints(data[20_000:])
        kept = command.ends()

        notice, _, rest = kept.tail.partition(b"\n")
        assert notice.startswith(NOT_WRITTEN)
        assert data.replace(SECRET, b"***").endswith(rest)
        assert kept.total_bytes == len(data) - len(SECRET) + 3
        assert len(kept.tail) == TAIL

    def test_a_disk_that_fills_up_amid_a_write_loses_and_doubles_nothing(
        self, command: Command, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        command.prints(numbered(20_000))
        while pending(command.output.read_fd):
            command.output.pump()
        real = os.write

        def half(fd: int, data: bytes) -> int:
            if not os.path.isfile(f"/proc/self/fd/{fd}"):
                return real(fd, data)
            fail_on_files(monkeypatch, "write")
            return real(fd, data[: len(data) // 2])

        monkeypatch.setattr(os, "write", half)
        os.write(command._fd, numbered(28_000)[20_000:])
        command.output.pump()
        kept = command.ends()

        written = command.path.read_bytes()
        rest = kept.tail.partition(b"\n")[2]
        assert written == numbered(24_000)
        assert numbered(28_000).endswith(rest)
        assert rest.startswith(written[-len(rest) + 4_000 :])

    def test_nothing_is_left_open(self, command: Command) -> None:
        before = open_descriptors()

        command.prints(numbered(200_000))
        command.ends()

        assert open_descriptors() == before - 2
