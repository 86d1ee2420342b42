"""Snapshot: where everything stands at one moment, read at once: jobs, queues, workers, what nobody can take."""

from queuectl.actions.fleet import living, load_of, worker_shape
from queuectl.actions.unservable import unservable_among
from queuectl.model.shapes import counts_shape
from queuectl.model.states import State
from queuectl.model.value import Value
from queuectl.store import group_views, jobs, queues
from queuectl.store.lanes import all_lanes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queuectl.actions.fleet import Load
    from queuectl.actions.unservable import Unservable
    from queuectl.model.job import Job
    from queuectl.model.queue import Queue
    from queuectl.store.database import Tx
    from queuectl.store.dialect import Dialect
    from queuectl.store.workers import Worker

NEWEST_DEAD = 5
GROUPS = 5


class Snapshot(Value):
    """Where everything stands at one moment."""

    counts: "dict[str, dict[State, int]]"
    queues: "list[Queue]"
    workers: "list[Worker]"
    load: "Load"
    unservable: "list[Unservable]"
    """What is ready and no living worker could ever take."""
    groups: list[str]
    """Those with jobs that have not ended, the newest first; not more than a line holds."""
    now: int
    dead: "tuple[Job, ...]" = ()
    """Those that died last, where somebody looked closely."""

    @property
    def total(self) -> dict[State, int]:
        """How many jobs are in each state, over all queues."""
        return {state: sum(of_queue.get(state, 0) for of_queue in self.counts.values()) for state in State}


def look(tx: "Tx") -> Snapshot:
    """Read where everything stands."""
    workers, lanes = living(tx), all_lanes(tx)
    counts = jobs.counts_by_lane(tx, [lane.id for lane in lanes])
    ready = {lane: of_lane.get(State.PENDING, 0) for lane, of_lane in counts.items()}
    return Snapshot(
        counts=jobs.by_queue(counts, {lane.id: lane.queue for lane in lanes}),
        queues=queues.all_queues(tx),
        workers=workers,
        load=load_of(tx, workers),
        unservable=unservable_among(lanes, workers, ready),
        groups=group_views.under_way(tx, GROUPS),
        now=tx.now,
    )


def look_closely(tx: "Tx") -> Snapshot:
    """Read where everything stands, and which jobs died last."""
    return look(tx).replace(dead=tuple(jobs.latest_dead(tx, jobs.Filter(), NEWEST_DEAD)))


def status_shape(found: Snapshot, dialect: "Dialect") -> "dict[str, object]":
    """Return it as JSON."""
    return {
        "jobs": counts_shape(found.total),
        "queues": [
            {
                "queue": queue.name,
                "paused": queue.paused_at is not None,
                **counts_shape(found.counts.get(queue.name, {})),
            }
            for queue in found.queues
        ],
        "workers": [worker_shape(worker, found.load, dialect) for worker in found.workers],
        "unservable": [one.shape for one in found.unservable],
        "groups": found.groups,
    }
