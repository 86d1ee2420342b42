"""Follow: the output of a job as it comes, from run to run, until the job has ended. Files are system/reading.py's."""

import os
import time

from queuectl.actions.liveness import lock_of, pulse
from queuectl.errors import NotFound, Refused
from queuectl.model.states import FINAL, State
from queuectl.model.value import Value
from queuectl.store import attempts, jobs, workers
from queuectl.system.home import is_own, log_path, stderr_path
from queuectl.system.host import host_name
from queuectl.system.liveness import Pulse, home_of
from queuectl.system.output import Kept, ends_with, newest_file, size_so_far
from queuectl.system.reading import Reader, last_lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from queuectl.actions.connect import Target
    from queuectl.model.attempt import Attempt
    from queuectl.model.job import Job
    from queuectl.store.database import Database, Tx
    from queuectl.store.dialect import Dialect
    from queuectl.store.workers import Worker
    from queuectl.system.home import Home

OUTPUT = "output"
STDOUT = "stdout"
STDERR = "stderr"

GROWTH_POLL_S = 0.1
LOOK_EVERY_S = 0.02  # in a busy queue jobs change all the time, and only one of them is ours
TELL_WAIT_AFTER_S = 0.3
PULSE_EVERY_S = 1.0
BURST = 16
STALE_MS = 1_000
STALE_FAR_MS = 3_600_000


class Chunk(Value):
    """A piece of what a run printed; `stream` is "output" where both went into one pipe, else "stdout" or "stderr"."""

    run: int
    attempt: int
    stream: str
    data: bytes


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


def output_of(
    target: "Target",
    database: "Database",
    job: "Job",
    attempt: "Attempt",
    *,
    lines: int | None = None,
    streams: "frozenset[str] | None" = None,
    on_cut: "Callable[[Attempt, str], None] | None" = None,
) -> "Iterator[Chunk]":
    """Yield the output of one run as it is now, without waiting for more."""
    worker = database.read(lambda tx: workers.get(tx, attempt.worker_id))
    homes = _homes(target, worker, database.dialect)
    for stream in streams_of(job, attempt, streams):
        if attempt.finished_at is not None:
            pieces = _finished(attempt, stream, homes, None, lines, on_cut)
        else:
            pieces = _so_far(Reader(_live_path(homes[0], attempt, stream), since_ms=_since(attempt, database)), lines)
        for data in pieces:
            yield Chunk(run=attempt.run, attempt=attempt.attempt, stream=stream, data=data)


def kept_of(target: "Target", database: "Database", attempt: "Attempt", stream: str) -> Kept:
    """Return what is kept of one stream of a run that is over, with its file where that can be read here."""
    worker = database.read(lambda tx: workers.get(tx, attempt.worker_id))
    return _kept(attempt, stream, _homes(target, worker, database.dialect))


def pick_run(job: "Job", runs: "Sequence[Attempt]", *, attempt: int | None = None, run: int | None = None) -> "Attempt":
    """Return the run with a number, or the newest with an attempt number; raise when there is none."""
    chosen = [each for each in runs if (each.run == run if run is not None else each.attempt == attempt)]
    if not chosen:
        what = f"attempt {attempt}" if run is None else f"run {run}"
        raise NotFound(f"job {job.id} has no {what}", hint=f"see its runs with: queuectl show {job.id}")
    return chosen[-1]


def measured(target: "Target", tx: "Tx", runs: "Sequence[Attempt]") -> "list[Attempt]":
    """Return runs with the sizes so far of the one under way, where its files are on this host."""
    return [run if run.finished_at is not None else _measured(target, tx, run) for run in runs]


def _measured(target: "Target", tx: "Tx", run: "Attempt") -> "Attempt":
    home = _homes(target, workers.get(tx, run.worker_id), tx.dialect)[0]
    sizes: dict[str, object] = {"output_bytes": size_so_far(_live_path(home, run, OUTPUT))}
    if run.is_split:
        sizes["stderr_bytes"] = size_so_far(_live_path(home, run, STDERR))
    return run.replace(**sizes)


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
            homes = _homes(self._target, seen.workers[attempt.worker_id], self._database.dialect)
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
            since_ms = _since(attempt, self._database)
            for stream in streams_of(self._job, attempt, self._streams):
                reader = self._readers[stream] = Reader(_live_path(homes[0], attempt, stream), since_ms=since_ms)
                if self._lines is not None:
                    reader.go_to_last_lines(self._lines)
            self._lines = None
            self._is_elsewhere = _is_elsewhere(homes[0], attempt, worker, self._database.dialect)
            if self._is_elsewhere and self._on_elsewhere is not None:
                self._on_elsewhere(attempt)
        yield from self._grown()

    def _ended(self, attempt: "Attempt", homes: "list[Home]") -> "Iterator[Chunk]":
        assert self._job is not None
        if self._current is not None and self._current.run != attempt.run:
            yield from self._abandon()
        for stream in streams_of(self._job, attempt, self._streams):
            reader = self._readers.get(stream)
            for data in _finished(attempt, stream, homes, reader, self._lines, self._on_cut):
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


