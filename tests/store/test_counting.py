"""Counting: what is told of queues and states is what a count of the rows themselves finds."""

import random
from collections import Counter

import pytest

from queuectl.model.needs import needs_text
from queuectl.model.states import State
from queuectl.store import jobs
from queuectl.store.database import Database, Tx
from tests.store.rows import add_job, add_worker


@pytest.mark.parametrize("few_lanes", [0, jobs.FEW_LANES])
@pytest.mark.parametrize("seed", range(3))
def test_counts_are_those_of_the_rows_themselves(
    db: Database, seed: int, few_lanes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "FEW_LANES", few_lanes)
    dice = random.Random(seed)
    add_worker(db)
    for _ in range(60):
        needs = needs_text(dice.choice([[], ["gpu"], ["arm"]]), None)
        add_job(db, dice.choice(list(State)), queue=dice.choice("abc"), needs=needs or None)

    told = db.read(jobs.counts)

    assert told == db.read(recounted)
    assert all(number for of_queue in told.values() for number in of_queue.values())


def test_a_lane_that_holds_nothing_is_not_counted(db: Database) -> None:
    add_job(db, State.COMPLETED, queue="used")
    db.write(lambda tx: tx.changed("DELETE FROM jobs"))

    assert db.read(jobs.counts) == {}


def recounted(tx: Tx) -> dict[str, dict[State, int]]:
    """Count the rows of the table one by one."""
    found: dict[str, Counter[State]] = {}
    for queue, state in tx.rows("SELECT queue, state FROM jobs"):
        found.setdefault(str(queue), Counter())[State(str(state))] += 1
    return {queue: dict(numbers) for queue, numbers in found.items()}
