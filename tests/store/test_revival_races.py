"""Races around jobs that are retried, removed or rewired while those they wait for, or that wait for them, end."""

from collections.abc import Callable

import pytest

from queuectl.actions.control import purge_dead
from queuectl.actions.upkeep import Rule, prune
from queuectl.errors import BadInput, NotFound, Refused
from queuectl.model.job import Claim
from queuectl.model.states import State
from queuectl.model.verdict import Outcome
from queuectl.store import jobs
from queuectl.store.database import Database
from tests.store.graphs import (
    CHANGES,
    DONE,
    FAILED,
    Act,
    begun,
    cancels,
    claim,
    deletes,
    drain,
    edits,
    job_of,
    put,
    puts,
    retries,
    retries_with_dependents,
    running,
    settles,
    state_of,
    states,
)
from tests.store.racing import ON_POSTGRES, Race
from tests.store.rows import add_worker
from tests.store.stepping import BOTH_ORDERS, Stepping

pytestmark = ON_POSTGRES


@BOTH_ORDERS
@pytest.mark.parametrize("end", [DONE, FAILED], ids=["done", "failed"])
def test_a_parent_retried_while_its_childs_last_other_parent_ends_is_waited_for(
    db: Database, stepping: Stepping, end: Outcome, *, is_first: bool
) -> None:
    def scene(step: int) -> tuple[Act, Act]:
        put(db, f"a{step}")
        put(db, f"b{step}")
        put(db, f"c{step}", f"a{step},b{step}")
        a, b = sorted(running(db, f"a{step}", f"b{step}"), key=lambda claim: claim.job.id)
        settles(a, FAILED)(db)
        return retries(f"a{step}"), settles(b, end)

    def check(step: int) -> None:
        assert states(db, f"a{step}", f"c{step}") == ["pending", "blocked" if end is DONE else "cancelled"]
        assert drain(db, f"d{step}") == ([f"a{step}", f"c{step}"] if end is DONE else [f"a{step}"])

    stepping.sweep(db, scene, check, is_first=is_first)


@BOTH_ORDERS
def test_two_dead_parents_retried_at_once_bring_their_child_back(
    db: Database, stepping: Stepping, *, is_first: bool
) -> None:
    def scene(step: int) -> tuple[Act, Act]:
        put(db, f"a{step}")
        put(db, f"b{step}")
        put(db, f"c{step}", f"a{step},b{step}")
        for held in running(db, f"a{step}", f"b{step}"):
            settles(held, FAILED)(db)
        return retries(f"a{step}"), retries(f"b{step}")

    def check(step: int) -> None:
        assert state_of(db, f"c{step}") == "blocked"
        assert drain(db, f"d{step}")[-1] == f"c{step}"

    stepping.sweep(db, scene, check, is_first=is_first)


@BOTH_ORDERS
def test_a_child_added_while_its_dead_parent_is_retried_waits_or_comes_back(
    db: Database, stepping: Stepping, *, is_first: bool
) -> None:
    def scene(step: int) -> tuple[Act, Act]:
        put(db, f"a{step}")
        settles(begun(db, f"a{step}"), FAILED)(db)
        return retries(f"a{step}"), puts(f"c{step}", f"a{step}")

    def check(step: int) -> None:
        assert states(db, f"a{step}", f"c{step}") == ["pending", "blocked"]
        assert drain(db, f"d{step}") == [f"a{step}", f"c{step}"]

    stepping.sweep(db, scene, check, is_first=is_first)


@BOTH_ORDERS
@pytest.mark.parametrize("name", ["delete", "edit after none", "edit after another"])
def test_a_starved_child_changed_while_its_parent_is_retried_is_in_order(
    db: Database, stepping: Stepping, name: str, *, is_first: bool
) -> None:
    def scene(step: int) -> tuple[Act, Act]:
        put(db, f"a{step}")
        put(db, f"c{step}", f"a{step}")
        put(db, f"other{step}", hold=True)
        settles(begun(db, f"a{step}"), FAILED)(db)
        return retries(f"a{step}"), CHANGES[name](f"c{step}")

    def check(step: int) -> None:
        assert f"a{step}" in drain(db, f"d{step}")

    stepping.sweep(db, scene, check, is_first=is_first, refused=(Refused,))


