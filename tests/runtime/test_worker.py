"""The worker's main loop, turn by turn, where only a fault at the right moment shows what it does."""

import os
import secrets
from collections.abc import Callable, Iterator

import pytest

from queuectl.actions.connect import Target, connect
from queuectl.actions.submit import submit
from queuectl.errors import StoreUnreachable
from queuectl.model.job import Job, JobSpec
from queuectl.model.states import State
from queuectl.runtime.log import TEXT, Log
from queuectl.runtime.worker import Worker, WorkerOptions
from queuectl.store import attempts, jobs
from queuectl.store.database import Database
from tests.program import wait_for


@pytest.fixture
def worker(target: Target) -> "Iterator[Worker]":
    """A worker that takes its turns when it is told to."""
    connect(target).close()
    options = WorkerOptions(
        worker_id=secrets.token_hex(8), supervisor_id="s", queues=None, slots=1, until_idle=False, log_form=TEXT,
        log_to_file=False,
    )  # fmt: skip
    worker = Worker(target, options, Log("worker", form=TEXT, file=None))
    yield worker
    worker._identity.end()
    worker._database.close()


def test_a_commit_whose_answer_was_lost_is_found_out_and_nothing_is_lost_or_repeated(
    worker: Worker, db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    backoff: dict[str, str | float | int] = {"strategy": "fixed", "fixed_ms": 0}
    spec = JobSpec(command="exit 1", cwd="/", max_retries=2, backoff=backoff)
    submit(db, [spec], who="me", environ={})
    commits = lose_answers(worker, monkeypatch, {1, 2, 3})

    job = wait_for(lambda: turn(worker, db, lambda job: job.state is State.DEAD), "the job to be buried")

    runs = db.read(lambda tx: attempts.runs_of(tx, job))
    assert (job.attempts, [run.run for run in runs]) == (3, [1, 2, 3])
    assert commits() > 3


def test_settings_that_do_not_fit_its_environment_do_not_end_a_worker(
    worker: Worker, db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker._environ["QUEUECTL_LOCK_LEASE_SECONDS"] = "6"
    worker._settings_at = 0.0
    submit(db, [JobSpec(command="exit 1", cwd="/", max_retries=0)], who="me", environ={})

    job = wait_for(lambda: turn(worker, db, lambda job: job.state is State.DEAD), "the job to be buried")

    assert job.error == "exit code 1"


def test_a_command_that_found_no_room_is_handed_back_and_not_charged(
    worker: Worker, db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    submit(db, [JobSpec(command="true", cwd="/", max_retries=0)], who="me", environ={})
    spawn, tries = os.posix_spawn, [0]

    def short_of_processes(*args: object, **named: object) -> int:
        tries[0] += 1
        if tries[0] == 1:
            raise BlockingIOError(11, "Resource temporarily unavailable")
        return spawn(*args, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "posix_spawn", short_of_processes)

    job = wait_for(lambda: turn(worker, db, lambda job: job.state is State.COMPLETED), "the job to complete")

    assert (job.attempts, job.run) == (1, 2)


def turn(worker: Worker, db: Database, is_reached: Callable[[Job], bool]) -> Job | None:
    """Let the worker take a turn and return the one job once it is where it should be."""
    worker._next_look = min(worker._next_look, 1e-9) if not worker._running else worker._next_look
    worker._turn()
    job = db.read(lambda tx: jobs.get(tx, 1))
    return job if job is not None and is_reached(job) else None


def lose_answers(worker: Worker, monkeypatch: pytest.MonkeyPatch, numbers: set[int]) -> Callable[[], int]:
    """Let some of the worker's writing commits succeed and their answers get lost."""
    dialect = worker._database.dialect
    begin, commit = dialect.begin, dialect.commit
    count, is_writing = [0], [False]

    def note_begin(*, writing: bool) -> int:
        is_writing[0] = writing
        return begin(writing=writing)

    def lose(*_: object) -> None:
        commit()
        count[0] += is_writing[0]
        if is_writing[0] and count[0] in numbers:
            raise StoreUnreachable("the answer was lost")

    monkeypatch.setattr(dialect, "begin", note_begin)
    monkeypatch.setattr(dialect, "commit", lose)
    return lambda: count[0]
