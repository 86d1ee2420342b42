"""Retrying what died of the same: a canary first, then all of the group, and nobody else."""

from collections.abc import Callable
from contextlib import closing
from functools import partial

import pytest

from queuectl.actions import error_groups
from queuectl.actions.connect import Target, connect
from queuectl.errors import NotFound, Refused
from queuectl.model.states import State
from queuectl.store import audit
from queuectl.store.database import Database
from queuectl.store.error_groups import groups
from queuectl.store.jobs import Filter
from tests.store.rows import NOW, FakeClock, add_job, get_job

Act = Callable[..., object]


@pytest.fixture
def dead(db: Database) -> dict[str, int]:
    """Dead jobs by their ids: three that died of the same, and others that died of something like it."""
    db.read_clock = FakeClock()
    errors = {
        "a": "exit code 1; 4 left", "b": "exit code 1; 7 left", "c": "exit code 1; 9 left", "other": "exit code 12",
        "plain": "exit code 1",
    }  # fmt: skip
    return {
        name: add_job(db, State.DEAD, given_id=name, error=error, finished_at=NOW - place, attempts=1).seq
        for place, (name, error) in enumerate(errors.items())
    }


def states(db: Database, dead: dict[str, int]) -> dict[str, State]:
    return {name: get_job(db, seq).state for name, seq in dead.items()}


def test_all_of_a_group_get_a_fresh_life_and_no_other(db: Database, dead: dict[str, int]) -> None:
    number = error_groups.retry(db, Filter(error="exit code 1; N left"), who="me")

    assert number == 3
    risen = {name for name, state in states(db, dead).items() if state is State.PENDING}
    assert risen == {"a", "b", "c"}


def test_the_name_of_a_group_means_that_group_also_where_other_errors_hold_it(
    db: Database, dead: dict[str, int]
) -> None:
    assert error_groups.retry(db, Filter(error="exit code 1"), who="me") == 1

    assert [name for name, state in states(db, dead).items() if state is State.PENDING] == ["plain"]


def test_a_text_that_is_no_name_is_looked_for_in_errors(db: Database, dead: dict[str, int]) -> None:
    assert db.read(lambda tx: error_groups.count(tx, Filter(states=(State.DEAD,), error="code 1"))) == 5

    assert error_groups.retry(db, Filter(error="left"), who="me") == 3


def test_a_canary_is_the_one_that_died_last_and_says_how_many_are_left(db: Database, dead: dict[str, int]) -> None:
    canary = error_groups.canary(db, Filter(error="exit code 1; N left"), who="me")

    assert (canary.done.job.id, canary.rest) == ("a", 2)
    assert [name for name, state in states(db, dead).items() if state is State.PENDING] == ["a"]


def test_whatever_groups_name_can_be_handed_back_and_means_what_was_counted(db: Database, dead: dict[str, int]) -> None:
    for group in db.read(groups):
        wanted = Filter(states=(State.DEAD,), error=group.name)
        assert db.read(partial(error_groups.count, wanted=wanted)) == group.count

    found = db.read(groups)
    assert sum(error_groups.purge(db, Filter(error=group.name), who="me") for group in found) == len(dead)
    assert db.read(groups) == []


def test_a_group_is_narrowed_by_what_else_is_asked(db: Database, dead: dict[str, int]) -> None:
    add_job(db, State.DEAD, queue="mail", error="exit code 1; 3 left", given_id="mail")

    assert error_groups.retry(db, Filter(queue="mail", error="exit code 1; N left"), who="me") == 1
    assert set(states(db, dead).values()) == {State.DEAD}


def test_an_error_that_nobody_died_of_changes_nothing(db: Database, dead: dict[str, int]) -> None:
    assert error_groups.retry(db, Filter(error="exit code 99"), who="me") == 0
    assert error_groups.purge(db, Filter(error="exit code 99"), who="me") == 0

    assert set(states(db, dead).values()) == {State.DEAD}


def test_a_canary_of_nothing_is_refused(db: Database) -> None:
    with pytest.raises(NotFound, match="no dead job matches") as caught:
        error_groups.canary(db, Filter(error="exit"), who="me")

    assert "dlq groups" in caught.value.hint


def test_the_audit_trail_says_what_was_meant(db: Database, dead: dict[str, int]) -> None:
    error_groups.retry(db, Filter(error="exit code 1; N left"), who="me")
    error_groups.purge(db, Filter(queue="nowhere", ended_since=5), who="me")
    error_groups.canary(db, Filter(error="exit code 12"), who="me")

    acts = [(act.who, act.action, act.target, act.count) for act in db.read(lambda tx: audit.newest(tx, 10))]

    assert ("me", "dlq retry", "all with error exit code 1; N left", 3) in acts
    assert ("me", "dlq purge", "all --queue nowhere --ended-since 1970-01-01T00:00:00.005Z", 0) in acts
    assert any(act[:2] == ("me", "dlq retry") and act[3] == 1 and "other" in str(act[2]) for act in acts)


@pytest.mark.parametrize("act", [error_groups.retry, error_groups.purge])
def test_whoever_dies_after_the_rest_were_counted_is_left_alone(
    db: Database, target: Target, dead: dict[str, int], monkeypatch: pytest.MonkeyPatch, act: Act
) -> None:
    late: list[int] = []
    commit = db.dialect.commit

    def commit_and_have_another_die() -> None:
        commit()
        if not late:
            with closing(connect(target)) as other:
                late.append(add_job(other, State.DEAD, error="exit code 1; 4 left", finished_at=NOW).seq)

    monkeypatch.setattr(db.dialect, "commit", commit_and_have_another_die)

    assert act(db, Filter(error="exit code 1; N left"), who="me", most=3) == 3

    assert get_job(db, late[0]).state is State.DEAD


@pytest.mark.parametrize("act", [error_groups.retry, error_groups.purge, error_groups.canary])
def test_more_dead_jobs_than_were_agreed_to_are_refused(db: Database, dead: dict[str, int], act: Act) -> None:
    with pytest.raises(Refused, match="3 jobs would be acted on, more than max 2"):
        act(db, Filter(error="exit code 1; N left"), who="me", most=2)

    assert set(states(db, dead).values()) == {State.DEAD}
