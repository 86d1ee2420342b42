"""Endings: what follows when jobs have ended: those that waited for them, the keys they had, the groups they are of.

Whoever brings a job to a final state calls `follow` in the same transaction. A plain job has none of these, and costs
nothing here.
"""

import json

from queuectl.model.after import OnDead, is_met
from queuectl.model.group import ENDED_VARIABLES, GROUP_VARIABLE
from queuectl.model.job import JobSpec, dumps
from queuectl.model.states import FINAL, State
from queuectl.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from queuectl.model.group import Group
    from queuectl.model.job import Job
    from queuectl.store.database import Tx

PAGE = 500
ALL = 1 << 31
STOPPED_WORDS = "cancelled: too many of its group failed"


class Ending(Value):
    """A job that has ended, as far as those that wait for it care."""

    seq: int
    id: str
    state: State


def follow(tx: "Tx", changed: "Iterable[Job]") -> None:
    """Let everything follow from what became of jobs; those that have not ended are passed by."""
    ended = [job for job in changed if job.state in FINAL and has_ties(job)]
    groups_to_see: set[str] = set()
    with_deaths: set[str] = set()
    while ended:
        if any(job.unique_key is not None for job in ended):
            from queuectl.store import unique_keys  # few jobs have one

            unique_keys.let_go(tx, ended)
        groups_to_see.update(job.group_name for job in ended if job.group_name is not None)
        with_deaths.update(job.group_name for job in ended if job.group_name is not None and job.state is State.DEAD)
        starved = answer(tx, [Ending(seq=job.seq, id=job.id, state=job.state) for job in ended if job.has_dependents])
        ended = [job for job in starved if has_ties(job)]
        if not ended:
            ended = [
                job for name in sorted(groups_to_see) for job in look_at_group(tx, name, has_deaths=name in with_deaths)
            ]
            groups_to_see.clear()


def hold_groups(tx: "Tx", names: "Collection[str]") -> None:
    """Hold groups before any of their jobs: who stops one holds it and then its jobs, and must not be waited for."""
    if names:
        from queuectl.store import groups  # few jobs are of one

        groups.hold(tx, names)


def answer(tx: "Tx", ended: "Sequence[Ending]") -> "list[Job]":
    """Tell those that wait for jobs how these ended; return those that are cancelled for it."""
    starved: list[Job] = []
    for parent in ended:
        starved += _answer(tx, parent)
    return starved


def _answer(tx: "Tx", parent: Ending) -> "list[Job]":
    from queuectl.store import edges, moves  # a plain job has nobody to tell

    waiting = edges.waiting_children(tx, parent.seq)
    policies = edges.policies(tx, [child for child, _ in waiting])
    met, broken = [], []
    for child, kind in waiting:
        policy = policies.get(child)
        if is_met(kind, parent.state) or policy == OnDead.RUN:
            met.append(child)
        elif policy != OnDead.KEEP:
            broken.append(child)
    if met and moves.free(tx, edges.satisfy(tx, parent.seq, met)):
        tx.wake()
    if not broken:
        return []
    starved = edges.break_off(tx, parent.seq, broken)
    return moves.starve(tx, starved, f"job {parent.id}, which it was to run after, is {parent.state}")


def has_ties(job: "Job") -> bool:
    """Whether anything follows from its end."""
    return bool(job.has_dependents or job.unique_key is not None or job.group_name is not None)


def look_at_group(tx: "Tx", name: str, *, has_deaths: bool) -> "list[Job]":
    """Cancel the rest of a group in which too many have failed, or see that all have ended; return the cancelled."""
    from queuectl.store import groups  # few jobs are of one

    group = groups.get(tx, name)
    if group is None or not (group.on_done is not None or (has_deaths and group.max_failures is not None)):
        return []
    group = groups.get_for_update(tx, name)  # held before it is counted: else two last jobs would not see each other
    if group is None:
        return []
    cancelled: list[Job] = []
    most = group.most_failures if has_deaths and group.stopped_at is None else None
    if most is not None and groups.failures(tx, name, most + 1) > most:
        groups.note_stopped(tx, name)
        cancelled = _cancel_rest(tx, name)
    if group.on_done is not None and group.done_at is None and not groups.has_unfinished(tx, name):
        groups.note_done(tx, name)
        _add_closing_job(tx, group)
    return cancelled


def _cancel_rest(tx: "Tx", name: str) -> "list[Job]":
    """Cancel every job of a group that has not ended; those that run are stopped by their workers."""
    from queuectl.store import groups, jobs, moves, parking

    cancelled: list[Job] = []
    rest = groups.unfinished(tx, name, ALL)
    for start in range(0, len(rest), PAGE):
        held = jobs.lock(tx, rest[start : start + PAGE])
        gone = moves.cancel(tx, [job.seq for job in held if job.state is not State.PROCESSING], STOPPED_WORDS)
        for job in held:
            if job.state is State.PROCESSING:
                moves.request_cancel(tx, job.seq)
        tx.try_lock(key for job in held for key in job.limit_list)
        parking.left_line(tx, [job for job in held if job.state is State.PENDING])
        cancelled += gone
    tx.wake()
    return [job for job in cancelled if has_ties(job)]


def _add_closing_job(tx: "Tx", group: "Group") -> None:
    """Add the job that was asked for when all of a group have ended."""
    from queuectl.actions.submit import add
    from queuectl.store import groups

    counts = groups.counts(tx, group.name)
    env = {variable: str(counts.get(state, 0)) for state, variable in ENDED_VARIABLES.items()}
    spec = JobSpec(**json.loads(group.on_done or "{}"), env={GROUP_VARIABLE: group.name, **env})
    add(tx, [spec], who="group", why=f" (all of group {group.name} have ended)")


def closing_text(spec: JobSpec) -> str | None:
    """Return the job that is to be added when all of a group have ended, as the group keeps it."""
    if spec.on_group_done is None:
        return None
    return dumps({"command": spec.on_group_done, "cwd": spec.cwd, "queue": spec.queue})
