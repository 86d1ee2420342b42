"""Warden: a worker that is stopped or hangs is ended with its commands before its lease; another one never is."""

import os
import secrets
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from queuectl import clock
from queuectl.runtime.log import TEXT, Log
from queuectl.runtime.warden import Ward, Warden
from queuectl.system.home import Home
from queuectl.system.liveness import Leader, LifeLock, Parting, read_note
from queuectl.system.pipes import inode_of
from tests.program import wait_for

LEASE_S = 60.0


class Worker:
    """A process that stands for a worker, and one that stands for its command, with the lock between them."""

    def __init__(self, home: Home) -> None:
        self.process = subprocess.Popen(["sleep", "600"])
        self.command = subprocess.Popen(["sleep", "600"], start_new_session=True)
        worker_id = secrets.token_hex(8)  # its own: marks are looked for on the whole host
        self.lock = LifeLock(home, worker_id)
        self.lock.note_start(Leader(pid=self.command.pid, since=clock.boot_s(), seq=1, run=1))
        self.ward = Ward(worker_id=worker_id, pid=self.process.pid, lock_path=self.lock.path)

    def renewed(self, seconds_ago: float) -> None:
        """Let the last renewal be so long ago."""
        self.lock.note_life(clock.boot_s() - seconds_ago, LEASE_S)

    def living(self) -> tuple[bool, bool]:
        """Whether worker and command live."""
        return self.process.poll() is None, self.command.poll() is None


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[Worker]:
    home = Home(root=str(tmp_path / "home"))
    home.make()
    worker = Worker(home)
    yield worker
    for process in (worker.process, worker.command):
        process.kill()
        process.wait()
    worker.lock.release()


def warden_of(worker: Worker) -> Warden:
    """Return a warden of one worker."""
    return Warden(lambda: [worker.ward], Log("supervisor", form=TEXT, file=None))


def test_a_worker_that_renewed_in_time_is_left_alone(worker: Worker) -> None:
    warden = warden_of(worker)
    worker.renewed(seconds_ago=56)

    pause_s = warden.look()

    assert (worker.living(), warden.ended) == ((True, True), set())
    assert pause_s <= 1


def test_a_worker_whose_lease_is_about_to_end_is_ended_with_its_commands(worker: Worker) -> None:
    warden = warden_of(worker)
    worker.renewed(seconds_ago=58)

    warden.look()

    wait_for(lambda: worker.living() == (False, False) or None, "the end of both")
    assert warden.ended == {worker.ward.worker_id}


def test_a_worker_is_said_to_be_ended_before_anybody_can_find_it_dead(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = []
    monkeypatch.setattr("queuectl.system.process.kill", lambda _: said.append(read_note(worker.lock.path).parting))
    worker.renewed(seconds_ago=58)

    warden_of(worker).look()

    assert said[0] is Parting.ENDED


def test_a_command_of_which_only_the_pipe_was_noted_yet_is_ended_with_its_worker(worker: Worker) -> None:
    read_fd, write_fd = os.pipe()
    begun = clock.boot_s()
    ahead = subprocess.Popen(["env", "-i", "sleep", "600"], stdout=write_fd, start_new_session=True)
    worker.lock.note_start(Leader(seq=2, run=1, begun=begun, pipes=(inode_of(write_fd),)))
    worker.renewed(seconds_ago=58)

    warden_of(worker).look()
    code = ahead.wait(100)
    os.close(read_fd)
    os.close(write_fd)

    assert code == -signal.SIGKILL


def test_a_worker_that_runs_nothing_waits_for_its_database_in_peace(worker: Worker) -> None:
    warden = warden_of(worker)
    worker.lock.note_ends([1])
    worker.renewed(seconds_ago=1000)

    warden.look()

    assert (worker.living(), warden.ended) == ((True, True), set())


def test_a_stopped_worker_is_ended_though_no_command_of_it_is_known(worker: Worker) -> None:
    warden = warden_of(worker)
    worker.lock.note_ends([1])
    worker.renewed(seconds_ago=58)
    os.kill(worker.process.pid, signal.SIGSTOP)
    wait_for(lambda: " T " in Path(f"/proc/{worker.process.pid}/stat").read_text() or None, "the worker to stop")

    warden.look()

    wait_for(lambda: worker.living() == (False, True) or None, "the end of the worker")
    assert warden.ended == {worker.ward.worker_id}


def test_a_worker_that_has_not_begun_to_beat_is_left_alone(worker: Worker) -> None:
    warden = warden_of(worker)

    warden.look()

    assert (worker.living(), warden.ended) == ((True, True), set())
