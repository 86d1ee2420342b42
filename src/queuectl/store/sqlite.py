"""SQLite through APSW: the connection, its busy handling and its errors. The SQL of the queue is elsewhere."""

import os
import time
from functools import lru_cache
from itertools import chain, islice

import apsw

from queuectl import clock
from queuectl.errors import NotAStore, StoreBusy, StoreError, StoreFull, StoreUnreachable
from queuectl.store.dialect import Dialect, Table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from queuectl.store.dialect import Params, Row

APPLICATION_ID = 0x51435431  # "QCT1": tells our file from any other SQLite database
BUSY_SECONDS = 10.0
HASTY_BUSY_SECONDS = 0.5
LOOKS = 10  # at the write lock between two pauses: most hold it for less time than the shortest pause takes
HEADER_BYTES = 100  # SQLite takes a shorter file for an empty one and would write over it
AUTOCHECKPOINT_PAGES = 16_000  # a net of 64 MB where no supervisor runs; the supervisor keeps the file far below
TIGHT_BYTES = 256 << 20  # with less room on the disk than this, the log must not grow so far
TIGHT_AUTOCHECKPOINT_PAGES = 100
PROGRESS_STEPS = 1000
READ_LOCKS = (123, 127)  # bytes of the -shm file that readers hold: the log cannot begin anew before they end
INCREMENTAL = 2  # what PRAGMA auto_vacuum says of a file that gives space back when asked
COPY_PAGES = 1000  # a step of a copy; whoever makes it can be stopped in between
ROWS_AT_ONCE = 64  # rows of one INSERT: opening a dozen indexes for each row takes as long as writing it
LARGE_ROWS = frozenset({"inputs"})  # up to 16 MiB each, and SQLite copies what a statement is given
SPARE_PAGES = 256  # free pages that stay, beside a tenth of the file: new jobs use them again

_READING = apsw.SQLITE_OPEN_READONLY
_WRITING = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
_UNUSABLE = (apsw.CantOpenError, apsw.ReadOnlyError, apsw.PermissionsError, apsw.IOError)


