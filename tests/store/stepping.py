"""Stepping: one act stops before each of its statements in turn while another runs. The races are in test_*races.py.

On PostgreSQL two transactions meet between any two statements; what is held still at its commit (racing.py) shows only
the last of these meetings.
"""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from queuectl.actions.connect import Target, connect
from queuectl.errors import QueuectlError
from queuectl.store.database import Database
from queuectl.store.postgres import PostgresDialect
from tests.program import DEADLINE_S
from tests.store.graphs import Act, faults

FEWEST_STEPS = 2
MOST_STEPS = 80
BOTH_ORDERS = pytest.mark.parametrize("is_first", [True, False], ids=["first", "second"])
# Whoever waits in a circle is to learn of it soon: the server looks after a second by itself.
DEADLOCKS_SOON = "SET deadlock_timeout = '20ms'"


class _Side:
    """One of the two acts: a connection and a thread of its own, and a gate before each of its statements."""

    def __init__(self, target: Target) -> None:
        self.database = connect(target)
        assert isinstance(self.database.dialect, PostgresDialect)
        self.database.dialect.script(DEADLOCKS_SOON)
        self.pid = self.database.dialect.connection.info.backend_pid
        self.deadlocks = 0
        self._threads = ThreadPoolExecutor(1)
        self._left = -1
        self._is_there = threading.Event()
        self._may_go_on = threading.Event()
        self._future: Future[Exception | None] | None = None
        for name in ("rows", "changed", "insert_many", "commit"):
            setattr(self.database.dialect, name, self._stopping(getattr(self.database.dialect, name)))
        self._is_passing = self.database.dialect.is_passing
        self.database.dialect.is_passing = self._count_deadlock  # type: ignore[method-assign]

    def start(self, act: Act, stop_before: int = -1) -> None:
        """Begin an act that stops before its n-th statement, if so asked."""
        self._left = stop_before
        self._is_there.clear()
        self._may_go_on.clear()
        self._future = self._threads.submit(_caught(act), self.database)

    def is_there(self) -> bool:
        """Whether it stands before that statement."""
        return self._is_there.is_set()

    def is_over(self) -> bool:
        """Whether the act has ended."""
        return self._future is not None and self._future.done()

    def end(self) -> Exception | None:
        """Let it go on, wait for its end and return what went wrong."""
        assert self._future is not None
        self._may_go_on.set()
        return self._future.result(DEADLINE_S)

    def close(self) -> None:
        """Let go of thread and connection."""
        self._may_go_on.set()
        self._threads.shutdown()
        self.database.close()

    def _stopping(self, call: Callable[..., object]) -> Callable[..., object]:
        def stop_and_call(*args: object, **named: object) -> object:
            if self._left == 0 and not self._is_there.is_set():
                self._is_there.set()
                assert self._may_go_on.wait(DEADLINE_S)
            self._left -= 1
            return call(*args, **named)

        return stop_and_call

    def _count_deadlock(self, error: Exception) -> bool:
        is_passing = self._is_passing(error)
        self.deadlocks += is_passing
        return is_passing


class Stepping:
    """Lets two acts meet before every statement of the first, one meeting after the other."""

    def __init__(self, target: Target) -> None:
        self._one, self._two = _Side(target), _Side(target)
        self._observer = connect(target)

    def sweep(
        self,
        db: Database,
        scene: Callable[[int], tuple[Act, Act]],
        check: Callable[[int], object],
        *,
        is_first: bool = True,
        refused: tuple[type[QueuectlError], ...] = (),
    ) -> int:
        """Let two acts meet at every step, in this order or the other; return how often both waited for each other.

        After each meeting nothing is wrong with the graph, and the check holds.
        """
        for step in range(MOST_STEPS):
            first, second = scene(step) if is_first else scene(step)[::-1]
            errors = self._meet(step, first, second)
            if errors is None:
                assert step >= FEWEST_STEPS, step
                return self._one.deadlocks + self._two.deadlocks
            unexpected = [error for error in errors if error is not None and not isinstance(error, refused)]
            assert not unexpected, f"{unexpected} at step {step}"
            wrong = db.read(faults)
            assert not wrong, f"{wrong} at step {step}"
            check(step)
        raise AssertionError(f"an act takes more than {MOST_STEPS} statements")

    def close(self) -> None:
        """Let go of every thread and connection."""
        for each in (self._one, self._two, self._observer):
            each.close()

    def _meet(self, step: int, first: Act, second: Act) -> "tuple[Exception | None, Exception | None] | None":
        """Let the second act run while the first stands before a statement; None: it has no more than that."""
        one, two = self._one, self._two
        one.start(first, stop_before=step)
        _until(lambda: one.is_there() or one.is_over())
        if one.is_over():
            return None
        two.start(second)
        _until(lambda: two.is_over() or self._is_waiting(two))
        return one.end(), two.end()

    def _is_waiting(self, side: _Side) -> bool:
        """Whether the database makes a side wait for the other."""
        sql = "SELECT 1 FROM pg_stat_activity WHERE pid = :pid AND wait_event_type = 'Lock'"
        return self._observer.read(lambda tx: tx.row(sql, {"pid": side.pid})) is not None


def _until(look: Callable[[], bool]) -> None:
    """Look again and again until something is so; often, since there are thousands of meetings."""
    until = time.monotonic() + DEADLINE_S
    while not look():
        assert time.monotonic() < until, "neither waits nor ends"
        time.sleep(0.001)


def _caught(act: Act) -> Callable[[Database], Exception | None]:
    """Return the act as one that returns what went wrong."""

    def caught(database: Database) -> Exception | None:
        try:
            act(database)
        except Exception as error:  # noqa: BLE001 - whatever it is, the test looks at it
            return error
        return None

    return caught
