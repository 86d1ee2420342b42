"""Snapshots: what the database says just now, as the checker and the rounds want it."""

import json

from queuectl.store.database import Database, Tx
from tests.chaos.checker import JobRow, RunRow

_JOBS = """
    SELECT given_id, seq, state, run, attempts, losses, max_retries, timeout_ms, tags, starved_at
      FROM jobs
     ORDER BY seq
"""
_PARENTS = """
    SELECT c.given_id, c.seq, e.kind, p.given_id, p.seq
      FROM edges e
      JOIN jobs c ON c.seq = e.child_seq
      JOIN jobs p ON p.seq = e.parent_seq
"""
_RUNS = """
    SELECT j.given_id, j.seq, a.run, a.attempt, a.worker_id, a.outcome, a.exit_code, a.finished_at
      FROM attempts a
      JOIN jobs j ON j.seq = a.job_seq
"""
_UNFINISHED = "SELECT count(*) FROM jobs WHERE state NOT IN ('completed', 'dead', 'cancelled')"
BATCH = "batch-"


def rows(database: Database) -> tuple[list[JobRow], list[RunRow]]:
    """Return all jobs and all runs that ended, of one moment."""

    def read(tx: Tx) -> tuple[list[JobRow], list[RunRow]]:
        parents: dict[str, list[tuple[str, str]]] = {}
        for child_id, child, kind, parent_id, parent in tx.rows(_PARENTS):
            parents.setdefault(str(child_id or child), []).append((str(kind), str(parent_id or parent)))
        jobs = [
            JobRow(
                id=str(row[0] or row[1]), state=str(row[2]), run=_int(row[3]), attempts=_int(row[4]),
                losses=_int(row[5]), max_retries=_int(row[6]), has_timeout=row[7] is not None, batch=_batch(row[8]),
                is_starved=row[9] is not None, parents=tuple(parents.get(str(row[0] or row[1]), ())),
            )
            for row in tx.rows(_JOBS)
        ]  # fmt: skip
        runs = [
            RunRow(
                job=str(row[0] or row[1]), run=_int(row[2]), attempt=_int(row[3]), worker=str(row[4]),
                outcome=str(row[5]), exit_code=None if row[6] is None else _int(row[6]), finished_at=_int(row[7]),
            )
            for row in tx.rows(_RUNS)
        ]  # fmt: skip
        return jobs, runs

    return database.read(read)


def unfinished(database: Database) -> int:
    """Return how many jobs are not over."""
    return database.read(lambda tx: _int(tx.rows(_UNFINISHED)[0][0]))


def living_workers(database: Database) -> list[tuple[str, int]]:
    """Return id and pid of the workers and supervisors whose row says that they live."""
    found = database.read(lambda tx: tx.rows("SELECT id, pid FROM workers WHERE state = 'live'"))
    return [(str(row[0]), _int(row[1])) for row in found]


def has_beaten(database: Database, pid: int) -> bool:
    """Whether a supervisor was up and running: one that cannot start has never had a heartbeat."""
    sql = "SELECT count(*) FROM workers WHERE kind = 'supervisor' AND pid = :pid AND beats > 0"
    return database.read(lambda tx: _int(tx.rows(sql, {"pid": pid})[0][0])) > 0


def output_files(database: Database) -> set[str]:
    """Return the names of the files that hold the output of some run."""
    found = database.read(lambda tx: tx.rows("SELECT output_file FROM attempts WHERE output_file IS NOT NULL"))
    return {str(row[0]) for row in found}


def table(database: Database, sql: str) -> list[str]:
    """Return rows as text, for a diagnosis."""
    return [" ".join(str(value) for value in row) for row in database.read(lambda tx: tx.rows(sql))]


def _batch(tags: object) -> str | None:
    names: list[str] = json.loads(str(tags)) if tags else []
    return next((name for name in names if name.startswith(BATCH)), None)


def _int(value: object) -> int:
    return int(str(value))
