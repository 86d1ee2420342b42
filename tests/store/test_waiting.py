"""What waits for a limit: who is let go, in which order, and who is told. Races are in test_gate_races.py."""

import pytest

from queuectl.actions.gatekeeping import set_limit
from queuectl.model.job import dumps
from queuectl.model.states import State
from queuectl.store import limits, queues, workers
from queuectl.store.database import Database
from tests.actions.bells import Bell
from tests.store.gated import LEAVES_LINE, Act, claim, edits, held_mutex, put, runs_to_its_end, seq_of, states, step
from tests.store.rows import add_job, add_worker, get_job

EACH_WAY_OUT = pytest.mark.parametrize("leave", LEAVES_LINE.values(), ids=LEAVES_LINE.keys())


@pytest.fixture(autouse=True)
def _workers(db: Database) -> None:
    for name in ("w1", "w2"):
        add_worker(db, name)


def test_a_claim_for_two_parks_nothing_it_takes_itself(db: Database) -> None:
    db.write(lambda tx: limits.put(tx, "m", 2))
    put(db, "one", mutexes=(), limits=("m",))
    claim(db, "w1")
    for job_id in ("two", "three"):
        add_job(db, given_id=job_id, limits=dumps(["limit:m"]))

    taken = claim(db, "w2", free=2)

    assert [one.job.id for one in taken] == ["two"]
    assert states(db, "one", "two", "three") == ["processing", "processing", "blocked"]


@EACH_WAY_OUT
def test_when_the_next_job_leaves_the_line_the_one_behind_it_takes_its_place(db: Database, leave: Act) -> None:
    put(db, "next", "last")
    assert states(db, "last") == ["blocked"]

    leave(db)

    assert states(db, "last") == ["pending"]


def test_a_parked_job_that_gets_a_later_time_does_not_run_before_it(db: Database) -> None:
    held = held_mutex(db)
    put(db, "next", "last")

    edits("last", delay="1h")(db)
    step(db, "w1", held, free=0)

    assert not runs_to_its_end(db, "last")
    assert states(db, "next", "last") == ["completed", "scheduled"]


def test_a_limit_of_none_keeps_all_until_it_is_raised(db: Database) -> None:
    db.write(lambda tx: limits.put(tx, "api", 0))
    put(db, "next", mutexes=(), limits=("api",))
    assert claim(db, "w1") == ()

    set_limit(db, "api", 1, who="me")

    assert [one.job.id for one in claim(db, "w1")] == ["next"]


# Who is told of room.


def test_a_worker_that_stops_tells_others_of_the_room_it_leaves_in_a_narrow_queue(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    db.write(lambda tx: queues.create(tx, "default"))
    db.write(lambda tx: queues.change(tx, "default", {"concurrency": 1}))
    put(db, "one", "two", mutexes=())
    held = claim(db, "w1")
    db.write(lambda tx: workers.tell(tx, ["w1"], workers.DRAIN))
    bell = Bell(db, monkeypatch)

    step(db, "w1", held)

    assert bell.taken() == 1


def test_a_worker_that_takes_from_another_queue_tells_of_the_room_it_leaves(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("default", "other"):
        db.write(lambda tx, name=name: queues.create(tx, name))  # type: ignore[misc]
        db.write(lambda tx, name=name: queues.change(tx, name, {"concurrency": 1}))  # type: ignore[misc]
    put(db, "one", "two", mutexes=())
    held = claim(db, "w1")
    put(db, "urgent", mutexes=(), queue="other", priority=9)
    bell = Bell(db, monkeypatch)

    taken = step(db, "w1", held).claimed

    assert [one.job.id for one in taken] == ["urgent"]
    assert bell.taken() == 1


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
