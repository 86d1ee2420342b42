"""Launch: a plain command is noted, started and collected in one call each, and a try that fails leaves nothing."""

import os
import resource
import runpy
import signal
import subprocess
import sys
import sysconfig
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType

import pytest

import queuectl.system
from queuectl import clock
from queuectl.model.attempt import NOTED_OUTPUT_BYTES as NOTED
from queuectl.model.attempt import Report
from queuectl.system import launch as launching
from queuectl.system.endnotes import path_of, read_end_notes
from queuectl.system.home import Home
from queuectl.system.launch import Command, Landed, Launched, Noted, Notes, land
from queuectl.system.limits import close_inherited_on_exec
from queuectl.system.liveness import RECORD_BYTES, LifeLock, read_note
from queuectl.system.pipes import inode_of
from queuectl.system.process import RESET_SIGNALS, changed_signals, is_over, signal_name
from queuectl.system.variables import Variables, laid_out
from tests.program import wait_for
from tests.runtime.running import IN_ONE_CALL, start_by

PATIENCE_MS = 20_000
MOST = 16 << 10
MANY = 1 << 25
"""As many signals to be reset keep a new process busy for seconds before it becomes the command."""
STANDARD = (1 << 31) - 1  # those from 32 on are the C library's own, or of real time
NEVER = float("inf")


class Pad:
    """Starts commands as a worker's runner does."""

    def __init__(self, root: Path) -> None:
        home = Home(root=str(root))
        home.make()
        close_inherited_on_exec()
        self.lock = LifeLock(home, "0123456789abcdef")
        self.devnull = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
        self.reading, self.writing = os.pipe2(os.O_CLOEXEC)

    def launch(
        self, *argv: str, patience_ms: int = 0, folder: str = "/", own: bytes = b"", signals: bytes | None = None
    ) -> Launched | None:
        """Start a command as run 2 of job 1."""
        command = (1, 2, list(argv), (laid_out(os.environb), own), folder)
        noted, launched = self.launch_all([command], self.lock.notes_for(1), patience_ms, signals=signals)
        assert noted == []
        return launched

    def launch_all(
        self,
        commands: list[Command],
        notes: Notes,
        patience_ms: int = PATIENCE_MS,
        *,
        until_s: float = NEVER,
        signals: bytes | None = None,
    ) -> tuple[list[Noted], Launched | None]:
        """Start commands one after the other."""
        signals = bytes(changed_signals()) if signals is None else signals
        return launching.launch(commands, signals, self.devnull, notes, self.reading, patience_ms, until_s, MOST)

    def run(self, line: str, **options: str | bytes) -> Landed:
        """Run a shell line to its end."""
        launched = self.launch("/bin/sh", "-c", line, patience_ms=PATIENCE_MS, **options)  # type: ignore[arg-type]
        return landed_of(launched)

    def close(self) -> None:
        """Let go of everything."""
        self.lock.release()
        for fd in (self.devnull, self.reading, self.writing):
            os.close(fd)


@pytest.fixture
def pad(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Pad]:
    """Somewhere to start from."""
    start_by(IN_ONE_CALL, monkeypatch)
    pad = Pad(tmp_path / "home")
    yield pad
    pad.close()


def collected(launched: Launched) -> Landed:
    """Wait for a command, and collect it."""
    pid, pidfd, output, _, landed = launched
    assert landed is None
    wait_for(lambda: is_over(pid) or None, "the end")
    landed = land(pid, pidfd, output, MOST)
    assert landed is not None
    return landed


def row_of(*lines: str) -> list[Command]:
    """Return shell lines as the first runs of jobs 1, 2, ..."""
    blocks = (laid_out(os.environb), b"")
    return [(seq, 1, ["/bin/sh", "-c", line], blocks, "/") for seq, line in enumerate(lines, 1)]


def landed_of(launched: Launched | None) -> Landed:
    """Return how a command ended that was waited for."""
    assert launched is not None
    landed = launched[4]
    assert landed is not None
    return landed


def children(thread: int | None = None) -> str:
    """Return the processes that this thread, or another one, has started, the dead ones among them too."""
    return Path(f"/proc/self/task/{thread or threading.get_native_id()}/children").read_text()


@contextmanager
def in_a_thread(do: Callable[[], None]) -> Iterator[None]:
    """Do something meanwhile, and see it done."""
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(do)
        yield
        done.result()


