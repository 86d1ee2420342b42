"""Connect: which store a command means, and opening it, set up and of the right version."""

import os
from functools import partial

from queuectl.errors import BadInput, StoreUnreachable
from queuectl.model.urls import mark_of, without_password
from queuectl.model.value import Value
from queuectl.settings import Settings, resolve
from queuectl.store import config, migrate
from queuectl.store.database import Database
from queuectl.system import wake
from queuectl.system.home import Home, create_private, folder_of, remove_logs, setup_lock
from queuectl.system.paths import whole_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from queuectl.store.database import Tx
    from queuectl.store.postgres import PostgresDialect
    from queuectl.store.sqlite import SqliteDialect

HOME_VARIABLE = "QUEUECTL_HOME"
URL_VARIABLE = "QUEUECTL_DATABASE_URL"
_URL_HINT = "write sqlite:///absolute/path or postgresql://user@host/name"


class Target(Value):
    """One store and the home that belongs to it on this host."""

    url: str
    home: Home
    sqlite_path: str | None


def locate(flag: str | None, environ: "Mapping[str, str]") -> Target:
    """Find the store meant by `--db`, the environment, or neither."""
    root = environ.get(HOME_VARIABLE) or os.path.join(os.path.expanduser("~"), ".queuectl")
    home = Home(root=whole_path(root))
    if flag == "":
        raise BadInput("--db is empty", hint=_URL_HINT)
    url = flag or environ.get(URL_VARIABLE) or ""
    if not url:
        return Target(url=f"sqlite://{home.database}", home=home, sqlite_path=home.database)
    if url.startswith("sqlite:///"):
        path = whole_path(url.removeprefix("sqlite://"))
        return Target(url=f"sqlite://{path}", home=_home_beside(path), sqlite_path=path)
    if url.startswith(("postgresql://", "postgres://")):
        if flag and _has_password(url):
            raise BadInput(
                "a password in --db would show in ps",
                hint=f"put the URL into {URL_VARIABLE}, or the password into PGPASSFILE",
            )
        from queuectl.system.libpqfiles import with_whole_paths

        url = with_whole_paths(url)
        home = home.replace(folder=folder_of(mark_of(without_password(url))))
        return Target(url=url, home=home, sqlite_path=None)
    raise BadInput(f"bad database URL {without_password(url)!r}", hint=_URL_HINT)


def point_at(target: Target, environ: "Mapping[str, str]") -> dict[str, str]:
    """Return an environment in which `queuectl` means this store, from any folder; a home names its own file."""
    pointed = {name: value for name, value in environ.items() if name != URL_VARIABLE}
    pointed[HOME_VARIABLE] = target.home.root
    if target.sqlite_path != target.home.database:
        pointed[URL_VARIABLE] = target.url
    return pointed | whole_files(target, environ)


def whole_files(target: Target, environ: "Mapping[str, str]") -> dict[str, str]:
    """Return those variables that name a file on the way to this store without its folder, with it."""
    if target.sqlite_path is not None:
        return {}
    from queuectl.system.libpqfiles import whole_variables

    return whole_variables(environ)


def connect(target: Target, *, is_durable: bool = True, is_patient: bool = True) -> Database:
    """Open a store, setting it up when it is new.

    `is_durable` False is for a worker's claims and settles alone. `is_patient` False is for processes that must not
    stand still behind a lock or a dead network, with commands to look after: they come back to it instead.
    """
    if target.sqlite_path is not None:
        return _connect_sqlite(target, target.sqlite_path, is_durable=is_durable, is_patient=is_patient)
    return _connect_postgres(target, is_patient=is_patient)


def load_driver(target: Target) -> None:
    """Import what speaks to such a store, without speaking to it; where it is missing, `connect` says so."""
    if target.sqlite_path is not None:
        import queuectl.store.sqlite

        return
    try:
        import queuectl.store.postgres  # noqa: F401
    except ImportError:
        pass


def look_at(target: Target) -> Database | None:
    """Open a store as it is, to read it alone and without much patience; None where there is none yet.

    Nothing is made, set up or migrated, so the caller looks at its version first.
    """
    if target.sqlite_path is None:
        return _open_postgres(target, is_patient=False, makes_home=False)[0]
    if not os.path.exists(target.sqlite_path):
        _refuse_log_alone(target.sqlite_path)
        return None
    return _open_sqlite(target, target.sqlite_path, is_patient=False, is_reading=True)[0]


def use_for_work(target: Target, database: Database) -> None:
    """Make a store fit for workers: a backup opened as a store has no write-ahead log yet."""
    if target.sqlite_path is not None:
        target.home.make()
        with setup_lock(target.home):
            migrate.set_up_sqlite(database.dialect, database)  # type: ignore[arg-type]