@BOTH_ORDERS
@pytest.mark.parametrize("end", [DONE, FAILED], ids=["done", "failed"])
def test_with_dependents_against_the_end_of_one_of_them(
    db: Database, stepping: Stepping, end: Outcome, *, is_first: bool
) -> None:
    def scene(step: int) -> tuple[Act, Act]:
        put(db, f"a{step}")
        put(db, f"b{step}", f"a{step}")
        put(db, f"c{step}", f"b{step}")
        settles(begun(db, f"a{step}"))(db)
        (b,) = running(db, f"b{step}")
        return retries_with_dependents(f"a{step}"), settles(b, end)

    def check(step: int) -> None:
        first = state_of(db, f"a{step}")
        assert first in ("pending", "completed")  # refused while b ran
        if first == "pending":
            assert drain(db, f"d{step}") == [f"a{step}", f"b{step}", f"c{step}"]
        else:
            assert drain(db, f"d{step}") == ([f"c{step}"] if end is DONE else [])

    stepping.sweep(db, scene, check, is_first=is_first, refused=(Refused,))


@BOTH_ORDERS
def test_with_dependents_against_a_claim_of_one_of_them(db: Database, stepping: Stepping, *, is_first: bool) -> None:
    taken: dict[int, list[Claim]] = {}

    def scene(step: int) -> tuple[Act, Act]:
        put(db, f"a{step}")
        put(db, f"b{step}", f"a{step}")
        put(db, f"c{step}", f"b{step}")
        settles(begun(db, f"a{step}"))(db)
        add_worker(db, f"w{step}")
        return retries_with_dependents(f"a{step}"), lambda db: taken.update({step: claim(db, f"w{step}")})

    def check(step: int) -> None:
        ids = [each.job.id for each in taken[step]]
        if ids == [f"b{step}"]:
            assert states(db, f"a{step}", f"c{step}") == ["completed", "blocked"]
        else:
            assert ids in ([], [f"a{step}"])
            assert states(db, f"b{step}", f"c{step}") == ["blocked", "blocked"]
        for each in taken[step]:
            settles(each)(db)
        assert drain(db, f"d{step}")[-1] == f"c{step}"

    stepping.sweep(db, scene, check, is_first=is_first, refused=(Refused,))


@BOTH_ORDERS
def test_with_dependents_against_the_end_of_another_parent(db: Database, stepping: Stepping, *, is_first: bool) -> None:
    def scene(step: int) -> tuple[Act, Act]:
        put(db, f"a{step}")
        put(db, f"b{step}")
        put(db, f"c{step}", f"a{step},b{step}")
        a, b = sorted(running(db, f"a{step}", f"b{step}"), key=lambda claim: claim.job.id)
        settles(a)(db)
        return retries_with_dependents(f"a{step}"), settles(b)

    def check(step: int) -> None:
        assert states(db, f"a{step}", f"b{step}", f"c{step}") == ["pending", "completed", "blocked"]
        assert drain(db, f"d{step}") == [f"a{step}", f"c{step}"]

    stepping.sweep(db, scene, check, is_first=is_first)


@BOTH_ORDERS
def test_with_dependents_twice_at_once_runs_each_once(db: Database, stepping: Stepping, *, is_first: bool) -> None:
    def scene(step: int) -> tuple[Act, Act]:
        put(db, f"a{step}")
        put(db, f"b{step}", f"a{step}")
        assert drain(db, f"e{step}") == [f"a{step}", f"b{step}"]
        return retries_with_dependents(f"a{step}"), retries_with_dependents(f"a{step}")

    def check(step: int) -> None:
        assert drain(db, f"d{step}") == [f"a{step}", f"b{step}"]

    stepping.sweep(db, scene, check, is_first=is_first)


@BOTH_ORDERS
def test_with_dependents_while_a_child_is_added_to_one_of_them(
    db: Database, stepping: Stepping, *, is_first: bool
) -> None:
    def scene(step: int) -> tuple[Act, Act]:
        put(db, f"a{step}")
        put(db, f"b{step}", f"a{step}")
        assert drain(db, f"e{step}") == [f"a{step}", f"b{step}"]
        return retries_with_dependents(f"a{step}"), puts(f"c{step}", f"b{step}")

    def check(step: int) -> None:
        assert sorted(drain(db, f"d{step}")) == [f"a{step}", f"b{step}", f"c{step}"]

    stepping.sweep(db, scene, check, is_first=is_first)


# A parent that is removed.


