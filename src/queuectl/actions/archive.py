"""Archive: copying a store into one file while it is in use, and putting such a file in a store's place.

The file is a SQLite database of queuectl's own schema, whichever kind of store it comes from or goes to
(docs/adr/0012-a-backup-is-a-sqlite-file.md). Output files are not part of it.
"""

import os
import time
from contextlib import closing, contextmanager

from queuectl.actions.connect import connect
from queuectl.actions.liveness import pulse
from queuectl.actions.rescue import Rescuer
from queuectl.errors import BadInput, NotAStore, NotFound, Refused, StoreBusy, StoreError, StoreFull, StoreUnreachable
from queuectl.model.units import counted
from queuectl.model.value import Value
from queuectl.store import archive, audit, jobs, migrate, workers
from queuectl.store.database import Database
from queuectl.store.sqlite import Archive, SqliteDialect
from queuectl.system.home import make_folder, setup_lock
from queuectl.system.liveness import Pulse
from queuectl.system.openfiles import holders_of
from queuectl.system.parts import Part, put_in_place, remove_left_parts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from queuectl.actions.connect import Target
    from queuectl.store.database import Tx
    from queuectl.store.postgres import PostgresDialect

ALONE_SECONDS = 2.0
LEAVING_S = 1.0
LONG_SECONDS = 3600.0
STAGED = ".restore-"
KEPT = "before-restore-"
NAMED = 5
_BESIDE = ("", "-wal", "-shm", "-journal")


class Backup(Value):
    """A copy that was made; `is_recorded` False means the store could not take the row of the audit trail."""

    file: str
    jobs: int
    bytes: int
    is_recorded: bool = True


class Restored(Value):
    """What became of a store: how many jobs it has, how many it had, and where those are kept."""

    file: str
    jobs: int
    replaced: int
    kept: str | None


def backup(target: "Target", path: str, *, who: str, force: bool = False) -> Backup:
    """Copy a store, as it is at one moment, into a new file; workers go on meanwhile.

    The file gets its name when it is whole, checked and synced, never before.
    """
    path = os.path.abspath(path)
    _refuse_place(target, path, force=force)
    with closing(connect(target)) as database:
        _remove_left(target)
        with _arriving(path, force=force) as part:
            count = _copy(database, part)
        try:
            database.write(lambda tx: audit.record(tx, who, "backup", path, count))
        except StoreError:
            return Backup(file=path, jobs=count, bytes=os.path.getsize(path), is_recorded=False)
    return Backup(file=path, jobs=count, bytes=os.path.getsize(path))


def restore(target: "Target", path: str, *, who: str, confirm: "Callable[[int, int], None]") -> Restored:
    """Put a backup in the place of all that is in a store, at once or not at all, while nobody else uses it.

    `confirm` is told how many jobs go and how many come, and raises to keep things as they are. What was there is
    kept in the home's `backups`, unless there was nothing. `path` itself is never written to. What is left of commands
    whose workers died is ended first: the backup does not know of them, and its jobs would run beside them.
    """
    path = os.path.abspath(path)
    coming = _examine(target, path)
    with closing(_connect(target)) as database:
        _refuse_while_used(target, database)
        going = database.read(lambda tx: jobs.count_matching(tx, jobs.Filter()))
    confirm(going, coming)
    target.home.make()
    with closing(_connect(target)) as database:
        _end_what_is_left(target, database)
    with setup_lock(target.home), _staged(target, path) as staged:
        if target.sqlite_path is not None:
            return _replace_sqlite(target, target.sqlite_path, staged, path, who)
        return _replace_postgres(target, staged, path, who)


def _end_what_is_left(target: "Target", database: Database) -> None:
    """Take the jobs of dead workers back, as the next worker would, and refuse while any may still run."""
    Rescuer(database, target.home, os.environ).look()
    database.read(_refuse_while_running)


