"""Wait: until jobs have ended, woken by whoever ends them. A store that is away for a while is waited for, too."""

import time
from functools import partial

from queuectl.errors import StoreBusy, StoreUnreachable
from queuectl.model.states import FINAL, State
from queuectl.model.value import Value
from queuectl.runtime.watch import Watch
from queuectl.store import jobs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from queuectl.actions.connect import Target
    from queuectl.model.job import Job
    from queuectl.store.database import Database, Tx

TROUBLE_PAUSE_S = 1.0
LOOK_SHARE = 5  # of a long list, a look takes a while: then at most a fifth of the time is spent looking


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
) -> Waited:
    """Wait until every one of these jobs has ended for good or is gone."""
    return _wait(target, database, seqs, timeout_s, on_trouble, lambda waiting: not waiting)


def wait_for_any(
    target: "Target",
    database: "Database",
    seqs: "Sequence[int]",
    *,
    timeout_s: float | None = None,
    on_trouble: "Callable[[str], None]" = lambda _: None,
) -> Waited:
    """Wait until the first of these jobs has ended for good or is gone."""
    return _wait(target, database, seqs, timeout_s, on_trouble, lambda waiting: len(waiting) < len(set(seqs)))


def _wait(
    target: "Target",
    database: "Database",
    seqs: "Sequence[int]",
    timeout_s: float | None,
    on_trouble: "Callable[[str], None]",
    is_enough: "Callable[[Sequence[int]], bool]",
) -> Waited:
    until = float("inf") if timeout_s is None else time.monotonic() + timeout_s
    waiting = list(dict.fromkeys(seqs))
    is_told = False
    while True:
        try:
            waiting = _until_enough(target, database, waiting, until, is_enough)
            waited = _result(database, seqs)
            waiting = [job.seq for job in waited.remaining]  # one that ended may have been given a fresh life since
            if is_enough(waiting) or time.monotonic() >= until:
                return waited.replace(is_timed_out=not is_enough(waiting))
        except (StoreUnreachable, StoreBusy) as error:
            if time.monotonic() + TROUBLE_PAUSE_S >= until:
                raise
            if not is_told:
                on_trouble(error.message)
            is_told = True
            time.sleep(TROUBLE_PAUSE_S)


def _until_enough(
    target: "Target",
    database: "Database",
    waiting: "list[int]",
    until: float,
    is_enough: "Callable[[Sequence[int]], bool]",
) -> "list[int]":
    """Look at those that have not ended again and again; return who is left when that is enough, or at the time."""
    with Watch(target, database) as watch:
        while True:
            began = time.monotonic()
            states = database.read(partial(_states, waiting))
            waiting = [seq for seq in waiting if seq in states and states[seq] not in FINAL]
            now = time.monotonic()
            if is_enough(waiting) or now >= until:
                return waiting
            watch.wait(until, not_before=now + LOOK_SHARE * (now - began))


def _states(seqs: "Sequence[int]", tx: "Tx") -> dict[int, State]:
    return jobs.states_by_number(tx, seqs)


def _result(database: "Database", seqs: "Sequence[int]") -> Waited:
    found = database.read(lambda tx: jobs.by_seqs(tx, list(dict.fromkeys(seqs))))
    known = {job.seq for job in found}
    return Waited(jobs=tuple(found), deleted=tuple(seq for seq in dict.fromkeys(seqs) if seq not in known))
