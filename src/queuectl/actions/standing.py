"""Standing: all there is to say about why a job runs, waits or is over, with its place in the line. For `why`."""

from queuectl.actions.explain import cause, wait_of, why_waiting
from queuectl.actions.gating import AFTER, HOLD, TIME, each_gate, foremost
from queuectl.actions.scene import Gate, Scene
from queuectl.actions.waiting import how_it_comes_back
from queuectl.model.limits import key_words
from queuectl.model.needs import units_text
from queuectl.model.states import FINAL, State
from queuectl.model.units import local_text
from queuectl.model.value import Value
from queuectl.store import attempts, limits, lines, workers
from queuectl.store.takers import Taker

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from queuectl.actions.explain import Wait
    from queuectl.model.job import Job
    from queuectl.store.database import Tx


class Place(Value):
    """Where a job stands in the line, counted and not guessed."""

    ahead: int
    line: str
    """Which line: of a queue, or of those that wait for a limit."""

    @property
    def words(self) -> str:
        """As people say it."""
        if not self.ahead:
            return f"first in line of {self.line}"
        return f"number {self.ahead + 1} in line of {self.line}"


class Standing(Value):
    """What is so with a job at one moment."""

    job: "Job"
    summary: str
    """What it does, in a line."""
    gates: "tuple[Gate, ...]" = ()
    """Those of a job that waits; none of one that runs or is over."""
    wait: "Wait | None" = None
    remedy: str | None = None
    """What brings a job back that was cancelled because of another."""
    place: Place | None = None
    holds: tuple[str, ...] = ()
    """What it keeps from others while it runs."""


def standing(tx: "Tx", job: "Job") -> Standing:
    """Look at everything that decides about a job."""
    if job.state in FINAL:
        return Standing(job=job, summary=_ended(tx, job), remedy=how_it_comes_back(tx, job))
    if job.state is State.PROCESSING:
        return Standing(job=job, summary=_runs(tx, job), wait=why_waiting(tx, job), holds=tuple(_holds(job)))
    scene = Scene(tx, job)
    gates = tuple(each_gate(scene))
    wait = wait_of(job, foremost(gates))
    return Standing(job=job, summary=f"waits for {wait.reason}", gates=gates, wait=wait, place=_place(scene, gates))


def _place(scene: Scene, gates: "tuple[Gate, ...]") -> Place | None:
    """Return where a job stands: among those parked for its limit, or the ready ones of its queue; None: in no line."""
    job = scene.job
    if job.parked_for is not None:
        ahead = lines.parked_ahead(scene.tx, job.parked_for, job.priority, job.seq)
        ready = limits.in_line(scene.tx).get(job.parked_for, 0)  # let through already, so before all who are parked
        return Place(ahead=ready + ahead, line=key_words(job.parked_for))
    if any(gate.name in (AFTER, TIME, HOLD) and not gate.is_open for gate in gates):
        return None
    shared = _shared_lanes(scene)
    return Place(ahead=lines.ahead(scene.tx, shared, job.priority, job.seq), line=_line(scene, shared))


def _line(scene: Scene, shared: "Sequence[int]") -> str:
    """Name the line a job stands in: a part of its queue, which has a first of its own, by what its jobs need."""
    queue = f"queue {scene.job.queue}"
    is_whole = all(lane.id in shared for lane in scene.lanes.values() if lane.queue == scene.job.queue)
    return queue if is_whole or not scene.needs.words else f"{queue} for {scene.needs.words}"


def _shared_lanes(scene: Scene) -> list[int]:
    """Return the lanes of its queue whose jobs are taken by workers that could take this one: nobody else is before it.

    Where nobody could take it, that is its own lane.
    """
    takers = [Taker.of_worker(worker) for worker in scene.able]
    of_queue = [lane for lane in scene.lanes.values() if lane.queue == scene.job.queue]
    shared = [lane.id for lane in of_queue if any(taker.serves(lane) for taker in takers)]
    return sorted({*shared, scene.job.lane_id})


def _runs(tx: "Tx", job: "Job") -> str:
    holder = workers.get(tx, job.worker_id or "")
    where = f"on {holder.host}, by worker {holder.id[:6]}" if holder else f"by worker {(job.worker_id or '?')[:6]}"
    return f"runs {where}, since {local_text(job.started_at or 0)}"


def _holds(job: "Job") -> list[str]:
    units = [units_text({name: part}) for name, part in job.unit_map.items()]
    return [*map(key_words, job.limit_list), *units]


def _ended(tx: "Tx", job: "Job") -> str:
    when = f"ended at {local_text(job.finished_at or 0)}"
    how = cause(job, attempts.runs_of(tx, job)) or (None if job.exit_code is None else f"exit code {job.exit_code}")
    return f"{when}: {how}" if how else when
