"""Races around a limit: whoever parks a job and whoever frees its limit at that moment, none is forgotten.

One side is held inside its open transaction. The net that looks every few seconds (actions/parking.py) is not spread
here: what these tests show needs none, but for the one that says so.
"""

from collections.abc import Sequence

import pytest

from queuectl.actions import rescue
from queuectl.actions.control import cancel
from queuectl.actions.gatekeeping import set_limit
from queuectl.actions.parking import let_go
from queuectl.model.attempt import Report
from queuectl.model.job import Claim, dumps
from queuectl.model.verdict import Outcome
from queuectl.store import limits, queues
from queuectl.store.claims import Orphan
from queuectl.store.database import Database, Tx
from queuectl.store.postgres import PostgresDialect
from tests.store.gated import (
    LEAVES_LINE,
    Act,
    claim,
    claims,
    edits,
    held_mutex,
    put,
    put_ready,
    runs_to_its_end,
    settles,
    states,
    step,
)
from tests.store.racing import ON_POSTGRES, Race
from tests.store.rows import add_job, add_worker

SOME_WAYS_OUT = pytest.mark.parametrize("name", ["cancel", "delete", "edit queue"])
BOTH_ORDERS = pytest.mark.parametrize("is_first", [True, False], ids=["first", "second"])


@pytest.fixture(autouse=True)
def _workers(db: Database) -> None:
    for name in ("w1", "w2"):
        add_worker(db, name)


def both(race: Race, one: Act, other: Act, *, is_first: bool) -> None:
    """Race two acts, in this order or the other."""
    race(one, other) if is_first else race(other, one)


# Claim against settle.


def test_a_job_parked_while_its_mutex_is_freed_is_let_go(db: Database, race: Race) -> None:
    held = held_mutex(db)
    put_ready(db, "next")

    taken, _ = race(claims("w2"), settles(*held))

    assert taken == []
    assert race.did_second_wait
    assert runs_to_its_end(db, "next")


def test_a_claim_that_comes_while_the_mutex_is_freed_takes_the_job_or_looks_again(db: Database, race: Race) -> None:
    held = held_mutex(db)
    put_ready(db, "next")

    _, second = race(settles(*held), lambda db: step(db, "w2"))

    taken = second.claimed or (claim(db, "w2") if second.is_cut_short else ())
    assert [one.job.id for one in taken] == ["next"]


@ON_POSTGRES
def test_without_the_guard_of_the_lock_a_job_parked_while_its_mutex_is_freed_is_left_to_the_net(
    db: Database, race: Race, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PostgresDialect, "lock_names", lambda self, names, wait: names)
    held = held_mutex(db)
    put_ready(db, "next")

    race(claims("w2"), settles(*held))

    assert not runs_to_its_end(db, "next")
    let_go(db)
    assert runs_to_its_end(db, "next")


def test_of_two_claims_for_one_mutex_the_second_goes_without(db: Database, race: Race) -> None:
    put_ready(db, "one", "two")

    first, second = race(claims("w1"), claims("w2"))

    assert (first, second) == (["one"], [])
    assert claim(db, "w2") == ()
    assert states(db, "one", "two") == ["processing", "blocked"]


def test_of_two_claims_in_a_queue_for_one_the_second_goes_without(db: Database, race: Race) -> None:
    db.write(lambda tx: queues.create(tx, "default"))
    db.write(lambda tx: queues.change(tx, "default", {"concurrency": 1}))
    put(db, "one", "two", mutexes=())

    first, second = race(claims("w1"), claims("w2"))

    assert (first, second) == (["one"], [])


def test_of_two_claims_in_a_queue_with_a_rate_the_second_waits_for_its_time(db: Database, race: Race) -> None:
    db.write(lambda tx: queues.create(tx, "default"))
    db.write(lambda tx: queues.change(tx, "default", {"rate_count": 1, "rate_period_ms": 60_000}))
    put(db, "one", "two", mutexes=())

    first, second = race(lambda db: step(db, "w1"), lambda db: step(db, "w2"))

    assert [one.job.id for one in first.claimed] == ["one"]
    assert second.claimed == ()
    assert step(db, "w2").next_run_at == first.now + 60_000


# Settle and rescue against each other.


