"""Waiting for a group: until none of its jobs is unfinished, also of those that are added meanwhile.

A look is a probe of an index for each state, however many jobs there are; only who shows their progress counts them.
"""

import time
from functools import partial

from queuectl.model.states import FINAL
from queuectl.model.value import Value
from queuectl.runtime.wait import patiently
from queuectl.runtime.watch import Watch
from queuectl.store import group_views, groups

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from queuectl.actions.connect import Target
    from queuectl.model.states import State
    from queuectl.runtime.wait import Progress
    from queuectl.store.database import Database, Tx
    from queuectl.store.group_views import GroupView

LOOK_SHARE = 20  # counting 100,000 takes 10 ms and more: then at most a twentieth of the time goes into it
LEAST_S = 0.1  # between two pictures
REDRAW_EVERY_S = 1.0


class GroupWaited(Value):
    """How a wait ended: the group as it stands then, or None when all its jobs are gone; and if the time was up."""

    view: "GroupView | None"
    is_timed_out: bool = False


def wait_for_group(
    target: "Target",
    database: "Database",
    name: str,
    *,
    timeout_s: float | None = None,
    is_any: bool = False,
    on_trouble: "Callable[[str], None]" = lambda _: None,
    progress: "Progress | None" = None,
) -> GroupWaited:
    """Wait until every job of a group has ended, or with `is_any` one, and return how it stands."""
    until = float("inf") if timeout_s is None else time.monotonic() + timeout_s

    def wait() -> GroupWaited | None:
        with Watch(target, database) as watch:
            _until_enough(watch, database, name, until, is_any, progress)
        view = database.read(lambda tx: group_views.view(tx, name))
        is_enough = view is None or (view.ended > 0 if is_any and view.total else view.is_over)
        if is_enough or time.monotonic() >= until:
            return GroupWaited(view=view if view is not None and view.total else None, is_timed_out=not is_enough)
        return None  # a job was added or revived just now

    return patiently(wait, until, on_trouble)


def _until_enough(
    watch: Watch, database: "Database", name: str, until: float, is_any: bool, progress: "Progress | None"
) -> None:
    counts: dict[State, int] = {}
    is_changed, is_over = True, False
    while True:
        began = time.monotonic()
        if is_changed and progress is None:
            is_over = database.read(partial(_is_over, name, is_any))
        elif is_changed:
            counts = database.read(lambda tx: groups.counts(tx, name))
            unfinished = sum(number for state, number in counts.items() if state not in FINAL)
            is_over = unfinished < sum(counts.values()) or not counts if is_any else not unfinished
        if progress is not None:
            progress(counts)
        now = time.monotonic()
        if is_over or now >= until:
            return
        if progress is None:
            is_changed = watch.wait(until)
        else:
            pause = max(LEAST_S, LOOK_SHARE * (now - began))
            is_changed = watch.wait(min(until, now + max(REDRAW_EVERY_S, pause)), not_before=now + pause)


def _is_over(name: str, is_any: bool, tx: "Tx") -> bool:
    if not is_any:
        return not groups.has_unfinished(tx, name)
    return group_views.has_any(tx, name, tuple(FINAL)) or not groups.has_unfinished(tx, name)
