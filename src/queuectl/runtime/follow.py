"""Follow: the output of a job as it comes, from run to run, until the job has ended. Reading it is in outputs.py."""

import time

from queuectl.actions.liveness import pulse
from queuectl.model.states import FINAL, State
from queuectl.model.value import Value
from queuectl.runtime.outputs import (
    Chunk,
    homes_of,
    is_elsewhere,
    live_path,
    not_split,
    rest_of,
    since_ms_of,
    streams_of,
)
from queuectl.store import attempts, jobs, workers
from queuectl.system.liveness import Pulse
from queuectl.system.reading import Reader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from queuectl.actions.connect import Target
    from queuectl.model.attempt import Attempt
    from queuectl.model.job import Job
    from queuectl.runtime.watch import Watch
    from queuectl.store.database import Database, Tx
    from queuectl.store.workers import Worker
    from queuectl.system.home import Home

GROWTH_POLL_S = 0.1
LOOK_EVERY_S = 0.02  # in a busy queue jobs change all the time, and only one of them is ours
TELL_WAIT_AFTER_S = 0.3
PULSE_EVERY_S = 1.0
BURST = 16


class Seen(Value):
    """One look at a job: its runs that are still to be shown, and where each was or is run."""

    job: "Job"
    runs: "tuple[Attempt, ...]"
    workers: "dict[str, Worker | None]"


def follow(
    target: "Target",
    database: "Database",
    seq: int,
    *,
    from_run: int = 1,
    until_run: int | None = None,
    lines: int | None = None,
    streams: "frozenset[str] | None" = None,
    on_wait: "Callable[[Job], None] | None" = None,
    on_elsewhere: "Callable[[Attempt], None] | None" = None,
    on_cut: "Callable[[Attempt, str], None] | None" = None,
    reader_fd: int | None = None,
) -> "Iterator[Chunk]":
    """Yield the output of a job as it comes, run after run, until the job has ended for good, or is deleted.

    Begins with run `from_run`, of which `lines` leaves the last lines alone, and ends with run `until_run` if given.
    `streams` chooses among stdout and stderr; a job that does not keep them apart is refused. Where both are kept,
    their order among each other is not known.

    `on_wait` is told when the job waits, once before each run; `on_elsewhere` when a run is under way on another host,
    whose output can be shown when it ends; `on_cut` when only the end of a stream can be shown, for the same reason.

    `reader_fd` is the pipe into which the caller writes: when its reader is gone, this ends without waiting for more.
    It uses `database` for as long as it is not exhausted or closed.
    """
    from queuectl.runtime.watch import Watch  # reading what is there needs none, and is done more often

    follower = _Follower(
        target,
        database,
        seq,
        next_run=from_run,
        until_run=until_run,
        lines=lines,
        streams=streams,
        on_wait=on_wait,
        on_elsewhere=on_elsewhere,
        on_cut=on_cut,
    )
    with Watch(target, database) as watch:
        if reader_fd is not None:
            watch.wake_on(reader_fd, follower.leave)
        yield from _all_of(follower, watch)


def _all_of(follower: "_Follower", watch: "Watch") -> "Iterator[Chunk]":
    try:
        while True:
            looked_at = time.monotonic()
            yield from follower.look()
            if follower.is_over:
                return
            while not watch.wait(follower.next_tick()):
                yield from follower.tick()
            if follower.is_left:
                return
            time.sleep(max(0.0, looked_at + LOOK_EVERY_S - time.monotonic()))
    finally:
        follower.close()


