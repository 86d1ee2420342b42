"""The audit trail: every act of a person in actions/ writes a row in its own transaction."""

import inspect
from collections.abc import Callable

import pytest

from queuectl.actions import acts, control, edit, gatekeeping, verbs
from queuectl.actions.acts import act_on_many, choose
from queuectl.actions.selection import Selection
from queuectl.actions.submit import submit
from queuectl.model.edit import edit_from_fields
from queuectl.model.job import JobSpec
from queuectl.model.states import State
from queuectl.store import audit, limits, queues, workers
from queuectl.store.database import Database
from queuectl.store.jobs import Filter
from tests.store.rows import NOW, add_job, add_worker

CHANGE = edit_from_fields({"priority": 5, "env": {"KEY": "secret"}, "tags": ["t"], "timeout": "9s"}, NOW)
ACTS: dict[str, tuple[Callable[[Database], object], tuple[str, str | None, int]]] = {
    "submit": (
        lambda db: submit(db, [JobSpec(command="true")] * 2, who="me", environ={}),
        ("enqueue", "5 to 6", 2),
    ),
    "cancel": (lambda db: control.cancel(db, ["1", "2"], who="me"), ("cancel", "1,2", 2)),
    "retry": (lambda db: control.retry(db, ["4"], who="me"), ("retry", "4", 1)),
    "retry_with_dependents": (
        lambda db: control.retry_with_dependents(db, ["4"], who="me"),
        ("retry --with-dependents", "4", 1),
    ),
    "delete": (lambda db: control.delete(db, ["1"], who="me"), ("delete", "1", 1)),
    "hold": (lambda db: control.hold(db, ["1"], who="me"), ("hold", "1", 1)),
    "release": (lambda db: control.release(db, ["3"], who="me"), ("release", "3", 1)),
    "edit": (
        lambda db: edit.edit(db, ["1"], CHANGE, who="me"),
        ("edit", "1 (priority 0 -> 5, timeout default -> 9s, env, tags none -> t)", 1),
    ),
    "act_on_many": (
        lambda db: act_on_many(db, choose(db, verbs.CANCEL, Selection(names=("1-2",))), who="me"),
        ("cancel", "1 to 2: 1-2", 2),
    ),
    "revive_dead": (lambda db: control.revive_dead(db, ["4"], who="me"), ("dlq retry", "4", 1)),
    "revive_all_dead": (lambda db: control.revive_all_dead(db, Filter(), who="me"), ("dlq retry", "all", 1)),
    "purge_dead": (lambda db: control.purge_dead(db, Filter(), who="me"), ("dlq purge", "all", 1)),
    "purge_some_dead": (lambda db: control.purge_some_dead(db, ["4"], who="me"), ("dlq purge", "4", 1)),
    "pause_queue": (lambda db: control.pause_queue(db, "mail", who="me"), ("queue pause", "mail", 1)),
    "resume_queue": (lambda db: control.resume_queue(db, "default", who="me"), ("queue resume", "default", 0)),
    "set_queue": (
        lambda db: gatekeeping.set_queue(db, "mail", {"concurrency": 4}, who="me"),
        ("queue set", "mail (concurrency none -> 4)", 1),
    ),
    "delete_queue": (lambda db: gatekeeping.delete_queue(db, "empty", who="me"), ("queue delete", "empty", 1)),
    "set_limit": (lambda db: gatekeeping.set_limit(db, "api", 4, who="me"), ("limit set", "api none -> 4", 1)),
    "delete_limit": (lambda db: gatekeeping.delete_limit(db, "old", who="me"), ("limit delete", "old", 1)),
    "set_setting": (
        lambda db: control.set_setting(db, "max-retries", "7", who="me"),
        ("config set", "max_retries=7", 1),
    ),
    "unset_setting": (
        lambda db: control.unset_setting(db, "max_retries", who="me"),
        ("config unset", "max_retries", 0),
    ),
    "stop_workers": (
        lambda db: control.stop_workers(db, ["w1"], stop=workers.DRAIN, who="me"),
        ("worker stop drain", "w1", 1),
    ),
}


@pytest.mark.parametrize("name", ACTS)
def test_an_act_of_a_person_is_on_record(db: Database, name: str) -> None:
    act, wanted = ACTS[name]
    add_worker(db)
    for state, held_at in ((State.PENDING, None), (State.PENDING, None), (State.BLOCKED, NOW), (State.DEAD, None)):
        add_job(db, state, held_at=held_at)
    db.write(lambda tx: queues.create(tx, "empty"))
    db.write(lambda tx: limits.put(tx, "old", 1))

    act(db)

    (row,) = db.read(lambda tx: audit.newest(tx, 9))
    assert (row.who, (row.action, row.target, row.count)) == ("me", wanted)


def test_a_restart_of_workers_is_on_record_as_such(db: Database) -> None:
    add_worker(db)

    control.stop_workers(db, ["w1"], stop=workers.NOW, who="me", restart=True)

    (row,) = db.read(lambda tx: audit.newest(tx, 9))
    assert row.action == "worker restart now"


def test_no_act_of_a_person_is_left_out_of_this_test() -> None:
    public = {
        name
        for module in (acts, control, edit, gatekeeping)
        for name, function in inspect.getmembers(module, inspect.isfunction)
        if function.__module__ == module.__name__
        and not name.startswith("_")
        and "who" in inspect.signature(function).parameters
    }

    assert public - {"act_on_each"} == ACTS.keys() - {"submit"}


def test_acts_are_found_by_who_action_and_time(db: Database) -> None:
    control.pause_queue(db, "mail", who="alice@one")
    control.set_setting(db, "max_retries", "4", who="bob@two")
    control.set_setting(db, "max_retries", "5", who="alice@two")

    def found(**wanted: object) -> list[int]:
        return db.read(lambda tx: [act.id for act in audit.newest(tx, 9, **wanted)])  # type: ignore[arg-type]

    assert found() == [3, 2, 1]
    assert found(who="alice") == [3, 1]
    assert found(action="config") == [3, 2]
    assert found(action="config set", who="bob") == [2]
    assert found(action="conf") == []
    assert found(since=db.read(lambda tx: tx.now) + 60_000) == []
    assert found(since=1) == [3, 2, 1]