def mask_of(*numbers: int) -> int:
    """Return signals as the kernel shows them."""
    return sum(1 << (number - 1) for number in numbers)


def built(folder: Path, *, without: str) -> ModuleType:
    """Build the module anew, with something of its source left out, as a kernel would that does not know it."""
    code, built = folder / "_launch.c", folder / "_launch.so"
    text = (Path(launching.__file__).parent / "_launch.c").read_text()
    assert text.count(without) == 1
    code.write_text(text.replace(without, ""))
    words = ["cc", "-shared", "-fPIC", "-I", sysconfig.get_path("include"), str(code), "-o", str(built)]
    subprocess.run(words, check=True)
    spec = spec_from_loader("_launch", ExtensionFileLoader("_launch", str(built)))
    assert spec is not None
    return module_from_spec(spec)


@pytest.mark.parametrize("line, status", [("exit 0", 0), ("exit 3", 3 << 8), ("kill -9 $$", 9)])
def test_the_status_is_the_kernels(pad: Pad, line: str, status: int) -> None:
    assert pad.run(line)[0] == status


def test_what_it_took_and_printed_and_when_it_was_over_come_with_it(pad: Pad) -> None:
    before = clock.boot_s()

    _, cpu_us, peak_kib, printed, ended_s = pad.run("echo out; echo err >&2")

    assert printed == b"out\nerr\n"
    assert 0 < cpu_us < 20_000_000
    assert 100 < peak_kib < 1 << 20
    assert before < ended_s < clock.boot_s()


def test_it_is_noted_as_the_lock_notes_any_other_with_its_pid_and_its_pipe(pad: Pad) -> None:
    launched = pad.launch("/bin/sleep", "600")
    assert launched is not None
    pid, _, output, _, _ = launched

    (leader,) = read_note(pad.lock.path).leaders
    os.kill(pid, signal.SIGKILL)
    pipe = inode_of(output)
    collected(launched)

    assert (leader.seq, leader.run, leader.pid, leader.pipes) == (1, 2, pid, (pipe,))
    assert 0 <= leader.since - leader.begun < 60


def test_it_leads_a_session_and_reads_nothing(pad: Pad) -> None:
    printed = pad.run("ps -o pid=,sid=,pgid= -p $$; cat")[3]
    assert printed is not None

    pid, session, group = printed.split()

    assert pid == session == group


def test_it_has_no_descriptor_of_ours(pad: Pad) -> None:
    landed = landed_of(pad.launch("/bin/ls", "/proc/self/fd", patience_ms=PATIENCE_MS))

    assert (landed[3] or b"").split() == [b"0", b"1", b"2", b"3"]  # 3 is the folder ls itself reads


def test_every_signal_is_as_the_kernel_has_it_at_the_beginning(pad: Pad) -> None:
    ignored = (signal.SIGUSR1, signal.SIGHUP)
    before = [signal.signal(number, signal.SIG_IGN) for number in ignored]
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR2})
    try:
        printed = pad.run("exec sed -n '/^Sig[BIC]/p' /proc/self/status")[3]
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGUSR2})
        for number, handler in zip(ignored, before, strict=True):
            signal.signal(number, handler)

    assert printed is not None
    assert {int(line.split()[1], 16) & STANDARD for line in printed.splitlines()} == {0}


def test_who_changed_a_signal_is_asked_for_it() -> None:
    before = signal.signal(signal.SIGUSR1, lambda *_: None)
    try:
        changed = changed_signals()
    finally:
        signal.signal(signal.SIGUSR1, before)

    assert signal.SIGUSR1 in changed
    assert {"SIGKILL", "SIGSTOP"}.isdisjoint(map(signal_name, RESET_SIGNALS))


