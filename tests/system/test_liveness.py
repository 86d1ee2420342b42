"""Liveness: a lock tells at once whether its holder lives, however the holder ended."""

import errno
import fcntl
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from queuectl.errors import StoreUnreachable
from queuectl.system.home import Home
from queuectl.system.liveness import (
    RECORD_BYTES,
    Leader,
    LifeLock,
    Parting,
    Pulse,
    home_of,
    note_parting,
    pulse_of,
    read_note,
    remove_left_locks,
)
from tests.program import wait_for

HOLDER = """
import sys, time
from queuectl.errors import StoreUnreachable
from queuectl.system.home import Home
from queuectl.system.liveness import LifeLock

lock = LifeLock(Home(root=sys.argv[1]), "holder")
print(lock.path, flush=True)
time.sleep(600)
"""


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A home that is set up."""
    home = Home(root=str(tmp_path / "home"))
    home.make()
    return home


@pytest.fixture
def holder(home: Home) -> "Iterator[subprocess.Popen[str]]":
    """Another process that holds a lock."""
    process = subprocess.Popen([sys.executable, "-c", HOLDER, home.root], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline().strip() == path_of(home, "holder")
    yield process
    process.kill()
    process.communicate()


def test_a_process_that_holds_its_lock_is_alive(home: Home, holder: "subprocess.Popen[str]") -> None:
    assert pulse_of(path_of(home, "holder")) is Pulse.ALIVE


def test_looking_twice_does_not_disturb_the_holder(home: Home, holder: "subprocess.Popen[str]") -> None:
    pulses = {pulse_of(path_of(home, "holder")) for _ in range(100)}

    assert pulses == {Pulse.ALIVE}


def test_a_process_killed_without_a_word_is_dead_at_once(home: Home, holder: "subprocess.Popen[str]") -> None:
    holder.kill()
    holder.wait()

    assert pulse_of(path_of(home, "holder")) is Pulse.DEAD
    assert os.path.exists(path_of(home, "holder"))


def test_a_stopped_process_is_alive(home: Home, holder: "subprocess.Popen[str]") -> None:
    os.kill(holder.pid, 19)
    wait_for(lambda: " T " in Path(f"/proc/{holder.pid}/stat").read_text() or None, "the holder to stop")

    assert pulse_of(path_of(home, "holder")) is Pulse.ALIVE


def test_a_lock_given_back_is_gone(home: Home) -> None:
    lock = LifeLock(home, "w1")

    lock.release()

    assert not os.path.exists(lock.path)


def test_a_lock_that_is_not_there_proves_nothing(home: Home) -> None:
    path = path_of(home, "never")

    assert pulse_of(path) is Pulse.OUT_OF_SIGHT
    assert pulse_of(path, pid=os.getpid()) is Pulse.OUT_OF_SIGHT


def test_without_its_lock_a_process_whose_pid_is_gone_is_dead(home: Home) -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()

    assert pulse_of(path_of(home, "never"), pid=gone.pid) is Pulse.DEAD


def test_a_folder_that_is_not_there_means_nothing(tmp_path: Path) -> None:
    assert pulse_of(str(tmp_path / "unmounted" / "run" / "w1.lock")) is Pulse.OUT_OF_SIGHT


def test_a_command_does_not_inherit_the_lock(home: Home) -> None:
    lock = LifeLock(home, "w1")
    child = subprocess.Popen(["sleep", "600"], close_fds=False)

    lock.release()
    with open(lock.path, "w"):
        pulse = pulse_of(lock.path)
    child.kill()
    child.wait()

    assert pulse is Pulse.DEAD


def test_an_id_is_never_taken_twice(home: Home) -> None:
    lock = LifeLock(home, "w1")

    with pytest.raises(StoreUnreachable):
        LifeLock(home, "w1")
    lock.release()


def path_of(home: Home, worker_id: str) -> str:
    return os.path.join(home.run, f"{worker_id}.lock")


def test_the_locked_file_tells_what_its_holder_runs(home: Home) -> None:
    lock = LifeLock(home, "w1")
    one = Leader(pid=11, since=1.5, seq=1, run=3)
    two = Leader(pid=12, since=2.5, seq=9_000_000_000_000_000_000, run=2_000_000_000)
    three = Leader(pid=13, since=3.5, seq=3, run=1, begun=3.25, pipes=(4_294_967_295, 4_294_967_294))

    lock.note_life(4.25, 60)
    lock.note_start(one)
    lock.note_start(two)
    lock.note_ends([1])
    lock.note_start(three.replace(pid=0, since=0.0))
    before = read_note(lock.path)
    lock.note_pid(three, three.pid, three.since)
    note = read_note(lock.path)
    lock.release()

    assert set(before.leaders) == {two, three.replace(pid=0, since=0.0)}
    assert (note.seen_at, note.lease_s, set(note.leaders)) == (4.25, 60, {two, three})


def test_a_command_whose_end_is_noted_is_not_under_way_any_more(home: Home) -> None:
    lock = LifeLock(home, "w1")
    one, two = Leader(pid=11, since=1.5, seq=1, run=3), Leader(pid=12, since=2.5, seq=2, run=1)
    lock.expect_ends()
    lock.note_start(one)
    lock.note_start(two)

    lock.note_outcome(1, 3, "{}")
    with_note = read_note(lock.path).leaders
    lock.drop_stale()
    os.unlink(f"{home.run}/w1.ended")
    without = read_note(lock.path).leaders
    lock.release()

    assert with_note == without == (two,)


def test_a_command_noted_over_one_that_ended_stays_noted(home: Home) -> None:
    lock = LifeLock(home, "w1")
    one, two = Leader(pid=11, since=1.5, seq=1, run=3), Leader(pid=12, since=2.5, seq=2, run=1)
    lock.expect_ends()
    lock.note_start(one)
    lock.note_outcome(1, 3, "{}")

    lock.note_start(two)
    size = os.path.getsize(lock.path)
    lock.drop_stale()
    leaders = read_note(lock.path).leaders
    lock.release()

    assert leaders == (two,)
    assert size == 2 * RECORD_BYTES  # the first says what is known of the process


def test_a_note_that_found_no_space_is_made_good_with_the_pid_and_spoils_no_other(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = LifeLock(home, "w1")
    one, two = Leader(pid=11, since=1.5, seq=1, run=3), Leader(pid=12, since=2.5, seq=2, run=1)
    with monkeypatch.context() as full:
        full.setattr(os, "pwrite", lambda *_: (_ for _ in ()).throw(OSError(errno.ENOSPC, "full")))
        lock.note_start(one.replace(pid=0, since=0.0))

    lock.note_pid(one, one.pid, one.since)
    lock.note_start(two)
    note = read_note(lock.path)
    lock.release()

    assert set(note.leaders) == {one, two}


@pytest.mark.parametrize("why", list(Parting))
@pytest.mark.parametrize("cut_off", ["", "11", "11 1.5"])
def test_why_a_death_is_no_crash_is_noted_beside_the_rest(home: Home, cut_off: str, why: Parting) -> None:
    lock = LifeLock(home, "w1", "store")
    lock.note_life(4.25, 60)
    lock.note_start(Leader(pid=11, since=1.5, seq=1, run=3))
    with open(lock.path, "a") as file:
        file.write(cut_off)
    before = read_note(lock.path)

    note_parting(lock.path, why)
    after = read_note(lock.path)
    lock.release()
    note_parting(lock.path, why)  # it has left: nothing to note, and nothing made

    assert (before.parting, after) == (None, before.replace(parting=why))
    assert not os.path.exists(lock.path)


def test_what_an_earlier_version_noted_of_a_command_is_read(tmp_path: Path) -> None:
    (tmp_path / "old").write_text("12.500 60.000 store\n11 1.500 7 3\n")

    (left,) = read_note(str(tmp_path / "old")).left("w1")

    assert (left.mark, left.leader, left.started, left.seen_at, left.pipes) == ("w1:7:3", 11, 1.5, 12.5, ())


def test_a_locked_file_that_says_nothing_is_read_as_nothing(tmp_path: Path) -> None:
    (tmp_path / "cut").write_text("12.5 60.0\n11 1.5")
    (tmp_path / "empty").touch()

    notes = [read_note(str(tmp_path / name)) for name in ("cut", "empty", "never")]

    assert [(note.seen_at, note.leaders) for note in notes] == [(12.5, ()), (0.0, ()), (0.0, ())]


def test_a_lock_of_another_store_that_shares_the_home_is_left_alone(home: Home) -> None:
    for name, store in (("ours", "a"), ("theirs", "b")):
        lock = LifeLock(home, name, store)
        os.close(lock._fd)

    remove_left_locks(home, "a", lambda _worker_id: False)

    assert (os.path.exists(path_of(home, "ours")), os.path.exists(path_of(home, "theirs"))) == (False, True)


def test_the_lock_of_a_process_killed_before_its_first_word_is_removed(home: Home) -> None:
    Path(path_of(home, "killed")).touch()
    starting = os.open(path_of(home, "starting"), os.O_RDWR | os.O_CREAT)
    fcntl.flock(starting, fcntl.LOCK_EX)

    remove_left_locks(home, "a", lambda _worker_id: False)

    assert (os.path.exists(path_of(home, "killed")), os.path.exists(path_of(home, "starting"))) == (False, True)
    os.close(starting)


@pytest.mark.parametrize(
    "folder, store, meant",
    [
        ("", "0f", ""),
        ("postgresql-1f", "2e", "postgresql-2e"),
        ("postgresql-1f", "", "postgresql-1f"),
        ("postgresql-1f", "../x", "postgresql-1f"),
    ],
)
def test_the_home_of_a_lock_has_the_folder_its_holder_writes_into(
    home: Home, folder: str, store: str, meant: str
) -> None:
    lock = LifeLock(home, "w1", store)

    assert home_of(lock.path, Home(root="/elsewhere", folder=folder)) == home.replace(folder=meant)
    lock.release()


def test_notes_that_lost_their_lock_are_removed_and_those_beside_one_are_kept(home: Home) -> None:
    lock = LifeLock(home, "living", "store")
    lock.expect_ends()
    Path(home.run, "gone.ended").touch()

    remove_left_locks(home, "store", lambda _: False)

    assert sorted(name for name in os.listdir(home.run) if "." in name) == ["living.ended", "living.lock"]
    lock.release()
    assert not [name for name in os.listdir(home.run) if "living" in name]
