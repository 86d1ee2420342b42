"""How long a job had been ready before it was taken, as the claim notes it."""

import pytest

from queuectl.model.states import State
from queuectl.model.verdict import Outcome
from queuectl.store import moves
from queuectl.store.database import Database
from tests.store.rows import NOW, FakeClock, add_job, add_worker, claim_one, get_job, get_runs, settle_run


@pytest.mark.parametrize(
    "columns, waited_ms",
    [
        ({"created_at": NOW - 700, "updated_at": NOW - 700}, 700),
        ({"created_at": NOW - 300, "updated_at": NOW - 300, "run_at": NOW - 900_000}, 300),
        ({"created_at": NOW - 900, "updated_at": NOW - 20, "run_at": NOW - 400, "started_at": NOW - 300}, 20),
        ({"created_at": NOW + 500, "updated_at": NOW + 500}, 0),
    ],
    ids=["added", "added-with-a-time-long-over", "handed-back", "clock-went-back"],
)
def test_a_run_knows_how_long_its_job_had_been_ready(db: Database, columns: dict[str, int], waited_ms: int) -> None:
    db.read_clock = FakeClock(now=NOW)
    add_worker(db)
    job = add_job(db, State.PENDING, queue="default", **columns)

    claim = claim_one(db)
    settle_run(db, claim, Outcome.exited(0))

    assert (claim.job.waited_ms, get_job(db, job.seq).waited_ms) == (waited_ms, waited_ms)
    assert [run.waited_ms for run in get_runs(db, job.seq)] == [waited_ms]


def test_a_run_under_way_says_how_long_it_waited(db: Database) -> None:
    db.read_clock = FakeClock(now=NOW)
    add_worker(db)
    job = add_job(db, State.PENDING, created_at=NOW - 60, updated_at=NOW - 60)

    claim_one(db)

    assert [run.waited_ms for run in get_runs(db, job.seq)] == [60]


@pytest.mark.parametrize("state", [State.SCHEDULED, State.FAILED])
def test_a_job_that_waited_for_a_time_is_ready_from_then_on_however_late_somebody_looks(
    db: Database, state: State
) -> None:
    db.read_clock = FakeClock(now=NOW)
    add_worker(db)
    job = add_job(db, state, created_at=NOW - 900, updated_at=NOW - 700, run_at=NOW - 400)
    edited = add_job(db, state, created_at=NOW - 900, updated_at=NOW - 100, run_at=NOW - 400)

    assert db.write(moves.make_due) == 2

    assert get_job(db, job.seq).ready_at == NOW - 400
    assert get_job(db, edited.seq).ready_at == NOW - 100
    assert claim_one(db).job.waited_ms == 400


def test_what_a_job_waited_for_other_jobs_or_for_a_limit_is_not_how_long_it_was_ready(db: Database) -> None:
    db.read_clock = FakeClock(now=NOW)
    add_worker(db)
    freed, unparked = (
        add_job(
            db,
            State.BLOCKED,
            created_at=NOW - 9000,
            updated_at=NOW - 9000,
            run_at=NOW - 8000,
            parked_for=parked_for,
        )
        for parked_for in (None, "limit:api")
    )

    assert db.write(lambda tx: moves.free(tx, [freed.seq])) == 1
    assert db.write(lambda tx: moves.unpark(tx, [unparked.seq])) == 1

    db.read_clock = FakeClock(now=NOW + 30)
    assert [claim_one(db).job.waited_ms for _ in range(2)] == [30, 30]
