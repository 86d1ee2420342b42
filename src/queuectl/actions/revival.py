"""Revival: giving jobs that have ended a fresh life, alone, or with all that run after them."""

from queuectl.actions.dependencies import leave_line
from queuectl.errors import Refused
from queuectl.model.after import EdgeState, Kind
from queuectl.model.states import FINAL, Move, State
from queuectl.model.units import counted
from queuectl.store import edges, groups, jobs, moves, unique_keys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from queuectl.model.job import Job
    from queuectl.store.database import Tx

MOST_AT_ONCE = 100_000
SHOWN = 5


def revive(tx: "Tx", job: "Job") -> "Job":
    """Give a job that has ended a fresh life: now, or when what it waits for has ended; brings back those it starved.

    The caller holds it. Its key must be free, and none of those it runs after may have ended otherwise than it asked.
    """
    if job.waits_for:
        _hold_parents(tx, [job.seq])
    waits_for = _refuse_hopeless(tx, job) if job.waits_for else 0
    if not _takes_key(tx, job):
        raise _key_is_taken(tx, job)
    after = _rise(tx, job, State.BLOCKED if waits_for else State.PENDING)
    bring_back(tx, after)
    return after


def bring_back(tx: "Tx", parent: "Job") -> None:
    """Let those wait again that were cancelled because a job had ended, which now runs again.

    One whose key another has by now, or that runs after another job which ended so, stays cancelled.
    """
    parents = [parent.seq] if parent.has_dependents else []
    while parents:
        # All of one distance at once: many may lead to one job, and that is looked at when all of them are back.
        children = jobs.lock(tx, edges.disappointed(tx, parents))
        waiting = edges.mend(tx, parents)
        starved = [child for child in children if child.seq in waiting and child.starved_at is not None]
        _hold_parents(tx, [child.seq for child in starved])
        stopped = {child for child, _ in edges.hopeless(tx, [child.seq for child in starved])}
        able = [child for child in starved if child.seq not in stopped and _takes_key(tx, child)]
        _rise_to_wait(tx, able)
        parents = [child.seq for child in able if child.has_dependents]


def block_dependents(tx: "Tx", roots: "Sequence[Job]") -> None:
    """Let all that run after some jobs run again after them, in their order; the first of them are left to the caller.

    The caller holds the jobs. One that is running refuses it all, and so does one that also runs after another which
    ended otherwise than it asked, or whose key another has; the caller undoes what was written by then.
    """
    dependents = _lock_all_after(tx, [root.seq for root in roots])
    graph = {one.seq for one in dependents}
    _refuse_running(dependents)
    everyone = {one.seq: one for one in (*roots, *dependents)}
    _hold_parents(tx, [one.seq for one in everyone.values() if one.state in FINAL])
    for child, parent in edges.hopeless(tx, sorted(everyone)):
        if parent not in everyone:
            _refuse_broken(everyone[child], edges.open_parents(tx, child), everyone)
    _refuse_taken_keys(tx, [one for one in everyone.values() if one.state in FINAL])
    edges.reset(tx, sorted(everyone), sorted(graph))
    over = [one for one in dependents if one.state in FINAL]
    for one in over:
        if not _takes_key(tx, one):  # by now: another came between the look and this
            raise _key_is_taken(tx, one)
    _rise_to_wait(tx, over)
    for one in dependents:
        if one.state not in FINAL:
            leave_line(tx, one)


def _lock_all_after(tx: "Tx", seqs: "Sequence[int]") -> "list[Job]":
    """Hold all that run after some jobs, which the caller holds, and return them.

    Looked for again when they are held: until then others could come to run after them.
    """
    dependents: list[Job] = []
    while (graph := all_after(tx, seqs)) != {one.seq for one in dependents}:
        dependents = jobs.lock(tx, sorted(graph))
    return dependents


def _hold_parents(tx: "Tx", children: "Sequence[int]") -> None:
    """Hold those that jobs which are over would wait for again: else one could be deleted meanwhile, as unneeded."""
    jobs.lock(tx, edges.unmet_parents(tx, children))


def _rise(tx: "Tx", job: "Job", to: State) -> "Job":
    after = moves.move(tx, Move.REVIVE, job.seq, to)
    assert after is not None, f"job {job.seq} is held, and was {job.state}"
    _reopen_groups(tx, [job])
    tx.wake()
    return after


def _rise_to_wait(tx: "Tx", risen: "Sequence[Job]") -> None:
    """Give jobs a fresh life that begins with waiting for others; a time that is still to come is kept."""
    edges.satisfy_gone(tx, [job.seq for job in risen])
    moves.revive_to_wait(tx, [job.seq for job in risen])
    _reopen_groups(tx, risen)


def _reopen_groups(tx: "Tx", risen: "Sequence[Job]") -> None:
    for name in sorted({job.group_name for job in risen if job.group_name is not None}):
        groups.reopen(tx, name)


def _refuse_taken_keys(tx: "Tx", ended: "Sequence[Job]") -> None:
    """Refuse jobs of which another has the key, or two the same."""
    keys: set[str] = set()
    for job in ended:
        if job.unique_key is not None:
            if job.unique_key in keys or unique_keys.holder(tx, job.unique_key) not in (None, job.seq):
                raise _key_is_taken(tx, job)
            keys.add(job.unique_key)


def _is_hopeless(link: edges.Link) -> bool:
    return link.edge_state is EdgeState.BROKEN or (link.job_state is None and link.kind is not Kind.ANY)


def _refuse_hopeless(tx: "Tx", job: "Job") -> int:
    """Return how many a job still waits for; raise where one of them ended otherwise than it asked, or is gone.

    One that is gone has ended, and whoever asked for no more has what it asked for.
    """
    links = edges.open_parents(tx, job.seq)
    _refuse_broken(job, links)
    for link in links:
        if link.job_state is None:
            edges.satisfy(tx, link.seq, [job.seq])
    return sum(link.job_state is not None for link in links)


def all_after(tx: "Tx", seqs: "Sequence[int]") -> set[int]:
    """Return the numbers of all that run after some jobs, near and far."""
    found: set[int] = set()
    edge = set(seqs)
    while edge:
        edge = edges.children_seqs(tx, sorted(edge)) - found
        found |= edge
        if len(found) > MOST_AT_ONCE:
            raise Refused(
                f"more than {MOST_AT_ONCE} jobs run after these", hint="retry them in parts: by id, range or filter"
            )
    return found


def _refuse_running(dependents: "Sequence[Job]") -> None:
    running = [each.id for each in dependents if each.state is State.PROCESSING]
    if running:
        verb = "runs" if len(running) == 1 else "run"
        raise Refused(
            f"{counted(len(running), 'dependent')} {verb} just now: {', '.join(running[:SHOWN])}",
            hint=f"wait until they have ended, or cancel them first: queuectl cancel {' '.join(running[:SHOWN])}",
        )


def _refuse_broken(job: "Job", links: "Sequence[edges.Link]", but: "Collection[int]" = ()) -> None:
    """Refuse to revive a job that runs after one which ended otherwise than it asked: it could never run."""
    for link in links:
        if not _is_hopeless(link) or link.seq in but:
            continue
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
