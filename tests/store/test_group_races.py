"""Jobs of a group that end at the same moment: its hook is added once, and never missed."""

from collections.abc import Callable

import pytest

from queuectl.actions.control import cancel
from queuectl.actions.regroup import retry_group
from queuectl.actions.submit import submit
from queuectl.model.job import Job, JobSpec
from queuectl.model.states import State
from queuectl.model.verdict import Outcome
from queuectl.store import groups, jobs
from queuectl.store.database import Database
from queuectl.store.jobs import Filter
from tests.store.racing import ON_POSTGRES, Race
from tests.store.rows import add_worker, claim_one, settle_run

TIMES = 20


def add(db: Database, group: str, number: int, **fields: str) -> None:
    spec = JobSpec(command="true", group=group, max_retries=0, **fields)  # type: ignore[arg-type]
    submit(db, [spec] * number, who="me", environ={})


def hooks(db: Database, group: str) -> list[Job]:
    found = db.read(lambda tx: jobs.newest(tx, Filter(text="echo over"), 1000))
    return [job for job in found if job.env_map["QUEUECTL_GROUP"] == group]


def settle_next(db: Database, outcome: Outcome) -> Callable[[Database], Job | None]:
    """A run that was claimed before the race is settled in it."""
    claim = claim_one(db)
    return lambda racing: settle_run(racing, claim, outcome)


@ON_POSTGRES
def test_the_last_two_that_end_at_once_have_one_hook(db: Database, race: Race) -> None:
    add_worker(db)
    for turn in range(TIMES):
        group = f"g{turn}"
        add(db, group, 2, on_group_done="echo over")
        one, two = settle_next(db, Outcome.exited(0)), settle_next(db, Outcome.exited(turn % 2))

        race(one, two)

        assert race.did_second_wait
        [hook] = hooks(db, group)
        ends = [hook.env_map[f"QUEUECTL_GROUP_{state}"] for state in ("COMPLETED", "DEAD")]
        assert ends == (["1", "1"] if turn % 2 else ["2", "0"])
        cancel(db, [hook.id], who="me")


@ON_POSTGRES
def test_without_the_guard_on_the_group_neither_of_the_last_two_adds_the_hook(
    db: Database, race: Race, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(groups, "get_for_update", groups.get)
    monkeypatch.setattr(groups, "hold", lambda _tx, _names: None)
    add_worker(db)
    add(db, "g", 2, on_group_done="echo over")

    race(settle_next(db, Outcome.exited(0)), settle_next(db, Outcome.exited(0)))

    assert not race.did_second_wait
    assert hooks(db, "g") == []


@ON_POSTGRES
def test_one_that_is_cancelled_while_the_last_other_ends_has_one_hook(db: Database, race: Race) -> None:
    add_worker(db)
    add(db, "g", 2, on_group_done="echo over")
    ends = settle_next(db, Outcome.exited(0))

    race(lambda racing: cancel(racing, ["2"], who="me"), ends)

    assert len(hooks(db, "g")) == 1


@ON_POSTGRES
def test_a_job_added_while_the_last_ends_is_waited_for(db: Database, race: Race) -> None:
    add_worker(db)
    add(db, "g", 1, on_group_done="echo over")
    ends = settle_next(db, Outcome.exited(0))

    race(lambda racing: add(racing, "g", 1), ends)

    assert hooks(db, "g") == []
    settle_next(db, Outcome.exited(0))(db)
    assert [hook.env_map["QUEUECTL_GROUP_COMPLETED"] for hook in hooks(db, "g")] == ["2"]


@ON_POSTGRES
def test_two_deaths_at_once_stop_a_group_once_and_nothing_of_it_is_left_ready(db: Database, race: Race) -> None:
    add_worker(db)
    add(db, "g", 6, max_failures="1")
    one, two = settle_next(db, Outcome.exited(1)), settle_next(db, Outcome.exited(1))

    race(one, two)

    assert db.read(lambda tx: groups.counts(tx, "g")) == {State.DEAD: 2, State.CANCELLED: 4}


@ON_POSTGRES
def test_a_group_is_retried_while_one_of_it_ends(db: Database, race: Race) -> None:
    add_worker(db)
    add(db, "g", 3, max_failures="0", on_group_done="echo over")
    stopping = settle_next(db, Outcome.cancelled())
    settle_next(db, Outcome.exited(1))(db)

    race(stopping, lambda racing: retry_group(racing, "g", who="me"))

    left = db.read(lambda tx: groups.counts(tx, "g"))
    assert left[State.PENDING] in (2, 3)
    assert sum(left.values()) == 3
    while db.read(lambda tx: groups.has_unfinished(tx, "g")):
        for hook in hooks(db, "g"):
            if hook.state is State.PENDING:
                cancel(db, [hook.id], who="me")
        settle_next(db, Outcome.exited(0))(db)
    assert hooks(db, "g")[0].env_map["QUEUECTL_GROUP_COMPLETED"] == str(left[State.PENDING])
