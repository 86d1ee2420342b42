"""Alerts: what an operator should look at, told from where things stand and how they came there. Reads nothing."""

from queuectl.model.finding import Level
from queuectl.model.states import State
from queuectl.model.units import counted, iso_text
from queuectl.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from queuectl.actions.snapshot import Snapshot
    from queuectl.model.finding import Finding
    from queuectl.store.depths import Depths

GROWS_FROM = 20
"""Fewer jobs that wait are no matter."""
GROWS_BY = 1.5
GROWS_WITHIN_MS = 15 * 60_000
_ORDER = {Level.ERROR: 0, Level.WARNING: 1, Level.OK: 2}


class Alert(Value):
    """Something to look at."""

    key: str
    level: Level
    what: str
    command: str = ""
    """What mends it, or shows more of it."""
    path: str = ""
    """Where the dashboard shows more of it."""


def alerts(found: "Snapshot", depths: "Depths | None", findings: "Iterable[Finding]" = ()) -> list[Alert]:
    """Return what is wrong, or may soon be, the worst first; `findings` are those of the store and its disk."""
    told = [
        *_nobody_works(found),
        *_nobody_serves(found),
        *_store(findings),
        *(() if depths is None else _grows(found, depths)),
    ]
    return sorted(told, key=lambda one: _ORDER[one.level])


def _nobody_works(found: "Snapshot") -> "Iterator[Alert]":
    ready = found.total[State.PENDING]
    if found.workers or not ready:
        return
    waiting = f"{ready:,} {'job waits' if ready == 1 else 'jobs wait'}"
    yield Alert(
        key="no-worker",
        level=Level.ERROR,
        what=f"No worker is running, and {waiting}",
        command="queuectl worker start -d",
        path="/jobs?state=pending",
    )


def _nobody_serves(found: "Snapshot") -> "Iterator[Alert]":
    for queue in found.queues if found.workers else ():
        ready = found.counts.get(queue.name, {}).get(State.PENDING, 0)
        is_served = any(one.queue_list is None or queue.name in one.queue_list for one in found.workers)
        if ready and queue.paused_at is None and not is_served:
            yield Alert(
                key=f"unserved {queue.name}",
                level=Level.ERROR,
                what=f"No running worker serves queue {queue.name}, where {counted(ready, 'job')} wait",
                command=f"queuectl worker start -d --queue {queue.name}",
                path=f"/jobs?state=pending&queue={queue.name}",
            )
    for one in found.unservable:
        yield Alert(
            key=f"unservable {one.queue} {one.missing}",
            level=Level.ERROR,
            what=one.words[0].upper() + one.words[1:],
            command=one.remedy,
            path=f"/queues/{one.queue}",
        )


def _store(findings: "Iterable[Finding]") -> "Iterator[Alert]":
    for finding in findings:
        if finding.level is not Level.OK:
            yield Alert(
                key=f"store {finding.what.partition(':')[0]}",
                level=finding.level,
                what=finding.what[0].upper() + finding.what[1:],
                command="queuectl doctor",
                path="/health",
            )


def _grows(found: "Snapshot", depths: "Depths") -> "Iterator[Alert]":
    """Tell of what became deeper: a queue by half within a quarter of an hour, the DLQ by anything within the last."""
    first = next(place for place, at in enumerate(depths.moments) if at >= depths.moments[-1] - GROWS_WITHIN_MS)
    paused = {queue.name for queue in found.queues if queue.paused_at is not None}
    for queue, waiting in depths.waiting.items():
        before, now = waiting[first], waiting[-1]
        if queue not in paused and now >= GROWS_FROM and now >= GROWS_BY * before and found.workers:
            yield Alert(
                key=f"grows {queue}",
                level=Level.WARNING,
                what=f"Queue {queue} grows: {before:,} jobs waited a quarter of an hour ago, {now:,} do now",
                command=f"queuectl queue show {queue}",
                path=f"/jobs?state=pending&queue={queue}",
            )
    died = depths.dead[-1] - depths.dead[0]
    if died:
        yield Alert(
            key="dlq",
            level=Level.WARNING,
            what=f"The DLQ grows: {died:,} {'job' if died == 1 else 'jobs'} died within the last hour",
            command="queuectl dlq groups",
            path=f"/jobs?state=dead&ended_since={iso_text(depths.moments[0] + 1)}&sort=finished",
        )
