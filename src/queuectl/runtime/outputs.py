"""Outputs: where the output of a run lies, and what of it can be shown now. Files are system/reading.py's.

Waiting for more of it is in follow.py.
"""

import os

from queuectl.actions.liveness import lock_of
from queuectl.errors import NotFound, Refused
from queuectl.model.value import Value
from queuectl.store import workers
from queuectl.system.home import is_own, log_path, stderr_path
from queuectl.system.host import host_name
from queuectl.system.liveness import home_of
from queuectl.system.output import Kept, ends_with, newest_file, size_so_far
from queuectl.system.reading import Reader, last_lines
from queuectl.system.standing import Standing, so_far

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
STALE_MS = 1_000
STALE_FAR_MS = 3_600_000


class Chunk(Value):
    """A piece of what a run printed; `stream` is "output" where both went into one pipe, else "stdout" or "stderr"."""

    run: int
    attempt: int
    stream: str
    data: bytes


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
    homes = homes_of(target, worker, database.dialect)
    for stream in streams_of(job, attempt, streams):
        if attempt.finished_at is not None:
            pieces = rest_of(attempt, stream, homes, None, lines, on_cut)
        else:
            pieces = _so_far(
                Reader(live_path(homes[0], attempt, stream), since_ms=since_ms_of(attempt, database)), lines
            )
        for data in pieces:
            yield Chunk(run=attempt.run, attempt=attempt.attempt, stream=stream, data=data)


def kept_of(target: "Target", database: "Database", attempt: "Attempt", stream: str) -> Kept:
    """Return what is kept of one stream of a run that is over, with its file where that can be read here."""
    worker = database.read(lambda tx: workers.get(tx, attempt.worker_id))
    return _kept(attempt, stream, homes_of(target, worker, database.dialect))


def so_far_of(target: "Target", database: "Database", attempt: "Attempt", stream: str) -> Standing:
    """Return what there is by now of one stream of a run under way, where its files are on this host."""
    worker = database.read(lambda tx: workers.get(tx, attempt.worker_id))
    home = homes_of(target, worker, database.dialect)[0]
    return so_far(live_path(home, attempt, stream), since_ms=since_ms_of(attempt, database))


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
    home = homes_of(target, workers.get(tx, run.worker_id), tx.dialect)[0]
    sizes: dict[str, object] = {"output_bytes": size_so_far(live_path(home, run, OUTPUT))}
    if run.is_split:
        sizes["stderr_bytes"] = size_so_far(live_path(home, run, STDERR))
    return run.replace(**sizes)


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


def homes_of(target: "Target", worker: "Worker | None", dialect: "Dialect") -> "list[Home]":
    """Return where the files of a worker's runs may lie: in its own home, where that is on this host, else in ours."""
    homes = [target.home]
    if worker is not None and (dialect.is_local or worker.host == host_name()):
        own = home_of(lock_of(worker, dialect), target.home)
        if own != target.home:
            homes.insert(0, own)
    return homes


def is_elsewhere(home: "Home", attempt: "Attempt", worker: "Worker | None", dialect: "Dialect") -> bool:
    if dialect.is_local or (worker is not None and worker.host == host_name()):
        return False
    return newest_file(live_path(home, attempt, OUTPUT)) is None


def live_path(home: "Home", attempt: "Attempt", stream: str) -> str:
    path = stderr_path if stream == STDERR else log_path
    return path(home, attempt.job_seq, attempt.run)


def since_ms_of(attempt: "Attempt", database: "Database") -> int:
    """Return the time before which a file of this name is not of this run: a power cut may undo a claim.

    Times of files are this host's; those of a distant database may differ.
    """
    return attempt.started_at - (STALE_MS if database.dialect.is_local else STALE_FAR_MS)


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


def rest_of(
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