def _refuse_while_running(tx: "Tx") -> None:
    """Refuse while a command may run that nothing would know of once the store is replaced."""
    held = workers.jobs_held(tx)
    if not held:
        return
    who = [_holder(tx, worker_id) for worker_id in sorted(held)]
    names = sorted(name for each in held.values() for name in each)
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    hint = "queuectl doctor says what keeps them; then restore again"
    if not tx.dialect.is_local:
        hint = (
            "stop the workers of that host; if it is gone, run a worker here until the lease is over "
            "(queuectl worker start), stop it, and restore again"
        )
    raise Refused(f"still running: job {', '.join(names[:NAMED])}{more}, by {', '.join(who[:NAMED])}", hint=hint)


def _holder(tx: "Tx", worker_id: str) -> str:
    worker = workers.get(tx, worker_id)
    if worker is None:
        return f"worker {worker_id[:6]}"
    return f"worker {worker_id[:6]} (pid {worker.pid} on {worker.host})"


def _copy(database: Database, part: str) -> int:
    """Write the state of a store into an empty file, and return how many jobs it holds once it was found whole."""
    if isinstance(database.dialect, SqliteDialect):
        with _told_of(part):
            database.dialect.copy_to(part)
    else:
        database.read(lambda tx: _export(tx, part))
    return _seal(part)


def _export(tx: "Tx", part: str) -> None:
    """Write all rows that a transaction sees into a file of our schema."""
    tx.dialect.read_at_leisure()
    with closing(_open_file(part)) as exported:
        dialect = _sqlite_of(exported)
        migrate.set_up_sqlite(dialect, exported)
        dialect.leave_wal()
        dialect.do_not_sync()

        def work(to: "Tx") -> None:
            archive.copy_rows(tx, to, dialect.tables())
            archive.begin_after(to, archive.last_numbers(tx))

        exported.write(work)


def _seal(part: str) -> int:
    """Make a copy one that needs nothing beside it, check all of it, and make it last."""
    with closing(_open_file(part)) as copied:
        _sqlite_of(copied).leave_wal()
        damage = " ".join(_sqlite_of(copied).damage() or ())
        if damage:
            raise NotAStore(f"the copy is damaged, and so is the store: {damage}", hint="check the disk")
        count = copied.read(lambda tx: jobs.count_matching(tx, jobs.Filter()))
    _sync(part)
    return count


def _examine(target: "Target", path: str) -> int:
    """Return how many jobs a backup holds; refuse what is none, is damaged, or was made by a newer queuectl."""
    if not os.path.exists(path):
        raise NotFound(f"no file {path}", hint="name a file that queuectl backup made")
    if os.path.isdir(path):
        raise BadInput(f"{path} is a folder", hint="name a file that queuectl backup made")
    if _is_store(target, path):
        raise BadInput(f"{path} is the store itself", hint="name a file that queuectl backup made")
    with closing(_open_archive(path)) as found:
        if found.version > migrate.LATEST:
            migrate.check(found.version)
        return found.count_jobs()


def _open_archive(path: str) -> Archive:
    try:
        return Archive(path)
    except OSError as error:
        raise StoreUnreachable(f"cannot read {path}: {error.strerror}", hint="check its permissions") from None


def _connect(target: "Target") -> Database:
    try:
        return connect(target)
    except NotAStore as error:
        aside = f"move it aside first: mv {target.sqlite_path} {target.sqlite_path}.damaged"
        raise NotAStore(error.message, hint=f"{aside} (with -wal and -shm, if there)") from None


@contextmanager
def _staged(target: "Target", path: str) -> "Iterator[Database]":
    """Give a copy of a backup that is of this program's schema and in which no worker lives; gone afterwards."""
    _remove_left(target)
    with closing(Part(target.home.root, STAGED)) as staged:
        with closing(_open_archive(path)) as found:
            found.copy_to(staged.path)
        with closing(_open_file(staged.path)) as database:
            dialect = _sqlite_of(database)
            dialect.leave_wal()
            dialect.do_not_sync()
            migrate.bring_up(database)
            database.write(workers.give_up_all)
            yield database


