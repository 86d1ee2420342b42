"""Dialect: everything in which SQLite and PostgreSQL differ, as few methods as they need."""

from abc import ABC, abstractmethod

from queuectl.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from queuectl.errors import StoreError

    SqlValue = str | int | float | bytes | None
    Row = tuple[SqlValue, ...]
    Params = Mapping[str, SqlValue]


class Table(Value):
    """A table as both databases have it: its columns in order, and those that tell its rows apart."""

    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...]
    refers: bool
    """Whether its rows need rows of other tables."""


class Question(Value):
    """What a transaction begins with asking, over and over: one text may be about one worker after the other."""

    name: str
    sql: str
    """Its first column is the database's clock, and there is always a row; `$1` is what it is about."""
    about: str


class Dialect(ABC):
    """One open connection of one kind of database. Statements use `:name` parameters on both."""

    name: str
    is_local: bool
    """Whether all who use this store run on one machine, so that each can reach the locks of the others."""
    address: str
    """What tells this store from others, without a password."""
    lock_folder = ""
    """Where the locks of all who use a local store lie, as seen from here."""
    skip_locked: str
    """Ends a SELECT that takes rows for this transaction and passes by those another holds."""
    for_update: str
    """Ends a SELECT whose rows this transaction is about to change; waits for whoever holds them."""
    is_watched: str
    """A condition that holds while somebody wants to be told of changes; uses `:now`."""
    clock = ""
    """Reads the database's clock in a statement, where it has one."""
    for_share: str
    """Ends a SELECT whose rows must not change before this transaction ends."""

    @abstractmethod
    def begin(self, *, writing: bool) -> int:
        """Open a transaction and return the database's clock in milliseconds."""

    def begin_asking(self, _question: Question) -> "tuple[int, list[Row] | None]":
        """Open a writing transaction and ask at once, where that saves a trip to a server; None: it was not asked."""
        return self.begin(writing=True), None

    @abstractmethod
    def commit(self) -> None:
        """Make the transaction's writes durable and visible."""

    @abstractmethod
    def rollback(self) -> None:
        """Undo the transaction; never raises, also not on a broken connection."""

    @abstractmethod
    def rows(self, sql: str, params: "Params") -> "list[Row]":
        """Run a statement and return its rows."""

    @abstractmethod
    def changed(self, sql: str, params: "Params") -> int:
        """Run a statement and return how many rows it changed."""

    @abstractmethod
    def insert(self, table: str, values: "Params") -> None:
        """Insert one row."""

    @abstractmethod
    def insert_many(self, table: str, columns: "Sequence[str]", rows: "Iterable[Row]") -> None:
        """Insert rows as fast as this database can."""

    @abstractmethod
    def lock_names(self, names: "Sequence[str]", *, wait: bool) -> "Sequence[str]":
        """Keep others from locking these names until this transaction ends; return those it got.

        All who lock several name them in the same order. Without `wait`, a name another holds is left out.
        """

    @abstractmethod
    def at_rank(self, value: str, rank: int, count: int) -> str:
        """Return the aggregate that gives the value at a place, from 1, among so many in order; it skips nulls."""

    @abstractmethod
    def reserve_seqs(self, count: int) -> "Sequence[int]":
        """Return the next job numbers in order; they are never given out again."""

    @abstractmethod
    def last_number(self, table: str, column: str) -> int:
        """Return the highest number a table ever gave out, as far as it knows."""

    @abstractmethod
    def begin_after(self, table: str, column: str, number: int) -> None:
        """Give out numbers of a table beyond one from now on; who adds rows meanwhile waits for this transaction."""

    @abstractmethod
    def script(self, sql: str) -> None:
        """Run the statements of a migration within the open transaction."""

    @abstractmethod
    def schema_version(self) -> int:
        """Return the version of the schema, 0 for an empty database."""

    @abstractmethod
    def set_schema_version(self, version: int) -> None:
        """Record the version of the schema."""

    @abstractmethod
    def announce(self) -> None:
        """Tell listening workers at commit that work is ready, where the database itself can."""

    @abstractmethod
    def announce_change(self, now: int) -> None:
        """Tell those who watch at commit that jobs changed, where the database itself can and somebody watches."""

    @abstractmethod
    def translate(self, error: Exception) -> "StoreError | None":
        """Return what a driver's error means for a person; None if it is not the driver's."""

    @abstractmethod
    def is_passing(self, error: Exception) -> bool:
        """Whether the same transaction may simply be run again (deadlock, serialisation failure)."""

    @abstractmethod
    def is_duplicate(self, error: Exception) -> bool:
        """Whether the error is a unique key that is taken."""

    def make_room(self) -> bool:
        """Give space back that is not needed, after a write found none; False means there was nothing to give."""
        return False

    def shrink(self, pages: int) -> bool:
        """Give some of the space that nothing uses back to the disk; True means there is more to give."""
        return False

    def rewrite(self) -> tuple[int, int]:
        """Write the whole store anew without the space that nothing uses; return its bytes before and after.

        A server looks after its own space: nothing is done, and nothing is gained.
        """
        return 0, 0

    def keep_out(self, table: str) -> None:  # noqa: B027 - one writes a file at a time
        """Wait until nobody else uses a table, and keep others from it until this transaction ends; gives up soon."""

    def keep_to_indexes(self) -> None:  # noqa: B027 - SQLite goes by the indexes that hold what is asked for
        """Read no table whole in this transaction where an index would do."""

    def limit_answers(self, seconds: float | None) -> None:  # noqa: B027 - a file answers at once
        """Wait at most so long for each answer of a server from now on; None: as long as usual."""

    def read_at_leisure(self) -> None:  # noqa: B027 - a file waits for anybody
        """Let this transaction rest for as long as whoever takes in what it reads needs."""

    @property
    def longest_begin_s(self) -> float:
        """How long it may take to learn that a server does not answer."""
        return 0.0

    @abstractmethod
    def close(self) -> None:
        """Close the connection; closing twice is fine."""
