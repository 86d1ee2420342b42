"""Restore: putting a file that archive.py made in the place of all that is in a store, at once or not at all."""

import os
import time
from contextlib import closing, contextmanager

from queuectl.actions.archive import (
    KEPT,
    STAGED,
    arriving,
    copy,
    export,
    is_store,
    nothing,
    open_file,
    remove_left,
    seal,
    sqlite_of,
)
from queuectl.actions.connect import connect
from queuectl.actions.liveness import pulse
from queuectl.actions.rescue import Rescuer
from queuectl.errors import BadInput, NotAStore, NotFound, Refused, StoreBusy, StoreUnreachable
from queuectl.model.units import counted
from queuectl.model.value import Value
from queuectl.store import archive, audit, jobs, migrate, workers
from queuectl.store.database import Database
from queuectl.store.sqlite import Archive, SqliteDialect
from queuectl.system.home import make_folder, setup_lock
from queuectl.system.liveness import Pulse
from queuectl.system.openfiles import holders_of
from queuectl.system.parts import Part
from queuectl.system.paths import whole_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from queuectl.actions.connect import Target
    from queuectl.store.database import Tx
    from queuectl.store.postgres import PostgresDialect

ALONE_SECONDS = 2.0
LEAVING_S = 1.0
LONG_SECONDS = 3600.0
NAMED = 5


class Restored(Value):
    """What became of a store: how many jobs it has, how many it had, and where those are kept."""

    file: str
    jobs: int
    replaced: int
    kept: str | None


def restore(target: "Target", path: str, *, who: str, confirm: "Callable[[int, int], None]") -> Restored:
    """Put a backup in the place of all that is in a store, at once or not at all, while nobody else uses it.

    `confirm` is told how many jobs go and how many come, and raises to keep things as they are. What was there is
    kept in the home's `backups`, unless there was nothing. `path` itself is never written to. What is left of commands
    whose workers died is ended first: the backup does not know of them, and its jobs would run beside them.
    """
    path = whole_path(path)
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


def _examine(target: "Target", path: str) -> int:
    """Return how many jobs a backup holds; refuse what is none, is damaged, or was made by a newer queuectl."""
    if not os.path.exists(path):
        raise NotFound(f"no file {path}", hint="name a file that queuectl backup made")
    if os.path.isdir(path):
        raise BadInput(f"{path} is a folder", hint="name a file that queuectl backup made")
    if is_store(target, path):
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
    remove_left(target)
    with closing(Part(target.home.root, STAGED)) as staged:
        with closing(_open_archive(path)) as found:
            found.copy_to(staged.path)
        with closing(open_file(staged.path)) as database:
            dialect = sqlite_of(database)
            dialect.leave_wal()
            dialect.do_not_sync()
            migrate.bring_up(database)
            database.write(workers.give_up_all)
            yield database


def _replace_sqlite(target: "Target", store: str, staged: Database, path: str, who: str) -> Restored:
    with closing(_alone(store)) as database:
        dialect = sqlite_of(database)
        database.read(_refuse_while_running)
        kept = _keep(target, database)
        going, used = database.read(lambda tx: (jobs.count_matching(tx, jobs.Filter()), archive.last_numbers(tx)))
        coming = staged.write(lambda tx: _finish(tx, used, path, who))
        if not sqlite_of(staged).gives_space_back():
            staged.dialect.rewrite()
        dialect.replace_by(sqlite_of(staged).path)
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
    return Database(dialect, nothing, nothing, nothing)


def _replace_postgres(target: "Target", staged: Database, path: str, who: str) -> Restored:
    with closing(connect(target)) as database:
        dialect = _postgres_of(database)
        tables = sqlite_of(staged).tables()
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
    with arriving(kept, force=False) as part:
        copy(database, part)
    return kept


def _keep_rows(target: "Target", tx: "Tx") -> str | None:
    """Do the same within a transaction that holds everybody else off."""
    if archive.is_empty(tx):
        return None
    kept = _place_to_keep(target, tx.now)
    with arriving(kept, force=False) as part:
        export(tx, part)
        seal(part)
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
    from queuectl.store.sessions import other_sessions

    until = time.monotonic() + LEAVING_S
    while (sessions := other_sessions(dialect)) and time.monotonic() < until:
        time.sleep(0.02)
    return sessions


def _locked(dialect: "PostgresDialect") -> Refused:
    from queuectl.store.sessions import other_sessions

    try:
        sessions = other_sessions(dialect)
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


def _postgres_of(database: Database) -> "PostgresDialect":
    from queuectl.store.postgres import PostgresDialect

    assert isinstance(database.dialect, PostgresDialect)
    return database.dialect