def test_two_settles_of_the_same_limits_wait_for_each_other_once(db: Database, race: Race) -> None:
    db.write(lambda tx: limits.put(tx, "api", 2))
    db.write(lambda tx: limits.put(tx, "disk", 2))
    put(db, "api1", "api2", mutexes=(), limits=("api",))
    put(db, "disk1", "disk2", mutexes=(), limits=("disk",))
    held = {one.job.id: one for one in [*claim(db, "w1", free=2), *claim(db, "w2", free=2)]}
    mine, theirs = [held["api1"], held["api2"]], [held["disk1"], held["disk2"]]
    assert len({one.job.worker_id for one in mine}) == 1

    race(
        lambda db: db.write(lambda tx: _rescued(tx, [mine[0], theirs[0]])),
        lambda db: db.write(lambda tx: _rescued(tx, [theirs[1], mine[1]])),
    )

    assert race.did_second_wait
    assert states(db, "api1", "api2", "disk1", "disk2") == ["pending"] * 4


def test_a_job_parked_while_a_rescue_frees_its_mutex_with_another_is_let_go(db: Database, race: Race) -> None:
    put(db, "other", mutexes=("a",))
    put(db, "holder")
    held = claim(db, "w1", free=2)
    put(db, "next")
    cancel(db, ["holder"], who="me")

    _, notes = race(claims("w2"), lambda db: db.write(lambda tx: _rescued(tx, held)))

    assert len(notes) == 2
    assert runs_to_its_end(db, "next")


def _rescued(tx: Tx, held: Sequence[Claim]) -> list[str]:
    lost = Report(outcome=Outcome.lost())
    return rescue._settle([(Orphan(claim=claim, worker=None), lost) for claim in held], {}, tx)


# Enqueue against whoever frees what it waits for.


@BOTH_ORDERS
def test_a_job_parked_at_enqueue_while_the_mutex_is_freed_runs(db: Database, race: Race, *, is_first: bool) -> None:
    held = held_mutex(db)
    put(db, "next")

    both(race, lambda db: put(db, "last"), settles(*held), is_first=is_first)

    assert runs_to_its_end(db, "last")


@BOTH_ORDERS
@SOME_WAYS_OUT
def test_a_job_parked_at_enqueue_behind_one_that_leaves_the_line_runs(
    db: Database, race: Race, name: str, *, is_first: bool
) -> None:
    put(db, "next")

    both(race, lambda db: put(db, "last"), LEAVES_LINE[name], is_first=is_first)

    assert runs_to_its_end(db, "last")


# A person against a settle.


@BOTH_ORDERS
@SOME_WAYS_OUT
def test_a_job_behind_one_that_leaves_the_line_while_the_mutex_is_freed_runs(
    db: Database, race: Race, name: str, *, is_first: bool
) -> None:
    held = held_mutex(db)
    put(db, "next", "last")

    both(race, LEAVES_LINE[name], settles(*held), is_first=is_first)

    assert runs_to_its_end(db, "last")


@BOTH_ORDERS
def test_a_parked_job_edited_while_its_mutex_is_freed_runs_at_the_latest_when_the_net_finds_it(
    db: Database, race: Race, *, is_first: bool
) -> None:
    held = held_mutex(db)
    put(db, "next", "last")
    cancel(db, ["next"], who="me")
    claim(db, "w2")
    assert states(db, "last") == ["blocked"]

    both(race, edits("last", priority=5), settles(*held), is_first=is_first)
    let_go(db)

    assert runs_to_its_end(db, "last")


# A person who changes a limit.


@BOTH_ORDERS
def test_a_job_parked_while_its_limit_is_raised_runs_beside_the_other(
    db: Database, race: Race, *, is_first: bool
) -> None:
    db.write(lambda tx: limits.put(tx, "api", 1))
    put(db, "holder", mutexes=(), limits=("api",))
    claim(db, "w1")
    add_job(db, given_id="next", limits=dumps(["limit:api"]))

    both(race, claims("w2"), lambda db: set_limit(db, "api", 2, who="me"), is_first=is_first)

    claim(db, "w2")
    assert states(db, "holder", "next") == ["processing", "processing"]


def test_a_limit_lowered_while_a_worker_looks_lets_no_more_start(db: Database, race: Race) -> None:
    db.write(lambda tx: limits.put(tx, "api", 2))
    put(db, "holder", "next", mutexes=(), limits=("api",))
    claim(db, "w1")

    _, taken = race(lambda db: set_limit(db, "api", 1, who="me"), claims("w2"))

    assert taken == []
    assert claim(db, "w2") == ()
    assert states(db, "holder", "next") == ["processing", "blocked"]