class _Follower:
    """What is shown of a job so far, and what comes next."""

    def __init__(
        self,
        target: "Target",
        database: "Database",
        seq: int,
        *,
        next_run: int,
        until_run: int | None,
        lines: int | None,
        streams: "frozenset[str] | None",
        on_wait: "Callable[[Job], None] | None",
        on_elsewhere: "Callable[[Attempt], None] | None",
        on_cut: "Callable[[Attempt, str], None] | None",
    ) -> None:
        self.is_over = False
        self.is_left = False
        self._target = target
        self._database = database
        self._seq = seq
        self._next_run = next_run
        self._until_run = until_run
        self._lines = lines
        self._streams = streams
        self._on_wait = on_wait
        self._on_elsewhere = on_elsewhere
        self._on_cut = on_cut
        self._job: Job | None = None
        self._current: Attempt | None = None
        self._is_elsewhere = False
        self._readers: dict[str, Reader] = {}
        self._waits: Job | None = None
        self._tell_wait_at = float("inf")
        self._told_waits: set[tuple[int, bool]] = set()
        self._pulse_of = ""
        self._pulse_at = 0.0
        self._is_dead = False

    def leave(self) -> None:
        """Know that nobody looks any more."""
        self.is_left = True

    def close(self) -> None:
        """Let go of the files."""
        for reader in self._readers.values():
            reader.close()
        self._readers = {}
        self._current = None

    def next_tick(self) -> float:
        """Return the monotonic time at which `tick` has something to do."""
        is_growing = bool(self._readers) and not self._is_elsewhere
        return min(time.monotonic() + GROWTH_POLL_S if is_growing else float("inf"), self._tell_wait_at)

    def tick(self) -> "Iterator[Chunk]":
        """Yield what the run under way has printed since, and tell of a wait that takes long."""
        self._tell_wait()
        yield from self._grown()

    def look(self) -> "Iterator[Chunk]":
        """Look what became of the job; yield what that brings."""
        seen = self._database.read(self._read)
        if seen is None:
            yield from self._abandon()
            self.is_over = True
            return
        self._job = seen.job
        if self._streams is not None and not seen.job.split_output and not seen.runs:
            raise not_split(seen.job)
        for attempt in seen.runs:
            if self._is_past(attempt.run):
                break
            homes = homes_of(self._target, seen.workers[attempt.worker_id], self._database.dialect)
            if attempt.finished_at is None:
                yield from self._under_way(attempt, homes, seen.workers[attempt.worker_id])
                break
            yield from self._ended(attempt, homes)
        job = seen.job
        self.is_over = job.state in FINAL or self._is_past(self._next_run) or self._is_past(job.run)
        self._note_wait(seen)
        self._tell_wait()

    def _read(self, tx: "Tx") -> Seen | None:
        job = jobs.get(tx, self._seq)
        if job is None:
            return None
        if self._is_as_before(job):
            runs = [self._current] if self._current is not None else []
        else:
            runs = attempts.runs_of(tx, job, self._next_run)
        return Seen(job=job, runs=tuple(runs), workers={run.worker_id: workers.get(tx, run.worker_id) for run in runs})

    def _is_as_before(self, job: "Job") -> bool:
        before = self._job
        return before is not None and (before.run, before.state) == (job.run, job.state)

    def _is_past(self, run: int) -> bool:
        return self._until_run is not None and run > self._until_run

    def _under_way(self, attempt: "Attempt", homes: "list[Home]", worker: "Worker | None") -> "Iterator[Chunk]":
        assert self._job is not None
        if self._current is None or self._current.run != attempt.run:
            yield from self._abandon()
            self._current = attempt
            since_ms = since_ms_of(attempt, self._database)
            for stream in streams_of(self._job, attempt, self._streams):
                reader = self._readers[stream] = Reader(live_path(homes[0], attempt, stream), since_ms=since_ms)
                if self._lines is not None:
                    reader.go_to_last_lines(self._lines)
            self._lines = None
            self._is_elsewhere = is_elsewhere(homes[0], attempt, worker, self._database.dialect)
            if self._is_elsewhere and self._on_elsewhere is not None:
                self._on_elsewhere(attempt)
        yield from self._grown()

    def _ended(self, attempt: "Attempt", homes: "list[Home]") -> "Iterator[Chunk]":
        assert self._job is not None
        if self._current is not None and self._current.run != attempt.run:
            yield from self._abandon()
        for stream in streams_of(self._job, attempt, self._streams):
            reader = self._readers.get(stream)
            for data in rest_of(attempt, stream, homes, reader, self._lines, self._on_cut):
                yield Chunk(run=attempt.run, attempt=attempt.attempt, stream=stream, data=data)
        self.close()
        self._lines = None
        self._next_run = attempt.run + 1

    def _grown(self) -> "Iterator[Chunk]":
        """Yield what there is more, a burst of each stream at a turn, so that none waits for the other's end."""
        current = self._current
        is_more = current is not None and not self._is_elsewhere
        while is_more and current is not None:
            is_more = False
            for stream, reader in self._readers.items():
                for number, data in enumerate(reader.more(), start=1):
                    yield Chunk(run=current.run, attempt=current.attempt, stream=stream, data=data)
                    if number == BURST:
                        is_more = True
                        break

    def _abandon(self) -> "Iterator[Chunk]":
        """Yield what is left of a run of which nothing is on record any more."""
        current = self._current
        if current is not None:
            for stream, reader in self._readers.items():
                for data in reader.rest(None):
                    yield Chunk(run=current.run, attempt=current.attempt, stream=stream, data=data)
        self.close()

    def _note_wait(self, seen: Seen) -> None:
        """Remember what the job waits for, to tell of it when that takes long: its turn, or a rescue."""
        job = seen.job
        is_waiting = job.state is not State.PROCESSING or self._is_lost(seen)
        if self.is_over or not is_waiting or _wait_key(job) in self._told_waits:
            self._waits = None
            self._tell_wait_at = float("inf")
            return
        if self._waits is None or _wait_key(self._waits) != _wait_key(job):
            self._tell_wait_at = time.monotonic() + TELL_WAIT_AFTER_S
        self._waits = job

    def _tell_wait(self) -> None:
        if self._waits is not None and time.monotonic() >= self._tell_wait_at:
            self._tell_wait_at = float("inf")
            self._told_waits.add(_wait_key(self._waits))
            if self._on_wait is not None:
                self._on_wait(self._waits)

    def _is_lost(self, seen: Seen) -> bool:
        """Whether the worker of the run under way is dead; asked now and then, since that takes a look at its lock."""
        current, now = self._current, time.monotonic()
        if current is None:
            return False
        if current.worker_id != self._pulse_of or now >= self._pulse_at:
            worker = seen.workers[current.worker_id]
            self._is_dead = worker is None or pulse(worker, self._database.dialect) is Pulse.DEAD
            self._pulse_of, self._pulse_at = current.worker_id, now + PULSE_EVERY_S
        return self._is_dead


def _wait_key(job: "Job") -> tuple[int, bool]:
    return job.run, job.state is State.PROCESSING
