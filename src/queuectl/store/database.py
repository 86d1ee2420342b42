"""Database: runs a function in one transaction. What differs between the two kinds is in dialect.py."""

import time
from contextlib import contextmanager

from queuectl.errors import BadInput, CommitInDoubt, Refused, StoreFull, StoreUnreachable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import TypeVar

    from queuectl.store.dialect import Dialect, Params, Question, Row

    Result = TypeVar("Result")

MAX_TRIES = 8


class Tx:
    """One open transaction: its statements, and `now`, the one reading of the database's clock in it."""

    __slots__ = ("answer", "dialect", "discarded", "is_telling", "is_waking", "is_watched", "locked", "now")

    def __init__(self, dialect: "Dialect", now: int) -> None:
        self.dialect = dialect
        self.now = now
        self.is_waking = False
        self.is_telling = False
        self.is_watched = True
        self.answer: list[Row] | None = None
        """What it began with asking, where that was asked with its beginning."""
        self.discarded: list[str] = []
        self.locked: set[str] = set()

    def lock(self, names: "Iterable[str]") -> set[str]:
        """Keep others from locking these names until this transaction ends; return those of them it holds.

        The first call of a transaction waits for whoever holds them. Later ones do not, so that two transactions never
        wait for each other: what another holds is left out. What is counted under a lock is read after this.
        """
        wanted = set(names)
        missing = sorted(wanted - self.locked)
        if missing:
            self.locked.update(self.dialect.lock_names(missing, wait=not self.locked))
        return wanted & self.locked

    def try_lock(self, names: "Iterable[str]") -> set[str]:
        """Lock as `lock` does, but never wait: a worker that claims has better to do."""
        wanted = set(names)
        missing = sorted(wanted - self.locked)
        if missing:
            self.locked.update(self.dialect.lock_names(missing, wait=False))
        return wanted & self.locked

    def rows(self, sql: str, params: "Params" = {}) -> "list[Row]":  # noqa: B006 - never written to
        """Run a statement and return its rows."""
        return self.dialect.rows(sql, params)

    def row(self, sql: str, params: "Params" = {}) -> "Row | None":  # noqa: B006
        """Run a statement and return its first row."""
        rows = self.dialect.rows(sql, params)
        return rows[0] if rows else None

    def changed(self, sql: str, params: "Params" = {}) -> int:  # noqa: B006
        """Run a statement and return how many rows it changed."""
        return self.dialect.changed(sql, params)

    def insert(self, table: str, values: "Params") -> None:
        """Insert one row."""
        self.dialect.insert(table, values)

    def insert_many(self, table: str, columns: "Sequence[str]", rows: "Iterable[Row]") -> None:
        """Insert many rows at once."""
        self.dialect.insert_many(table, columns, rows)

    @contextmanager
    def part(self) -> "Iterator[None]":
        """Undo what the block has written where it refuses something: the transaction may go on without it."""
        locked = set(self.locked)
        self.dialect.script("SAVEPOINT part")
        try:
            yield
        except (Refused, BadInput):
            self.dialect.script("ROLLBACK TO SAVEPOINT part")
            self.locked = locked  # PostgreSQL lets go of what was locked since
            raise
        self.dialect.script("RELEASE SAVEPOINT part")

    def wake(self) -> None:
        """Say that this transaction makes work ready (or gives orders): idle workers look once it is committed."""
        if not self.is_waking:
            self.is_waking = True
            self.dialect.announce()
        self.tell()

    def tell(self) -> None:
        """Say that this transaction changes jobs: whoever watches them looks once it is committed.

        `is_watched` False means nobody does, as somebody in this transaction has seen; then nothing is said.
        """
        if self.is_watched and not self.is_telling:
            self.is_telling = True
            self.dialect.announce_change(self.now)

    def discard(self, names: "Iterable[str]") -> None:
        """Say that output files belong to nothing any more once this transaction is committed."""
        self.discarded.extend(names)


class Database:
    """A store that is open in this thread.

    After a commit, `ring` is called when it made work ready, `tell` when it changed jobs, and `sweep` with the output
    files it left without a job.
    """

    def __init__(
        self,
        dialect: "Dialect",
        ring: "Callable[[], None]",
        tell: "Callable[[], None]",
        sweep: "Callable[[Sequence[str]], None]",
    ) -> None:
        self.dialect = dialect
        self.read_clock: Callable[[int], int] = lambda now: now
        self._ring = ring
        self._tell = tell
        self._sweep = sweep

    def write(self, work: "Callable[[Tx], Result]", question: "Question | None" = None) -> "Result":
        """Run `work` in one transaction that is committed when it returns and undone when it raises.

        `question` is what it will ask first; where a server is asked, the answer comes with the beginning.

        `work` may be called again after a deadlock, so it must not change anything but the database.
        """
        for turn in range(MAX_TRIES):
            try:
                return self._once(work, question, writing=True)
            except Exception as error:
                told = self._told(error)
                if turn == 0 and isinstance(told, StoreFull) and self.dialect.make_room():
                    continue
                if turn == MAX_TRIES - 1 or not self.dialect.is_passing(error):
                    raise told from error
                _pause(turn)
        raise AssertionError("unreachable")

    def read(self, work: "Callable[[Tx], Result]") -> "Result":
        """Run `work` on one consistent view of the database."""
        try:
            return self._once(work, writing=False)
        except Exception as error:
            raise self._told(error) from error

    def close(self) -> None:
        """Close the connection."""
        self.dialect.close()

    def _once(self, work: "Callable[[Tx], Result]", question: "Question | None" = None, *, writing: bool) -> "Result":
        dialect = self.dialect
        try:
            if question is None:
                tx = Tx(dialect, self.read_clock(dialect.begin(writing=writing)))
            else:
                now, answer = dialect.begin_asking(question)
                tx = Tx(dialect, self.read_clock(now))
                tx.answer = answer
            result = work(tx)
            try:
                dialect.commit()
            except Exception as error:
                if writing and (doubt := self._doubt(error)):
                    raise doubt from error
                raise
        except BaseException:
            dialect.rollback()
            raise
        if tx.is_waking:
            self._ring()
        if tx.is_telling:
            self._tell()
        if tx.discarded:
            self._sweep(tx.discarded)
        return result

    def _doubt(self, error: Exception) -> CommitInDoubt | None:
        """Return what to say where a COMMIT failed and nobody knows whether it took place: its answer is missing."""
        told = self.dialect.translate(error)
        if self.dialect.is_local or not isinstance(told, StoreUnreachable):
            return None
        return CommitInDoubt(
            f"{told.message}; the answer to the last COMMIT is missing",
            hint="the change may have been made all the same: look before you repeat it",
        )

    def _told(self, error: Exception) -> Exception:
        if self.dialect.is_duplicate(error):
            return Refused("a job with this id already exists", hint="choose another id, or leave it out for a number")
        if isinstance(error, UnicodeEncodeError):
            return BadInput(f"{str(error.object)[:80]!r} is not valid UTF-8", hint="a database holds text alone")
        return self.dialect.translate(error) or error


def _pause(turn: int) -> None:
    """Wait a little, longer each time and by chance, so that two that collided do not collide again."""
    import random  # costs more to import than most commands spend in the store

    time.sleep(random.uniform(0, 0.005 * 2**turn))
