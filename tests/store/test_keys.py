"""Unique keys where they meet dependencies: one that is replaced while it runs, and ones that come back together."""

import pytest

from queuectl.actions import acts, verbs
from queuectl.errors import Refused
from queuectl.store.database import Database
from tests.store.graphs import Act, cancels, deletes, drain, faults, put, running, state_of, states


def test_who_replaces_a_replacement_waits_for_the_job_that_still_runs(db: Database) -> None:
    put(db, "old", unique_key="k")
    running(db, "old")
    put(db, "new", unique_key="k", on_conflict="replace")

    put(db, "newer", unique_key="k", on_conflict="replace")

    assert states(db, "old", "new", "newer") == ["processing", "cancelled", "blocked"]
    assert db.read(faults) == []


@pytest.mark.parametrize("act", [cancels("new"), deletes("new")], ids=["cancelled", "deleted"])
def test_a_key_whose_replacement_is_cancelled_is_not_free_while_the_replaced_runs(db: Database, act: Act) -> None:
    put(db, "old", unique_key="k")
    running(db, "old")
    put(db, "new", unique_key="k", on_conflict="replace")

    act(db)
    put(db, "next", unique_key="k")

    assert state_of(db, "next") != "pending"


def test_of_two_dependents_with_one_key_not_both_come_back(db: Database) -> None:
    put(db, "a")
    drain(db, "w0")
    for job_id in ("b", "c"):
        put(db, job_id, "a", unique_key="k")
        drain(db, f"w-{job_id}")

    try:
        acts.act_on_each(db, ["a"], verbs.RETRY_WITH_DEPENDENTS, who="me")
    except Refused:
        assert states(db, "a", "b", "c") == ["completed"] * 3

    assert db.read(faults) == []
