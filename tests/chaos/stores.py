"""The stores that chaos runs on: a SQLite file, or a PostgreSQL server of its own behind a network of its own."""

import shutil
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import apsw
import psycopg

from queuectl.actions.connect import Target, connect, locate
from queuectl.errors import QueuectlError
from queuectl.store.database import Database
from tests import postgres
from tests.chaos.sweeper import Sweeper
from tests.proxy import Proxy, proxied, through

KINDS = ("sqlite", "postgres")
UP_AGAIN_S = 60.0


class Store(ABC):
    """A store, the way the queue reaches it (`target`) and our own way past every fault (`database`)."""

    name: str
    target: Target
    database: Database

    @abstractmethod
    def damage(self) -> str:
        """Return what is wrong with the files of the store; an empty text when they are whole."""


class SqliteStore(Store):
    """One file."""

    name = "sqlite"

    def __init__(self, home: Path) -> None:
        self.target = locate(None, {"QUEUECTL_HOME": str(home)})
        self.database = connect(self.target)
        assert self.target.sqlite_path is not None
        self._path = self.target.sqlite_path

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the write lock, as another program might."""
        connection = apsw.Connection(self._path)
        connection.set_busy_timeout(1000)
        try:
            connection.execute("BEGIN IMMEDIATE")
            yield
            connection.execute("ROLLBACK")
        finally:
            connection.close()

    def damage(self) -> str:
        """Return what SQLite finds wrong with its file."""
        connection = apsw.Connection(self._path)
        try:
            found = [str(row[0]) for row in connection.execute("PRAGMA integrity_check")]
        finally:
            connection.close()
        return "" if found == ["ok"] else "; ".join(found)


class PostgresStore(Store):
    """One database of a server that nobody else uses, reached by the queue through a proxy."""

    name = "postgres"

    def __init__(self, home: Path, server: postgres.Server, url: str, proxy: Proxy) -> None:
        self.target = locate(None, {"QUEUECTL_HOME": str(home), "QUEUECTL_DATABASE_URL": through(proxy, url)})
        self.database = connect(locate(None, {"QUEUECTL_HOME": str(home), "QUEUECTL_DATABASE_URL": url}))
        self.proxy = proxy
        self._server = server
        self._url = url

    def terminate_backends(self, share: float) -> int:
        """End a share of the connections from the server's side; return how many."""
        with psycopg.connect(self._url, autocommit=True) as connection:
            ended = connection.execute(
                """
                SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                 WHERE datname = current_database() AND pid <> pg_backend_pid() AND random() < %s
                """,
                (share,),
            ).fetchall()
        self._reconnect()
        return len(ended)

    @contextmanager
    def server_down(self, mode: str) -> Iterator[None]:
        """Stop the whole server, `fast` as an operator does or `immediate` as a crash does, and start it afterwards."""
        with self._server.down(mode):
            yield
        self._reconnect()

    def _reconnect(self) -> None:
        """Find our own connection broken, if it is, before somebody needs it."""
        until = time.monotonic() + UP_AGAIN_S
        while True:
            try:
                self.database.read(lambda tx: tx.rows("SELECT 1"))
                return
            except QueuectlError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.1)

    def damage(self) -> str:
        """PostgreSQL looks after its own files."""
        return ""


@contextmanager
def store_of(kind: str, home: Path, sweeper: Sweeper) -> Iterator[Store]:
    """Give an empty store of a kind, and take it down afterwards."""
    with ExitStack() as stack:
        store: Store
        if kind == "sqlite":
            store = SqliteStore(home)
        else:
            server = postgres.Server()
            stack.callback(server.stop)
            url = server.url()
            sweeper.watch_and_remove(server.folder)
            (home.parent / "server").symlink_to(server.folder)
            stack.callback(shutil.copy, f"{server.folder}/log", home.parent / "postgres.log")
            url = stack.enter_context(postgres.fresh_database(url))
            store = PostgresStore(home, server, url, stack.enter_context(proxied(url)))
        stack.callback(store.database.close)
        yield store
