"""Regroup: acts on a group as a whole: finding it by name, and letting it go on after it failed or was stopped."""

from collections import Counter

from queuectl.actions import acts, verbs
from queuectl.errors import NotFound, Refused, did_you_mean
from queuectl.model.value import Value
from queuectl.store import audit, group_views, groups, jobs, moves

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from queuectl.model.group import Group
    from queuectl.model.job import Job
    from queuectl.model.states import State
    from queuectl.store.database import Database, Tx

PAGE = 500
NAMED = 5


class Regrouped(Value):
    """What a retry of a group came to."""

    retried: "dict[State, int]"
    """How many run again, by the state they were in."""
    refused: "dict[State, int]"
    """How many do not: what they run after is dead or gone, or another has their key by now."""
    why: str
    """Why the first of those does not, and what to do; empty where all run again."""
    stopping: int
    """How many still run though they are to be cancelled."""
    was_stopped: bool

    @property
    def count(self) -> int:
        """How many run again."""
        return sum(self.retried.values())


def refuse_unknown_group(tx: "Tx", name: str) -> None:
    """Raise for a group nobody knows, with the nearest that there is."""
    if not group_views.is_known(tx, name):
        known = groups.names(tx, group_views.NEIGHBOURS)
        hint = f"the newest are: {', '.join(known[:NAMED])}" if known else "no job was ever added with --group"
        raise NotFound(f"no group {name!r}{did_you_mean(name, known)}", hint=hint)


def retry_group(database: "Database", name: str, *, who: str, most: int | None = None) -> Regrouped:
    """Run the dead and cancelled jobs of a group again and lift its stop; raises where they are more than `most`.

    All in one transaction, however many: between two the dead that are not yet retried would stop the group again, or
    the last of the first be taken for the last of all; and who is killed between them would leave it half open.
    """

    def work(tx: "Tx") -> Regrouped:
        before = _known(tx, name)
        seqs = group_views.failed_seqs(tx, name)
        acts.refuse_more(len(seqs), most)
        acts.lock_ahead(tx, seqs)
        retried, refused, why = _retry_all(tx, seqs)
        (groups.reopen if retried else groups.lift_stop)(tx, name)
        if retried or before.stopped_at is not None:
            which = f"{min(seqs)} to {max(seqs)}: --group {name}" if seqs else f"--group {name}"
            audit.record(tx, who, verbs.RETRY.name, which, sum(retried.values()))
            tx.tell()
        return Regrouped(
            retried=retried,
            refused=dict(Counter(refused.values())),
            why=why,
            stopping=group_views.stopping(tx, name),
            was_stopped=before.stopped_at is not None,
        )

    return database.write(work)


def _retry_all(tx: "Tx", seqs: "Sequence[int]") -> "tuple[dict[State, int], dict[int, State], str]":
    """Retry jobs; return how many by their state before, those that are refused, by number, and why the first is."""
    retried: Counter[State] = Counter()
    others: list[Job] = []
    for start in range(0, len(seqs), PAGE):
        page = [job for job in jobs.lock(tx, seqs[start : start + PAGE]) if job.state in group_views.FAILED]
        plain = [job for job in page if not (job.waits_for or job.has_dependents or job.unique_key is not None)]
        moves.revive(tx, [job.seq for job in plain])
        retried.update(job.state for job in plain)
        others += [job for job in page if job.waits_for or job.has_dependents or job.unique_key is not None]
    if retried:
        tx.wake()
    refused = {job.seq: job.state for job in others}
    left, why = 0, ""
    while others and len(others) != left:  # again: one may be refused because a later one has to go first
        left = len(others)
        whys = {job.seq: _why_refused(tx, job) for job in verbs.RETRY.ordered(others)}
        others = [job for job in others if whys[job.seq]]
        why = next(filter(None, whys.values()), "")
    kept = {job.seq for job in others}
    retried.update(state for seq, state in refused.items() if seq not in kept)
    return dict(retried), {seq: state for seq, state in refused.items() if seq in kept}, why


def _why_refused(tx: "Tx", job: "Job") -> str:
    """Retry a job; return nothing, or why it cannot be and what to do."""
    try:
        verbs.RETRY.on_one(tx, job)
    except Refused as error:
        return f"{error.message}; {error.hint}"
    return ""


def _known(tx: "Tx", name: str) -> "Group":
    refuse_unknown_group(tx, name)
    view = group_views.view(tx, name)
    assert view is not None, f"group {name} is known"
    return view.group
