"""Races around unique keys and groups: two acts meet before every statement of one of them, in both orders."""

import pytest

from queuectl.actions.control import delete
from queuectl.errors import Refused
from queuectl.model.states import FINAL
from queuectl.model.verdict import Outcome
from queuectl.store import jobs
from queuectl.store.database import Database, Tx
from tests.store.graphs import (
    ALL,
    DONE,
    FAILED,
    Act,
    begun,
    cancels,
    drain,
    faults,
    put,
    puts,
    retries,
    retries_with_dependents,
    running,
    settles,
    state_of,
)
from tests.store.racing import ON_POSTGRES
from tests.store.stepping import BOTH_ORDERS, Stepping

pytestmark = ON_POSTGRES
POLICIES = pytest.mark.parametrize("policy", ["attach", "skip", "replace", "error"])
HOOK = "echo all have ended"


def unfinished_of(db: Database, key: str) -> list[str]:
    """Return the jobs of a key that have not ended."""

    def look(tx: Tx) -> list[str]:
        rows = tx.rows("SELECT seq FROM jobs WHERE unique_key = :key ORDER BY seq", {"key": key})
        found = jobs.by_seqs(tx, [int(row[0] or 0) for row in rows])
        return [job.id for job in found if job.state not in FINAL]

    return db.read(look)


@BOTH_ORDERS
@POLICIES
def test_of_two_jobs_added_at_once_with_one_key_one_is_left(
    db: Database, stepping: Stepping, policy: str, *, is_first: bool
) -> None:
    def scene(step: int) -> tuple[Act, Act]:
        key = {"unique_key": f"k{step}", "on_conflict": policy}
        return puts(f"a{step}", **key), puts(f"b{step}", **key)

    def check(step: int) -> None:
        assert len(unfinished_of(db, f"k{step}")) == 1
        assert len(drain(db, f"d{step}")) == 1

    stepping.sweep(db, scene, check, is_first=is_first, refused=(Refused,) if policy == "error" else ())


@BOTH_ORDERS
@POLICIES
@pytest.mark.parametrize("end", [DONE, FAILED], ids=["done", "failed"])
def test_a_job_added_while_the_one_with_its_key_ends_is_added_or_stands_back(
    db: Database, stepping: Stepping, policy: str, end: Outcome, *, is_first: bool
) -> None:
    def scene(step: int) -> tuple[Act, Act]:
        put(db, f"a{step}", unique_key=f"k{step}")
        (a,) = running(db, f"a{step}")
        return settles(a, end), puts(f"b{step}", unique_key=f"k{step}", on_conflict=policy)

    def check(step: int) -> None:
        left = unfinished_of(db, f"k{step}")
        assert left in ([], [f"b{step}"])
        assert left or policy != "replace"
        assert drain(db, f"d{step}") == left

    stepping.sweep(db, scene, check, is_first=is_first, refused=(Refused,) if policy == "error" else ())


@BOTH_ORDERS
@pytest.mark.parametrize("policy", ["attach", "replace"])
def test_a_job_added_while_the_one_with_its_key_is_retried_has_it_or_not(
    db: Database, stepping: Stepping, policy: str, *, is_first: bool
) -> None:
    def scene(step: int) -> tuple[Act, Act]:
        put(db, f"a{step}", unique_key=f"k{step}")
        settles(begun(db, f"a{step}"), FAILED)(db)
        return retries(f"a{step}"), puts(f"b{step}", unique_key=f"k{step}", on_conflict=policy)

    def check(step: int) -> None:
        assert len(unfinished_of(db, f"k{step}")) == 1
        assert len(drain(db, f"d{step}")) == 1

    stepping.sweep(db, scene, check, is_first=is_first, refused=(Refused,))


@BOTH_ORDERS
def test_a_starved_job_comes_back_with_its_key_or_stays_while_another_takes_it(
    db: Database, stepping: Stepping, *, is_first: bool
) -> None:
    def scene(step: int) -> tuple[Act, Act]:
        put(db, f"a{step}")
        put(db, f"b{step}", f"a{step}", unique_key=f"k{step}")
        settles(begun(db, f"a{step}"), FAILED)(db)
        return retries(f"a{step}"), puts(f"c{step}", unique_key=f"k{step}")

    def check(step: int) -> None:
        assert len(unfinished_of(db, f"k{step}")) == 1
        assert len(drain(db, f"d{step}")) == 2

    stepping.sweep(db, scene, check, is_first=is_first)


