"""Races around a limit: whoever parks a job and whoever frees its limit at that moment, none is forgotten.

One side is held inside its open transaction. The net that looks every few seconds (actions/parking.py) is not spread
here: what these tests show needs none, but for the one that says so.
"""

from collections.abc import Callable, Sequence

import pytest

from queuectl.actions import rescue
from queuectl.actions.control import cancel, delete, hold
from queuectl.actions.edit import edit
from queuectl.actions.parking import let_go
from queuectl.actions.settle import Holder, Step, settle_and_claim
from queuectl.actions.submit import submit
from queuectl.model.attempt import Report
from queuectl.model.edit import edit_from_fields
from queuectl.model.job import Claim, JobSpec, dumps
from queuectl.model.states import FINAL, State
from queuectl.model.verdict import Outcome
from queuectl.store import jobs, limits, queues
from queuectl.store.claims import Orphan
from queuectl.store.database import Database, Tx
from queuectl.store.gates import Taker
from queuectl.store.postgres import PostgresDialect
from tests.store.racing import ON_POSTGRES, Race
from tests.store.rows import HOST, add_job, add_worker, get_job

Act = Callable[[Database], object]
TURNS = 20

BOTH_ORDERS = pytest.mark.parametrize("is_first", [True, False], ids=["first", "second"])


@pytest.fixture(autouse=True)
def _workers(db: Database) -> None:
    for name in ("w1", "w2"):
        add_worker(db, name)


def put(db: Database, *job_ids: str, **fields: object) -> None:
    """Add jobs that name the mutex `m`, or whatever they are given instead."""
    spec = JobSpec(command="true").replace(**{"mutexes": ("m",), **fields})
    submit(db, [spec.replace(given_id=job_id) for job_id in job_ids], who="me", environ={})


def put_ready(db: Database, *job_ids: str) -> None:
    """Add jobs that name the mutex `m` and stand in the line all the same, as those do whose retry is due."""
    for job_id in job_ids:
        add_job(db, given_id=job_id, limits=dumps(["mutex:m"]))


def held_mutex(db: Database) -> tuple[Claim, ...]:
    """Let a worker hold the mutex `m`."""
    put(db, "holder")
    return claim(db, "w1")


def step(db: Database, worker_id: str, ended: Sequence[Claim] = (), free: int = 1) -> Step:
    """Let a worker settle its runs as done, and claim."""
    reports = [(claim, Report(outcome=Outcome.exited(0))) for claim in ended]
    return settle_and_claim(db, Holder(taker=Taker(worker_id=worker_id), host=HOST), reports, free, {})


def claim(db: Database, worker_id: str = "w1", free: int = 1) -> tuple[Claim, ...]:
    """Let a worker claim, and return what it got."""
    return step(db, worker_id, free=free).claimed


def claims(worker_id: str) -> Callable[[Database], list[str]]:
    """A worker claims: the ids of what it got."""
    return lambda db: [one.job.id for one in claim(db, worker_id)]


def settles(*held: Claim) -> Callable[[Database], Step]:
    """A worker settles its runs and takes nothing."""
    return lambda db: step(db, str(held[0].job.worker_id), held, free=0)


def edits(job_id: str, **fields: object) -> Act:
    """A person changes a job."""
    return lambda db: edit(db, [job_id], edit_from_fields(fields, 0), who="me")


LEAVES_LINE: dict[str, Act] = {
    "cancel": lambda db: cancel(db, ["next"], who="me"),
    "hold": lambda db: hold(db, ["next"], who="me"),
    "delete": lambda db: delete(db, ["next"], who="me"),
    "edit mutex": edits("next", mutex="none"),
    "edit queue": edits("next", queue="other"),
    "edit time": edits("next", delay="1h"),
}
EACH_WAY_OUT = pytest.mark.parametrize("leave", LEAVES_LINE.values(), ids=LEAVES_LINE.keys())


def states(db: Database, *job_ids: str) -> list[str]:
    """Return where jobs stand."""
    return [get_job(db, seq_of(db, job_id)).state.value for job_id in job_ids]


def seq_of(db: Database, job_id: str) -> int:
    """Return the number of a job."""
    seq = db.read(lambda tx: jobs.find(tx, job_id))
    assert seq is not None
    return seq.seq


def runs_to_its_end(db: Database, job_id: str) -> bool:
    """Whether a worker that takes whatever is ready comes to a job, without any other help."""
    held: tuple[Claim, ...] = ()
    for _ in range(TURNS):
        held = step(db, "w1", held).claimed
        if not held:
            break
    return get_job(db, seq_of(db, job_id)).state in FINAL


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