def _homes(target: "Target", worker: "Worker | None", dialect: "Dialect") -> "list[Home]":
    """Return where the files of a worker's runs may lie: in its own home, where that is on this host, else in ours."""
    homes = [target.home]
    if worker is not None and (dialect.is_local or worker.host == host_name()):
        own = home_of(lock_of(worker, dialect), target.home)
        if own != target.home:
            homes.insert(0, own)
    return homes


def _is_elsewhere(home: "Home", attempt: "Attempt", worker: "Worker | None", dialect: "Dialect") -> bool:
    if dialect.is_local or (worker is not None and worker.host == host_name()):
        return False
    return newest_file(_live_path(home, attempt, OUTPUT)) is None


def _live_path(home: "Home", attempt: "Attempt", stream: str) -> str:
    path = stderr_path if stream == STDERR else log_path
    return path(home, attempt.job_seq, attempt.run)


def _since(attempt: "Attempt", database: "Database") -> int:
    """Return the time before which a file of this name is not of this run: a power cut may undo a claim.

    Times of files are this host's; those of a distant database may differ.
    """
    return attempt.started_at - (STALE_MS if database.dialect.is_local else STALE_FAR_MS)


def streams_of(job: "Job", attempt: "Attempt", wanted: "frozenset[str] | None") -> "list[str]":
    """Return the streams of a run that are wanted; raise when it did not keep them apart."""
    if not attempt.is_split:
        if wanted is not None:
            raise not_split(job)
        return [OUTPUT]
    return [stream for stream in (STDOUT, STDERR) if wanted is None or stream in wanted]


def not_split(job: "Job") -> Refused:
    """Return the error for a job that does not keep its streams apart."""
    return Refused(
        f"job {job.id} keeps stdout and stderr together",
        hint=f"see both with: queuectl logs {job.id}; to keep them apart, enqueue with --split-output",
    )


def _so_far(reader: Reader, lines: int | None) -> "Iterator[bytes]":
    """Yield what is written now; what comes meanwhile is not waited for, or a command that never rests has no end."""
    try:
        if lines is not None:
            reader.go_to_last_lines(lines)
        end = reader.size_now()
        for data in reader.more():
            yield data
            if reader.place >= end:
                return
    finally:
        reader.close()


def _finished(
    attempt: "Attempt",
    stream: str,
    homes: "list[Home]",
    reader: Reader | None,
    lines: int | None,
    on_cut: "Callable[[Attempt, str], None] | None",
) -> "Iterator[bytes]":
    """Yield what is left to show of one stream of a run that is over."""
    kept = _kept(attempt, stream, homes)
    name = attempt.stderr_file if stream == STDERR else attempt.output_file
    if kept.file is None and name is not None and (reader is None or not reader.is_open) and on_cut is not None:
        on_cut(attempt, stream)
    if lines is not None and reader is None:
        yield from last_lines(kept, lines)
        return
    own = reader or Reader("")
    try:
        yield from own.rest(kept)
    finally:
        own.close()


def _kept(attempt: "Attempt", stream: str, homes: "list[Home]") -> Kept:
    """Return what is kept of one stream of a run that is over, with its file where that can be read here."""
    is_stderr = stream == STDERR
    name = attempt.stderr_file if is_stderr else attempt.output_file
    tail = (attempt.stderr_tail or b"") if is_stderr else attempt.output_tail
    paths = [_readable(home, name, tail) for home in homes] if name is not None else []
    return Kept(
        total_bytes=(attempt.stderr_bytes or 0) if is_stderr else attempt.output_bytes,
        file=next((path for path in paths if path is not None), None),
        tail=tail,
    )


def _readable(home: "Home", name: str, tail: bytes) -> str | None:
    """Return where a file of a run lies that is over, if it can be read here.

    A job that came from another store names a file of that store. In this home another one may have a file of that
    name: it is the one that is meant if it ends as the run did.
    """
    path = os.path.join(home.logs, name)
    if not os.access(path, os.R_OK) or not (is_own(home, name) or ends_with(path, tail)):
        return None
    return path
