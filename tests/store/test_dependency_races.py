"""Races around jobs that wait for others: two acts meet before every statement of one of them, in both orders.

What must hold of any graph at any time is in graphs.py; here it is looked at after each meeting.
"""

from collections.abc import Callable

import pytest

from queuectl.errors import NotFound, Refused
from queuectl.model.verdict import Outcome
from queuectl.store import edges, jobs
from queuectl.store.database import Database, Tx
from tests.store.graphs import (
    CHANGES,
    DONE,
    FAILED,
    Act,
    begun,
    cancels,
    deletes,
    drain,
    faults,
    put,
    puts,
    running,
    settles,
    state_of,
)
from tests.store.racing import ON_POSTGRES, Race
from tests.store.stepping import BOTH_ORDERS, Stepping

pytestmark = ON_POSTGRES


# Two parents that end at the same time.


@BOTH_ORDERS
@pytest.mark.parametrize(
    "ends, after, is_let_go",
    [
        pytest.param((DONE, DONE), "a{0},b{0}", True, id="both done"),
        pytest.param((FAILED, DONE), "any:a{0},b{0}", True, id="any and ok"),
        pytest.param((FAILED, FAILED), "fail:a{0},fail:b{0}", True, id="both fail"),
        pytest.param((FAILED, DONE), "a{0},b{0}", False, id="one failed"),
        pytest.param((FAILED, FAILED), "a{0},b{0}", False, id="both failed"),
    ],
)
def test_two_parents_that_end_at_once_release_or_starve_their_child(
    db: Database, stepping: Stepping, ends: tuple[Outcome, Outcome], after: str, *, is_let_go: bool, is_first: bool
) -> None:
    def scene(step: int) -> tuple[Act, Act]:
        put(db, f"a{step}")
        put(db, f"b{step}")
        put(db, f"c{step}", after.format(step))
        a, b = sorted(running(db, f"a{step}", f"b{step}"), key=lambda claim: claim.job.seq)
        return settles(a, ends[0]), settles(b, ends[1])

    def check(step: int) -> None:
        assert state_of(db, f"c{step}") == ("pending" if is_let_go else "cancelled")
        assert drain(db, f"d{step}") == ([f"c{step}"] if is_let_go else [])

    stepping.sweep(db, scene, check, is_first=is_first)


def test_two_parents_of_the_same_two_children_that_end_at_once_release_both(db: Database, stepping: Stepping) -> None:
    def scene(step: int) -> tuple[Act, Act]:
        put(db, f"a{step}")
        put(db, f"b{step}")
        put(db, f"c{step}", f"a{step},b{step}")
        put(db, f"d{step}", f"b{step},a{step}")
        a, b = running(db, f"a{step}", f"b{step}")
        return settles(a), settles(b)

    def check(step: int) -> None:
        assert sorted(drain(db, f"w{step}")) == [f"c{step}", f"d{step}"]

    assert stepping.sweep(db, scene, check) == 0


