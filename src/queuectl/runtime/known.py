"""Known: all that is known of a job, as `show` prints it and as both faces answer it in JSON."""

from queuectl.actions.explain import cause, why_waiting
from queuectl.actions.waiting import how_it_comes_back
from queuectl.errors import BadInput
from queuectl.model.fields import INSTANT_VARIABLE, SCHEDULE_VARIABLE
from queuectl.model.shapes import attempt_shape, job_shape
from queuectl.model.states import State
from queuectl.model.units import time_ms
from queuectl.model.value import Value
from queuectl.runtime.outputs import measured
from queuectl.store import attempts, edges

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queuectl.actions.connect import Target
    from queuectl.actions.explain import Wait
    from queuectl.model.attempt import Attempt
    from queuectl.model.job import Job
    from queuectl.store.database import Tx
    from queuectl.store.edges import Link

MOST_DEPENDENTS = 100
"""How many of those that run after a job are named; all that it runs after are."""


class Known(Value):
    """All that is known of a job."""

    job: "Job"
    runs: "list[Attempt]"
    wait: "Wait | None"
    after: "list[Link]"
    dependents: "list[Link]"
    """The first of those that run after it."""
    dependents_count: int
    comes_back: str | None
    cause: str | None
    now: int


def look_at(target: "Target", tx: "Tx", job: "Job") -> Known:
    """Return all that is known of a job."""
    runs = measured(target, tx, attempts.runs_of(tx, job))
    return Known(
        job=job,
        runs=runs,
        wait=why_waiting(tx, job),
        after=edges.parents_of(tx, job.seq),
        dependents=edges.children_of(tx, job.seq, MOST_DEPENDENTS) if job.has_dependents else [],
        dependents_count=edges.count_children(tx, job.seq) if job.has_dependents else 0,
        comes_back=how_it_comes_back(tx, job),
        cause=_replaced_by(tx, job) or cause(job, runs),
        now=tx.now,
    )


def known_shape(known: Known) -> "dict[str, object]":
    """Return all that is known of a job as JSON."""
    return {
        **job_shape(known.job),
        "waits_for": known.wait and known.wait.reason,
        "remedy": known.wait.remedy if known.wait else known.comes_back,
        "after": [_link_shape(link) for link in known.after],
        "dependents": [_link_shape(link) for link in known.dependents],
        "dependents_count": known.dependents_count,
        "cause": known.cause,
        "schedule": schedule_of(known.job),
        "runs": [attempt_shape(run) for run in known.runs],
    }


def schedule_of(job: "Job") -> "dict[str, str] | None":
    """Return which schedule a job comes from and which instant it is for, as its command is told."""
    env = job.env_map
    if SCHEDULE_VARIABLE not in env or INSTANT_VARIABLE not in env:
        return None
    return {"name": env[SCHEDULE_VARIABLE], "instant": env[INSTANT_VARIABLE]}


def _replaced_by(tx: "Tx", job: "Job") -> str | None:
    """Say which job took the place of one that its schedule cancelled for it."""
    schedule = schedule_of(job) if job.state is State.CANCELLED else None
    if schedule is None:
        return None
    from queuectl.store import schedules  # few jobs come from one

    try:
        instant = time_ms(schedule["instant"], tx.now)
    except BadInput:
        return None  # an import takes in any text
    fire = schedules.fire_of(tx, schedule["name"], instant)
    how, _, why = (job.error or "").partition(":")
    by_schedule = why or job.started_at is not None  # else somebody retried it and cancelled it again
    if fire is None or fire.job_seq != job.seq or not fire.was_replaced or not by_schedule:
        return None
    return f"{how}: {fire.why} of schedule {schedule['name']}"


def _link_shape(link: "Link") -> dict[str, object]:
    return {
        "id": link.id,
        "number": link.seq,
        "state": None if link.job_state is None else link.job_state.value,
        "kind": link.kind.value,
        "is": link.edge_state.value,
    }
