"""Depths: how many jobs waited, ran and were dead at moments that are over."""

from queuectl.model.states import State
from queuectl.model.verdict import Outcome
from queuectl.store.database import Database
from queuectl.store.depths import depths
from tests.store.rows import NOW, FakeClock, add_job, add_worker, claim_one, settle_run

SECOND = 1000
MINUTE = 60 * SECOND


def test_the_past_is_told_from_what_is_on_record(db: Database) -> None:
    add_worker(db)
    pass_until(db, 0)
    add_job(db, queue="mail")
    pass_until(db, 30)
    add_job(db, queue="night", run_at=NOW + 30 * SECOND)
    add_job(db, State.DEAD, finished_at=NOW + 150 * SECOND)
    add_job(db, State.DEAD, finished_at=NOW - MINUTE)
    pass_until(db, 90)
    claim = claim_one(db)
    pass_until(db, 210)
    settle_run(db, claim, Outcome.exited(0))
    pass_until(db, 300)

    found = db.read(lambda tx: depths(tx, NOW, MINUTE))

    assert [(moment - NOW) // SECOND for moment in found.moments] == [0, 60, 120, 180, 240, 300]
    assert found.waiting == {"mail": (1, 1, 0, 0, 0, 0), "night": (0, 1, 1, 1, 1, 1)}
    assert found.all_waiting == (1, 2, 1, 1, 1, 1)
    assert found.waiting_in("default") == (0, 0, 0, 0, 0, 0)
    assert found.running == (0, 0, 1, 1, 0, 0)
    assert found.dead == (1, 1, 1, 2, 2, 2)


def test_what_runs_now_and_what_began_long_ago_is_counted(db: Database) -> None:
    add_worker(db)
    pass_until(db, -3600)
    add_job(db)
    add_job(db)
    claim_one(db)
    pass_until(db, 120)

    found = db.read(lambda tx: depths(tx, NOW, MINUTE))

    assert found.waiting == {"default": (1, 1, 1)}
    assert found.running == (1, 1, 1)


def test_an_empty_store_has_no_depth(db: Database) -> None:
    pass_until(db, 60)

    found = db.read(lambda tx: depths(tx, NOW, MINUTE))

    assert (found.all_waiting, found.running, found.dead) == ((0, 0), (0, 0), (0, 0))


def pass_until(db: Database, seconds: int) -> None:
    """Let the clock of a store stand so long after the beginning."""
    db.read_clock = FakeClock(now=NOW + seconds * SECOND)
