"""Readings: what /metrics tells, read from the store at most once a second however many ask. Drawn in metrics.py.

Counters count from the first reading of this process on, as Prometheus expects of one: what is on record falls when
history is pruned, and a counter must not. So each reading adds the runs that ended since the one before. Those of the
last minute are counted anew each time: transactions need not be committed in the order of their times.
"""

import os
import threading
import time

from queuectl.actions.fleet import load_of, state_of
from queuectl.errors import QueuectlError
from queuectl.model.states import State
from queuectl.model.stats import BOUNDS_MS, Histogram, Totals
from queuectl.model.value import Value
from queuectl.model.verdict import Result
from queuectl.store import health, jobs, overview, queues, stats, workers
from queuectl.system.disk import size_of, space_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from queuectl.actions.connect import Target
    from queuectl.store.database import Tx
    from queuectl.store.workers import Worker
    from queuectl.web.stores import Stores

FRESH_S = 1.0
PATIENCE_S = 5.0
"""How long one who asks waits for another who reads; threads must not pile up behind a store that hangs."""
OPEN_MS = 60_000
"""A transaction that takes longer than this to be committed is not counted on."""
WORKING, DRAINING, STOPPING, LOST = "working", "draining", "stopping", "lost"
WORKER_STATES = (WORKING, DRAINING, STOPPING, LOST)


class Host(Value):
    """The workers of one host."""

    states: "dict[str, int]"
    slots: int = 0
    busy: int = 0


class Reading(Value):
    """Where everything stood at one moment."""

    counts: "dict[str, dict[State, int]]"
    paused: "dict[str, bool]"
    oldest_s: "dict[str, float]"
    hosts: "dict[str, Host]"
    size_bytes: int
    free_bytes: int
    wal_bytes: int | None
    schema: int
    now: int


NO_HISTOGRAM = Histogram(at_most=(0,) * len(BOUNDS_MS), count=0, sum_ms=0)
NO_RUNS = Totals(counts=dict.fromkeys(Result, 0), wait=NO_HISTOGRAM, run_time=NO_HISTOGRAM)


class Tally(Value):
    """What was counted since this process began to read: runs that ended, and runs that began."""

    ended: Totals = NO_RUNS
    claimed: int = 0


class Told(Value):
    """What a scraper is told: the last reading, whether it is fresh, and what was counted."""

    reading: Reading | None
    tally: Tally
    trouble: str = ""
    took_s: float = 0.0


class Readings:
    """Reads for all who ask, and keeps the counters."""

    def __init__(self, stores: "Stores") -> None:
        self._stores = stores
        self._lock = threading.Lock()
        self._read_at = float("-inf")
        self._told = Told(reading=None, tally=Tally())
        self._count = Count()

    def current(self) -> Told:
        """Return what is so now; where the store cannot be read, what was so last, with the reason."""
        if not self._lock.acquire(timeout=PATIENCE_S):
            return self._told.replace(trouble="the store takes long to answer")
        try:
            began = time.monotonic()
            if began - self._read_at >= FRESH_S:
                self._told = self._take(began)
                self._read_at = time.monotonic()
            return self._told
        finally:
            self._lock.release()

    def _take(self, began: float) -> Told:
        try:
            reading, count = self._stores.read(self._look)
        except (QueuectlError, OSError) as error:
            trouble = error.message if isinstance(error, QueuectlError) else str(error)
            return self._told.replace(trouble=trouble, took_s=time.monotonic() - began)
        self._count = count
        return Told(reading=reading, tally=count.tally, took_s=time.monotonic() - began)

    def _look(self, tx: "Tx") -> "tuple[Reading, Count]":
        reading = read(tx, self._stores.target)
        running = sum(counts.get(State.PROCESSING, 0) for counts in reading.counts.values())
        return reading, self._count.moved(tx, running)


