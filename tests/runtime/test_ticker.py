"""When a supervisor looks at the schedules: at the next instant, no sooner; after trouble later; who leaves, never."""

import time

import pytest

from queuectl.actions import scheduling
from queuectl.actions.schedule import MOST_AT_ONCE
from queuectl.errors import StoreBusy
from queuectl.runtime import ticker
from queuectl.runtime.log import Log
from queuectl.runtime.ticker import NEVER, Ticker
from queuectl.store import jobs
from queuectl.store.database import Database


@pytest.fixture
def looking(db: Database) -> Ticker:
    return Ticker(db, Log("supervisor", form="text", file=None))


def wait_s(looking: Ticker, db: Database) -> float:
    """Return how long it would sleep from now on."""
    began = time.monotonic()
    db.read(looking.plan)
    return looking.due - began


def test_without_a_schedule_it_sleeps_for_ever(db: Database, looking: Ticker) -> None:
    assert wait_s(looking, db) == NEVER


def test_it_sleeps_until_the_next_instant_is_due(db: Database, looking: Ticker) -> None:
    scheduling.add(db, "late", {"every": "2h"}, {"command": "true"}, who="ann")
    scheduling.add(db, "soon", {"every": "1h"}, {"command": "true"}, who="ann")

    assert 3_590 < wait_s(looking, db) < 3_602

    scheduling.pause(db, ["soon"], who="ann")

    assert 7_190 < wait_s(looking, db) < 7_202


def test_it_fires_what_is_due_and_sleeps_again(db: Database, looking: Ticker) -> None:
    scheduling.add(db, "s", {"every": "1h"}, {"command": "true"}, who="ann")
    real = db.read_clock
    db.read_clock = lambda now: now + 3_600_000

    looking.step()

    assert len(db.read(lambda tx: jobs.newest(tx, jobs.Filter(), 9))) == 1
    assert looking.due - time.monotonic() > 3_500
    db.read_clock = real


def test_after_some_of_many_that_are_due_it_comes_back_at_once(db: Database, looking: Ticker) -> None:
    scheduling.add(db, "s", {"every": "1h", "misfire": "all"}, {"command": "true"}, who="ann")
    db.read_clock = lambda now: now + 50 * 3_600_000

    looking.step()

    assert len(db.read(lambda tx: jobs.newest(tx, jobs.Filter(), 99))) == MOST_AT_ONCE
    assert looking.due - time.monotonic() < ticker.TAKEN_PAUSE_S  # not even as long as where another is at it


def test_what_another_is_firing_is_looked_at_again_soon_and_not_at_once(
    db: Database, looking: Ticker, monkeypatch: pytest.MonkeyPatch
) -> None:
    scheduling.add(db, "s", {"every": "1h"}, {"command": "true"}, who="ann")
    db.read_clock = lambda now: now + 3_600_000
    monkeypatch.setattr("queuectl.store.schedules.take_due", lambda tx: None)

    looking.step()

    assert 0 < looking.due - time.monotonic() <= ticker.TAKEN_PAUSE_S


def test_after_trouble_it_waits_longer_than_a_supervisor_between_two_looks(
    db: Database, looking: Ticker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: object) -> object:
        raise StoreBusy("locked")

    monkeypatch.setattr(db, "write", fail)

    with pytest.raises(StoreBusy):
        looking.step()

    assert looking.due - time.monotonic() > 1.0


def test_who_leaves_looks_no_more(db: Database, looking: Ticker) -> None:
    scheduling.add(db, "s", {"every": "1h"}, {"command": "true"}, who="ann")

    looking.stop()

    assert wait_s(looking, db) == NEVER
