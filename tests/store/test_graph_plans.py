"""What the planners do with the statements about dependencies, unique keys and groups while much of them is there."""

import re
from collections.abc import Callable

import pytest

from queuectl.model.states import FINAL
from queuectl.store import edges, groups, removing, unique_keys
from queuectl.store.database import Database, Tx
from tests.store.rows import add_history
from tests.store.test_plans import assert_nothing_sorted, assert_pinned, plans_of

FAN_OUT = 2000
"""How many run after job 1, a part of them waiting, disappointed and satisfied each; all others run after the last."""
MANY = list(range(2, 400))
# Reading a whole table. Small ones, of groups, are left out.
_WALKS = re.compile(r"Seq Scan on (jobs|edges|unique_keys)|SCAN (jobs|edges|unique_keys|[a-z]+)\b(?! USING)")


@pytest.fixture
def linked(db: Database) -> Database:
    """A store with 20,000 finished, future and paused jobs each; the first are linked, in groups and have keys.

    One of ten is dead: where nothing is, PostgreSQL may take any index to find nothing.
    """
    add_history(db)
    kinds = "CASE child % 3 WHEN 0 THEN 'waiting' WHEN 1 THEN 'broken' ELSE 'satisfied' END"

    def work(tx: Tx) -> None:
        history = "SELECT seq AS child FROM jobs WHERE seq <= 20000"
        tx.changed(
            f"""
            INSERT INTO edges (child_seq, parent_seq, kind, state)
            SELECT child, child - 1, 'ok', 'satisfied' FROM ({history}) found WHERE child > 1
            """
        )
        tx.changed(
            f"""
            INSERT INTO edges (child_seq, parent_seq, kind, state)
            SELECT child, 1, 'ok', {kinds} FROM ({history}) found WHERE child > 2 AND child <= {FAN_OUT}
            """
        )
        tx.changed("UPDATE jobs SET has_dependents = 1, group_name = 'g' || CAST(seq / 500 AS TEXT) WHERE seq <= 20000")
        tx.changed(
            f"""
            INSERT INTO unique_keys (key, job_seq, held, expires_at)
            SELECT 'k' || CAST(child AS TEXT), child, child % 2, 9000000000000 + child FROM ({history}) found
            """
        )
        tx.changed("UPDATE jobs SET state = 'dead' WHERE state = 'completed' AND seq % 10 = 0")
        for number in range(40):
            groups.join(tx, f"g{number}", 500, max_failures=None, on_done=None)

    db.write(work)
    db.dialect.script("VACUUM ANALYZE" if db.dialect.name == "postgres" else "ANALYZE")
    return db


WORK: dict[str, Callable[[Tx], object]] = {
    "mark_parents": lambda tx: edges.mark_parents(tx, MANY),
    "waiting_children": lambda tx: edges.waiting_children(tx, 1),
    "policies": lambda tx: edges.policies(tx, MANY),
    "satisfy": lambda tx: edges.satisfy(tx, 1, MANY),
    "satisfy one": lambda tx: edges.satisfy(tx, 1, [3]),
    "break_off": lambda tx: edges.break_off(tx, 1, MANY),
    "disappointed": lambda tx: edges.disappointed(tx, [1]),
    "mend": lambda tx: edges.mend(tx, MANY),
    "mend_child": lambda tx: edges.mend_child(tx, 700),
    "reset": lambda tx: edges.reset(tx, MANY, MANY),
    "hopeless": lambda tx: edges.hopeless(tx, MANY),
    "of_child": lambda tx: edges.of_child(tx, 700),
    "open_parents": lambda tx: edges.open_parents(tx, 700),
    "parents_of": lambda tx: edges.parents_of(tx, 700),
    "children_of": lambda tx: edges.children_of(tx, 1, 50),
    "count_children": lambda tx: edges.count_children(tx, 1),
    "between": lambda tx: edges.between(tx, MANY),
    "children_seqs": lambda tx: edges.children_seqs(tx, MANY),
    "waited_for": lambda tx: edges.waited_for(tx, MANY),
    "waiting_ids": lambda tx: edges.waiting_ids(tx, 1),
    "drop": lambda tx: edges.drop(tx, MANY),
    "delete": lambda tx: removing.delete(tx, MANY),
    "holder": lambda tx: unique_keys.holder(tx, "k5"),
    "forget": lambda tx: unique_keys.forget(tx, [("k7", 7)]),
    "forget_expired": lambda tx: unique_keys.forget_expired(tx, 500),
}


def test_nothing_about_dependencies_keys_and_groups_walks_a_table_or_sorts_it(linked: Database) -> None:
    """All in one test: it takes long to fill a store."""
    walks = [f"{name}: {plan}" for name, work in WORK.items() for plan in plans_of(linked, work) if _WALKS.search(plan)]
    waiting = plans_of(linked, lambda tx: edges.waiting_children(tx, 1))
    of_groups = plans_of(
        linked,
        lambda tx: (
            groups.failures(tx, "g5", 6),
            groups.has_unfinished(tx, "g5"),
            groups.unfinished(tx, "g5", 500),
            groups.counts(tx, "g5"),
        ),
    )
    old = plans_of(linked, lambda tx: [removing.finished_before(tx, state, 10_000, 9) for state in FINAL])

    assert walks == []
    assert all(re.search("edges_open|edges_parent", plan) for plan in waiting), waiting
    assert_pinned(of_groups, "jobs_group")
    assert all("jobs_finished" in plan for plan in old), old
    assert [plan for plan in old if _WALKS.search(plan)] == []
    assert_nothing_sorted(old)
