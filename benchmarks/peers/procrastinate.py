"""Procrastinate on PostgreSQL, with concurrent jobs in one worker, as its documentation has it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.bench import Bench
from benchmarks.peers.brokers import POSTGRES_DURABILITY, POSTGRES_TAG, postgres_database
from benchmarks.peers.venv import BIN, AppRoom, PythonPeer, program

SCHEMA = "lib/python*/site-packages/procrastinate/sql/schema.sql"


class Procrastinate(PythonPeer):
    """procrastinate worker -c N."""

    name = "Procrastinate, PostgreSQL"
    package = "procrastinate"
    durability = POSTGRES_DURABILITY
    durability_tag = POSTGRES_TAG
    drain_jobs = 300
    bulk_jobs = 4000

    @contextmanager
    def room(self, bench: Bench, folder: Path, workers: int) -> Iterator[AppRoom]:
        """Give a database with its tables."""
        with postgres_database(bench) as broker:
            _create_tables(broker.address)
            room = ProcrastinateRoom(folder, workers, broker.address)
            room.broker_pids = (broker.pid,)
            yield room


class ProcrastinateRoom(AppRoom):
    """A queue in a database."""

    app = "procrastinate_app"

    def working(self) -> list[list[str]]:
        """Start a worker."""
        return [[program("procrastinate"), "--app", "procrastinate_app.app", "worker", "-c", str(self.workers)]]


def _create_tables(url: str) -> None:
    """Do what `procrastinate schema --apply` does, without starting it."""
    import psycopg

    (schema,) = BIN.parent.glob(SCHEMA)
    with psycopg.connect(url) as connection:
        connection.execute(schema.read_bytes())