class Count(Value):
    """Counters as far as they have come."""

    sealed: Totals = NO_RUNS
    until: int | None = None
    """Runs that ended before are in `sealed` for good; None: nothing was read yet."""
    running_then: int = 0
    """How many jobs ran at the first reading."""
    tally: Tally = Tally()

    def moved(self, tx: "Tx", running: int) -> "Count":
        """Return the counters as they are now, when so many jobs run; none of them ever falls."""
        if self.until is None:
            # Those of the last minute are taken off again: one that is committed later, with an earlier time, is new.
            known = stats.totals(tx, tx.now - OPEN_MS, tx.now + 1)
            return Count(sealed=less(NO_RUNS, known), until=tx.now - OPEN_MS, running_then=running)
        until = max(self.until, tx.now - OPEN_MS)
        sealed = self.sealed if until == self.until else together(self.sealed, stats.totals(tx, self.until, until))
        open_yet = stats.totals(tx, until, tx.now + 1)
        # What was counted before and is gone was deleted a moment after it ended.
        sealed = together(sealed, excess(self.tally.ended, together(sealed, open_yet)))
        ended = together(sealed, open_yet)
        claimed = max(self.tally.claimed, sum(ended.counts.values()) + running - self.running_then)
        return self.replace(sealed=sealed, until=until, tally=Tally(ended=ended, claimed=claimed))


def together(one: Totals, other: Totals) -> Totals:
    """Return the sum of both."""
    return _each(one, other, lambda left, right: left + right)


def less(one: Totals, other: Totals) -> Totals:
    """Return one without another."""
    return _each(one, other, lambda left, right: left - right)


def excess(one: Totals, other: Totals) -> Totals:
    """Return by how much one is above another, figure by figure."""
    return _each(one, other, lambda left, right: max(0, left - right))


def _each(one: Totals, other: Totals, act: "Callable[[int, int], int]") -> Totals:
    def spread(left: Histogram, right: Histogram) -> Histogram:
        pairs = zip(left.at_most, right.at_most, strict=True)
        return Histogram(
            at_most=tuple(act(*pair) for pair in pairs),
            count=act(left.count, right.count),
            sum_ms=act(left.sum_ms, right.sum_ms),
        )

    return Totals(
        counts={result: act(one.counts.get(result, 0), other.counts.get(result, 0)) for result in Result},
        wait=spread(one.wait, other.wait),
        run_time=spread(one.run_time, other.run_time),
    )


def read(tx: "Tx", target: "Target") -> Reading:
    """Read where everything stands."""
    known = queues.all_queues(tx)
    counts = jobs.counts(tx)
    waiting = [each.name for each in known if counts.get(each.name, {}).get(State.PENDING)]
    oldest = overview.oldest_by_queue(tx, waiting)
    path = target.sqlite_path
    return Reading(
        counts={each.name: counts.get(each.name, {}) for each in known},
        paused={each.name: each.paused_at is not None for each in known},
        oldest_s={name: max(0, tx.now - job.ready_at) / 1000 for name, job in oldest.items()},
        hosts=_hosts(tx),
        size_bytes=health.database_bytes(tx) if path is None else _file_bytes(tx),
        free_bytes=space_of(target.home.root if path is None else os.path.dirname(path)).free_bytes,
        wal_bytes=None if path is None else size_of(f"{path}-wal"),
        schema=tx.dialect.schema_version(),
        now=tx.now,
    )


def _file_bytes(tx: "Tx") -> int:
    """Return how large the file of SQLite is once all of its log is in it."""
    pages = health.pages(tx)
    return pages.size * pages.count


def _hosts(tx: "Tx") -> "dict[str, Host]":
    rows = [row for row in workers.live(tx) if row.kind == workers.WORKER]
    held = load_of(tx, rows).held
    hosts: dict[str, Host] = {}
    for row in rows:
        host = hosts.get(row.host) or Host(states=dict.fromkeys(WORKER_STATES, 0))
        state = _state(row, tx)
        is_there = state != LOST
        hosts[row.host] = Host(
            states={**host.states, state: host.states[state] + 1},
            slots=host.slots + row.slots * is_there,
            busy=host.busy + len(held.get(row.id, ())) * is_there,
        )
    return hosts


def _state(worker: "Worker", tx: "Tx") -> str:
    if state_of(worker, tx.dialect) != workers.LIVE:
        return LOST
    return WORKING if worker.stop is None else DRAINING if worker.stop == workers.DRAIN else STOPPING
