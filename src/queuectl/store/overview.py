"""Overview: queues and limits as a person asks for them, with who uses them now. Reads alone; claims use none of it."""

from queuectl.model.limits import LIMIT, MUTEX, Limit
from queuectl.model.needs import Needs
from queuectl.model.queue import Queue
from queuectl.model.states import State
from queuectl.model.value import Value
from queuectl.store import jobs, limits, parking, queues
from queuectl.store.lanes import lanes_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from queuectl.model.job import Job
    from queuectl.store.database import Tx

PRIORITIES = 100
"""How many priorities of a lane are looked at for its oldest job, each by one probe."""
MOST_RETRIED = 10_000
RETRIED_PAGE = 500
"""How many jobs that were retried before all others are passed by in search of an older one, so many at a time."""
NEXT = 5


class LaneView(Value):
    """What jobs of a queue need of a worker, and how many of them are ready."""

    needs: Needs
    ready: int


class QueueView(Value):
    """A queue with what is in it."""

    queue: Queue
    counts: "dict[State, int]"
    lanes: tuple[LaneView, ...] = ()
    oldest: "Job | None" = None
    """The job that has been ready for longest."""

    @property
    def running(self) -> int:
        """How many of its jobs run, on every host."""
        return self.counts.get(State.PROCESSING, 0)


class LimitView(Value):
    """A limit or a mutex, who holds it and who waits for it."""

    kind: str
    """`limit` or `mutex`."""
    name: str
    slots: int | None
    """How many jobs may hold it at once; None means that jobs name a limit nobody made, which holds nothing back."""
    created_at: int | None
    held: int
    waiting: int
    """How many jobs would hold it if they could: those in the line that name it, and those parked for it."""
    holders: "tuple[Job, ...]" = ()
    next: tuple[str, ...] = ()
    """The ids of the next to get it."""


def all_queues(tx: "Tx") -> list[QueueView]:
    """Return every queue, by name, with what is in it."""
    counts = jobs.counts(tx)
    return [QueueView(queue=queue, counts=counts.get(queue.name, {})) for queue in queues.all_queues(tx)]


def queue(tx: "Tx", name: str) -> QueueView | None:
    """Return all that is known of a queue; None means there is none of the name."""
    found = queues.get(tx, name)
    if found is None:
        return None
    lanes = sorted(lanes_of(tx, [name]), key=lambda lane: lane.needs)
    oldest = _oldest_ready(tx, [lane.id for lane in lanes])
    counts = jobs.counts(tx).get(name, {})
    # Most queues have one lane alone, in which all that is ready stands: it need not be counted again.
    ready = _ready_by_lane(tx) if len(lanes) > 1 else {lane.id: counts.get(State.PENDING, 0) for lane in lanes}
    return QueueView(
        queue=found,
        counts=counts,
        lanes=tuple(LaneView(needs=lane.asks, ready=ready.get(lane.id, 0)) for lane in lanes),
        oldest=oldest,
    )


def oldest_by_queue(tx: "Tx", names: "Sequence[str]") -> "dict[str, Job]":
    """Return of each of these queues the job that has been ready for longest; those with none are left out."""
    lanes: dict[str, list[int]] = {}
    for lane in lanes_of(tx, names):
        lanes.setdefault(lane.queue, []).append(lane.id)
    found = {name: _oldest_ready(tx, ids) for name, ids in lanes.items()}
    return {name: job for name, job in found.items() if job is not None}


def all_limits(tx: "Tx") -> list[LimitView]:
    """Return the limits people made, then what else is held or waited for now: mutexes, by name."""
    held, waiting = limits.held(tx), _waiting(tx)
    made = {LIMIT + limit.name: limit for limit in limits.all_limits(tx)}
    keys = [*made, *sorted((held.keys() | waiting.keys()) - made.keys())]
    return [_limit_view(key, made.get(key), held.get(key, 0), waiting.get(key, 0)) for key in keys]