def test_a_claim_for_two_parks_nothing_it_takes_itself(db: Database) -> None:
    db.write(lambda tx: limits.put(tx, "m", 2))
    put(db, "one", mutexes=(), limits=("m",))
    claim(db, "w1")
    for job_id in ("two", "three"):
        add_job(db, given_id=job_id, limits=dumps(["limit:m"]))

    taken = claim(db, "w2", free=2)

    assert [one.job.id for one in taken] == ["two"]
    assert states(db, "one", "two", "three") == ["processing", "processing", "blocked"]


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
@EACH_WAY_OUT
def test_a_job_parked_at_enqueue_behind_one_that_leaves_the_line_runs(
    db: Database, race: Race, leave: Act, *, is_first: bool
) -> None:
    put(db, "next")

    both(race, lambda db: put(db, "last"), leave, is_first=is_first)

    assert runs_to_its_end(db, "last")


# A person against a settle.


@EACH_WAY_OUT
def test_when_the_next_job_leaves_the_line_the_one_behind_it_takes_its_place(db: Database, leave: Act) -> None:
    put(db, "next", "last")
    assert states(db, "last") == ["blocked"]

    leave(db)

    assert states(db, "last") == ["pending"]


@BOTH_ORDERS
@EACH_WAY_OUT
def test_a_job_behind_one_that_leaves_the_line_while_the_mutex_is_freed_runs(
    db: Database, race: Race, leave: Act, *, is_first: bool
) -> None:
    held = held_mutex(db)
    put(db, "next", "last")

    both(race, leave, settles(*held), is_first=is_first)

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


def test_a_parked_job_that_gets_a_later_time_does_not_run_before_it(db: Database) -> None:
    held = held_mutex(db)
    put(db, "next", "last")

    edits("last", delay="1h")(db)
    step(db, "w1", held, free=0)

    assert not runs_to_its_end(db, "last")
    assert states(db, "next", "last") == ["completed", "scheduled"]


# What waits for two, and in which order.


def test_a_job_with_two_limits_runs_when_both_are_free_whichever_is_freed_last(db: Database) -> None:
    put(db, "a", mutexes=("a",))
    put(db, "b", mutexes=("b",))
    held_a, held_b = claim(db, "w1", free=2)
    put(db, "both", mutexes=("a", "b"))
    assert claim(db, "w2") == ()

    step(db, "w1", [held_a], free=0)
    assert claim(db, "w2") == ()
    step(db, "w1", [held_b], free=0)

    assert [one.job.id for one in claim(db, "w2")] == ["both"]


def test_a_job_that_waits_for_its_second_limit_does_not_keep_the_first(db: Database) -> None:
    put(db, "a", mutexes=("a",))
    put(db, "b", mutexes=("b",))
    held_a, _ = claim(db, "w1", free=2)
    put(db, "both", mutexes=("a", "b"))
    put(db, "only a", mutexes=("a",))
    assert claim(db, "w2") == ()

    step(db, "w1", [held_a], free=0)

    assert [one.job.id for one in claim(db, "w2")] == ["only a"]
    assert get_job(db, seq_of(db, "both")).parked_for == "mutex:b"


def test_a_job_that_waits_in_a_paused_queue_keeps_no_other_queue_from_the_mutex(db: Database) -> None:
    held = held_mutex(db)
    put(db, "paused1", "paused2", queue="paused", priority=9)
    put(db, "next")
    claim(db, "w2")
    db.write(lambda tx: queues.set_paused(tx, "paused", tx.now))

    step(db, "w1", held, free=0)

    assert [one.job.id for one in claim(db, "w2")] == ["next"]


def test_parked_jobs_go_by_priority_then_in_the_order_they_came(db: Database) -> None:
    held = held_mutex(db)
    for job_id, priority in (("low", 0), ("high", 5), ("middle", 2), ("high too", 5)):
        put(db, job_id, priority=priority)
    claim(db, "w2")

    order = []
    for _ in range(4):
        held = step(db, "w1", held).claimed
        order += [one.job.id for one in held]

    assert order == ["high", "high too", "middle", "low"]


def test_a_million_alike_would_leave_one_in_the_line(db: Database) -> None:
    put(db, *(f"job{number}" for number in range(50)))

    ready = db.read(lambda tx: tx.row("SELECT count(*) FROM jobs WHERE state = 'pending'"))

    assert ready == (1,)
    assert states(db, "job0") == [State.PENDING]
