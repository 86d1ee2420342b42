"""Edit: changing a job that exists. What may change depends on where it stands; the values are checked in model/."""

from queuectl.actions import acts
from queuectl.actions.acts import Act, Done
from queuectl.actions.dependencies import REWIRING, reconsider, rewire
from queuectl.actions.submit import refuse_unknown_limits
from queuectl.errors import Refused
from queuectl.model.edit import Edit, edited
from queuectl.model.shapes import changes_shape
from queuectl.model.states import FINAL, Move, State
from queuectl.model.units import duration_text
from queuectl.store import jobs, moves, parking, queues

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from queuectl.model.job import Job
    from queuectl.store.database import Database, Tx

SHOWN_ON_RECORD = frozenset(
    {
        "priority", "queue", "run_at", "max_retries", "timeout", "deadline", "tags", "needs", "use", "mutex", "limits",
        "retry_on", "no_retry_on", "success_codes", "memory", "cpu_seconds", "nofile", "file_size", "nice", "umask",
    }
)  # fmt: skip


def edit(database: "Database", ids: "Sequence[str]", change: Edit, *, who: str) -> list[Done]:
    """Change jobs, all or none: a waiting one in everything, a finished one in all but its time, a running one's tags.

    What changes of a finished job takes effect when it is retried.
    """
    return acts.act_on_each(database, ids, edit_act(change), who=who)


def edit_act(change: Edit) -> Act:
    """Return the act of making one change."""
    return Act(
        name="edit",
        done="edited",
        states=frozenset(State),
        on_one=lambda tx, job: _edit(tx, job, change),
        limits=frozenset([*change.limit_keys, *([REWIRING] if "after" in change.values else [])]),
        detail=lambda done: _on_record(change, done),
    )


def _on_record(change: Edit, done: "Sequence[Done]") -> str:
    """Say what was changed, from what to what where that is the same of all; commands and variables may be secrets."""
    made = [changes_shape(each.job, each.after) for each in done if each.after is not None]
    return ", ".join(
        _from_and_to(name, [changes[name] for changes in made if name in changes]) for name in _names(change)
    )


def _names(change: Edit) -> list[str]:
    return ["run_at" if name == "delay" else name for name in change.names]


def _from_and_to(name: str, made: "Sequence[Mapping[str, object]]") -> str:
    if name not in SHOWN_ON_RECORD or not made:
        return name
    old, new = ({_text(name, each[side]) for each in made} for side in ("from", "to"))
    if len(new) > 1:
        return name
    return f"{name} {old.pop() if len(old) == 1 else 'various'} -> {new.pop()}"


def _text(name: str, value: object) -> str:
    if name in ("timeout", "deadline") and isinstance(value, float):
        return duration_text(round(value * 1000))
    if isinstance(value, dict):
        value = [f"{key}={amount}" for key, amount in value.items()]
    if isinstance(value, list):
        return "+".join(map(str, value)) or "none"
    if value is None:
        return "default" if name == "timeout" else "none"
    return str(value)


def _edit(tx: "Tx", job: "Job", change: Edit) -> Done:
    if job.state is State.PROCESSING and not change.is_of_tags_alone:
        raise Refused(
            f"job {job.id} is running: only its tags can change now",
            hint=f"edit it when it has ended, or cancel it first: queuectl cancel {job.id}",
        )
    if job.state in FINAL and change.has_time:
        raise Refused(
            f"job {job.id} is {job.state} and waits for no time",
            hint=f"run it again with: queuectl retry {job.id}, then give it a time",
        )
    after = edited(job, change, tx.now)
    if change.values.get("limits"):
        tx.lock(after.limit_list)  # whoever deletes one locks it, too
        refuse_unknown_limits(tx, after.limit_list, "changed")
    if (after.queue, after.needs) != (job.queue, job.needs):
        after = after.replace(lane_id=queues.lane_of(tx, after.queue, after.needs or ""))
    # Before the move: the row is locked, and what is written here names the state it had.
    jobs.edit(tx, job, after)
    if job.parked_for is not None and (after.limits, after.lane_id) != (job.limits, job.lane_id):
        after = moves.move(tx, Move.UNBLOCK, job.seq, State.PENDING, run_at=after.run_at) or after
    after = _rewired(tx, after, change)
    if change.has_time:
        after = _at(tx, after, change.run_at(tx.now))
    if (after.limits, after.lane_id, after.state) != (job.limits, job.lane_id, job.state):
        parking.left_line(tx, [job])
    # A worker that looked meanwhile has passed the locked row by; and an earlier time may be the next one to wait for.
    if after.state is State.PENDING or change.has_time:
        tx.wake()
    return Done(job=job, note="edited" if after != job else "is so already", after=after)


def _rewired(tx: "Tx", job: "Job", change: Edit) -> "Job":
    """Let a job run after other jobs than before, or make something else of how those end."""
    if "after" in change.values:
        return rewire(tx, job, change.values["after"] or ())  # type: ignore[arg-type]
    return reconsider(tx, job) if "on_dead" in change.values and job.waits_for else job


def _at(tx: "Tx", job: "Job", run_at: int) -> "Job":
    """Let a waiting job run at a time; one that is held or blocked goes on waiting for that."""
    if job.parked_for is not None and run_at > tx.now:
        return moves.move(tx, Move.UNBLOCK, job.seq, State.SCHEDULED, run_at=run_at) or job
    if job.state is State.BLOCKED or (job.state is State.SCHEDULED and run_at > tx.now):
        after = job.replace(run_at=run_at)
        jobs.edit(tx, job, after)
        return after
    if run_at > tx.now:
        return moves.move(tx, Move.DEFER, job.seq, State.SCHEDULED, run_at=run_at) or job
    if job.state is State.PENDING:
        return job
    return moves.move(tx, Move.DUE, job.seq, State.PENDING) or job
