"""Jobs one loss short of burial: each is run alone, and holds nobody up who could run something else."""

import pytest

from queuectl.model.states import State
from queuectl.model.verdict import MAX_LOSSES
from queuectl.store import claims
from queuectl.store.database import Database
from queuectl.store.takers import Taker
from tests.store.rows import NOW, FakeClock, add_job, add_worker, get_job

LAST_CHANCE = MAX_LOSSES - 1


@pytest.fixture(autouse=True)
def _standing_clock(db: Database) -> None:
    db.read_clock = FakeClock()


def take(db: Database, worker_id: str = "w1", *, wanted: int = 20, is_idle: bool) -> list[int]:
    """Let a worker claim and return the numbers of what it got."""
    claimed = db.write(lambda tx: claims.claim(tx, Taker(worker_id=worker_id), wanted, is_idle=is_idle).claims)
    return [claim.job.seq for claim in claimed]


def test_an_idle_worker_takes_it_and_nothing_beside_it(db: Database) -> None:
    add_worker(db)
    alone = add_job(db, losses=LAST_CHANCE)
    add_job(db)

    assert take(db, is_idle=True) == [alone.seq]


def test_a_job_with_fewer_losses_runs_with_others(db: Database) -> None:
    add_worker(db)
    jobs = [add_job(db, losses=LAST_CHANCE - 1), add_job(db)]

    assert take(db, is_idle=True) == [job.seq for job in jobs]


@pytest.mark.parametrize("wanted", [1, 20])
def test_a_busy_worker_passes_it_by(db: Database, wanted: int) -> None:
    add_worker(db)
    add_job(db, losses=LAST_CHANCE)
    other = add_job(db)

    assert take(db, wanted=wanted, is_idle=False) == [other.seq]


def test_what_stands_before_it_in_line_is_taken_first(db: Database) -> None:
    add_worker(db)
    first, alone, last = add_job(db), add_job(db, losses=LAST_CHANCE), add_job(db)

    taken = take(db, is_idle=True)

    assert taken == [first.seq, last.seq]
    assert get_job(db, alone.seq).state is State.PENDING


def test_priority_counts_across_queues(db: Database) -> None:
    add_worker(db)
    add_job(db, queue="batch", priority=-5, losses=LAST_CHANCE)
    urgent = add_job(db, queue="mail", priority=10)

    assert take(db, is_idle=True) == [urgent.seq]


def test_one_at_a_time_runs_on_a_host_and_the_other_worker_takes_what_it_can(db: Database) -> None:
    add_worker(db, "w1")
    add_worker(db, "w2")
    first, second, other = add_job(db, losses=LAST_CHANCE), add_job(db, losses=LAST_CHANCE), add_job(db)

    taken = take(db, "w1", is_idle=True), take(db, "w2", is_idle=True)

    assert taken == ([first.seq], [other.seq])
    assert get_job(db, second.seq).state is State.PENDING


def test_another_host_may_run_one_at_the_same_time(db: Database) -> None:
    add_worker(db, "w1")
    add_worker(db, "w2", boot="another")
    jobs = [add_job(db, losses=LAST_CHANCE), add_job(db, losses=LAST_CHANCE)]

    assert take(db, "w1", is_idle=True) + take(db, "w2", is_idle=True) == [job.seq for job in jobs]


def test_when_it_has_waited_long_one_worker_takes_nothing_more_until_it_is_idle(db: Database) -> None:
    add_worker(db, "w1")
    add_worker(db, "w2")
    alone = add_job(db, losses=LAST_CHANCE)
    others = [add_job(db), add_job(db)]
    db.read_clock = FakeClock(now=NOW + claims.ALONE_PATIENCE_MS)

    busy = take(db, "w1", wanted=1, is_idle=False), take(db, "w2", wanted=1, is_idle=False)
    idle = take(db, "w1", is_idle=True)

    assert busy == ([], [others[0].seq])
    assert idle == [alone.seq]