def _remove_left(target: "Target") -> None:
    """Remove what backups and restores of this store left that were killed."""
    remove_left_parts(target.home.root, STAGED)
    remove_left_parts(target.home.backups, f".{KEPT}")


def _replace_sqlite(target: "Target", store: str, staged: Database, path: str, who: str) -> Restored:
    with closing(_alone(store)) as database:
        dialect = _sqlite_of(database)
        database.read(_refuse_while_running)
        kept = _keep(target, database)
        going, used = database.read(lambda tx: (jobs.count_matching(tx, jobs.Filter()), archive.last_numbers(tx)))
        coming = staged.write(lambda tx: _finish(tx, used, path, who))
        if not _sqlite_of(staged).gives_space_back():
            staged.dialect.rewrite()
        dialect.replace_by(_sqlite_of(staged).path)
        dialect.use_wal()
    return Restored(file=path, jobs=coming, replaced=going, kept=kept)


def _alone(store: str) -> Database:
    """Open a SQLite store so that nobody else can; whoever has it open is named."""
    try:
        dialect = SqliteDialect(store, is_durable=True, busy_seconds=ALONE_SECONDS, is_alone=True)
    except StoreBusy:
        pids = ", ".join(map(str, holders_of(store)))
        raise Refused(
            f"{store} is open in another process" + (f" (pid {pids})" if pids else ""),
            hint="stop what uses the store: queuectl worker stop; then try again",
        ) from None
    return Database(dialect, _nothing, _nothing, _nothing)


def _replace_postgres(target: "Target", staged: Database, path: str, who: str) -> Restored:
    with closing(connect(target)) as database:
        dialect = _postgres_of(database)
        tables = _sqlite_of(staged).tables()
        names = [table.name for table in tables]

        def work(tx: "Tx") -> Restored:
            dialect.read_at_leisure()  # it rests while what is kept is written and checked
            try:
                dialect.take_alone(names)
            except Exception as error:
                if isinstance(dialect.translate(error), StoreBusy):
                    raise _locked(dialect) from error
                raise
            if sessions := _sessions_that_stay(dialect):
                raise _used(sessions)
            _refuse_while_running(tx)
            kept = _keep_rows(target, tx)
            going, used = jobs.count_matching(tx, jobs.Filter()), archive.last_numbers(tx)
            dialect.empty(names)
            staged.read(lambda rows: archive.copy_rows(rows, tx, tables))
            coming = _finish(tx, [*map(max, used, staged.read(archive.last_numbers))], path, who)
            dialect.learn()
            return Restored(file=path, jobs=coming, replaced=going, kept=kept)

        dialect.limit_answers(LONG_SECONDS)
        return database.write(work)


def _finish(tx: "Tx", used: list[int], path: str, who: str) -> int:
    """Put a restore on record in what is restored, and let no number be given out again; return how many jobs came."""
    coming = jobs.count_matching(tx, jobs.Filter())
    archive.begin_after(tx, used)
    audit.record(tx, who, "restore", path, coming)
    return coming


def _keep(target: "Target", database: Database) -> str | None:
    """Keep what a restore is about to replace, and return where; None means there is nothing."""
    if database.read(archive.is_empty):
        return None
    kept = _place_to_keep(target, database.read(lambda tx: tx.now))
    with _arriving(kept, force=False) as part:
        _copy(database, part)
    return kept


def _keep_rows(target: "Target", tx: "Tx") -> str | None:
    """Do the same within a transaction that holds everybody else off."""
    if archive.is_empty(tx):
        return None
    kept = _place_to_keep(target, tx.now)
    with _arriving(kept, force=False) as part:
        _export(tx, part)
        _seal(part)
    return kept