@BOTH_ORDERS
@pytest.mark.parametrize("policy", ["keep", "cancel", "run"])
def test_a_child_added_while_its_dead_parent_is_purged_waits_for_nobody_who_is_gone(
    db: Database, stepping: Stepping, policy: str, *, is_first: bool
) -> None:
    def scene(step: int) -> tuple[Act, Act]:
        put(db, f"a{step}")
        settles(begun(db, f"a{step}"), FAILED)(db)
        purge: Act = lambda db: purge_dead(db, jobs.Filter(text="true"), who="me")  # noqa: E731
        return purge, puts(f"c{step}", f"a{step}", on_dead=policy)

    stepping.sweep(db, scene, lambda step: drain(db, f"d{step}"), is_first=is_first, refused=(Refused, NotFound))


@BOTH_ORDERS
@pytest.mark.parametrize("policy", ["keep", "cancel", "run"])
def test_a_child_added_while_its_dead_parent_is_pruned_waits_for_nobody_who_is_gone(
    db: Database, stepping: Stepping, policy: str, *, is_first: bool
) -> None:
    old = Rule(state=State.DEAD, older_than_ms=1)

    def scene(step: int) -> tuple[Act, Act]:
        put(db, f"a{step}")
        settles(begun(db, f"a{step}"), FAILED)(db)
        age: Act = lambda db: db.write(lambda tx: tx.changed("UPDATE jobs SET finished_at = 1 WHERE state = 'dead'"))  # noqa: E731
        age(db)
        clean: Act = lambda db: prune(db, [old], who="me", sleep=lambda _: None)  # noqa: E731
        return clean, puts(f"c{step}", f"a{step}", on_dead=policy)

    stepping.sweep(db, scene, lambda step: drain(db, f"d{step}"), is_first=is_first, refused=(Refused, NotFound))


def test_a_dead_job_that_is_given_a_fresh_life_while_all_are_purged_stays(db: Database, race: Race) -> None:
    put(db, "a")
    settles(begun(db, "a"), FAILED)(db)
    purge: Act = lambda db: purge_dead(db, jobs.Filter(), who="me")  # noqa: E731

    _, purged = race(retries("a"), purge)

    assert race.did_second_wait
    assert (purged, states(db, "a")) == (0, ["pending"])


# Circles.


@BOTH_ORDERS
@pytest.mark.parametrize("kind", ["ok", "any"])
def test_a_job_retried_while_one_it_waits_for_is_deleted_waits_for_nobody_who_is_gone(
    db: Database, stepping: Stepping, kind: str, *, is_first: bool
) -> None:
    def scene(step: int) -> tuple[Act, Act]:
        put(db, f"a{step}")
        put(db, f"b{step}", f"{kind}:a{step}")
        cancels(f"b{step}")(db)
        return retries(f"b{step}"), deletes(f"a{step}")

    def check(step: int) -> None:
        drain(db, f"d{step}")
        assert state_of(db, f"a{step}") in ("gone", "completed")

    stepping.sweep(db, scene, check, is_first=is_first, refused=(Refused,))


@BOTH_ORDERS
@pytest.mark.parametrize("retry", [retries, retries_with_dependents], ids=["starved", "with dependents"])
def test_a_job_that_comes_back_while_one_it_waits_for_is_deleted_waits_for_nobody_who_is_gone(
    db: Database, stepping: Stepping, retry: Callable[[str], Act], *, is_first: bool
) -> None:
    def scene(step: int) -> tuple[Act, Act]:
        put(db, f"p{step}")
        p = begun(db, f"p{step}")
        put(db, f"a{step}")
        put(db, f"b{step}", f"a{step},p{step}")
        settles(p, FAILED)(db)
        return retry(f"p{step}"), deletes(f"a{step}")

    def check(step: int) -> None:
        drain(db, f"d{step}")
        assert state_of(db, f"b{step}") in ("cancelled", "completed")

    stepping.sweep(db, scene, check, is_first=is_first, refused=(Refused,))


@BOTH_ORDERS
def test_two_edits_at_once_close_no_circle(db: Database, stepping: Stepping, *, is_first: bool) -> None:
    def scene(step: int) -> tuple[Act, Act]:
        for name in ("b", "d"):
            put(db, f"{name}{step}", hold=True)
        put(db, f"a{step}", f"b{step}")
        put(db, f"c{step}", f"d{step}")
        return edits(f"b{step}", after=f"c{step}"), edits(f"d{step}", after=f"a{step}")

    def check(step: int) -> None:
        waits = [job_of(db, f"{name}{step}").waits_for for name in "bd"]
        assert sorted(waits) == [0, 1], f"both wait at step {step}"

    stepping.sweep(db, scene, check, is_first=is_first, refused=(BadInput,))
