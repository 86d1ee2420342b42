"""Waiting: what a job that runs after others waits for, and how one comes back that was cancelled because of them."""

from queuectl.actions.scene import NAMED, Gate
from queuectl.model.after import EdgeState, OnDead, parent_text
from queuectl.model.states import FINAL, State
from queuectl.model.units import counted
from queuectl.store import edges, jobs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from queuectl.model.job import Job
    from queuectl.store.database import Tx
    from queuectl.store.edges import Link


def dependencies_gate(tx: "Tx", job: "Job", name: str) -> Gate:
    """Return the gate of the jobs that one runs after."""
    if not job.waits_for:
        count = len(edges.of_child(tx, job.seq))
        words = f"{_all(count)} it runs after ended as it asked" if count else "it runs after no other job"
        return Gate(name=name, is_open=True, words=words)
    parents = edges.parents_of(tx, job.seq)
    waiting = [link for link in parents if link.edge_state is not EdgeState.SATISFIED]
    over = [link for link in waiting if link.job_state is None or link.job_state in FINAL]
    if over:
        return _kept(job, name, over)
    words = f"{links_text(waiting)}{_of(waiting, parents)}"
    return Gate(
        name=name,
        is_open=False,
        words=words,
        reason=f"{counted(len(waiting), 'other job')}: {links_text(waiting)}",
        jobs=tuple(link.id for link in waiting),
        ends="when it has ended" if len(waiting) == 1 else "when all of them have ended",
        remedy=without(job),
    )


def _kept(job: "Job", name: str, over: "Sequence[Link]") -> Gate:
    """Return the gate of a job that waits for others which ended otherwise than it asked, and is kept all the same."""
    words = f"{links_text(over)} ended otherwise than it asked, and it is kept ({OnDead.KEEP})"
    return Gate(
        name=name,
        is_open=False,
        words=words,
        reason=f"{links_text(over)}, which ended otherwise than it asked; it is kept",
        jobs=tuple(link.id for link in over if link.job_state is not None),
        remedy=f"{_mending(over, job)}; to give it up: queuectl cancel {job.id}",
    )


def how_it_comes_back(tx: "Tx", job: "Job") -> str | None:
    """Say what to type so that a job runs which was cancelled because of one it was to run after; None for others."""
    if job.starved_at is None:
        return None
    culprits = _culprits(tx, job)
    return _mending(culprits, job) if culprits else f"queuectl retry {job.id}"


def _culprits(tx: "Tx", job: "Job") -> "list[Link]":
    """Return the jobs whose end led to that of one: not those between, which come back with them."""
    found: dict[int, Link] = {}
    seen, ahead = {job.seq}, [job.seq]
    while ahead:
        links = [link for seq in ahead for link in _broken(tx, seq) if link.seq not in seen]
        starved = {each.seq for each in jobs.by_seqs(tx, [link.seq for link in links]) if each.starved_at is not None}
        seen.update(link.seq for link in links)
        found |= {link.seq: link for link in links if link.seq not in starved}
        ahead = sorted(starved)
    return [found[seq] for seq in sorted(found)]


def _broken(tx: "Tx", child: int) -> "list[Link]":
    return [link for link in edges.parents_of(tx, child) if link.edge_state is EdgeState.BROKEN]


def without(job: "Job") -> str:
    """Return what to type so that a job waits for no other."""
    return f"queuectl edit {job.id} --after none"


def _mending(over: "Sequence[Link]", job: "Job") -> str:
    """Return what to type where others ended otherwise than a job asked: run them again, or run it without them.

    One that is gone cannot run again, and one that completed has nothing to be mended.
    """
    retry = f" && queuectl retry {job.id}" if job.state in FINAL else ""
    there = [link.id for link in over if link.job_state in (State.DEAD, State.CANCELLED)]
    if len(there) < len(over) or len(there) > NAMED:
        return f"{without(job)}{retry}"
    return f"queuectl retry {' '.join(there)} (or, without {_them(there)}: {without(job)}{retry})"


def links_text(links: "Sequence[Link]") -> str:
    """Name jobs with their states: `a (pending), any:b (dead) and 9 more`."""
    named = ", ".join(f"{parent_text(link.kind, link.id)} ({link.job_state or 'gone'})" for link in links[:NAMED])
    return f"{named} and {len(links) - NAMED:,} more" if len(links) > NAMED else named


def _of(waiting: "Sequence[Link]", parents: "Sequence[Link]") -> str:
    return "" if len(waiting) == len(parents) else f"; {len(waiting):,} of {len(parents):,} it runs after"


def _all(count: int) -> str:
    return "the job" if count == 1 else f"all {count:,} jobs"


def _them(names: "Sequence[str]") -> str:
    return "it" if len(names) == 1 else "them"
