"""Parking: a claim puts jobs whose limit is full aside, and none that it has just taken."""

import pytest

from queuectl.actions.submit import submit
from queuectl.model.job import JobSpec
from queuectl.model.states import State
from queuectl.store import claims, limits
from queuectl.store.database import Database
from queuectl.store.takers import Taker
from tests.store.rows import add_worker, get_job

LIMITED = JobSpec(command="true", limits=("api",))


@pytest.mark.parametrize("slots", [1, 2, 3])
def test_what_a_claim_takes_of_a_limit_that_it_fills_is_its_own(db: Database, slots: int) -> None:
    """Guard: `besides` in moves.park; without it a worker runs a job that the database calls blocked."""
    add_worker(db)
    db.write(lambda tx: limits.put(tx, "api", slots))
    submit(db, [LIMITED] * 3 + [LIMITED.replace(queue="other")] * 3, who="me", environ={})

    taken = db.write(lambda tx: claims.claim(tx, Taker(worker_id="w1"), 10).claims)

    states = [get_job(db, claim.job.seq).state for claim in taken]
    assert states == [State.PROCESSING] * slots
    assert db.read(limits.held) == {"limit:api": slots}
    others = {get_job(db, seq).state for seq in range(1, 7)} - {State.PROCESSING}
    assert others == {State.BLOCKED}
