"""Explain: ends that take too long to come by with real workers, and what mends each."""

import pytest

from queuectl.actions.control import cancel
from queuectl.actions.explain import cause, mending_edit, why_waiting
from queuectl.model.states import State
from queuectl.model.verdict import Outcome
from queuectl.store.database import Database
from tests.store.rows import NOW, FakeClock, add_job, add_worker, claim_one, get, get_job, get_runs, settle_run


def test_a_job_that_killed_its_workers_says_how_many(db: Database) -> None:
    add_worker(db)
    job = add_job(db, losses=2)

    settle_run(db, claim_one(db), Outcome.lost())

    dead = get_job(db, job.seq)
    assert dead.state is State.DEAD
    assert cause(dead, get_runs(db, job.seq)) == "its worker died 3 times while running it"


def test_a_job_that_lost_two_workers_waits_for_one_that_is_idle(db: Database) -> None:
    add_worker(db, host="elsewhere", slots=2)
    add_job(db, State.PROCESSING)
    job = add_job(db, losses=2)

    wait = db.read(lambda tx: why_waiting(tx, get(tx, job.seq)))

    assert wait is not None
    assert wait.reason == "an idle worker: it has lost 2 workers, and runs alone now"


def test_a_blocked_job_that_nobody_holds_names_no_remedy(db: Database) -> None:
    db.read_clock = FakeClock()
    job = add_job(db, State.BLOCKED)
    held = add_job(db, State.BLOCKED, held_at=NOW)

    waits = db.read(lambda tx: [why_waiting(tx, get(tx, one.seq)) for one in (job, held)])

    assert [wait and wait.remedy for wait in waits] == [None, f"queuectl release {held.id}"]


def test_a_cancelled_job_that_ran_before_says_that_it_was_cancelled(db: Database) -> None:
    add_worker(db)
    job = add_job(db)
    settle_run(db, claim_one(db), Outcome.exited(4))

    cancel(db, [job.id], who="me")

    assert cause(get_job(db, job.seq), get_runs(db, job.seq)) == "cancelled before it ran"


NOT_STARTED = {
    "cannot set nofile to 99999999: this worker may give 1024 at the most": "--nofile N",
    "cannot set nice to -5: this worker may give 0 at the lowest": "--nice N",
    "cannot read standard input from /nowhere: No such file or directory": "--stdin FILE",
    "cannot run '/bin/nosuch': No such file or directory": "--shell PROGRAM",
    "cannot run '/bin/bash' with so little memory": "--memory SIZE",
    "cannot enter /nowhere: No such file or directory": "--cwd DIR",
    "secret TOKEN: not found as variable QUEUECTL_SECRET_TOKEN": "--secret NAME",
    "cannot run 'frob': not found on PATH": None,
}
ENDS = {
    "deadline": (Outcome.past_deadline(1000), "--deadline DURATION"),
    "timeout": (Outcome.timed_out(1000), "--timeout DURATION"),
    "memory": (Outcome.out_of_memory(signal=9, limit="1MiB"), "--memory SIZE"),
    "cpu": (Outcome.killed(24, "SIGXCPU"), "--cpu-seconds N"),
    "code": (Outcome.exited(3), None),
    **{said: (Outcome.not_started(126, said), edit) for said, edit in NOT_STARTED.items()},
}


@pytest.mark.parametrize("end", ENDS)
def test_the_edit_that_mends_a_dead_job_fits_its_end(db: Database, end: str) -> None:
    outcome, wanted = ENDS[end]
    add_worker(db)
    launch = '{"memory_bytes": 1048576, "shell": "/bin/nosuch"}'
    job = add_job(db, max_retries=0, launch=launch, deadline_ms=1000, deadline_at=NOW * 2)

    settle_run(db, claim_one(db), outcome)

    dead = get_job(db, job.seq)
    assert (dead.state, mending_edit(dead, get_runs(db, job.seq))) == (State.DEAD, wanted)


def test_codes_that_make_no_success_are_mended_by_others(db: Database) -> None:
    add_worker(db)
    job = add_job(db, max_retries=0, policy='{"success_codes": [3]}')

    settle_run(db, claim_one(db), Outcome.exited(0))

    assert mending_edit(get_job(db, job.seq), get_runs(db, job.seq)) == "--success-codes 0"