def test_without_the_guard_of_the_held_child_two_parents_that_end_at_once_count_wrong(
    db: Database, race: Race, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The guard is the counter that falls by the edges that changed: counted anew, neither sees the other's."""
    put(db, "a")
    put(db, "b")
    put(db, "c", "a,b")
    a, b = running(db, "a", "b")
    monkeypatch.setattr(edges, "policies", lambda tx, children: dict.fromkeys(children))

    def counted_anew(tx: Tx, parent: int, children: list[int]) -> list[int]:
        for child in children:
            sql = "UPDATE edges SET state = 'satisfied' WHERE parent_seq = :parent AND child_seq = :child"
            tx.changed(sql, {"parent": parent, "child": child})
            edges.recount(tx, child)
        return children

    monkeypatch.setattr(edges, "satisfy", counted_anew)

    race(settles(a), settles(b))

    assert db.read(faults) != []
    assert drain(db) == []


# A parent that ends while its child is changed by a person.


@BOTH_ORDERS
@pytest.mark.parametrize("end", [DONE, FAILED], ids=["done", "failed"])
@pytest.mark.parametrize("name", CHANGES)
def test_a_child_changed_while_its_parent_ends_is_in_order(
    db: Database, stepping: Stepping, name: str, end: Outcome, *, is_first: bool
) -> None:
    def scene(step: int) -> tuple[Act, Act]:
        put(db, f"a{step}")
        put(db, f"c{step}", f"a{step}")
        put(db, f"other{step}", hold=True)
        (a,) = running(db, f"a{step}")
        return settles(a, end), CHANGES[name](f"c{step}")

    def check(step: int) -> None:
        child = state_of(db, f"c{step}")
        assert child in EXPECTED[name, end is DONE], f"at step {step}"
        if child == "pending":
            assert drain(db, f"d{step}") == [f"c{step}"]

    stepping.sweep(db, scene, check, is_first=is_first, refused=(Refused,))


EXPECTED = {
    ("cancel", True): {"cancelled"},
    ("cancel", False): {"cancelled"},
    ("hold", True): {"blocked"},
    ("hold", False): {"cancelled"},
    ("delete", True): {"gone"},
    ("delete", False): {"gone"},
    ("edit after none", True): {"pending"},
    ("edit after none", False): {"pending", "cancelled"},
    ("edit after another", True): {"blocked"},
    ("edit after another", False): {"blocked", "cancelled"},
    ("edit after it once more", True): {"pending"},
    ("edit after it once more", False): {"cancelled"},
    ("edit to run", True): {"pending"},
    ("edit to run", False): {"pending", "cancelled"},
    ("edit to keep", True): {"pending"},
    ("edit to keep", False): {"blocked", "cancelled"},
}
"""Where the child may stand afterwards: as if one act had come after the other, whichever."""


@BOTH_ORDERS
@pytest.mark.parametrize("name", ["cancel", "hold", "delete", "edit after none"])
def test_a_child_of_two_parents_changed_while_the_last_one_ends_is_in_order(
    db: Database, stepping: Stepping, name: str, *, is_first: bool
) -> None:
    def scene(step: int) -> tuple[Act, Act]:
        put(db, f"a{step}")
        put(db, f"b{step}")
        put(db, f"c{step}", f"a{step},b{step}")
        a, b = running(db, f"a{step}", f"b{step}")
        settles(a)(db)
        return settles(b), CHANGES[name](f"c{step}")

    def check(step: int) -> None:
        assert state_of(db, f"c{step}") in EXPECTED[name, True]
        drain(db, f"d{step}")

    stepping.sweep(db, scene, check, is_first=is_first, refused=(Refused,))


# A child that is added while its parent changes.


PARENTS: dict[str, Callable[[Database, str], Act]] = {
    "completes": lambda db, job_id: settles(begun(db, job_id)),
    "dies": lambda db, job_id: settles(begun(db, job_id), FAILED),
    "is cancelled": lambda _, job_id: cancels(job_id),
    "is deleted": lambda _, job_id: deletes(job_id),
}


@BOTH_ORDERS
@pytest.mark.parametrize("after", ["ok:a{}", "any:a{}", "fail:a{}"])
@pytest.mark.parametrize("name", PARENTS)
def test_a_child_added_while_its_parent_ends_never_misses_it(
    db: Database, stepping: Stepping, name: str, after: str, *, is_first: bool
) -> None:
    def scene(step: int) -> tuple[Act, Act]:
        put(db, f"a{step}")
        return PARENTS[name](db, f"a{step}"), puts(f"c{step}", after.format(step))

    def check(step: int) -> None:
        is_ok = name == "completes"
        is_met = after.startswith("any") or is_ok == after.startswith("ok")
        if name == "is deleted":
            assert state_of(db, f"c{step}") in ("blocked", "gone")
            assert (state_of(db, f"c{step}") == "gone") == (state_of(db, f"a{step}") == "gone")
            drain(db, f"d{step}")
            return
        assert state_of(db, f"c{step}") == ("pending" if is_met else "cancelled"), f"at step {step}"
        assert drain(db, f"d{step}") == ([f"c{step}"] if is_met else [])

    refused = (Refused, NotFound) if name == "is deleted" else ()
    stepping.sweep(db, scene, check, is_first=is_first, refused=refused)


def test_without_the_guard_of_the_held_parent_a_child_added_while_it_ends_waits_for_ever(
    db: Database, race: Race, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(db, "a")
    (a,) = running(db, "a")
    monkeypatch.setattr(jobs, "lock", lambda tx, seqs: jobs.by_seqs(tx, sorted(seqs)))

    race(settles(a), puts("c", "a"))

    assert state_of(db, "c") == "blocked"
    assert db.read(faults) != []


@BOTH_ORDERS
def test_two_children_added_to_one_parent_at_once_both_run_after_it(
    db: Database, stepping: Stepping, *, is_first: bool
) -> None:
    def scene(step: int) -> tuple[Act, Act]:
        put(db, f"a{step}")
        return puts(f"b{step}", f"a{step}"), puts(f"c{step}", f"a{step}")

    def check(step: int) -> None:
        ran = drain(db, f"d{step}")
        assert (ran[0], sorted(ran)) == (f"a{step}", [f"a{step}", f"b{step}", f"c{step}"])

    stepping.sweep(db, scene, check, is_first=is_first)


@BOTH_ORDERS
def test_children_of_two_parents_named_in_opposite_order_do_not_wait_for_each_other(
    db: Database, stepping: Stepping, *, is_first: bool
) -> None:
    def scene(step: int) -> tuple[Act, Act]:
        put(db, f"a{step}", hold=True)
        put(db, f"b{step}", hold=True)
        return puts(f"c{step}", f"a{step},b{step}"), puts(f"d{step}", f"b{step},a{step}")

    assert stepping.sweep(db, scene, lambda step: None, is_first=is_first) == 0
