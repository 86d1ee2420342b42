"""PostgreSQL through psycopg 3: the connection, parameters, NOTIFY and errors. The SQL of the queue is elsewhere."""

import encodings.ascii  # noqa: F401 - psycopg asks for it later, and a signal handler that connects amid that fails
import re
from functools import lru_cache
from itertools import chain, islice

import psycopg
from psycopg import errors as pg_errors

from queuectl.errors import StoreBusy, StoreError, StoreFull, StoreUnreachable
from queuectl.model.urls import without_password
from queuectl.store.dialect import Dialect, Question
from queuectl.store.postgres_connection import HASTY, PATIENT, SCHEMA, Connection, NoAnswer, open_connection

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from queuectl.store.dialect import Params, Row

CHANNEL = "queuectl"
CHANGE_CHANNEL = "queuectl_change"
KEEP_OUT_MS = 500
ALONE_SECONDS = 5
HOT_TABLES = ("jobs", "attempts", "workers")
COPY_FROM_ROWS = 50

_PARAMETER = re.compile(r"(?<![:\w]):([a-z_][a-z_0-9]*)")
_CLOCK = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint"
_BEGIN = f"BEGIN; SELECT {_CLOCK}"
_BEGIN_READING = _BEGIN.replace("BEGIN", "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", 1)


