"""Checks of what keeps jobs waiting although workers run: needs, narrow queues, limits not made, jobs that are over."""

from queuectl.actions import unservable as lanes
from queuectl.model.finding import error, ok, warning
from queuectl.model.limits import LIMIT
from queuectl.model.states import State
from queuectl.model.units import DAY_MS, counted, rough_duration_text
from queuectl.store import edges, limits, lines, overview

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from queuectl.actions.checks.case import Case
    from queuectl.model.finding import Finding
    from queuectl.store.database import Tx

NARROW_JOBS = 1000
SLOW_MS = DAY_MS
SAMPLES = 5


def unservable(case: "Case") -> "Iterator[Finding]":
    """Whether jobs wait for what no living worker of their queue has."""
    found = case.store.read(lambda tx: lanes.unservable(tx, case.living))
    for one in found:
        yield warning(one.words, one.remedy)
    if not found:
        yield ok("no job waits for what no worker has")


def narrow(case: "Case") -> "Iterator[Finding]":
    """Whether many jobs wait for a queue that lets only so many run at once, or starts them slowly."""
    is_well = True
    for queue in case.fleet.queues:
        counts = case.fleet.counts.get(queue.name, {})
        waiting, running = counts.get(State.PENDING, 0), counts.get(State.PROCESSING, 0)
        if queue.rate is not None and (takes_ms := waiting * queue.rate.interval_ms) > SLOW_MS:
            is_well = False
            yield warning(
                f"queue {queue.name} lets {queue.rate.text} start: the {counted(waiting, 'job')} that wait take "
                f"{rough_duration_text(takes_ms)}",
                f"if it may be quicker: queuectl queue set {queue.name} --rate ...",
            )
        if queue.concurrency is not None and running >= queue.concurrency and waiting >= NARROW_JOBS:
            is_well = False
            yield warning(
                f"queue {queue.name} lets {queue.concurrency} run at once, all of that in use, and {waiting} jobs wait",
                f"if more may run: queuectl queue set {queue.name} --concurrency ...",
            )
    if is_well:
        yield ok("no queue holds many jobs back by its rate or concurrency")


def missing_limits(case: "Case") -> "Iterator[Finding]":
    """Whether jobs name a limit that nobody made, which holds nothing back."""

    def look(tx: "Tx") -> list[str]:
        made = {limit.name for limit in limits.all_limits(tx)}
        named = [key.removeprefix(LIMIT) for key in lines.limits_named(tx) if key.startswith(LIMIT)]
        return [name for name in named if name not in made]

    missing = case.store.read(look)
    for name in missing:
        yield warning(
            f"jobs name limit {name}, which nobody made: any number of them runs at once",
            f"queuectl limit set {name} 1, or correct the name: queuectl edit ID --limit ...",
        )
    if not missing:
        yield ok("every limit that jobs name is there")


def dependencies(case: "Case") -> "Iterator[Finding]":
    """Whether jobs wait for others that have ended otherwise than they asked, or for nothing at all."""
    stranded, kept = case.store.read(lambda tx: (edges.stranded(tx, SAMPLES), edges.kept(tx, SAMPLES)))
    for name in stranded:
        yield error(f"job {name} is blocked, and waits for nothing", f"queuectl edit {name} --after none")
    for name in kept:
        yield warning(
            f"job {name} waits for one that is over and ended otherwise than it asked", f"queuectl why {name}"
        )
    if not stranded and not kept:
        yield ok("no job waits for one that ended otherwise than it asked")


def closed_limits(case: "Case") -> "Iterator[Finding]":
    """Whether jobs wait for a limit of 0, which lets none start."""
    closed = [view for view in case.store.read(overview.all_limits) if view.slots == 0 and view.waiting]
    for view in closed:
        waiting = "a job waits" if view.waiting == 1 else f"{view.waiting} jobs wait"
        yield warning(f"limit {view.name} is 0 while {waiting} for it", f"queuectl limit set {view.name} 1")
    if not closed:
        yield ok("no job waits for a limit of 0")
