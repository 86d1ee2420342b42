"""Migrations: bringing a database to the schema of this program, one numbered file per step and dialect."""

import os

from queuectl.errors import StoreFull, StoreNewer, StoreOlder, StoreUnreachable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queuectl.store.database import Database, Tx
    from queuectl.store.postgres import PostgresDialect
    from queuectl.store.sqlite import SqliteDialect

LATEST = 7
SETUP_SECONDS = 3600.0
FOLDER = os.path.join(os.path.dirname(__file__), "migrations")


def check(version: int, latest: int = LATEST) -> None:
    """Refuse a schema this program does not know, or one that waits for `queuectl migrate`."""
    if version > latest:
        raise StoreNewer(
            f"the database has schema {version}; this queuectl knows up to {latest}",
            hint="upgrade queuectl on this host",
        )
    if version < latest:
        raise StoreOlder(
            f"the database has schema {version}; this queuectl needs {latest}", hint="run: queuectl migrate"
        )


def set_up_sqlite(dialect: "SqliteDialect", database: "Database", latest: int = LATEST, folder: str = FOLDER) -> int:
    """Make a new file ours, or bring an older one up after copying it; return the version found.

    The caller holds the setup lock of the home, so of many processes on a fresh home one does the work.
    """
    found = database.read(lambda tx: tx.dialect.schema_version())  # first: a file of another program stays as it is
    if found > latest:
        check(found, latest)
    try:
        if not dialect.is_wal():
            if found == 0:
                dialect.use_incremental_vacuum()
            dialect.use_wal()
        if 0 < found < latest:
            _copy(dialect, found)
    except Exception as error:
        raise dialect.translate(error) or error from error
    if found < latest:
        database.write(lambda tx: _apply(tx, latest, folder))
    return found


def bring_up(database: "Database", latest: int = LATEST, folder: str = FOLDER) -> None:
    """Bring a copy that nobody else uses to the schema of this program."""
    database.write(lambda tx: _apply(tx, latest, folder))


def set_up_postgres(
    dialect: "PostgresDialect", database: "Database", latest: int = LATEST, folder: str = FOLDER
) -> int:
    """Bring an empty or older PostgreSQL up; return the version found. One process at a time does it."""

    def work(tx: "Tx") -> int:
        dialect.lock_for_setup()
        found = dialect.schema_version()
        if found > latest:
            check(found, latest)
        _apply(tx, latest, folder)
        return found

    dialect.limit_answers(SETUP_SECONDS)
    try:
        return database.write(work)
    finally:
        dialect.limit_answers(None)


def _apply(tx: "Tx", latest: int, folder: str) -> None:
    found = tx.dialect.schema_version()
    for version, path in _files(folder, tx.dialect.name):
        if found < version <= latest:
            with open(path, encoding="utf-8") as file:
                tx.dialect.script(file.read())
    if found < latest:
        tx.dialect.set_schema_version(latest)


def _files(folder: str, dialect_name: str) -> list[tuple[int, str]]:
    names = sorted(name for name in os.listdir(folder) if name.endswith(f".{dialect_name}.sql"))
    return [(int(name.split("_", 1)[0]), os.path.join(folder, name)) for name in names]


def _copy(dialect: "SqliteDialect", version: int) -> None:
    """Copy the file before its schema changes; refuse when the disk has no room for copy and change."""
    target = f"{dialect.path}.schema{version}.bak"
    size = sum(os.path.getsize(path) for path in (dialect.path, f"{dialect.path}-wal") if os.path.exists(path))
    disk = os.statvfs(os.path.dirname(dialect.path) or ".")
    free = disk.f_bavail * disk.f_frsize
    if free < 2 * size:
        raise StoreFull(
            f"migrating {dialect.path} needs {2 * size} bytes for a copy; {free} are free",
            hint="free some disk space",
        )
    try:
        if os.path.lexists(target):
            os.unlink(target)  # left by a migration that was cut off; the file itself is still the old one
        os.close(os.open(target, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except OSError as error:
        raise StoreUnreachable(
            f"cannot create {target}: {error.strerror}", hint="check the folder and the disk"
        ) from None
    dialect.copy_to(target)