def test_it_finds_its_own_variables_beside_those_of_all(pad: Pad, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLOUR", "blue")

    printed = pad.run('echo "$COLOUR $SHAPE"', own=b"SHAPE=a ring\0", folder="/tmp")[3]

    assert printed == b"blue a ring\n"


@pytest.mark.parametrize(
    "own, expected",
    [
        (b"SHAPE=ring\0", {b"COLOUR": b"blue", b"SHAPE": b"ring"}),
        (b"COLOUR=red\0", {b"COLOUR": b"red"}),
        (b"A=1\0A=2=3\0", {b"COLOUR": b"blue", b"A": b"2=3"}),
    ],
)
def test_a_variable_of_its_own_takes_the_place_of_one_that_all_have(own: bytes, expected: dict[bytes, bytes]) -> None:
    variables = Variables({b"COLOUR": b"blue"})

    assert variables.with_own(own) == expected
    assert variables.blocks(own, has_others_names=True) == (b"", laid_out(expected))


def test_words_that_are_not_text_reach_it_unchanged(pad: Pad) -> None:
    word = b"\xff\xfe".decode("utf-8", "surrogateescape")

    landed = landed_of(pad.launch("/usr/bin/printf", "%s", word, patience_ms=PATIENCE_MS))

    assert landed[3] == b"\xff\xfe"


@pytest.mark.parametrize(
    "argv, folder",
    [
        (("/no/such/program",), "/"),
        (("/etc/passwd",), "/"),
        (("/bin/true",), "/no/such/folder"),
        (("true",), "/"),
        ((), "/"),
    ],
    ids=["no program", "not executable", "no folder", "not a path", "nothing"],
)
def test_of_one_that_cannot_start_nothing_is_left(pad: Pad, argv: tuple[str, ...], folder: str) -> None:
    before = os.listdir("/proc/self/fd"), children()

    assert pad.launch(*argv, folder=folder, patience_ms=PATIENCE_MS) is None

    assert (os.listdir("/proc/self/fd"), children()) == before
    assert read_note(pad.lock.path).leaders == ()


@pytest.mark.parametrize(
    "version, is_used", [(launching._VERSION, True), (launching._VERSION - 1, False), (None, False)]
)
def test_a_module_of_another_version_is_left_alone(
    monkeypatch: pytest.MonkeyPatch, version: int | None, is_used: bool
) -> None:
    found = ModuleType("_launch")
    if version is not None:
        found.__dict__["VERSION"] = version
    monkeypatch.setattr(queuectl.system, "_launch", found, raising=False)

    again = runpy.run_path(launching.__file__)

    assert (again["is_compiled"](), again["is_of_another_version"]()) == (is_used, not is_used)


def test_one_that_cannot_be_noted_is_not_started(pad: Pad, tmp_path: Path) -> None:
    reading = os.open(pad.lock.path, os.O_RDONLY | os.O_CLOEXEC)
    _, place, size, ends, most = pad.lock.notes_for(1)
    command = (1, 2, ["/bin/sh", "-c", f"touch {tmp_path}/begun"], (b"", b""), "/")

    launched = pad.launch_all([command], (reading, place, size, ends, most))
    os.close(reading)

    assert launched == ([], None)
    assert not (tmp_path / "begun").exists()


@pytest.mark.needs("cc")
@pytest.mark.parametrize("without", ["CLONE_PIDFD | ", "CLONE_VM | CLONE_VFORK | "])
def test_one_whose_end_nobody_would_tell_is_not_started(
    pad: Pad, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, without: str
) -> None:
    monkeypatch.setattr(launching, "_launch", built(tmp_path, without=without))
    before = os.listdir("/proc/self/fd"), children()

    launched = pad.launch("/bin/sh", "-c", f"touch {tmp_path}/begun", patience_ms=PATIENCE_MS)

    assert launched is None
    assert not (tmp_path / "begun").exists()
    assert (os.listdir("/proc/self/fd"), children()) == before


@pytest.mark.parametrize(
    "argv, folder", [(("/bin/echo", "a\0b"), "/"), (("/bin/echo", "\ud800"), "/"), (("/bin/echo",), "/\0")]
)
def test_what_no_program_can_be_given_is_not_started_this_way(pad: Pad, argv: tuple[str, ...], folder: str) -> None:
    assert pad.launch(*argv, folder=folder) is None


def test_more_output_than_asked_for_stays_in_the_pipe(pad: Pad) -> None:
    launched = pad.launch("/bin/sh", "-c", f"head -c {MOST + 1} /dev/zero", patience_ms=PATIENCE_MS)
    assert launched is not None
    _, _, output, _, landed = launched

    assert landed is not None
    assert landed[3] is None
    assert len(os.read(output, 1 << 16)) == MOST + 1
    os.close(output)


def test_output_in_packets_is_taken_whole(pad: Pad) -> None:
    code = "import fcntl, os; fcntl.fcntl(1, fcntl.F_SETFL, os.O_DIRECT); os.write(1, b'aa'); os.write(1, b'bb')"

    landed = landed_of(pad.launch(sys.executable, "-S", "-c", code, patience_ms=PATIENCE_MS))

    assert (landed[0], landed[3]) == (0, b"aabb")


def test_who_has_no_streams_of_its_own_starts_nothing_this_way(pad: Pad, tmp_path: Path) -> None:
    pid = os.fork()
    if pid == 0:
        os.closerange(1, 3)
        (tmp_path / "said").write_text(str(pad.launch("/bin/true", patience_ms=PATIENCE_MS)))
        os._exit(0)
    os.waitpid(pid, 0)

    assert (tmp_path / "said").read_text() == "None"


def test_what_is_left_in_the_background_is_not_waited_for(pad: Pad) -> None:
    printed = pad.run("sleep 600 & echo $!")[3]
    assert printed is not None

    os.kill(int(printed), signal.SIGKILL)


def test_nobody_waits_for_one_that_is_not_short(pad: Pad) -> None:
    launched = pad.launch("/bin/sleep", "600", patience_ms=1)
    assert launched is not None

    os.kill(launched[0], signal.SIGKILL)

    assert collected(launched)[0] == signal.SIGKILL


def test_nobody_waits_while_others_have_something_to_say(pad: Pad) -> None:
    os.write(pad.writing, b"!")
    began = time.monotonic()

    launched = pad.launch("/bin/sleep", "600", patience_ms=PATIENCE_MS)
    waited_s = time.monotonic() - began
    assert launched is not None
    os.kill(launched[0], signal.SIGKILL)

    assert collected(launched)[0] == signal.SIGKILL
    assert waited_s < PATIENCE_MS / 2000


def test_other_threads_go_on_while_one_waits(pad: Pad) -> None:
    def end_it() -> None:
        leader = wait_for(lambda: next((one for one in read_note(pad.lock.path).leaders if one.pid), None), "the pid")
        os.kill(leader.pid, signal.SIGKILL)

    with in_a_thread(end_it):
        launched = pad.launch("/bin/sleep", "600", patience_ms=PATIENCE_MS)

    # Had the thread to wait for us, we would have waited in vain.
    assert landed_of(launched)[0] == signal.SIGKILL


def test_other_threads_go_on_while_one_starts_and_no_handler_of_ours_runs_in_it(pad: Pad) -> None:
    before = set(children().split())
    caller, begun = threading.get_native_id(), []

    def look_and_end_it() -> None:
        (pid,) = wait_for(lambda: set(children(caller).split()) - before, "its process")
        begun.append(dict(line.split(":\t") for line in Path(f"/proc/{pid}/status").read_text().splitlines()))
        os.kill(int(pid), signal.SIGKILL)

    with in_a_thread(look_and_end_it):
        launched = pad.launch("/bin/sleep", "600", signals=bytes([signal.SIGWINCH]) * MANY)
    assert launched is not None

    assert collected(launched)[0] == signal.SIGKILL
    (status,) = begun
    assert status["Name"] == Path("/proc/self/comm").read_text().strip()  # it had not become the command yet
    assert int(status["SigBlk"], 16) & STANDARD == STANDARD & ~mask_of(signal.SIGKILL, signal.SIGSTOP)


def test_output_is_never_waited_for_that_somebody_else_may_read(pad: Pad) -> None:
    launched = pad.launch("/bin/echo", "x")
    assert launched is not None
    end_of_ours = os.dup(launched[2])

    landed = collected(launched)
    is_waiting = os.get_blocking(end_of_ours)
    os.close(end_of_ours)

    assert (landed[3], is_waiting) == (b"x\n", False)


def test_land_says_nothing_of_one_that_runs(pad: Pad) -> None:
    launched = pad.launch("/bin/sleep", "600")
    assert launched is not None
    pid, pidfd, output, _, _ = launched

    assert land(pid, pidfd, output, MOST) is None

    os.kill(pid, signal.SIGKILL)
    collected(launched)


class TestRow:
    """Several, one after the other, by one call."""

    @pytest.fixture
    def ends(self, pad: Pad) -> Notes:
        """Where the row notes what begins and how it ended."""
        assert pad.lock.expect_ends()
        return pad.lock.notes_for_row(1)

    def test_the_end_of_each_is_noted_as_the_worker_notes_it_and_its_place_is_the_next_ones(
        self, pad: Pad, ends: Notes
    ) -> None:
        lines = [":", "echo out", "printf 'a\"b\\\\c\\001\\377\\n'"]
        before = clock.boot_s()

        told, last = pad.launch_all(row_of(*lines), ends)

        read = read_end_notes(pad.lock.path)
        reports = [Report.of_success(*each) for each in told]
        assert last is None
        assert [report.output_tail for report in reports] == [b"", b"out\n", b'a"b\\c\x01\xff\n']
        assert read is not None
        assert list(read) == [(1, 1), (2, 1), (3, 1)]
        for report, note in zip(reports, read.values(), strict=True):
            assert report.can_be_noted
            assert Report.of_note(note) == report.replace(begun_s=note["begun_s"], ended_s=note["ended_s"])
            assert (note["begun_s"], note["ended_s"]) == pytest.approx((report.begun_s, report.ended_s))
        times = [time for report in reports for time in (report.begun_s, report.ended_s)]
        assert times == sorted(times)  # type: ignore[type-var]
        assert before < times[0] < times[-1] < clock.boot_s()  # type: ignore[operator]
        assert os.path.getsize(pad.lock.path) == 2 * RECORD_BYTES

    def test_its_notes_read_as_those_of_the_worker_around_them(self, pad: Pad, ends: Notes) -> None:
        report = Report.of_success(1, 2, b"x", 3.0, 4.0)
        pad.lock.note_outcome(8, 1, report.as_note())

        pad.launch_all(row_of(":"), pad.lock.notes_for_row(1))
        pad.lock.note_outcome(9, 1, report.as_note())

        assert list(read_end_notes(pad.lock.path) or ()) == [(8, 1), (1, 1), (9, 1)]

    @pytest.mark.parametrize(
        "line, status, printed",
        [
            ("exit 3", 3 << 8, b""),
            ("kill -9 $$", 9, b""),
            (f"head -c {NOTED + 1} /dev/zero", 0, bytes(NOTED + 1)),
            (f"head -c {MOST + 1} /dev/zero", 0, None),
        ],
        ids=["failed", "killed", "printed more than is noted", "printed more than is read"],
    )
    def test_one_of_which_more_is_to_be_said_ends_the_row_and_is_told_apart(
        self, pad: Pad, ends: Notes, tmp_path: Path, line: str, status: int, printed: bytes | None
    ) -> None:
        noted, last = pad.launch_all(row_of(":", line, f"touch {tmp_path}/begun"), ends)

        landed = landed_of(last)
        assert (len(noted), landed[0], landed[3]) == (1, status, printed)
        if last is not None and printed is None:
            os.close(last[2])
        assert list(read_end_notes(pad.lock.path) or ()) == [(1, 1)]
        assert not (tmp_path / "begun").exists()

    def test_one_that_is_not_short_ends_the_row_and_is_told_apart(self, pad: Pad, ends: Notes, tmp_path: Path) -> None:
        before = clock.boot_s()

        noted, last = pad.launch_all(row_of(":", "exec sleep 600", f"touch {tmp_path}/begun"), ends, 100)
        assert last is not None
        (leader,) = read_note(pad.lock.path).leaders
        os.kill(last[0], signal.SIGKILL)

        assert (leader.seq, leader.run, leader.pid) == (2, 1, last[0])
        assert before < last[3] < clock.boot_s()
        assert (len(noted), collected(last)[0]) == (1, signal.SIGKILL)
        assert not (tmp_path / "begun").exists()

    def test_the_row_ends_when_others_have_something_to_say(self, pad: Pad, ends: Notes, tmp_path: Path) -> None:
        say = f"echo x >/proc/{os.getpid()}/fd/{pad.writing}"

        noted, last = pad.launch_all(row_of(":", say, f"touch {tmp_path}/begun"), ends)

        if last is not None:  # they were heard before its end was
            collected(last)
        assert len(noted) + (last is not None) == 2
        assert not (tmp_path / "begun").exists()

    def test_none_begins_when_the_time_is_up(self, pad: Pad, ends: Notes, tmp_path: Path) -> None:
        row = row_of(f"touch {tmp_path}/begun")

        assert pad.launch_all(row, ends, until_s=clock.boot_s()) == ([], None)

        assert not (tmp_path / "begun").exists()
        assert len(pad.launch_all(row, ends, until_s=clock.boot_s() + 600)[0]) == 1

    def test_a_disk_that_takes_no_more_ends_the_row(self, pad: Pad, ends: Notes, tmp_path: Path) -> None:
        full = os.open("/dev/full", os.O_WRONLY | os.O_CLOEXEC)
        lock, place, size, _, most = ends

        noted, last = pad.launch_all(row_of(":", f"touch {tmp_path}/begun"), (lock, place, size, full, most))
        os.close(full)

        assert (noted, landed_of(last)[0]) == ([], 0)
        assert not (tmp_path / "begun").exists()

    def test_a_note_that_a_full_disk_cuts_off_counts_for_nothing_and_spoils_no_other(
        self, pad: Pad, ends: Notes, tmp_path: Path
    ) -> None:
        os.write(ends[3], b'[9, 1, {"cpu_m')
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        row = row_of(*[":"] * 6)
        pad.launch_all(row[:4], ends)
        size = os.path.getsize(path_of(pad.lock.path))

        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 20, before[1]))  # beyond the end of the lock
        noted, last = pad.launch_all(row[4:5], ends)
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        pad.launch_all(row[5:], ends)

        assert (noted, landed_of(last)[0]) == ([], 0)
        assert list(read_end_notes(pad.lock.path) or ()) == [(seq, 1) for seq in (1, 2, 3, 4, 6)]

    def test_no_second_row_begins_while_one_is_under_way(self, pad: Pad, ends: Notes, tmp_path: Path) -> None:
        others: list[object] = []

        def try_and_let_it_go() -> None:
            wait_for(lambda: [one for one in read_note(pad.lock.path).leaders if one.pid] or None, "the first")
            others.append(pad.launch_all(row_of(f"touch {tmp_path}/begun"), pad.lock.notes_for_row(7)))
            (tmp_path / "go").touch()

        with in_a_thread(try_and_let_it_go):
            pad.launch_all(row_of(f"until test -e {tmp_path}/go; do sleep 0.01; done"), ends)

        assert others == [([], None)]
        assert not (tmp_path / "begun").exists()

    @pytest.mark.parametrize("line", ["a\0b", "\ud800"])
    def test_those_before_one_that_no_program_can_be_given_run_all_the_same(
        self, pad: Pad, ends: Notes, tmp_path: Path, line: str
    ) -> None:
        noted, last = pad.launch_all(row_of(":", line, f"touch {tmp_path}/begun"), ends)

        assert (len(noted), last) == (1, None)
        assert not (tmp_path / "begun").exists()

    def test_one_that_cannot_be_started_ends_the_row(self, pad: Pad, ends: Notes, tmp_path: Path) -> None:
        first, second, third = row_of(":", ":", f"touch {tmp_path}/begun")

        noted, last = pad.launch_all([first, (*second[:4], "/no/such/folder"), third], ends)

        assert (len(noted), last) == (1, None)
        assert not (tmp_path / "begun").exists()

    def test_many_leave_nothing_open(self, pad: Pad, ends: Notes) -> None:
        before = os.listdir("/proc/self/fd"), children()

        noted, _ = pad.launch_all(row_of(*["echo x"] * 50), ends)

        assert len(noted) == 50
        assert (os.listdir("/proc/self/fd"), children()) == before

    def test_other_threads_go_on_meanwhile(self, pad: Pad, ends: Notes, tmp_path: Path) -> None:
        def let_it_go() -> None:
            wait_for(lambda: [one for one in read_note(pad.lock.path).leaders if one.seq == 2] or None, "the second")
            (tmp_path / "go").touch()

        with in_a_thread(let_it_go):
            noted, last = pad.launch_all(row_of(":", f"until test -e {tmp_path}/go; do sleep 0.01; done", ":"), ends)

        assert (len(noted), last) == (3, None)


def test_many_leave_nothing_open(pad: Pad) -> None:
    before = os.listdir("/proc/self/fd")

    for _ in range(50):
        pad.run(":")

    assert os.listdir("/proc/self/fd") == before
