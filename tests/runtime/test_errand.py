"""A worker for one job: it takes that one alone, waits for its retries, and is replaced when it is killed."""

import os
import signal
from contextlib import closing

import pytest

from queuectl.actions import control
from queuectl.actions.connect import Target, connect
from queuectl.actions.submit import submit
from queuectl.model.job import Job, JobSpec
from queuectl.model.states import State
from queuectl.runtime.errand import Errand
from queuectl.runtime.wait import wait_for_all
from queuectl.store import attempts, jobs, workers
from queuectl.store.database import Database
from tests.program import wait_for


def submitted(database: Database, *specs: JobSpec) -> list[int]:
    return [int(one) for one in submit(database, specs, who="me", environ={})]


def row_of(database: Database, seq: int) -> Job:
    job = database.read(lambda tx: jobs.get(tx, seq))
    assert job is not None
    return job


def pid_of_worker(database: Database, seq: int) -> int | None:
    """Return the process that runs a job, once it does."""
    job = database.read(lambda tx: jobs.get(tx, seq))
    worker = database.read(lambda tx: workers.get(tx, (job and job.worker_id) or ""))
    return worker.pid if worker else None


def test_it_takes_the_one_job_and_no_other(target: Target) -> None:
    with closing(connect(target)) as database:
        other, wanted = submitted(database, JobSpec(command="true", priority=9), JobSpec(command="true"))

        with Errand(target, row_of(database, wanted)):
            wait_for_all(target, database, [wanted], timeout_s=60)

        states = database.read(lambda tx: jobs.states_by_number(tx, [other, wanted]))
        assert states == {other: State.PENDING, wanted: State.COMPLETED}
        assert database.read(workers.live) == []


def test_it_stays_for_the_retries(target: Target) -> None:
    line = 'test "$QUEUECTL_ATTEMPT" = 2'
    with closing(connect(target)) as database:
        [seq] = submitted(database, JobSpec(command=line, max_retries=1, backoff={"base": 0.05}))

        with Errand(target, row_of(database, seq)):
            waited = wait_for_all(target, database, [seq], timeout_s=60)

        assert [job.state for job in waited.jobs] == [State.COMPLETED]


def test_it_does_not_take_a_job_of_a_paused_queue(target: Target) -> None:
    with closing(connect(target)) as database:
        [seq] = submitted(database, JobSpec(command="true"))
        control.pause_queue(database, "default", who="me")

        with Errand(target, row_of(database, seq)):
            waited = wait_for_all(target, database, [seq], timeout_s=1)
            assert waited.is_timed_out
            control.resume_queue(database, "default", who="me")
            waited = wait_for_all(target, database, [seq], timeout_s=60)

        assert not waited.is_timed_out


def test_a_killed_one_is_replaced_and_the_job_runs_again(target: Target) -> None:
    line = 'test "$QUEUECTL_RUN" = 2 || sleep 60'
    with closing(connect(target)) as database:
        [seq] = submitted(database, JobSpec(command=line, max_retries=0))

        with Errand(target, row_of(database, seq)):
            os.kill(wait_for(lambda: pid_of_worker(database, seq), "the job runs"), signal.SIGKILL)
            waited = wait_for_all(target, database, [seq], timeout_s=60)

        [job] = waited.jobs
        runs = database.read(lambda tx: attempts.runs_of(tx, job))
        assert (job.state, job.losses, [run.outcome for run in runs]) == (State.COMPLETED, 1, ["lost", "exited"])


@pytest.mark.parametrize("target", ["postgres"], indirect=True)
def test_one_that_is_stopped_is_ended_before_its_lease_and_the_job_runs_again(target: Target) -> None:
    line = 'test "$QUEUECTL_RUN" = 2 || sleep 60'
    with closing(connect(target)) as database:
        control.set_setting(database, "worker_heartbeat_interval", "1s", who="me")
        control.set_setting(database, "lock_lease_seconds", "7s", who="me")
        [seq] = submitted(database, JobSpec(command=line, max_retries=0))

        with Errand(target, row_of(database, seq)):
            os.kill(wait_for(lambda: pid_of_worker(database, seq), "the job runs"), signal.SIGSTOP)
            waited = wait_for_all(target, database, [seq], timeout_s=60)

        [job] = waited.jobs
        runs = database.read(lambda tx: attempts.runs_of(tx, job))
        assert [run.outcome for run in runs] == ["handed_back", "exited"]


def test_it_starts_no_worker_for_a_job_that_needs_what_its_own_would_not_have(target: Target) -> None:
    with closing(connect(target)) as database:
        [seq] = submitted(database, JobSpec(command="true", needs=("gpu",)))
        errand = Errand(target, row_of(database, seq))

        is_over = errand._look(database)

        assert not is_over
        assert database.read(workers.live) == []
        assert errand._worker is None