class SqliteDialect(Dialect):
    """One APSW connection in WAL mode."""

    name = "sqlite"
    is_local = True
    skip_locked = ""
    for_update = ""
    for_share = ""
    is_watched = "1 = 1"  # to tell costs next to nothing here

    def __init__(
        self,
        path: str,
        *,
        is_durable: bool,
        busy_seconds: float = BUSY_SECONDS,
        is_reading: bool = False,
        is_alone: bool = False,
    ) -> None:
        self.path = self.address = path
        self._busy_seconds = busy_seconds
        self._busy_until = 0.0
        refuse_log_alone(path)
        try:
            self.connection = apsw.Connection(path, flags=_READING if is_reading else _WRITING)
        except apsw.Error as error:
            raise self.translate(error) or error from error
        try:
            self._cursor = self.connection.cursor()
            self.connection.set_busy_handler(self._wait_for_lock)
            self.connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
            # Else SQLite plans a statement anew for each value it is given (STAT4): half the cost of a claim.
            self.connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
            if is_alone:
                # Before anything is read: from then on no other connection, also of another process, can be open.
                self._cursor.execute("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; COMMIT").fetchall()
            level = "FULL" if is_durable else "NORMAL"
            self._cursor.execute(
                f"PRAGMA synchronous = {level}; PRAGMA wal_autocheckpoint = {_autocheckpoint_pages(path)}"
            ).fetchall()
        except apsw.Error as error:
            self.connection.close()
            raise self.translate(error) or error from error

    def begin(self, *, writing: bool) -> int:
        """Open a transaction; a writing one takes the write lock at once, so it cannot fail half way."""
        self._cursor.execute("BEGIN IMMEDIATE" if writing else "BEGIN")
        return clock.wall_ms()

    def commit(self) -> None:
        """Commit; with synchronous=FULL the write-ahead log is synced first."""
        self._cursor.execute("COMMIT")

    def rollback(self) -> None:
        """Undo, unless SQLite has done so itself."""
        try:
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK")
        except apsw.Error:
            pass  # the error that led here is the one to tell

    def rows(self, sql: str, params: "Params") -> "list[Row]":
        """Run a statement and return its rows."""
        return self._cursor.execute(sql, params).fetchall()

    def changed(self, sql: str, params: "Params") -> int:
        """Run a statement and return how many rows it changed."""
        self._cursor.execute(sql, params)
        return self.connection.changes()

    def insert(self, table: str, values: "Params") -> None:
        """Insert one row; by place, since to bind two dozen values by name takes as long as to write them."""
        self._cursor.execute(_insert(table, tuple(values), 1), tuple(values.values()))

    def insert_many(self, table: str, columns: "Sequence[str]", rows: "Iterable[Row]") -> None:
        """Insert rows, many by one statement."""
        rows = iter(rows)
        at_once = 1 if table in LARGE_ROWS else ROWS_AT_ONCE
        while batch := list(islice(rows, at_once)):
            self._cursor.execute(_insert(table, tuple(columns), len(batch)), list(chain.from_iterable(batch)))

    def lock_names(self, names: "Sequence[str]", *, wait: bool) -> "Sequence[str]":
        """See Dialect: only one transaction at a time writes."""
        return names

    def at_rank(self, value: str, rank: int, count: int) -> str:
        """See Dialect: the function rounds down the share of the way from the first value to the last."""
        return f"percentile_disc({value}, {min(1.0, (rank - 0.5) / max(1, count - 1))!r})"

    def reserve_seqs(self, count: int) -> range:
        """Return the numbers after the highest ever used; the write lock keeps others from taking them."""
        first = self._given_out("jobs") + 1
        return range(first, first + count)

    def script(self, sql: str) -> None:
        """Run the statements of a migration."""
        self._cursor.execute(sql).fetchall()

    def schema_version(self) -> int:
        """Read the version from the file's header; refuse a file of another program."""
        if 0 < os.path.getsize(self.path) < HEADER_BYTES:
            raise NotAStore(f"{self.path} is not a database", hint="point QUEUECTL_HOME or --db at another file")
        version = self._pragma("user_version")
        if version and self._pragma("application_id") != APPLICATION_ID:
            raise self._foreign()
        if not version and self._cursor.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchone():
            raise self._foreign()
        return version

    def set_schema_version(self, version: int) -> None:
        """Write the version into the file's header."""
        self._cursor.execute(f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {version}")

    def announce(self) -> None:
        """Nothing to do: on one host the wake file tells (`Database` rings after the commit)."""

    def announce_change(self, now: int) -> None:
        """Nothing to do: `Database` touches a file after the commit."""

    def use_wal(self) -> None:
        """Switch a new file to write-ahead logging, for good; call it with the setup lock held."""
        mode = self._cursor.execute("PRAGMA journal_mode = WAL").fetchone()
        if mode != ("wal",):
            raise StoreUnreachable(f"{self.path} cannot use write-ahead logging (mode {mode})", hint="use a local disk")

    def use_incremental_vacuum(self) -> None:
        """Let a file that holds nothing yet give space back bit by bit; only before its first page is written.

        Not where space is tight: what it writes beside makes the log grow faster than such a disk can take.
        """
        if not _is_tight(self.path):
            self._cursor.execute("PRAGMA auto_vacuum = INCREMENTAL")

    def shrink(self, pages: int) -> bool:
        """Give free pages back from the end of the file, when they are many; True means there are more."""
        try:
            if not self.gives_space_back() or not self._has_spare_pages():
                return False
            self._cursor.execute(f"PRAGMA incremental_vacuum({pages})").fetchall()
            if self._has_spare_pages():
                return True
        except apsw.Error as error:
            raise self.translate(error) or error from error
        self.checkpoint(restart=False)  # the file itself ends where the log says only then
        return False

    def gives_space_back(self) -> bool:
        """Whether `shrink` can do anything for this file."""
        return self._pragma("auto_vacuum") == INCREMENTAL

    def rewrite(self) -> tuple[int, int]:
        """Write the file anew, from now on one that gives space back bit by bit."""
        self.checkpoint(restart=False)  # else the file may be far smaller than what is in it
        before = os.path.getsize(self.path)
        try:
            self._cursor.execute("PRAGMA auto_vacuum = INCREMENTAL; VACUUM").fetchall()
            self.connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        except apsw.Error as error:
            raise self.translate(error) or error from error
        return before, os.path.getsize(self.path)

    def _has_spare_pages(self) -> bool:
        return self._pragma("freelist_count") >= max(SPARE_PAGES, self._pragma("page_count") // 10)

    def is_wal(self) -> bool:
        """Whether the file uses write-ahead logging."""
        return self._cursor.execute("PRAGMA journal_mode").fetchone() == ("wal",)

    def damage(self, *, is_deep: bool = True, within_s: float | None = None) -> list[str] | None:
        """Return what SQLite finds wrong with the file, nothing when it is whole; None means the time was over first.

        The quick way leaves out whether indexes and tables agree.
        """
        until = None if within_s is None else time.monotonic() + within_s
        self.connection.set_progress_handler(lambda: until is not None and time.monotonic() >= until, PROGRESS_STEPS)
        try:
            found = self._cursor.execute(f"PRAGMA {'integrity_check' if is_deep else 'quick_check'}(10)").fetchall()
        except apsw.InterruptError:
            return None
        finally:
            self.connection.set_progress_handler(None)
        return [str(row[0]) for row in found if row != ("ok",)]

    def leave_wal(self) -> None:
        """Make the file one that needs nothing beside it, as a copy to be kept is."""
        try:
            self._cursor.execute("PRAGMA journal_mode = DELETE").fetchall()
        except apsw.Error as error:
            raise self.translate(error) or error from error

    def do_not_sync(self) -> None:
        """Write a new file as fast as possible; whoever made it syncs it when it is whole."""
        self._cursor.execute("PRAGMA synchronous = OFF")

    def copy_to(self, path: str) -> None:
        """Copy the committed state into a new file, whole, through the backup interface."""
        # Within one read transaction: else every commit of a worker would make the copy begin anew, for ever.
        self._cursor.execute("BEGIN; SELECT 1 FROM sqlite_schema LIMIT 1").fetchall()
        try:
            _copy_pages(self.connection, path)
        finally:
            self._cursor.execute("ROLLBACK")

    def replace_by(self, path: str) -> None:
        """Put the content of another file in the place of all that is here, in one transaction."""
        source = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY)
        try:
            with self.connection.backup("main", source, "main") as backup:
                while not backup.done:
                    backup.step(COPY_PAGES)
            self.connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        except apsw.Error as error:
            raise self.translate(error) or error from error
        finally:
            source.close()

    def tables(self) -> list[Table]:
        """Return every table of the queue, parents before what refers to them."""
        names = self._cursor.execute("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
        found = [self._table(str(name)) for (name,) in names.fetchall()]
        return sorted(found, key=lambda table: (table.refers, table.name))

    def _table(self, name: str) -> Table:
        columns = self._cursor.execute(f"PRAGMA table_info({name})").fetchall()
        keys = sorted((column[5], str(column[1])) for column in columns if column[5])
        refers = self._cursor.execute(f"PRAGMA foreign_key_list({name})").fetchall()
        return Table(
            name=name,
            columns=tuple(str(column[1]) for column in columns),
            key=tuple(key for _, key in keys),
            refers=bool(refers),
        )

    def last_number(self, table: str, column: str) -> int:
        """Return the highest number a table ever gave out, as far as it knows."""
        row = self._cursor.execute(f"SELECT max({column}) FROM {table}").fetchone()
        return max(int(row[0] or 0) if row else 0, self._given_out(table))

    def begin_after(self, table: str, column: str, number: int) -> None:
        """Raise the number AUTOINCREMENT goes on from; SQLite lets that table be written to."""
        made = self._cursor.execute("SELECT sql FROM sqlite_schema WHERE name = ?", (table,)).fetchone()
        if self._given_out(table) >= number or made is None or "AUTOINCREMENT" not in str(made[0]):
            return  # without it, it goes by what is in the table
        self._cursor.execute("DELETE FROM sqlite_sequence WHERE name = ?", (table,))
        self._cursor.execute("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", (table, number))

    def checkpoint(self, *, restart: bool) -> bool:
        """Move the log into the database file; with `restart` also make the next writer begin the log anew.

        False means not all of it was moved: readers or a writer are at work, or the disk is full. A later one does it.
        """
        mode = apsw.SQLITE_CHECKPOINT_RESTART if restart else apsw.SQLITE_CHECKPOINT_PASSIVE
        try:
            logged, moved = self.connection.wal_checkpoint(mode=mode)
        except apsw.Error:
            return False
        return logged == moved

    def make_room(self) -> bool:
        """Let the next write use the log's own space again: what is in it may be in the file by now."""
        return self.checkpoint(restart=True)

    def translate(self, error: Exception) -> StoreError | None:
        """Put an error of APSW into words."""
        if isinstance(error, apsw.BusyError | apsw.LockedError):
            return StoreBusy(
                f"{self.path} was locked by another process for {self._busy_seconds:g} s",
                hint="try again in a moment",
            )
        return told_of(self.path, error)

    def is_passing(self, error: Exception) -> bool:
        """SQLite serialises writers, so nothing needs to be run again."""
        return False

    def is_duplicate(self, error: Exception) -> bool:
        """Whether a unique key is taken."""
        return isinstance(error, apsw.ConstraintError) and "UNIQUE" in str(error)

    def close(self) -> None:
        """Close the connection, without a checkpoint."""
        self.connection.close()

    def _given_out(self, table: str) -> int:
        """Return the number AUTOINCREMENT goes on from."""
        row = self._cursor.execute("SELECT seq FROM sqlite_sequence WHERE name = ?", (table,)).fetchone()
        return int(row[0]) if row else 0

    def _pragma(self, name: str) -> int:
        row = self._cursor.execute(f"PRAGMA {name}").fetchone()
        return int(row[0]) if row else 0

    def _foreign(self) -> NotAStore:
        return NotAStore(
            f"{self.path} is a database of another program",
            hint="point QUEUECTL_HOME or --db at another file",
        )

    def _wait_for_lock(self, tries: int) -> bool:
        """Poll for the write lock quickly at first: a claim holds it for a tenth of a millisecond."""
        now = time.monotonic()
        if tries == 0:
            self._busy_until = now + self._busy_seconds
        if now >= self._busy_until:
            return False
        pauses = tries // LOOKS
        if tries % LOOKS < LOOKS - 1:
            os.sched_yield()
        else:
            time.sleep(0.0002 if pauses < 25 else 0.001 if pauses < 100 else 0.01)
        return True


@lru_cache(maxsize=64)
def _insert(table: str, columns: tuple[str, ...], rows: int) -> str:
    marks = f"({', '.join('?' * len(columns))})"
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES {', '.join([marks] * rows)}"


def refuse_log_alone(path: str) -> None:
    """Refuse a log whose database is missing or empty: SQLite would throw it away, and what was committed with it."""
    log = f"{path}-wal"
    if _size(path) == 0 and _size(log) > 0:
        raise NotAStore(
            f"{log} holds changes of a database that is not there any more",
            hint=f"restore a copy of {path}, or move {log} away to begin anew",
        )


def _size(path: str) -> int:
    try:
        return os.path.getsize(path)
    except OSError:
        return 0


def library_version() -> str:
    """Return the version of the SQLite that APSW brings."""
    return apsw.sqlite_lib_version()


def told_of(path: str, error: Exception) -> StoreError | None:
    """Put an error of APSW about a file into words; None if it is not one of its."""
    if isinstance(error, apsw.FullError):
        return StoreFull(f"no space left to write {path}", hint="free some disk space; nothing was changed")
    if isinstance(error, apsw.NotADBError | apsw.CorruptError):
        return NotAStore(
            f"{path} is not a database or is damaged: {error}",
            hint="point QUEUECTL_HOME or --db elsewhere, or restore a copy",
        )
    if isinstance(error, _UNUSABLE):
        return StoreUnreachable(f"cannot use {path}: {error}", hint=_permission_hint(path))
    if isinstance(error, apsw.Error):
        return StoreError(f"SQLite said of {path}: {error}", hint="check the file and the disk")
    return None


class Archive:
    """A file that may be a copy of a queue, opened so that nothing is written to it or beside it."""

    def __init__(self, path: str) -> None:
        self.path = path
        try:
            self._connection = _open_untouched(path)
            self.version = int(self._connection.pragma("user_version"))
            is_ours = bool(self.version) and self._connection.pragma("application_id") == APPLICATION_ID
        except apsw.Error as error:
            raise self._told(error) from error
        if not is_ours:
            raise self._foreign()

    def count_jobs(self) -> int:
        """Return how many jobs are in it, once all of it was found whole."""
        try:
            found = [str(row[0]) for row in self._connection.execute("PRAGMA integrity_check(1)")]
            if found != ["ok"]:
                raise self._damaged(" ".join(found))
            return int(self._connection.execute("SELECT count(*) FROM jobs").fetchone()[0])  # type: ignore[index]
        except apsw.Error as error:
            raise self._told(error) from error

    def copy_to(self, path: str) -> None:
        """Copy it into a new file."""
        try:
            _copy_pages(self._connection, path)
        except apsw.FullError:
            raise StoreFull(f"no space left for a copy of {self.path} at {path}", hint="free some disk space") from None
        except apsw.Error as error:
            raise self._told(error) from error

    def close(self) -> None:
        """Close it."""
        self._connection.close()

    def _told(self, error: apsw.Error) -> StoreError:
        if isinstance(error, apsw.NotADBError):
            return self._foreign()
        if isinstance(error, apsw.CorruptError | apsw.IOError):
            return self._damaged(str(error))
        if isinstance(error, apsw.BusyError):
            return StoreBusy(f"{self.path} is being written", hint="wait until it is whole")
        return told_of(self.path, error) or StoreError(f"SQLite said of {self.path}: {error}")

    def _foreign(self) -> NotAStore:
        return NotAStore(f"{self.path} is not a database of queuectl", hint="give a file that queuectl backup made")

    def _damaged(self, words: str) -> NotAStore:
        return NotAStore(f"{self.path} is damaged: {words}", hint="nothing was changed; take another backup")


def _open_untouched(path: str) -> apsw.Connection:
    """Open a file for reading alone; one that was left in WAL mode with nothing beside it as it stands."""
    from urllib.parse import quote

    with open(path, "rb") as file:
        header = file.read(HEADER_BYTES)
    if len(header) < HEADER_BYTES:
        raise apsw.NotADBError("file is too short")
    is_wal = header[18:20] == b"\x02\x02"
    how = "immutable=1" if is_wal and not os.path.exists(f"{path}-wal") else "mode=ro"
    return apsw.Connection(f"file:{quote(path)}?{how}", flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)


def _copy_pages(source: apsw.Connection, path: str) -> None:
    target = apsw.Connection(path)
    try:
        with target.backup("main", source, "main") as backup:
            while not backup.done:
                backup.step(COPY_PAGES)
    finally:
        target.close()


def _autocheckpoint_pages(path: str) -> int:
    return TIGHT_AUTOCHECKPOINT_PAGES if _is_tight(path) else AUTOCHECKPOINT_PAGES


def _is_tight(path: str) -> bool:
    disk = os.statvfs(os.path.dirname(path) or ".")
    return disk.f_bavail * disk.f_frsize < TIGHT_BYTES


def _permission_hint(path: str) -> str:
    folder = os.path.dirname(path) or "."
    if not os.path.isdir(folder):
        return f"create the folder first: mkdir -p {folder}"
    if not os.access(folder, os.W_OK):
        return f"you need write permission in {folder}"
    return "check the path, its permissions and the disk"
