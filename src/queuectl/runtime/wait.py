"""Wait: until jobs have ended, woken by whoever ends them. A store that is away for a while is waited for, too."""

import time
from collections import Counter
from functools import partial

from queuectl.errors import StoreBusy, StoreUnreachable
from queuectl.model.states import FINAL, State
from queuectl.model.value import Value
from queuectl.runtime.watch import Watch
from queuectl.store import jobs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import TypeVar

    from queuectl.actions.connect import Target
    from queuectl.model.job import Job
    from queuectl.store.database import Database, Tx

    Progress = Callable[[Mapping[State, int]], None]
    """Is shown how many of the jobs are in each state, again and again."""
    Result = TypeVar("Result")

TROUBLE_PAUSE_S = 1.0
LOOK_SHARE = 5  # of a long list, a look takes a while: then at most a fifth of the time is spent looking
REDRAW_EVERY_S = 1.0


class Waited(Value):
    """How a wait ended: the jobs as they stand then, those that were deleted, and whether the time was up before."""

    jobs: "tuple[Job, ...]"
    deleted: tuple[int, ...] = ()
    is_timed_out: bool = False

    @property
    def ended(self) -> "list[Job]":
        """Those that have ended for good."""
        return [job for job in self.jobs if job.state in FINAL]

    @property
    def failed(self) -> "list[Job]":
        """Those that ended and did not complete."""
        return [job for job in self.ended if job.state is not State.COMPLETED]

    @property
    def remaining(self) -> "list[Job]":
        """Those that have not ended."""
        return [job for job in self.jobs if job.state not in FINAL]


def wait_for_all(
    target: "Target",
    database: "Database",
    seqs: "Sequence[int]",
    *,
    timeout_s: float | None = None,
    on_trouble: "Callable[[str], None]" = lambda _: None,
    progress: "Progress | None" = None,
) -> Waited:
    """Wait until every one of these jobs has ended for good or is gone."""
    return _wait(target, database, seqs, timeout_s, on_trouble, lambda waiting: not waiting, progress)


def wait_for_any(
    target: "Target",
    database: "Database",
    seqs: "Sequence[int]",
    *,
    timeout_s: float | None = None,
    on_trouble: "Callable[[str], None]" = lambda _: None,
) -> Waited:
    """Wait until the first of these jobs has ended for good or is gone."""
    return _wait(target, database, seqs, timeout_s, on_trouble, lambda waiting: len(waiting) < len(set(seqs)), None)


def patiently(wait: "Callable[[], Result | None]", until: float, on_trouble: "Callable[[str], None]") -> "Result":
    """Call again and again until something comes of it; a store that is away for a while is waited for, too."""
    is_told = False
    while True:
        try:
            result = wait()
            if result is not None:
                return result
        except (StoreUnreachable, StoreBusy) as error:
            if time.monotonic() + TROUBLE_PAUSE_S >= until:
                raise
            if not is_told:
                on_trouble(error.message)
            is_told = True
            time.sleep(TROUBLE_PAUSE_S)


def _wait(
    target: "Target",
    database: "Database",
    seqs: "Sequence[int]",
    timeout_s: float | None,
    on_trouble: "Callable[[str], None]",
    is_enough: "Callable[[Sequence[int]], bool]",
    progress: "Progress | None",
) -> Waited:
    until = float("inf") if timeout_s is None else time.monotonic() + timeout_s
    waiting = list(dict.fromkeys(seqs))
    ended: dict[int, State] = {}

    def wait() -> Waited | None:
        nonlocal waiting
        for seq in waiting:
            ended.pop(seq, None)
        waiting = _until_enough(target, database, waiting, ended, until, is_enough, progress)
        waited = _result(database, seqs)
        waiting = [job.seq for job in waited.remaining]  # one that ended may have been given a fresh life since
        if is_enough(waiting) or time.monotonic() >= until:
            return waited.replace(is_timed_out=not is_enough(waiting))
        return None

    return patiently(wait, until, on_trouble)


def _until_enough(
    target: "Target",
    database: "Database",
    waiting: "list[int]",
    ended: "dict[int, State]",
    until: float,
    is_enough: "Callable[[Sequence[int]], bool]",
    progress: "Progress | None",
) -> "list[int]":
    """Look at those that have not ended again and again; return who is left when that is enough, or at the time."""
    with Watch(target, database) as watch:
        while True:
            began = time.monotonic()
            states = database.read(partial(_states, waiting))
            ended |= {seq: state for seq, state in states.items() if state in FINAL}
            waiting = [seq for seq in waiting if seq in states and states[seq] not in FINAL]
            if progress is not None:
                progress(Counter([*ended.values(), *(states[seq] for seq in waiting)]))
            now = time.monotonic()
            if is_enough(waiting) or now >= until:
                return waiting
            redraw_at = until if progress is None else now + REDRAW_EVERY_S
            watch.wait(min(until, redraw_at), not_before=now + LOOK_SHARE * (now - began))


def _states(seqs: "Sequence[int]", tx: "Tx") -> dict[int, State]:
    return jobs.states_by_number(tx, seqs)


def _result(database: "Database", seqs: "Sequence[int]") -> Waited:
    found = database.read(lambda tx: jobs.by_seqs(tx, list(dict.fromkeys(seqs))))
    known = {job.seq for job in found}
    return Waited(jobs=tuple(found), deleted=tuple(seq for seq in dict.fromkeys(seqs) if seq not in known))
