"""Racing: one act is held inside its open transaction while another tries. The races are in test_*races.py."""

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Generic, TypeVar

import psycopg
import pytest

from queuectl.actions.connect import Target, connect
from queuectl.store.database import Database
from queuectl.store.postgres import PostgresDialect
from queuectl.store.sqlite import SqliteDialect
from tests.program import DEADLINE_S, wait_for

First = TypeVar("First")
Second = TypeVar("Second")


class Side(Generic[First]):
    """One side of a race: an act on a connection and in a thread of its own."""

    def __init__(self, target: Target, act: Callable[[Database], First]) -> None:
        self.database = connect(target)
        self.is_at_commit = threading.Event()
        self.may_commit = threading.Event()
        self._has_waited = threading.Event()
        self._act = act
        self._threads = ThreadPoolExecutor(1)
        self._future: Future[First] | None = None
        if isinstance(self.database.dialect, SqliteDialect):
            self.database.dialect.connection.set_busy_handler(partial(self._busy, self.database.dialect))

    def start(self) -> None:
        """Begin, without waiting for the end."""
        self._future = self._threads.submit(self._act, self.database)

    def hold(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Begin, and stay inside the open transaction, everything written and nothing committed."""
        commit = self.database.dialect.commit

        def commit_when_told() -> None:
            self.is_at_commit.set()
            assert self.may_commit.wait(DEADLINE_S)
            commit()

        monkeypatch.setattr(self.database.dialect, "commit", commit_when_told)
        self.start()
        wait_for(lambda: self.is_at_commit.is_set() or self.is_over(), "the first side at its commit")

    def is_over(self) -> bool:
        """Whether the act has ended."""
        return self._future is not None and self._future.done()

    def is_waiting(self) -> bool:
        """Whether the database makes this side wait for the other."""
        dialect = self.database.dialect
        if not isinstance(dialect, PostgresDialect):
            return self._has_waited.is_set()
        with psycopg.connect(dialect.connection.info.dsn, autocommit=True) as observer:
            row = observer.execute(
                "SELECT 1 FROM pg_stat_activity WHERE pid = %s AND wait_event_type = 'Lock'",
                (dialect.connection.info.backend_pid,),
            ).fetchone()
        return row is not None

    def end(self) -> First:
        """Wait for the end and return what came of it."""
        assert self._future is not None
        self.may_commit.set()
        return self._future.result(DEADLINE_S)

    def close(self) -> None:
        """Let go of thread and connection."""
        self.may_commit.set()
        self._threads.shutdown()
        self.database.close()

    def _busy(self, dialect: SqliteDialect, tries: int) -> bool:
        self._has_waited.set()
        return dialect._wait_for_lock(tries)


ON_POSTGRES = pytest.mark.parametrize("target", ["postgres"], indirect=True)


class Race:
    """Holds the first side inside its transaction while the second tries; then lets both end."""

    def __init__(self, target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
        self._target = target
        self._monkeypatch = monkeypatch
        self._sides: list[Callable[[], None]] = []
        self.did_second_wait = False

    def __call__(
        self, first: Callable[[Database], First], second: Callable[[Database], Second]
    ) -> tuple[First, Second]:
        """Race two acts and return what came of each."""
        one = Side(self._target, first)
        two = Side(self._target, second)
        self._sides += [one.close, two.close]
        one.hold(self._monkeypatch)
        two.start()
        wait_for(lambda: two.is_waiting() or two.is_over(), "the second side waiting or done")
        self.did_second_wait = not two.is_over()
        return one.end(), two.end()

    def close(self) -> None:
        """Let go of every thread and connection."""
        for close in self._sides:
            close()
