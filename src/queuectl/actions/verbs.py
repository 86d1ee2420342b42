"""Verbs: what each thing a person can do does to a job in every state it may be in. To how many is in acts.py."""

from queuectl.actions.acts import SAMPLES, Act, Done
from queuectl.actions.endings import follow, look_at_group
from queuectl.actions.liveness import pulse
from queuectl.actions.revival import all_after, block_dependents, revive
from queuectl.errors import Refused
from queuectl.model.limits import key_words
from queuectl.model.states import FINAL, WAITING_FOR_TIME, Move, State
from queuectl.model.units import counted
from queuectl.store import edges, jobs, moves, parking, removing, workers
from queuectl.system.liveness import Pulse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from queuectl.model.job import Job
    from queuectl.store.database import Tx


def _cancel(tx: "Tx", job: "Job") -> Done:
    if job.state in FINAL:
        raise Refused(f"job {job.id} is {job.state} already", hint="only a waiting or running job can be cancelled")
    if job.state is State.PROCESSING:
        moves.request_cancel(tx, job.seq)
        tx.wake()
        holder = workers.get(tx, job.worker_id or "")
        if holder is None or pulse(holder, tx.dialect) is Pulse.DEAD:
            return Done(job=job, note="its worker is dead; it is cancelled when a worker start rescues it")
        return Done(job=job, note="its worker is stopping it")
    after = moves.move(tx, Move.CANCEL, job.seq, State.CANCELLED, error="cancelled before it ran")
    parking.left_line(tx, [job])
    if after is not None:
        follow(tx, [after])
    return Done(job=job, note="cancelled")


def _retry(tx: "Tx", given: "Job") -> Done:
    job = jobs.get(tx, given.seq) or given  # what it runs after may just have brought it back
    if job.state is State.BLOCKED and given.state in FINAL:
        return Done(job=given, note="waits again for the others")
    if job.state is State.PROCESSING:
        raise _running(job, "retry")
    if job.state is State.PENDING:
        return Done(job=job, note="is ready already")
    _refuse_blocked(job)
    if job.state in WAITING_FOR_TIME:
        moves.move(tx, Move.DUE, job.seq, State.PENDING)
        tx.wake()
        return Done(job=job, note="runs now")
    after = revive(tx, job)
    return Done(job=job, note="has a fresh life" if after.state is State.PENDING else "waits again for the others")


def _refuse_blocked(job: "Job") -> None:
    if job.state is State.BLOCKED:
        if job.held_at is not None:
            raise Refused(f"job {job.id} is held", hint=f"release it with: queuectl release {job.id}")
        raise _blocked(job)


def _retry_with_dependents(tx: "Tx", given: "Job") -> Done:
    done = _retry(tx, given)
    others = len(all_after(tx, [given.seq]))
    return done.replace(note=f"{done.note}, and {counted(others, 'job')} after it") if others else done


def _block_dependents(tx: "Tx", meant: "Sequence[Job]") -> None:
    """Let all that run after jobs wait for them again, before these run again; refuse what could not."""
    for job in meant:
        if job.state is State.PROCESSING:
            raise _running(job, "retry")
        _refuse_blocked(job)
    block_dependents(tx, meant)


def _delete(tx: "Tx", job: "Job") -> Done:
    if job.has_dependents and (waiting := edges.waiting_ids(tx, job.seq)):
        raise Refused(
            f"{counted(len(waiting), 'job')} {'waits' if len(waiting) == 1 else 'wait'} for job {job.id}: "
            f"{', '.join(waiting[:SAMPLES])}",
            hint=f"cancel or delete what waits, too, or let it go: queuectl edit {waiting[0]} --after none",
        )
    if not removing.delete(tx, [job.seq]):
        raise _running(job, "delete")
    parking.left_line(tx, [job])
    if job.group_name is not None and job.state not in FINAL:
        follow(tx, look_at_group(tx, job.group_name, has_deaths=False))
    return Done(job=job, note="deleted")


def _unlink(tx: "Tx", meant: "Sequence[Job]") -> None:
    """Let jobs that are deleted together wait for each other no more; one that others wait for is not deleted."""
    going = {job.seq for job in meant if job.state is not State.PROCESSING}
    pairs = edges.waited_for(tx, [job.seq for job in meant if job.has_dependents])
    while staying := {parent for parent, child in pairs if child not in going} & going:
        going -= staying
    edges.drop(tx, sorted(going))


def _hold(tx: "Tx", job: "Job") -> Done:
    if job.held_at is not None:
        return Done(job=job, note="is held already")
    if job.state is State.PROCESSING:
        raise Refused(
            f"job {job.id} is running and cannot be held",
            hint=f"stop it with: queuectl cancel {job.id}, or pause its queue: queuectl queue pause {job.queue}",
        )
    if job.state in FINAL:
        raise Refused(f"job {job.id} is {job.state} already", hint="only a job that waits can be held")
    if job.state is State.BLOCKED:
        moves.hold_blocked(tx, job.seq)
    else:
        moves.move(tx, Move.HOLD, job.seq, State.BLOCKED)
    parking.left_line(tx, [job])
    return Done(job=job, note="held")


def _release(tx: "Tx", job: "Job") -> Done:
    if job.held_at is None:
        raise Refused(f"job {job.id} is not held; it is {job.state}", hint=f"see: queuectl show {job.id}")
    if job.waits_for:
        moves.let_go(tx, job.seq)
        return Done(job=job, note=f"released; it waits for {counted(job.waits_for, 'other job')}")
    is_later = job.run_at is not None and job.run_at > tx.now
    to = State.SCHEDULED if is_later else State.PENDING
    moves.move(tx, Move.UNBLOCK, job.seq, to, run_at=job.run_at)
    tx.wake()
    return Done(job=job, note="released; it waits for its time" if is_later else "released")


def _blocked(job: "Job") -> Refused:
    if job.waits_for:
        what = counted(job.waits_for, "other job")
    else:
        what = "something else" if job.parked_for is None else key_words(job.parked_for)
    return Refused(f"job {job.id} is blocked: it waits for {what}", hint=f"see: queuectl why {job.id}")


def _running(job: "Job", verb: str) -> Refused:
    if job.cancel_requested:
        return Refused(
            f"job {job.id} is just being cancelled", hint=f"wait until it is: queuectl wait {job.id}, then {verb} it"
        )
    return Refused(f"job {job.id} is running", hint=f"cancel it first: queuectl cancel {job.id}, then {verb} it")


CANCEL = Act(
    name="cancel",
    done="cancelled",
    states=frozenset(State) - FINAL,
    on_one=_cancel,
    takes_groups=True,
    is_left_to_workers=True,
)
RETRY = Act(
    name="retry",
    done="retried",
    states=FINAL | WAITING_FOR_TIME,
    unasked=frozenset({State.FAILED, State.DEAD}),
    on_one=_retry,
    is_last=lambda job: job.starved_at is not None,  # it comes back with what had starved it
)
RETRY_WITH_DEPENDENTS = RETRY.replace(
    name="retry --with-dependents", on_one=_retry_with_dependents, before=_block_dependents
)
DELETE = Act(
    name="delete",
    done="deleted",
    states=frozenset(State) - {State.PROCESSING},
    on_one=_delete,
    before=_unlink,
)
HOLD = Act(name="hold", done="held", states=WAITING_FOR_TIME | {State.PENDING, State.BLOCKED}, on_one=_hold)
RELEASE = Act(name="release", done="released", states=frozenset({State.BLOCKED}), on_one=_release)
