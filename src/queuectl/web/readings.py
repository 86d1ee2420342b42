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
from queuectl.model.value import Value
from queuectl.store import health, jobs, overview, queues, runs, workers
from queuectl.store.runs import NONE_ENDED, Ended, ended_within
from queuectl.system.disk import size_of, space_of

TYPE_CHECKING = False
if TYPE_CHECKING:
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


class Tally(Value):
    """What ended since this process began to read."""

    ended: Ended = NONE_ENDED
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
            reading, count = self._stores.read(lambda tx: (read(tx, self._stores.target), self._count.moved(tx)))
        except (QueuectlError, OSError) as error:
            trouble = error.message if isinstance(error, QueuectlError) else str(error)
            return self._told.replace(trouble=trouble, took_s=time.monotonic() - began)
        self._count = count
        return Told(reading=reading, tally=count.tally, took_s=time.monotonic() - began)


class Count(Value):
    """Counters as far as they have come."""

    sealed: Ended = NONE_ENDED
    until: int | None = None
    """Up to when runs are in `sealed` for good; None: nothing was read yet."""
    running_then: int = 0
    """How many jobs ran at the first reading."""
    tally: Tally = Tally()

    def moved(self, tx: "Tx") -> "Count":
        """Return the counters as they are now, in this view of the store; none of them ever falls."""
        running = runs.running(tx)
        if self.until is None:
            return Count(until=tx.now, running_then=running)
        until = max(self.until, tx.now - OPEN_MS)
        sealed = self.sealed.plus(ended_within(tx, self.until, until)) if until > self.until else self.sealed
        open_yet = ended_within(tx, until, tx.now)
        sealed = sealed.plus(
            sealed.plus(open_yet).lacking(self.tally.ended)
        )  # what was deleted a moment after it ended
        ended = sealed.plus(open_yet)
        claimed = max(self.tally.claimed, ended.count + running - self.running_then)
        return self.replace(sealed=sealed, until=until, tally=Tally(ended=ended, claimed=claimed))


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
        oldest_s={name: max(0, tx.now - max(job.created_at, job.run_at or 0)) / 1000 for name, job in oldest.items()},
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
