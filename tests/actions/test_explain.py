"""Explain: jobs that lost their workers, which take too long to come by with real ones."""

from queuectl.actions.control import cancel
from queuectl.actions.explain import cause, why_waiting
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