def open_if_there(target: Target) -> Database | None:
    """Open a store to read it, only if it is there and of this program's schema; nothing is created."""
    database = look_at(target)
    if database is None or database.read(lambda tx: tx.dialect.schema_version()) == migrate.LATEST:
        return database
    database.close()
    return None


def migrate_store(target: Target) -> tuple[int, int]:
    """Bring a store to the schema of this program; return the versions before and after."""
    from contextlib import closing

    if target.sqlite_path is None:
        database, postgres = _open_postgres(target)
        with closing(database):
            return migrate.set_up_postgres(postgres, database), migrate.LATEST
    target.home.make()
    database, sqlite = _open_sqlite(target, target.sqlite_path)
    with closing(database), setup_lock(target.home):
        return migrate.set_up_sqlite(sqlite, database), migrate.LATEST


def settings_of(tx: "Tx", environ: "Mapping[str, str]") -> Settings:
    """Return the settings in force."""
    return resolve(config.stored(tx), environ)[0]


def working_settings(tx: "Tx", environ: "Mapping[str, str]") -> Settings:
    """Return the settings in force; where this process's environment does not fit what is stored, the stored alone.

    For processes that run on while somebody changes a setting: they must not die of it.
    """
    try:
        return settings_of(tx, environ)
    except BadInput:
        return settings_of(tx, {})


def _connect_sqlite(target: Target, path: str, *, is_durable: bool, is_patient: bool) -> Database:
    is_new = not os.path.exists(path)
    if is_new:
        if target.home.database != path and not os.path.isdir(os.path.dirname(path)):
            folder = os.path.dirname(path)
            raise StoreUnreachable(f"no folder {folder} for the database", hint=f"create it: mkdir -p {folder}")
        _refuse_log_alone(path)
        target.home.make()
        target.home.refuse_network_disk()
        create_private(path)
    database, dialect = _open_sqlite(target, path, is_durable=is_durable, is_patient=is_patient)
    try:
        if is_new or database.read(lambda tx: tx.dialect.schema_version()) != migrate.LATEST:
            target.home.make()
            with setup_lock(target.home):
                migrate.set_up_sqlite(dialect, database)
    except BaseException:
        database.close()  # one left open while the file is read-only would keep all others of this process so
        raise
    return database


def _refuse_log_alone(path: str) -> None:
    from queuectl.store.sqlite import refuse_log_alone

    refuse_log_alone(path)


def _connect_postgres(target: Target, *, is_patient: bool) -> Database:
    database, dialect = _open_postgres(target, is_patient=is_patient)
    try:
        found = database.read(lambda tx: tx.dialect.schema_version())
        if found == 0:
            migrate.set_up_postgres(dialect, database)
        elif found != migrate.LATEST:
            migrate.check(found)
    except BaseException:
        database.close()
        raise
    return database


def _open_sqlite(
    target: Target, path: str, *, is_durable: bool = True, is_patient: bool = True, is_reading: bool = False
) -> "tuple[Database, SqliteDialect]":
    from queuectl.store.sqlite import BUSY_SECONDS, HASTY_BUSY_SECONDS, SqliteDialect

    busy_seconds = BUSY_SECONDS if is_patient else HASTY_BUSY_SECONDS
    dialect = SqliteDialect(path, is_durable=is_durable, busy_seconds=busy_seconds, is_reading=is_reading)
    dialect.lock_folder = target.home.run
    home = target.home
    ring, tell = partial(wake.touch, home.wake), partial(wake.touch, home.changed)
    return Database(dialect, ring, tell, partial(remove_logs, home)), dialect


def _open_postgres(
    target: Target, *, is_patient: bool = True, makes_home: bool = True
) -> "tuple[Database, PostgresDialect]":
    from queuectl.store import psycopg_start

    try:
        psycopg_start.start()
        from queuectl.store.postgres import PostgresDialect
    except ImportError:
        raise StoreUnreachable(
            "PostgreSQL needs the psycopg package", hint="install it: pip install 'queuectl[postgres]'"
        ) from None
    if makes_home:
        target.home.make()
    dialect = PostgresDialect(target.url, is_patient=is_patient)
    return Database(dialect, lambda: None, lambda: None, partial(remove_logs, target.home)), dialect


def _home_beside(path: str) -> Home:
    """Two databases in one folder must not share logs and locks; only `queue.db` has the folder to itself."""
    folder, name = os.path.split(path)
    return Home(root=folder if name == "queue.db" else f"{path}.d")


def _has_password(url: str) -> bool:
    return without_password(url) != url