class PostgresDialect(Dialect):
    """One psycopg connection; READ COMMITTED, its own schema, reconnecting when it is found broken."""

    name = "postgres"
    is_local = False
    skip_locked = "FOR UPDATE SKIP LOCKED"
    for_update = "FOR UPDATE"
    for_share = "FOR SHARE"
    clock = _CLOCK
    is_watched = "EXISTS (SELECT 1 FROM watchers WHERE expires_at > :now)"

    def __init__(self, url: str, *, is_patient: bool = True) -> None:
        self._patience = PATIENT if is_patient else HASTY
        self._answer_s = self._patience.answer_s
        self._url = url
        self.address = without_password(url)
        self._texts: dict[str, str] = {}
        self._notices: list[str] = []
        self._is_listening = False
        self._channel = CHANNEL
        self._is_notified = False
        self._own_pid = 0
        self._connects = 0
        self.connection = self._connect()

    def begin(self, *, writing: bool) -> int:
        """Open a transaction and read the server's clock, in one round trip."""
        self._be_ready()
        # Two statements in one text cannot be prepared, and psycopg prepares what it sees often.
        cursor = self._cursor.execute(_BEGIN if writing else _BEGIN_READING, prepare=False)
        cursor.nextset()
        row = cursor.fetchone()
        return int(row[0] or 0) if row else 0

    def begin_asking(self, question: Question) -> "tuple[int, list[Row] | None]":
        """Open a writing transaction, read the clock and ask, in one round trip and by a plan that is kept."""
        self._be_ready()
        if question.name not in self._known:
            self._prepare(question)
        try:
            return self._begin_and_ask(question)
        except pg_errors.InvalidSqlStatementName:
            # psycopg has the server forget all that is prepared when a transaction was undone (DEALLOCATE ALL).
            self.rollback()
            self._prepare(question)
            return self._begin_and_ask(question)

    def _prepare(self, question: Question) -> None:
        self.connection.execute(f"PREPARE {question.name}(text) AS {question.sql}", prepare=False)
        self._known.add(question.name)

    def _begin_and_ask(self, question: Question) -> "tuple[int, list[Row] | None]":
        about = question.about.replace("'", "''")
        cursor = self._cursor.execute(f"BEGIN; EXECUTE {question.name}('{about}')", prepare=False)
        cursor.nextset()
        rows = cursor.fetchall()
        return int(rows[0][0] or 0), rows

    def _be_ready(self) -> None:
        if self.connection.closed:
            self.connection = self._connect()
            if self._is_listening:
                self.listen(self._channel)
        self._notices.clear()

    def commit(self) -> None:
        """Commit, synchronously as the server is set up; what is to be announced goes with it, in one round trip."""
        self._cursor.execute("; ".join([*self._notices, "COMMIT"]), prepare=False)

    def rollback(self) -> None:
        """Undo; a broken connection has undone it already."""
        try:
            if not self.connection.closed:
                self.connection.execute("ROLLBACK", prepare=False)
        except psycopg.Error:
            self.connection.close()

    def rows(self, sql: str, params: "Params") -> "list[Row]":
        """Run a statement and return its rows."""
        return self._cursor.execute(self._text(sql), params).fetchall()

    def changed(self, sql: str, params: "Params") -> int:
        """Run a statement and return how many rows it changed."""
        return self._cursor.execute(self._text(sql), params).rowcount

    def insert(self, table: str, values: "Params") -> None:
        """Insert one row."""
        self._cursor.execute(_insert(table, tuple(values)), tuple(values.values()))

    def insert_many(self, table: str, columns: "Sequence[str]", rows: "Iterable[Row]") -> None:
        """Insert a few rows by INSERT, many by COPY, as they come."""
        rows = iter(rows)
        first = list(islice(rows, COPY_FROM_ROWS))
        if len(first) == 1:
            self._cursor.execute(_insert(table, tuple(columns)), first[0])  # half of what a list of one takes
            return
        with self.connection.cursor() as cursor:
            if len(first) < COPY_FROM_ROWS:
                cursor.executemany(_insert(table, tuple(columns)), first)
                return
            with cursor.copy(f"COPY {table} ({', '.join(columns)}) FROM STDIN") as copy:
                for row in chain(first, rows):
                    copy.write_row(row)

    def lock_names(self, names: "Sequence[str]", *, wait: bool) -> "Sequence[str]":
        """See Dialect; an advisory lock of the transaction, so that a name needs no row."""
        function = "pg_advisory_xact_lock" if wait else "pg_try_advisory_xact_lock"
        calls = ", ".join(f"{function}(:key_{number})" for number in range(len(names)))
        params = {f"key_{number}": _lock_key(name) for number, name in enumerate(names)}
        got = self.rows(f"SELECT {calls}", params)[0]
        return names if wait else [name for name, is_ours in zip(names, got, strict=True) if is_ours]

    def at_rank(self, value: str, rank: int, count: int) -> str:
        """See Dialect: the function rounds up the share of the values, so half a place below is this one."""
        return f"percentile_disc({(rank - 0.5) / count!r}) WITHIN GROUP (ORDER BY {value})"

    def reserve_seqs(self, count: int) -> "Sequence[int]":
        """Take numbers from the sequence."""
        rows = self.rows(
            "SELECT nextval(pg_get_serial_sequence('jobs', 'seq')) FROM generate_series(1, :count)",
            {"count": count},
        )
        return sorted(int(row[0] or 0) for row in rows)

    def read_at_leisure(self) -> None:
        """Lift the limit on how long this transaction may rest between two statements."""
        self.connection.execute("SET LOCAL idle_in_transaction_session_timeout = 0")

    def last_number(self, table: str, column: str) -> int:
        """Return the highest number a table ever gave out."""
        rows = self.rows(f"SELECT max({column}) FROM {table}", {})
        return max(int(rows[0][0] or 0), self._given_out(self._sequence(table, column)))

    def begin_after(self, table: str, column: str, number: int) -> None:
        """Restart the sequence of a column behind a number, unless it is there already."""
        sequence = self._sequence(table, column)
        if self._given_out(sequence) >= number:
            return
        # Changes nothing but makes nextval wait, so that what is read next still holds when it is restarted: setval
        # takes no such lock, and could set the sequence back behind numbers that were just given out.
        self.connection.execute(f"ALTER SEQUENCE {sequence} CACHE 1")
        self.connection.execute(f"ALTER SEQUENCE {sequence} RESTART WITH {max(number, self._given_out(sequence)) + 1}")

    def take_alone(self, tables: "Sequence[str]") -> None:
        """Let nobody else read or write tables before this transaction ends; gives up soon when somebody does."""
        # A moment, not NOWAIT: autovacuum makes way, but takes a second to notice.
        self.script(f"SET LOCAL lock_timeout = '{ALONE_SECONDS}s'")
        self.script(f"LOCK TABLE {', '.join(tables)}, schema_version IN ACCESS EXCLUSIVE MODE")

    def keep_out(self, table: str) -> None:
        """See Dialect; whoever has read a table holds a lock on it until they commit, and this waits for them all."""
        # Those who come meanwhile wait behind this one, claims too: not for longer than they can bear.
        self.script(f"SET LOCAL lock_timeout = '{KEEP_OUT_MS}ms'")
        self.script(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")

    def empty(self, tables: "Sequence[str]") -> None:
        """Remove all rows of tables at once."""
        self.script(f"TRUNCATE {', '.join(tables)}")

    def learn(self) -> None:
        """Have the planner look at what is there now."""
        self.script(f"ANALYZE {', '.join(HOT_TABLES)}")

    def script(self, sql: str) -> None:
        """Run the statements of a migration."""
        self.connection.execute(sql)

    def schema_version(self) -> int:
        """Read the version from our own table, if it is there."""
        if self.rows("SELECT to_regclass('schema_version')::text", {})[0][0] is None:
            return 0
        rows = self.rows("SELECT version FROM schema_version", {})
        return int(rows[0][0] or 0) if rows else 0

    def set_schema_version(self, version: int) -> None:
        """Write the version into our own table."""
        if not self.changed("UPDATE schema_version SET version = :version", {"version": version}):
            self.changed("INSERT INTO schema_version (version) VALUES (:version)", {"version": version})

    def lock_for_setup(self) -> None:
        """Let one process at a time set up or migrate; held until the transaction ends."""
        self.rows("SELECT pg_advisory_xact_lock(hashtext('queuectl.migrate'))", {})
        self.script(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")

    def announce(self) -> None:
        """Notify at commit; PostgreSQL folds equal notifications of one transaction into one."""
        self._notices.append(f"NOTIFY {CHANNEL}")

    def announce_change(self, now: int) -> None:
        """Notify at commit if somebody watches: the server makes commits that notify one at a time."""
        is_watched = self.is_watched.replace(":now", str(now))
        self._notices.append(f"SELECT pg_notify('{CHANGE_CHANNEL}', '') WHERE {is_watched}")

    def listen(self, channel: str = CHANNEL) -> None:
        """Ask for notifications on this connection; `descriptor` turns readable when one arrives while it rests."""
        self._channel = channel
        self._is_listening = True
        self._own_pid = self.connection.info.backend_pid
        self.connection.add_notify_handler(self._heard)
        try:
            self.connection.execute(f"LISTEN {channel}", prepare=False)
        except psycopg.Error as error:
            raise self.translate(error) or error from error

    def unlisten(self) -> None:
        """Ask for no more notifications; a connection that is broken has forgotten already."""
        self._is_listening = False
        try:
            if not self.connection.closed:
                self.connection.remove_notify_handler(self._heard)
                self.connection.execute(f"UNLISTEN {self._channel}", prepare=False)
        except psycopg.Error:
            self.connection.close()

    def keep_to_indexes(self) -> None:
        """See Dialect: the planner takes an index for dearer than the table when it holds nearly all of its rows."""
        self._cursor.execute("SET LOCAL enable_seqscan = off", prepare=False)

    def take_notified(self) -> bool:
        """Whether another connection notified since the last call, also while a statement ran here."""
        notified, self._is_notified = self._is_notified, False
        return notified

    def take_in(self) -> None:
        """Take in the notifications that have come while the connection rested: who looks now sees what they tell of.

        Else the next statement would find them, and they would be heard once more after it.
        """
        pgconn = self.connection.pgconn
        try:
            pgconn.consume_input()
            while pgconn.notifies() is not None:
                pass
        except psycopg.Error:
            pass  # the connection is lost: the next statement finds out, and is the one to say so

    def limit_answers(self, seconds: float | None) -> None:
        """Wait at most so long for each answer from now on; None: as long as usual."""
        self._answer_s = self.connection.answer_s = seconds or self._patience.answer_s

    @property
    def longest_begin_s(self) -> float:
        """How long it may take to learn that the server does not answer."""
        return self._answer_s + (self._patience.connect_s if self.connection.closed else 0.0)

    @property
    def descriptor(self) -> tuple[int, int]:
        """The connection's socket and how often it was opened; a new one may have the number of the old."""
        return self.connection.fileno(), self._connects

    def translate(self, error: Exception) -> StoreError | None:
        """Put an error of psycopg into words, never showing the password."""
        if not isinstance(error, psycopg.Error):
            return None
        if isinstance(error, pg_errors.LockNotAvailable | pg_errors.QueryCanceled):
            return StoreBusy(
                f"PostgreSQL rows were locked for {self._patience.lock_s:g} s", hint="try again in a moment"
            )
        if isinstance(error, pg_errors.IdleInTransactionSessionTimeout):
            return StoreError(
                "PostgreSQL ended a transaction that rested for too long between two statements",
                hint="nothing was changed; try again. Was this host stopped, or very busy?",
            )
        if isinstance(error, pg_errors.DiskFull):
            return StoreFull("PostgreSQL has no space left", hint="free some disk space; nothing was changed")
        if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
            return StoreUnreachable(
                f"cannot use PostgreSQL at {without_password(self._url)}: {self._words(error)}",
                hint="is the server running, and QUEUECTL_DATABASE_URL right?",
            )
        if isinstance(error, pg_errors.InsufficientPrivilege):
            return StoreUnreachable(
                f"PostgreSQL refused: {_first_line(error)}",
                hint="grant the role CREATE on the database, or USAGE on the schema",
            )
        return StoreError(f"PostgreSQL said: {_first_line(error)}", hint="see the server's log")

    def is_passing(self, error: Exception) -> bool:
        """Whether the server asks to run the transaction again."""
        return isinstance(error, pg_errors.SerializationFailure | pg_errors.DeadlockDetected)

    def is_duplicate(self, error: Exception) -> bool:
        """Whether a unique key is taken."""
        return isinstance(error, pg_errors.UniqueViolation)

    def close(self) -> None:
        """Close the connection."""
        self.connection.close()

    def _heard(self, notify: psycopg.Notify) -> None:
        self._is_notified = self._is_notified or notify.pid != self._own_pid

    def _sequence(self, table: str, column: str) -> str:
        params: Params = {"table": table, "column": column}
        return str(self.rows("SELECT pg_get_serial_sequence(:table, :column)", params)[0][0])

    def _given_out(self, sequence: str) -> int:
        rows = self.rows(f"SELECT last_value - CASE WHEN is_called THEN 0 ELSE 1 END FROM {sequence}", {})
        return int(rows[0][0] or 0)

    def _connect(self) -> Connection:
        try:
            connection = open_connection(self._url, self._patience, self._answer_s)
        except psycopg.Error as error:
            raise self.translate(error) or error from error
        self._connects += 1
        self._known: set[str] = set()
        self._cursor = connection.cursor()  # one for all: to make one takes as long as to use it
        return connection

    def _words(self, error: Exception) -> str:
        if isinstance(error, NoAnswer):
            return f"no answer for {self._answer_s:g} s"
        return _first_line(error)

    def _text(self, sql: str) -> str:
        text = self._texts.get(sql)
        if text is None:
            text = self._texts[sql] = _PARAMETER.sub(r"%(\1)s", sql.replace("%", "%%"))
        return text


@lru_cache(maxsize=64)
def _insert(table: str, columns: tuple[str, ...]) -> str:
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join(['%s'] * len(columns))})"


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or ["no reason given"])[0]


def _lock_key(name: str) -> int:
    """Return the number of an advisory lock: two names that share one wait for each other, which does no harm."""
    import hashlib

    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8, person=b"queuectl").digest(), signed=True)
