"""Archive: copying a store into one file while it is in use. Putting such a file in a store's place is in restore.py.

The file is a SQLite database of queuectl's own schema, whichever kind of store it comes from or goes to
(docs/adr/0012-a-backup-is-a-sqlite-file.md). Output files are not part of it.
"""

import os
from contextlib import closing, contextmanager

from queuectl.actions.connect import connect
from queuectl.errors import BadInput, NotAStore, Refused, StoreError, StoreFull, StoreUnreachable
from queuectl.model.value import Value
from queuectl.store import archive, audit, jobs, migrate
from queuectl.store.database import Database
from queuectl.store.sqlite import SqliteDialect
from queuectl.system.parts import Part, put_in_place, remove_left_parts
from queuectl.system.paths import whole_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from queuectl.actions.connect import Target
    from queuectl.store.database import Tx

STAGED = ".restore-"
KEPT = "before-restore-"
_BESIDE = ("", "-wal", "-shm", "-journal")


class Backup(Value):
    """A copy that was made; `is_recorded` False means the store could not take the row of the audit trail."""

    file: str
    jobs: int
    bytes: int
    is_recorded: bool = True


def backup(target: "Target", path: str, *, who: str, force: bool = False) -> Backup:
    """Copy a store, as it is at one moment, into a new file; workers go on meanwhile.

    The file gets its name when it is whole, checked and synced, never before.
    """
    path = whole_path(path)
    _refuse_place(target, path, force=force)
    with closing(connect(target)) as database:
        remove_left(target)
        with arriving(path, force=force) as part:
            count = copy(database, part)
        try:
            database.write(lambda tx: audit.record(tx, who, "backup", path, count))
        except StoreError:
            return Backup(file=path, jobs=count, bytes=os.path.getsize(path), is_recorded=False)
    return Backup(file=path, jobs=count, bytes=os.path.getsize(path))


def _refuse_place(target: "Target", path: str, *, force: bool) -> None:
    """Refuse a place where a backup would do harm, or cannot be."""
    folder = os.path.dirname(path)
    if not os.path.isdir(folder):
        raise BadInput(f"no folder {folder}", hint=f"create it: mkdir -p {folder}")
    if os.path.isdir(path):
        raise BadInput(f"{path} is a folder", hint=f"name a file in it: {os.path.join(path, 'queue-backup.db')}")
    if is_store(target, path):
        raise Refused(f"{path} is the store itself", hint="name another file")
    if os.path.lexists(path) and not force:
        raise Refused(f"{path} exists", hint="name another file, or replace it with --force")
    for beside in (f"{path}-wal", f"{path}-journal"):
        if os.path.lexists(beside):
            raise Refused(f"{beside} lies beside it: {path} is in use as a database", hint="name another file")


def is_store(target: "Target", path: str) -> bool:
    """Tell whether a path is a SQLite store itself, or one of the files beside it."""
    if target.sqlite_path is None:
        return False
    return os.path.realpath(path) in {os.path.realpath(f"{target.sqlite_path}{end}") for end in _BESIDE}


def copy(database: Database, part: str) -> int:
    """Write the state of a store into an empty file, and return how many jobs it holds once it was found whole."""
    if isinstance(database.dialect, SqliteDialect):
        with _told_of(part):
            database.dialect.copy_to(part)
    else:
        database.read(lambda tx: export(tx, part))
    return seal(part)


def export(tx: "Tx", part: str) -> None:
    """Write all rows that a transaction sees into a file of our schema."""
    tx.dialect.read_at_leisure()
    with closing(open_file(part)) as exported:
        dialect = sqlite_of(exported)
        migrate.set_up_sqlite(dialect, exported)
        dialect.leave_wal()
        dialect.do_not_sync()

        def work(to: "Tx") -> None:
            archive.copy_rows(tx, to, dialect.tables())
            archive.begin_after(to, archive.last_numbers(tx))

        exported.write(work)


def seal(part: str) -> int:
    """Make a copy one that needs nothing beside it, check all of it, and make it last."""
    with closing(open_file(part)) as copied:
        sqlite_of(copied).leave_wal()
        damage = " ".join(sqlite_of(copied).damage() or ())
        if damage:
            raise NotAStore(f"the copy is damaged, and so is the store: {damage}", hint="check the disk")
        count = copied.read(lambda tx: jobs.count_matching(tx, jobs.Filter()))
    _sync(part)
    return count


@contextmanager
def arriving(path: str, *, force: bool) -> "Iterator[str]":
    """Give a hidden file beside a path, which takes the path's place once it is whole; else nothing is left of it."""
    folder, name = os.path.split(path)
    remove_left_parts(folder, f".{name}.")
    with closing(Part(folder, f".{name}.")) as part:
        yield part.path
        _put_in_place(part.path, path, force=force)


def _put_in_place(part: str, path: str, *, force: bool) -> None:
    try:
        put_in_place(part, path, force=force)
    except FileExistsError:
        raise Refused(f"{path} exists", hint="name another file, or replace it with --force") from None
    except OSError as error:
        raise StoreUnreachable(f"cannot write {path}: {error.strerror}", hint="check the folder and the disk") from None


def _sync(path: str) -> None:
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
    except OSError as error:
        raise StoreFull(f"cannot write {path}: {error.strerror}", hint="check the disk") from None


@contextmanager
def _told_of(path: str) -> "Iterator[None]":
    """Put errors about a file that is being written into words."""
    from queuectl.store.sqlite import told_of

    try:
        yield
    except Exception as error:
        raise told_of(path, error) or error from error


def remove_left(target: "Target") -> None:
    """Remove what backups and restores of this store left that were killed."""
    remove_left_parts(target.home.root, STAGED)
    remove_left_parts(target.home.backups, f".{KEPT}")


def open_file(path: str) -> Database:
    """Open a copy, of which nobody else knows."""
    return Database(SqliteDialect(path, is_durable=True), nothing, nothing, nothing)


def sqlite_of(database: Database) -> SqliteDialect:
    """Return what only SQLite can do, of a database that is known to be one."""
    assert isinstance(database.dialect, SqliteDialect)
    return database.dialect


def nothing(*_: object) -> None:
    """Nobody is to be told of what happens to a copy."""
