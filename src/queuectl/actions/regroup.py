"""Regroup: acts on a group as a whole: finding it by name, and letting it go on after it failed or was stopped."""

import time
from collections import Counter
from functools import partial

from queuectl.actions import acts, pace
from queuectl.actions.endings import follow, look_at_group
from queuectl.errors import NotFound, Refused, did_you_mean
from queuectl.model.value import Value
from queuectl.store import audit, group_views, groups, jobs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from queuectl.model.group import Group
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


def retry_group(
    database: "Database", name: str, *, who: str, sleep: "Callable[[float], object]" = time.sleep
) -> Regrouped:
    """Run the dead and cancelled jobs of a group again, a page per transaction, and lift its stop.

    The stop is lifted, and its end told of, only when all pages are through: else the dead ones that are not retried
    yet would stop it again, or the last of the first page be taken for the last of the group.
    """
    before, left = database.read(lambda tx: (_known(tx, name), group_views.failed_seqs(tx, name)))
    retried: dict[State, int] = {}
    refused: dict[int, State] = {}
    try:
        while left:
            refused = _retry_all(database, before, left, retried, who, sleep)
            if len(refused) == len(left):
                break
            left = list(refused)  # again: one may have been refused because a later one had to go first
    finally:
        stopping = database.write(lambda tx: _go_on(tx, name, is_changed=bool(retried), who=who))
    return Regrouped(
        retried=retried,
        refused=dict(Counter(refused.values())),
        stopping=stopping,
        was_stopped=before.stopped_at is not None,
    )


def _known(tx: "Tx", name: str) -> "Group":
    refuse_unknown_group(tx, name)
    view = group_views.view(tx, name)
    assert view is not None, f"group {name} is known"
    return view.group


def _retry_all(
    database: "Database",
    before: "Group",
    seqs: "Sequence[int]",
    retried: "dict[State, int]",
    who: str,
    sleep: "Callable[[float], object]",
) -> "dict[int, State]":
    """Retry jobs page by page, add to the count of each state, and return those that are refused, by number."""
    refused: dict[int, State] = {}
    began = 0.0
    for start in range(0, len(seqs), PAGE):
        if start:
            pace.rest(began, sleep)
        began = time.monotonic()
        done, left = database.write(partial(_retry_page, before, seqs[start : start + PAGE], who))
        refused |= left
        for state, number in done.items():
            retried[state] = retried.get(state, 0) + number
    return refused


def _retry_page(
    before: "Group", page: "Sequence[int]", who: str, tx: "Tx"
) -> "tuple[dict[State, int], dict[int, State]]":
    done: dict[State, int] = {}
    refused: dict[int, State] = {}
    acts.lock_ahead(tx, page)
    for job in acts.RETRY.ordered(jobs.lock(tx, page)):
        if job.state not in group_views.FAILED:
            continue  # somebody else was quicker
        try:
            acts.RETRY.on_one(tx, job)
            done[job.state] = done.get(job.state, 0) + 1
        except Refused:
            refused[job.seq] = job.state
    groups.keep_closed(tx, before)
    which = f"{min(page)} to {max(page)}: --group {before.name}"
    audit.record(tx, who, acts.RETRY.name, which, sum(done.values()))
    tx.tell()
    return done, refused


def _go_on(tx: "Tx", name: str, *, is_changed: bool, who: str) -> int:
    """Let a group go on, and look whether it ended or failed again meanwhile; return how many are to stop."""
    group = groups.get_for_update(tx, name)
    if group is not None and is_changed:
        groups.reopen(tx, name)
        follow(tx, look_at_group(tx, name, has_deaths=True))
        tx.tell()
    elif group is not None and group.stopped_at is not None:
        groups.lift_stop(tx, name)
        audit.record(tx, who, acts.RETRY.name, f"--group {name}", 0)
    return group_views.stopping(tx, name)
