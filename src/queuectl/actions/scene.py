"""Scene: a gate as people see it, and what stands around a job. The gates are in gating.py and manning.py."""

from functools import cached_property

from queuectl.actions.liveness import serving
from queuectl.model.needs import Needs
from queuectl.model.value import Value
from queuectl.store import lines, workers
from queuectl.store.lanes import all_lanes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from queuectl.model.job import Job
    from queuectl.store.database import Tx
    from queuectl.store.lanes import Lane
    from queuectl.store.lines import Running
    from queuectl.store.workers import Worker

NAMED = 5


class Gate(Value):
    """One thing that decides whether a job may start now."""

    name: str
    is_open: bool
    words: str
    """What is so."""
    reason: str = ""
    """What a job waits for while it is shut, to be read after `waits for`."""
    jobs: tuple[str, ...] = ()
    workers: tuple[str, ...] = ()
    """Who holds it, or could let it through."""
    ends: str | None = None
    """What opens it without anybody's doing."""
    remedy: str | None = None
    """A command that opens it."""


class Scene:
    """What decides about one job, each fact read once and only when a gate asks for it."""

    def __init__(self, tx: "Tx", job: "Job") -> None:
        self.tx = tx
        self.job = job
        self.now = tx.now

    @cached_property
    def lanes(self) -> "dict[int, Lane]":
        """Every lane, by its number."""
        return {lane.id: lane for lane in all_lanes(self.tx)}

    @property
    def lane(self) -> "Lane":
        """Where the job stands, with what holds for its queue."""
        return self.lanes[self.job.lane_id]

    @property
    def needs(self) -> Needs:
        """What the job asks of a worker."""
        return self.lane.asks

    @cached_property
    def running(self) -> "list[Running]":
        """Every job that runs."""
        return lines.running(self.tx)

    @cached_property
    def serving(self) -> "list[Worker]":
        """The living workers that take jobs of its queue."""
        return serving(self.tx, {self.job.queue})

    @cached_property
    def labelled(self) -> "list[Worker]":
        """Those of them that have the labels it needs."""
        wanted = Needs(labels=self.needs.labels)
        return [worker for worker in self.serving if worker.supply.could_take(wanted)]

    @cached_property
    def able(self) -> "list[Worker]":
        """Those of them that could run it with nothing else running."""
        return [worker for worker in self.labelled if worker.supply.could_take(self.needs)]

    def held_by(self, worker_ids: "Iterable[str]") -> "list[Running]":
        """Return what some workers run."""
        wanted = set(worker_ids)
        return [job for job in self.running if job.worker_id in wanted]

    def worker_of(self, job: "Running") -> "Worker | None":
        """Return the worker that runs a job, if it is known."""
        return workers.get(self.tx, job.worker_id or "")


def jobs_text(ids: "Sequence[str]") -> str:
    """Name jobs: `job 3`, `jobs 3, 4 and 9 more`."""
    return f"{'job' if len(ids) == 1 else 'jobs'} {listed_text(ids)}"


def when_one_ends(ids: "Sequence[str]") -> str:
    """Say when something that jobs hold is free again."""
    return f"when job {ids[0]} ends" if len(ids) == 1 else "when one of them ends"


def when_enough_end(ids: "Sequence[str]", most: int) -> str | None:
    """Say when fewer than `most` of these run; None where none may. More run than may after it was lowered."""
    enough = len(ids) - most + 1
    if not most:
        return None
    if enough == 1:
        return when_one_ends(ids)
    if enough < len(ids):
        return f"when {enough} of them have ended"
    return f"when {'both' if enough == 2 else 'all'} of them have ended"


def workers_text(found: "Sequence[Worker]") -> str:
    """Name workers: `worker a1b2c3`."""
    return f"{'worker' if len(found) == 1 else 'workers'} {listed_text([worker.id[:6] for worker in found])}"


def listed_text(names: "Sequence[str]") -> str:
    """Name the first of some things, and how many more there are."""
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return f"{', '.join(names[:NAMED])}{more}"
