"""Alerts: what is told of a store that is not well, and what is not told of one that is."""

from queuectl.actions.alerts import alerts
from queuectl.actions.fleet import Load
from queuectl.actions.snapshot import Snapshot
from queuectl.model.finding import error, ok
from queuectl.model.queue import Queue
from queuectl.model.states import State
from queuectl.store.depths import Depths
from queuectl.store.workers import LIVE, WORKER, Worker

MINUTE = 60_000
HOUR = tuple(range(0, 61 * MINUTE, MINUTE))
ANY = Worker(
    id="w1", kind=WORKER, state=LIVE, supervisor_id=None, pid=1, host="here", boot_id="", pid_namespace="",
    lock_path="", version="0", queues=None, slots=1, stop=None, beats=0, beat_at=0, started_at=0, ended_at=None,
    lease_ms=1,
)  # fmt: skip
MAIL = Queue(name="mail", paused_at=None, created_at=0)


def standing(ready: int = 0, *workers: Worker, queue: Queue = MAIL) -> Snapshot:
    """Return a store with one queue."""
    return Snapshot(
        counts={queue.name: {State.PENDING: ready}},
        queues=[queue],
        workers=list(workers),
        load=Load(held={}, used={}),
        unservable=[],
        groups=[],
        now=HOUR[-1],
    )


def depth(*, waiting: tuple[int, int] = (0, 0), dead: tuple[int, int] = (0, 0)) -> Depths:
    """Return an hour in which the first number became the second five minutes ago."""

    def steps(before: int, after: int) -> tuple[int, ...]:
        return (before,) * 56 + (after,) * 5

    return Depths(moments=HOUR, waiting={"mail": steps(*waiting)}, running=steps(0, 0), dead=steps(*dead))


def keys(found: Snapshot, deep: Depths | None = None) -> list[str]:
    """Return which alerts there are."""
    return [alert.key for alert in alerts(found, deep)]


def test_a_store_where_things_go_well_has_nothing_to_tell() -> None:
    assert keys(standing(500, ANY), depth(waiting=(500, 500), dead=(3, 3))) == []
    assert keys(standing(0)) == []  # nothing waits, so nobody is missing


def test_jobs_that_wait_while_nobody_works_are_told_with_what_starts_a_worker() -> None:
    (told,) = alerts(standing(2), None)

    assert told.what == "No worker is running, and 2 jobs wait"
    assert told.command == "queuectl worker start -d"
    assert told.path == "/jobs?state=pending"


def test_a_queue_that_nobody_serves_is_told_unless_it_is_paused() -> None:
    other = ANY.replace(queues='["night"]')

    assert keys(standing(2, other)) == ["unserved mail"]
    assert keys(standing(2, other, queue=MAIL.replace(paused_at=1))) == []


def test_a_queue_that_grows_by_half_within_a_quarter_of_an_hour_is_told() -> None:
    assert keys(standing(60, ANY), depth(waiting=(40, 60))) == ["grows mail"]
    assert keys(standing(59, ANY), depth(waiting=(40, 59))) == []
    assert keys(standing(19, ANY), depth(waiting=(0, 19))) == []  # so few are done soon


def test_deaths_within_the_last_hour_are_told() -> None:
    (told,) = alerts(standing(0, ANY), depth(dead=(5, 6)))

    assert told.what == "The DLQ grows: 1 job died within the last hour"
    assert told.path == "/jobs?state=dead&ended_since=1970-01-01T00:00:00.001Z&sort=finished"


def test_what_is_wrong_with_the_store_comes_before_what_may_become_so() -> None:
    told = alerts(standing(0, ANY), depth(dead=(0, 1)), [ok("enough room"), error("the disk is full", "make room")])

    assert [alert.what for alert in told] == ["The disk is full", "The DLQ grows: 1 job died within the last hour"]
