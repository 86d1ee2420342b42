"""Those who tick against each other and against people, each held inside its open transaction while the other tries."""

from collections.abc import Callable

from queuectl.actions import scheduling
from queuectl.actions.schedule import tick
from queuectl.store import jobs, schedules
from queuectl.store.database import Database
from tests.store.racing import Race
from tests.store.rows import NOW, FakeClock

DUE = NOW + 600_000


def add(db: Database) -> None:
    db.read_clock = FakeClock()
    scheduling.add(db, "s", {"every": "10m", "tz": "UTC"}, {"command": "true"}, who="ann")


def fire(database: Database) -> int:
    """Tick when the schedule is due; return how many were fired."""
    database.read_clock = FakeClock(now=DUE)
    return tick(database).fired


def doing(act: Callable[..., object]) -> Callable[[Database], int]:
    """Return the act of a person at that moment."""

    def run(database: Database) -> int:
        database.read_clock = FakeClock(now=DUE)
        act(database)
        return 1

    return run


def made(db: Database) -> int:
    return len(db.read(lambda tx: jobs.newest(tx, jobs.Filter(), 10)))


def test_two_that_tick_at_the_same_moment_fire_once(db: Database, race: Race) -> None:
    """The guard is the lock of take_due, and behind it the key of fires."""
    add(db)

    assert race(fire, fire) == (1, 0)

    assert made(db) == 1


def test_a_schedule_that_is_being_fired_is_paused_after_that(db: Database, race: Race) -> None:
    add(db)

    assert race(fire, doing(lambda database: scheduling.pause(database, ["s"], who="ann"))) == (1, 1)

    paused = db.read(lambda tx: schedules.get(tx, "s"))
    assert (made(db), paused and paused.next_at) == (1, None)


def test_a_schedule_that_is_being_removed_does_not_fire(db: Database, race: Race) -> None:
    add(db)

    assert race(doing(lambda database: scheduling.remove(database, ["s"], who="ann")), fire) == (1, 0)

    assert (made(db), db.read(schedules.names)) == (0, [])
