"""Unservable: ready jobs that no living worker could ever take, though their queue is served. What starts one, too."""

from queuectl.model.duty import Duty
from queuectl.model.needs import Needs
from queuectl.model.value import Value
from queuectl.store.lanes import all_lanes
from queuectl.store.lines import left, ready_counts
from queuectl.store.takers import Taker

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from queuectl.model.needs import Supply
    from queuectl.store.database import Tx
    from queuectl.store.lanes import Lane
    from queuectl.store.workers import Worker

NAMED = 5


class Unservable(Value):
    """Ready jobs of one lane that nobody could ever take."""

    queue: str
    needs: Needs
    missing: str
    """What the worker that is nearest to taking them lacks, in words."""
    jobs: int

    @property
    def words(self) -> str:
        """What is wrong, in a line."""
        waiting = "a job" if self.jobs == 1 else f"{self.jobs} jobs"
        verb = "waits" if self.jobs == 1 else "wait"
        return f"{waiting} of queue {self.queue} {verb} for what no worker has: {self.missing}"

    @property
    def remedy(self) -> str:
        """The command that starts a worker for them."""
        return start_command(self.queue, self.needs)

    @property
    def shape(self) -> "dict[str, object]":
        """As JSON."""
        return {"queue": self.queue, "needs": list(self.needs.labels), "use": self.needs.use, "jobs": self.jobs}


def unservable(tx: "Tx", living: "Sequence[Worker]") -> list[Unservable]:
    """Return what none of the living workers could ever take, by queue; those told to stop take nothing more.

    A queue that nobody serves at all is another matter, and told elsewhere; unless nobody is there for any.
    """
    lanes = all_lanes(tx)
    missing = _missing(lanes, living)
    return _named(lanes, missing, ready_counts(tx, list(missing)))


def unservable_among(
    lanes: "Sequence[Lane]", living: "Sequence[Worker]", ready: "Mapping[int, int]"
) -> list[Unservable]:
    """Return the same where the jobs that are ready in each lane are counted already."""
    return _named(lanes, _missing(lanes, living), ready)


def least_missing(supplies: "Iterable[Supply]", needs: Needs) -> str:
    """Name what the one that lacks least lacks for a job; all that it needs where nobody is asked."""
    lacks = sorted((supply.missing(needs) for supply in supplies), key=len)
    return ", ".join(lacks[0]) if lacks else needs.words


def left_waiting(tx: "Tx", queues: "Sequence[str] | None") -> str | None:
    """Name the jobs that a worker of some queues leaves waiting when it finds nothing more to do; None: none."""
    lanes = [lane.id for lane in all_lanes(tx) if queues is None or lane.queue in queues]
    ids = left(tx, lanes, NAMED + 1)
    if not ids:
        return None
    waiting = "a job still waits" if len(ids) == 1 else f"{len(ids)} jobs still wait"
    if len(ids) > NAMED:
        waiting = f"more than {NAMED} jobs still wait"
    return f"{waiting} that no worker here could take now; see: queuectl why {' '.join(ids[:NAMED])}"


def start_command(queue: str, needs: Needs) -> str:
    """Return what a person types to start a worker that takes jobs of a queue with some needs."""
    duty = Duty(queues=(queue,), labels=needs.labels, resources=needs.use)
    return " ".join(["queuectl worker start -d", *duty.words])


def _missing(lanes: "Sequence[Lane]", living: "Sequence[Worker]") -> dict[int, str]:
    """Return the lanes that nobody could take from, each with what the nearest worker lacks."""
    takers = [Taker.of_worker(worker) for worker in living if not worker.stop]
    return {
        lane.id: least_missing([taker.supply for taker in asked], lane.asks)
        for lane in lanes
        if lane.needs
        if (asked := _serving(takers, lane.queue)) or not takers
        if not any(taker.serves(lane) for taker in asked)
    }


def _named(lanes: "Sequence[Lane]", missing: "Mapping[int, str]", ready: "Mapping[int, int]") -> list[Unservable]:
    found = [
        Unservable(queue=lane.queue, needs=lane.asks, missing=missing[lane.id], jobs=ready[lane.id])
        for lane in lanes
        if lane.id in missing and ready.get(lane.id)
    ]
    return sorted(found, key=lambda one: (one.queue, one.needs.words))


def _serving(takers: "Sequence[Taker]", queue: str) -> list[Taker]:
    return [taker for taker in takers if taker.queues is None or queue in taker.queues]