def limit(tx: "Tx", key: str) -> LimitView | None:
    """Return all that is known of a limit, or of a mutex, by its key; None means that nobody made such a limit.

    A mutex is made by nobody: one that no job names now is there, and free.
    """
    made = limits.get(tx, key.removeprefix(LIMIT)) if key.startswith(LIMIT) else None
    holders = limits.holders(tx, key)
    waiting = _waiting(tx).get(key, 0)
    if made is None and key.startswith(LIMIT) and not holders and not waiting:
        return None
    following = (*limits.ready(tx, key, NEXT), *parking.parked(tx, key, NEXT))
    view = _limit_view(key, made, len(holders), waiting)
    return view.replace(holders=tuple(holders), next=following[:NEXT])


def _limit_view(key: str, made: Limit | None, held: int, waiting: int) -> LimitView:
    kind, _, name = key.partition(":")
    slots = 1 if key.startswith(MUTEX) else None
    return LimitView(
        kind=kind,
        name=name,
        slots=slots if made is None else made.slots,
        created_at=None if made is None else made.created_at,
        held=held,
        waiting=waiting,
    )


def _waiting(tx: "Tx") -> dict[str, int]:
    ready, parked = limits.in_line(tx), parking.parked_counts(tx)
    return {key: ready.get(key, 0) + parked.get(key, 0) for key in ready.keys() | parked.keys()}


def _ready_by_lane(tx: "Tx") -> dict[int, int]:
    rows = tx.rows("SELECT lane_id, count(*) FROM jobs WHERE state = 'pending' GROUP BY lane_id")
    return {int(lane_id or 0): int(number or 0) for lane_id, number in rows}


def _oldest_ready(tx: "Tx", lane_ids: "Sequence[int]") -> "Job | None":
    """Return the job that has been ready for longest; where nothing was retried, one probe of jobs_ready a priority."""
    oldest: tuple[int, int] | None = None
    for lane_id in lane_ids:
        below: int | None = None
        for _ in range(PRIORITIES):
            beyond = "" if below is None else "AND priority < :below"
            row = tx.row(
                f"""
                SELECT priority, seq, created_at, updated_at
                  FROM jobs
                 WHERE state = 'pending' AND lane_id = :lane_id {beyond}
                 ORDER BY priority DESC, seq
                 LIMIT 1
                """,
                {"lane_id": lane_id, **({} if below is None else {"below": below})},
            )
            if row is None:
                break
            below, seq, created_at, ready_at = (int(value or 0) for value in row)
            oldest = (ready_at, seq) if oldest is None else min(oldest, (ready_at, seq))
            if oldest[0] > created_at:
                oldest = _older(tx, lane_id, below, seq, oldest)
    return None if oldest is None else jobs.get(tx, oldest[1])


def _older(tx: "Tx", lane_id: int, priority: int, after: int, oldest: tuple[int, int]) -> tuple[int, int]:
    """Return the longest ready of those behind a job, or `oldest`, as (ready since, number).

    A job that was retried stands before younger ones that have been ready for longer. None is ready before it is added,
    so the walk ends at the first that was added since; and after so many that the rest was retried with them. The
    priority is spelt so that the order is not that of the numbers alone: else PostgreSQL might walk all history.
    """
    for _ in range(MOST_RETRIED // RETRIED_PAGE):
        rows = tx.rows(
            """
            SELECT seq, created_at, updated_at
              FROM jobs
             WHERE state = 'pending' AND lane_id = :lane_id AND priority BETWEEN :priority AND :priority
               AND seq > :after
             ORDER BY priority DESC, seq
             LIMIT :page
            """,
            {"lane_id": lane_id, "priority": priority, "after": after, "page": RETRIED_PAGE},
        )
        for row in rows:
            after, created_at, ready_at = (int(value or 0) for value in row)
            if created_at >= oldest[0]:
                return oldest
            oldest = min(oldest, (ready_at, after))
        if len(rows) < RETRIED_PAGE:
            break
    return oldest
