"""Deadlines against claims and against each other, each held inside its open transaction while the other tries."""

from collections.abc import Callable

from queuectl.model.states import State
from queuectl.store import claims, deadlines
from queuectl.store.database import Database
from queuectl.store.takers import Taker
from tests.store.racing import Race
from tests.store.rows import NOW, FakeClock, add_job, add_worker, get_job


def claim_at(now: int) -> Callable[[Database], int]:
    """Return the act of claiming, with how many it took."""

    def act(database: Database) -> int:
        database.read_clock = FakeClock(now=now)
        return len(database.write(lambda tx: claims.claim(tx, Taker(worker_id="w1"), 1)).claims)

    return act


def expire_at(now: int) -> Callable[[Database], int]:
    """Return the act of burying what is overdue, with how many it was."""

    def act(database: Database) -> int:
        database.read_clock = FakeClock(now=now)
        return database.write(lambda tx: deadlines.expire_overdue(tx, 10)[0])

    return act


def test_a_job_that_is_being_taken_at_its_deadline_runs(db: Database, race: Race) -> None:
    add_worker(db)
    job = add_job(db, deadline_ms=10, deadline_at=NOW + 10)

    assert race(claim_at(NOW), expire_at(NOW + 10)) == (1, 0)

    assert get_job(db, job.seq).state is State.PROCESSING


def test_a_job_that_is_being_buried_is_not_taken(db: Database, race: Race) -> None:
    add_worker(db)
    job = add_job(db, deadline_ms=10, deadline_at=NOW + 10)

    assert race(expire_at(NOW + 10), claim_at(NOW)) == (1, 0)

    assert get_job(db, job.seq).state is State.DEAD


def test_two_supervisors_bury_a_job_once_and_none_waits_for_the_other_on_postgres(db: Database, race: Race) -> None:
    for place in range(3):
        add_job(db, deadline_ms=10, deadline_at=NOW + place, limits='["mutex:m"]')

    assert race(expire_at(NOW + 10), expire_at(NOW + 10)) == (3, 0)

    assert race.did_second_wait == db.dialect.is_local