def _place_to_keep(target: "Target", now: int) -> str:
    make_folder(target.home.backups)
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now // 1000))
    kept = os.path.join(target.home.backups, f"{KEPT}{stamp}.db")
    number = 1
    while os.path.lexists(kept):
        number += 1
        kept = os.path.join(target.home.backups, f"{KEPT}{stamp}-{number}.db")
    return kept


def _refuse_while_used(target: "Target", database: Database) -> None:
    """Refuse while others are connected, naming them; whoever comes later meets a lock."""
    if target.sqlite_path is None:
        dialect = _postgres_of(database)
        if sessions := database.read(lambda _: _sessions_that_stay(dialect)):
            raise _used(sessions)
        return
    living = [worker for worker in database.read(workers.live) if pulse(worker, database.dialect) is Pulse.ALIVE]
    if living:
        names = ", ".join(f"{worker.kind} {worker.id[:6]} (pid {worker.pid})" for worker in living)
        raise Refused(
            f"the store is in use by {names}", hint="stop them first: queuectl worker stop; then restore again"
        )


def _sessions_that_stay(dialect: "PostgresDialect") -> list[tuple[int, str]]:
    """Return who else is connected; the server ends a session a moment after its client has left, and is given that."""
    until = time.monotonic() + LEAVING_S
    while (sessions := dialect.other_sessions()) and time.monotonic() < until:
        time.sleep(0.02)
    return sessions


def _locked(dialect: "PostgresDialect") -> Refused:
    try:
        sessions = dialect.other_sessions()
    except Exception:  # noqa: BLE001 - the transaction is broken; that it is says enough
        sessions = []
    if sessions:
        return _used(sessions)
    return Refused("another session holds locks on queuectl's tables", hint="end what uses them, then restore again")


def _used(sessions: "Sequence[tuple[int, str]]") -> Refused:
    names = ", ".join(f"{pid} from {place}" for pid, place in sessions)
    return Refused(
        f"{counted(len(sessions), 'other session')} of queuectl use this database: PostgreSQL process {names}",
        hint="stop the workers on every host: queuectl worker stop; what a dead host left ends by itself in a minute",
    )


def _refuse_place(target: "Target", path: str, *, force: bool) -> None:
    """Refuse a place where a backup would do harm, or cannot be."""
    folder = os.path.dirname(path)
    if not os.path.isdir(folder):
        raise BadInput(f"no folder {folder}", hint=f"create it: mkdir -p {folder}")
    if os.path.isdir(path):
        raise BadInput(f"{path} is a folder", hint=f"name a file in it: {os.path.join(path, 'queue-backup.db')}")
    if _is_store(target, path):
        raise Refused(f"{path} is the store itself", hint="name another file")
    if os.path.lexists(path) and not force:
        raise Refused(f"{path} exists", hint="name another file, or replace it with --force")
    for beside in (f"{path}-wal", f"{path}-journal"):
        if os.path.lexists(beside):
            raise Refused(f"{beside} lies beside it: {path} is in use as a database", hint="name another file")


def _is_store(target: "Target", path: str) -> bool:
    if target.sqlite_path is None:
        return False
    return os.path.realpath(path) in {os.path.realpath(f"{target.sqlite_path}{end}") for end in _BESIDE}


@contextmanager
def _arriving(path: str, *, force: bool) -> "Iterator[str]":
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


def _open_file(path: str) -> Database:
    return Database(SqliteDialect(path, is_durable=True), _nothing, _nothing, _nothing)


def _sqlite_of(database: Database) -> SqliteDialect:
    assert isinstance(database.dialect, SqliteDialect)
    return database.dialect


def _postgres_of(database: Database) -> "PostgresDialect":
    from queuectl.store.postgres import PostgresDialect

    assert isinstance(database.dialect, PostgresDialect)
    return database.dialect


def _nothing(*_: object) -> None:
    """Nobody is to be told of what happens to a copy."""
