"""Revival: giving jobs that have ended a fresh life, alone, or with all that run after them."""

from queuectl.errors import Refused
from queuectl.model.states import FINAL, Move, State
from queuectl.model.units import counted
from queuectl.store import edges, groups, jobs, moves, parking, unique_keys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from queuectl.model.job import Job
    from queuectl.store.database import Tx

MOST_AT_ONCE = 100_000


def revive(tx: "Tx", job: "Job") -> "Job":
    """Give a job that has ended a fresh life: now, or when what it waits for has ended; brings back those it starved.

    The caller holds it. Its key must be free, and none of those it runs after may have ended otherwise than it asked.
    """
    if job.waits_for:
        _refuse_broken(tx, job)
    if not _takes_key(tx, job):
        raise _key_is_taken(tx, job)
    after = _rise(tx, job)
    bring_back(tx, after)
    return after


def bring_back(tx: "Tx", parent: "Job") -> "list[Job]":
    """Let those wait again that were cancelled because a job had ended, which now runs again; return them.

    One whose key another has by now, or that runs after another job which ended so, stays cancelled.
    """
    back: list[Job] = []
    parents = [parent]
    while parents:
        current = parents.pop()
        children = edges.mend(tx, current.seq) if current.has_dependents else []
        for child in jobs.lock(tx, children):
            if child.starved_at is None or edges.broken_parents(tx, child.seq) or not _takes_key(tx, child):
                continue
            revived = _rise(tx, child)
            back.append(revived)
            parents.append(revived)
    return back


def revive_with_dependents(tx: "Tx", job: "Job") -> "list[Job]":
    """Run a job again, and after it all that run after it, in their order; return those.

    The caller holds the job. One that is running refuses it all, and so does one that also runs after another which
    ended otherwise than it asked.
    """
    graph = _all_after(tx, job.seq)
    dependents = [each for each in jobs.lock(tx, sorted(graph)) if each.seq != job.seq]
    _refuse_running(job, dependents)
    within = {job.seq, *graph}
    for each in dependents:
        parents = edges.parent_seqs(tx, [each.seq]) & within
        edges.reset(tx, each.seq, parents)
        _refuse_broken(tx, each)
    for each in dependents:
        if each.state in FINAL:
            if not _takes_key(tx, each):
                raise _key_is_taken(tx, each)
            _rise(tx, each, to=State.BLOCKED)
        elif each.state is not State.BLOCKED:
            moves.wait_again(tx, each.seq)
            tx.try_lock(each.limit_list)
            parking.left_line(tx, [each])
    return dependents


def _rise(tx: "Tx", job: "Job", to: State | None = None) -> "Job":
    to = to or (State.BLOCKED if job.waits_for else State.PENDING)
    after = moves.move(tx, Move.REVIVE, job.seq, to)
    assert after is not None, f"job {job.seq} is held, and was {job.state}"
    if job.group_name is not None:
        groups.reopen(tx, job.group_name)
    tx.wake()
    return after


def _all_after(tx: "Tx", seq: int) -> set[int]:
    """Return the numbers of all that run after a job, near and far."""
    found: set[int] = set()
    edge = {seq}
    while edge:
        edge = edges.children_seqs(tx, sorted(edge)) - found
        found |= edge
        if len(found) > MOST_AT_ONCE:
            raise Refused(
                f"more than {MOST_AT_ONCE} jobs run after job {seq}", hint="retry them in parts: by id, range or filter"
            )
    return found


def _refuse_running(job: "Job", dependents: "Sequence[Job]") -> None:
    running = [each.id for each in dependents if each.state is State.PROCESSING]
    if running:
        raise Refused(
            f"{counted(len(running), 'job')} that run after {job.id} are running: {', '.join(running[:5])}",
            hint=f"wait for them, or cancel them first: queuectl cancel {' '.join(running[:5])}",
        )


def _refuse_broken(tx: "Tx", job: "Job") -> None:
    """Refuse to revive a job that runs after one which ended otherwise than it asked: it could never run."""
    for link in edges.broken_parents(tx, job.seq):
        without = f"to run it without that: queuectl edit {job.id} --after none, then queuectl retry {job.id}"
        if link.job_state is None:
            raise Refused(f"job {job.id} was to run after job {link.id}, which is gone", hint=without)
        raise Refused(
            f"job {job.id} was to run after job {link.id}, which is {link.job_state}",
            hint=f"retry that one, and this comes back with it: queuectl retry {link.id}; {without}",
        )


def _takes_key(tx: "Tx", job: "Job") -> bool:
    """Let a job have its key again; False means that another has it now."""
    key = job.unique_key
    return key is None or unique_keys.take(tx, key, job.seq, job.unique_for_ms, from_=job.seq)


def _key_is_taken(tx: "Tx", job: "Job") -> Refused:
    holder = jobs.get(tx, unique_keys.holder(tx, job.unique_key or "") or 0)
    name = "another job" if holder is None else f"job {holder.id}"
    return Refused(
        f"{name} has the key {job.unique_key!r} of job {job.id} now",
        hint="retry this one when that has ended" if holder is None else f"wait for it: queuectl wait {holder.id}",
    )
