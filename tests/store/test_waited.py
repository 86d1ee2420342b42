"""How long a job had been ready before it was taken, as the claim notes it."""

import pytest

from queuectl.model.states import State
from queuectl.model.verdict import Outcome
from queuectl.store.database import Database
from tests.store.rows import NOW, FakeClock, add_job, add_worker, claim_one, get_job, get_runs, settle_run


@pytest.mark.parametrize(
    "columns, waited_ms",
    [
        ({"created_at": NOW - 700, "updated_at": NOW - 700}, 700),
        ({"created_at": NOW - 900, "updated_at": NOW - 50, "run_at": NOW - 400}, 400),
        ({"created_at": NOW - 300, "updated_at": NOW - 300, "run_at": NOW - 900_000}, 300),
        ({"created_at": NOW - 900, "updated_at": NOW - 20, "run_at": NOW - 400, "started_at": NOW - 300}, 20),
        ({"created_at": NOW - 900, "updated_at": NOW - 20, "run_at": NOW - 100, "started_at": NOW - 300}, 100),
        ({"created_at": NOW + 500, "updated_at": NOW + 500}, 0),
    ],
    ids=["added", "made-due-late", "added-with-a-time-long-over", "handed-back", "retried", "clock-went-back"],
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
