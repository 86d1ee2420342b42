"""Attempts: one row per run that ended. The run under way is read from its job's row."""

from queuectl.model.attempt import Attempt
from queuectl.model.states import State
from queuectl.model.value import columns_of
from queuectl.model.verdict import result_of
from queuectl.store.jobs import listed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from queuectl.model.attempt import Report
    from queuectl.model.job import Claim, Job
    from queuectl.store.database import Tx
    from queuectl.store.dialect import Row, SqlValue

COLUMNS = columns_of(Attempt)

_WRITTEN = (*Attempt.FIELDS, "result")
# What differs between the records of short successes of one worker, and as what PostgreSQL keeps it.
OWN_TYPES = {
    "job_seq": "bigint",
    "run": "integer",
    "attempt": "integer",
    "started_at": "bigint",
    "finished_at": "bigint",
    "cpu_ms": "bigint",
    "peak_memory_bytes": "bigint",
    "output_bytes": "bigint",
    "output_tail": "bytea",
    "waited_ms": "bigint",
    "queue": "text",
}


def record_of(claim: "Claim", report: "Report", host: str, now: int, now_s: float) -> "dict[str, SqlValue]":
    """Return what is put on record of a run that ended; moves.settle writes it with what becomes of its job.

    `now_s` is what the clock of the report shows at the database's `now`.
    """
    job, outcome = claim.job, report.outcome
    taken_at = now if job.started_at is None else job.started_at
    begun_at, ended_at = report.span(taken_at, now, now_s)
    # A run of a job that keeps stderr apart has some, also where nobody could report it.
    lacks_stderr = job.split_output and report.stderr_bytes is None
    return {
        "job_seq": job.seq,
        "run": job.run,
        "attempt": job.attempts + 1,
        "worker_id": job.worker_id,
        "host": host,
        "started_at": begun_at,
        "finished_at": ended_at,
        "outcome": outcome.kind,
        "exit_code": outcome.exit_code,
        "signal": outcome.signal,
        "error": outcome.error,
        "cpu_ms": report.cpu_ms,
        "peak_memory_bytes": report.peak_memory_bytes,
        "output_bytes": report.output_bytes,
        "output_file": report.output_file,
        "output_tail": report.output_tail,
        "stderr_bytes": 0 if lacks_stderr else report.stderr_bytes,
        "stderr_file": report.stderr_file,
        "stderr_tail": b"" if lacks_stderr else report.stderr_tail,
        "waited_ms": None if job.waited_ms is None else job.waited_ms + begun_at - taken_at,
        "queue": job.queue,
        "result": result_of(outcome.kind, outcome.error),
    }


def own_of(claim: "Claim", report: "Report", now: int, now_s: float) -> "Row":
    """Return what the record of a short success has of its own, in the order of OWN_TYPES; the rest is as of any."""
    job = claim.job
    taken_at = now if job.started_at is None else job.started_at
    begun_at, ended_at = report.span(taken_at, now, now_s)
    return (
        job.seq,
        job.run,
        job.attempts + 1,
        begun_at,
        ended_at,
        report.cpu_ms,
        report.peak_memory_bytes,
        report.output_bytes,
        report.output_tail,
        None if job.waited_ms is None else job.waited_ms + begun_at - taken_at,
        job.queue,
    )


def shared_of(record: "Mapping[str, SqlValue]") -> "dict[str, SqlValue]":
    """Return what the records of short successes of one worker have in common with that of one of them."""
    return {column: value for column, value in record.items() if column not in OWN_TYPES}


def page(tx: "Tx", seqs: "Sequence[int]", after: "tuple[int, int]", limit: int) -> list[Attempt]:
    """Return runs on record of some jobs beyond (job, run) `after`, in that order: one page of a walk over them all."""
    left = [seq for seq in seqs if seq >= after[0]]
    if not left:
        return []
    names, params = listed("seq", left)
    rows = tx.rows(
        f"""
        SELECT {COLUMNS}
          FROM attempts
         WHERE job_seq IN ({names}) AND (job_seq, run) > (:after_seq, :after_run)
         ORDER BY job_seq, run
         LIMIT :limit
        """,
        {**params, "after_seq": after[0], "after_run": after[1], "limit": limit},
    )
    return [Attempt.of_row(row) for row in rows]


def insert_as_they_are(tx: "Tx", copies: "Sequence[Attempt]") -> None:
    """Add runs of another store with everything they hold."""
    tx.insert_many("attempts", _WRITTEN, map(_as_row, copies))


def _as_row(run: Attempt) -> "Row":
    values: tuple[SqlValue, ...] = tuple(run.as_dict().values())  # type: ignore[arg-type]
    return *values, None if run.result is None else run.result.value


def runs_of(tx: "Tx", job: "Job", first_run: int = 1) -> list[Attempt]:
    """Return the runs of a job in order, from `first_run` on, the one under way last."""
    rows = tx.rows(
        f"SELECT {COLUMNS} FROM attempts WHERE job_seq = :seq AND run >= :first", {"seq": job.seq, "first": first_run}
    )
    runs = sorted(map(Attempt.of_row, rows), key=lambda attempt: attempt.run)
    if job.state is State.PROCESSING and job.worker_id is not None:
        runs.append(_under_way(tx, job, job.worker_id))
    return runs


def _under_way(tx: "Tx", job: "Job", worker_id: str) -> Attempt:
    row = tx.row("SELECT host FROM workers WHERE id = :id", {"id": worker_id})
    return Attempt(
        job_seq=job.seq,
        run=job.run,
        attempt=job.attempts + 1,
        worker_id=worker_id,
        host=str(row[0]) if row else "",
        started_at=job.started_at or job.updated_at,
        finished_at=None,
        outcome=None,
        exit_code=None,
        signal=None,
        error=None,
        cpu_ms=None,
        peak_memory_bytes=None,
        output_bytes=0,
        output_file=None,
        output_tail=b"",
        stderr_bytes=0 if job.split_output else None,
        stderr_file=None,
        stderr_tail=b"" if job.split_output else None,
        waited_ms=job.waited_ms,
        queue=job.queue,
    )