@BOTH_ORDERS
def test_a_dependent_runs_again_with_its_key_or_not_at_all_while_another_takes_it(
    db: Database, stepping: Stepping, *, is_first: bool
) -> None:
    def scene(step: int) -> tuple[Act, Act]:
        put(db, f"a{step}")
        put(db, f"b{step}", f"a{step}", unique_key=f"k{step}")
        settles(begun(db, f"a{step}"), DONE)(db)
        cancels(f"b{step}")(db)
        return retries_with_dependents(f"a{step}"), puts(f"c{step}", unique_key=f"k{step}", on_conflict="error")

    def check(step: int) -> None:
        assert len(unfinished_of(db, f"k{step}")) == 1
        drain(db, f"d{step}")

    stepping.sweep(db, scene, check, is_first=is_first, refused=(Refused,))


# Groups.


def hooks(db: Database, group: str) -> int:
    """Run what is left, and return how often it was said that all of a group had ended."""
    drain(db, f"d-{group}")
    found = db.read(lambda tx: jobs.newest(tx, jobs.Filter(text=HOOK), ALL))
    return sum(job.env_map["QUEUECTL_GROUP"] == group for job in found)


@BOTH_ORDERS
@pytest.mark.parametrize("ends", [(DONE, DONE), (FAILED, DONE), (FAILED, FAILED)], ids=["done", "one failed", "failed"])
def test_the_last_two_jobs_of_a_group_that_end_at_once_add_its_hook_once(
    db: Database, stepping: Stepping, ends: tuple[Outcome, Outcome], *, is_first: bool
) -> None:
    def scene(step: int) -> tuple[Act, Act]:
        put(db, f"a{step}", group=f"g{step}", on_group_done=HOOK)
        put(db, f"b{step}", group=f"g{step}")
        a, b = running(db, f"a{step}", f"b{step}")
        return settles(a, ends[0]), settles(b, ends[1])

    def check(step: int) -> None:
        assert hooks(db, f"g{step}") == 1

    stepping.sweep(db, scene, check, is_first=is_first)


@BOTH_ORDERS
def test_a_group_whose_last_job_ends_while_another_is_added_has_its_hook_after_that(
    db: Database, stepping: Stepping, *, is_first: bool
) -> None:
    def scene(step: int) -> tuple[Act, Act]:
        put(db, f"a{step}", group=f"g{step}", on_group_done=HOOK)
        return settles(begun(db, f"a{step}")), puts(f"b{step}", group=f"g{step}")

    def check(step: int) -> None:
        assert hooks(db, f"g{step}") in (1, 2)  # it may have been empty before the other came
        assert state_of(db, f"b{step}") == "completed"

    stepping.sweep(db, scene, check, is_first=is_first)


@BOTH_ORDERS
def test_a_group_whose_last_job_ends_while_another_is_retried_has_its_hook_after_that(
    db: Database, stepping: Stepping, *, is_first: bool
) -> None:
    def scene(step: int) -> tuple[Act, Act]:
        put(db, f"a{step}", group=f"g{step}", on_group_done=HOOK)
        put(db, f"b{step}", group=f"g{step}")
        a, b = running(db, f"a{step}", f"b{step}")
        settles(a, FAILED)(db)
        return settles(b), retries(str(a.job.id))

    def check(step: int) -> None:
        assert hooks(db, f"g{step}") in (1, 2)
        assert db.read(faults) == []

    stepping.sweep(db, scene, check, is_first=is_first)


@BOTH_ORDERS
@pytest.mark.parametrize("end", [DONE, FAILED], ids=["done", "failed"])
def test_a_group_in_which_too_many_fail_while_another_ends_stops(
    db: Database, stepping: Stepping, end: Outcome, *, is_first: bool
) -> None:
    def scene(step: int) -> tuple[Act, Act]:
        put(db, f"a{step}", group=f"g{step}", on_group_done=HOOK, max_failures="0")
        put(db, f"b{step}", group=f"g{step}")
        a, b = running(db, f"a{step}", f"b{step}")
        put(db, f"c{step}", group=f"g{step}")
        return settles(a, FAILED), settles(b, end)

    def check(step: int) -> None:
        assert state_of(db, f"c{step}") == "cancelled"
        assert hooks(db, f"g{step}") == 1

    stepping.sweep(db, scene, check, is_first=is_first)


@BOTH_ORDERS
@pytest.mark.parametrize("name", ["cancel", "delete"])
def test_the_last_two_jobs_of_a_group_of_which_one_ends_and_one_goes_add_its_hook_once(
    db: Database, stepping: Stepping, name: str, *, is_first: bool
) -> None:
    def scene(step: int) -> tuple[Act, Act]:
        put(db, f"a{step}", group=f"g{step}", on_group_done=HOOK)
        (a,) = running(db, f"a{step}")
        put(db, f"b{step}", group=f"g{step}")
        goes: Act = cancels(f"b{step}") if name == "cancel" else lambda db: delete(db, [f"b{step}"], who="me")
        return settles(a), goes

    def check(step: int) -> None:
        assert hooks(db, f"g{step}") == 1

    stepping.sweep(db, scene, check, is_first=is_first)
