"""Checks of the database: whether it can be opened, is whole, and is kept small; of PostgreSQL, how it is doing."""

import time

from queuectl import clock
from queuectl.errors import StoreError, StoreOlder
from queuectl.model.finding import error, ok, warning
from queuectl.model.units import counted, duration_text, rough_duration_text, rough_size_text
from queuectl.store import health, migrate
from queuectl.system.disk import size_of
from queuectl.system.locks import holders, program_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from queuectl.actions.checks.case import Case
    from queuectl.model.finding import Finding

QUICK_BYTES = 512 << 20
QUICK_S = 5.0
LARGE_WAL_BYTES = 128 << 20
FREE_BYTES = 64 << 20
FREE_PART = 0.5
SLOW_MS = 100
NOTIFY_S = 2.0
LONG_S = 300.0
ROOM_PART = 0.9
DEAD_ROWS = 100_000
SKEW_MS = 2000
FUTURE_MS = 2000
NAMED = 5
ROUND_TRIPS = 3


def store(case: "Case") -> "Iterator[Finding]":
    """Whether the store can be opened, and has the tables of this program."""
    where = case.target.sqlite_path or "the database"
    if case.trouble is not None:
        yield error(case.trouble.message, case.trouble.hint)
    elif case.database is None or case.version == 0:
        yield ok(f"{where} is not set up yet; the first command that needs it does that")
    else:
        try:
            migrate.check(case.version)
        except StoreOlder as older:
            if case.target.sqlite_path is None:
                yield error(older.message, older.hint)
            else:
                yield warning(f"{older.message}; the next command that uses it changes that", older.hint)
        except StoreError as newer:
            yield error(newer.message, newer.hint)
        else:
            yield ok(f"schema {case.version} in {case.store.dialect.address}")


def integrity(case: "Case") -> "Iterator[Finding]":
    """Whether SQLite finds the file whole."""
    from queuectl.store.sqlite import SqliteDialect

    dialect = case.store.dialect
    assert isinstance(dialect, SqliteDialect)
    size = size_of(dialect.path)
    deeper = "look at all of it: queuectl doctor --deep"
    if size > QUICK_BYTES and not case.is_deep:
        yield ok(f"not looked at: {dialect.path} has {rough_size_text(size)}", deeper)
        return
    try:
        damage = dialect.damage(is_deep=case.is_deep, within_s=None if case.is_deep else QUICK_S)
    except Exception as failed:
        told = dialect.translate(failed)
        if told is None:
            raise
        damage = [told.message]
    if damage is None:
        yield ok(f"not looked at to the end: it took longer than {QUICK_S:g} s", deeper)
    elif damage:
        yield error(
            f"{dialect.path} is damaged: {'; '.join(damage[:NAMED])}",
            "stop the workers, keep a copy of the file, and restore a backup; sqlite3 FILE .recover saves what it can",
        )
    else:
        yield ok("every page, row and index is whole" if case.is_deep else "the file is whole (--deep looks closer)")


def wal(case: "Case") -> "Iterator[Finding]":
    """Whether the write-ahead log is moved into the file, and who keeps it from that."""
    from queuectl.store.sqlite import READ_LOCKS

    path = case.target.sqlite_path
    size = size_of(f"{path}-wal")
    if size <= LARGE_WAL_BYTES:
        yield ok(f"the write-ahead log has {rough_size_text(size)}")
        return
    who = [f"{pid} ({program_of(pid)})" for pid in holders(f"{path}-shm", *READ_LOCKS)]
    if who:
        yield warning(
            f"{path}-wal has {rough_size_text(size)} and cannot begin anew: "
            f"a reader keeps it, process {', '.join(who[:NAMED])}",
            "end that reader, or its transaction; the log is used anew as soon as a worker runs",
        )
    else:
        yield warning(
            f"{path}-wal has {rough_size_text(size)}; nobody reads it just now",
            "start a worker, whose supervisor moves it into the file: queuectl worker start -d",
        )


def journal(case: "Case") -> "Iterator[Finding]":
    """Whether the file still uses write-ahead logging, which readers and writers beside each other need."""
    mode = case.store.read(health.pages).journal_mode
    if mode == "wal" or case.version == 0:
        yield ok("journal mode WAL; what people write is synced before it is acknowledged")
    else:
        yield warning(
            f"journal mode is {mode}, not wal: readers and workers wait for each other",
            "stop the workers, then: queuectl migrate",
        )


def size(case: "Case") -> "Iterator[Finding]":
    """Whether much of the file is empty."""
    pages = case.store.read(health.pages)
    whole = pages.size * pages.count
    free = f"{rough_size_text(pages.free_bytes)} of {rough_size_text(whole)}"
    if pages.free_bytes > FREE_BYTES and pages.free_bytes > whole * FREE_PART:
        yield warning(f"{free} of the database file are empty", "give the room back: queuectl prune --vacuum")
    elif pages.auto_vacuum == 0 and pages.count:
        yield ok(
            f"{free} of the database file are empty; it keeps its size (auto_vacuum is off)",
            "to let it shrink by itself from then on: queuectl prune --vacuum",
        )
    else:
        yield ok(f"{free} of the database file are empty")


def server(case: "Case") -> "Iterator[Finding]":
    """How old the server is, and how quickly it answers."""
    version = case.store.read(health.server_version)
    quickest = min(_round_trip_ms(case)[0] for _ in range(ROUND_TRIPS))
    said = f"PostgreSQL {version}, an answer takes {quickest:.1f} ms"
    if quickest > SLOW_MS:
        yield warning(said, "each job costs several answers: run the workers nearer to the server")
    else:
        yield ok(said)


def notify(case: "Case") -> "Iterator[Finding]":
    """Whether LISTEN and NOTIFY reach from one connection to another, as idle workers need."""
    from queuectl.store.sessions import hears_notifications

    if hears_notifications(case.target.url, NOTIFY_S):
        yield ok("notifications arrive")
    else:
        yield warning(
            f"a notification did not arrive within {NOTIFY_S:g} s: idle workers find new jobs by their poll alone, "
            "seconds later",
            "connect to the server itself, or let the pooler pool sessions: in transaction mode LISTEN does not work",
        )


def transactions(case: "Case") -> "Iterator[Finding]":
    """Whether somebody keeps a transaction open for so long that dead rows pile up."""
    found = case.store.read(lambda tx: health.long_transactions(tx, LONG_S))
    for one in found[:NAMED]:
        age = rough_duration_text(round(one.age_s * 1000))
        if one.pid:
            yield warning(
                f"{one.user}'s {one.program} (server process {one.pid}, {one.state}) has had a transaction open for "
                f"{age}: no dead row can be removed meanwhile",
                f"end it: psql -c 'SELECT pg_terminate_backend({one.pid})'",
            )
        else:
            yield warning(
                f"the prepared transaction {one.program} of {one.user} is {age} old: no dead row can be removed",
                f"end it: psql -c \"ROLLBACK PREPARED '{one.program}'\"",
            )
    if not found:
        yield ok(f"no transaction of others is older than {duration_text(round(LONG_S * 1000))}")


def connections(case: "Case") -> "Iterator[Finding]":
    """Whether the server takes more connections."""
    room = case.store.read(health.room)
    said = f"{room.used} of {room.most} connections are in use ({room.whose})"
    if room.used >= room.most * ROOM_PART:
        yield warning(said, "raise that limit, or run fewer workers: each has two connections")
    else:
        yield ok(said)


def dead_rows(case: "Case") -> "Iterator[Finding]":
    """Whether rows that are gone are removed from the table of jobs."""
    rows = case.store.read(health.dead_rows)
    ago = rows.vacuumed_s_ago
    when = "never" if ago is None else f"{rough_duration_text(max(0, round(ago * 1000)))} ago"
    said = f"{counted(rows.dead, 'dead row')} beside {rows.live} in jobs (last vacuum: {when})"
    if rows.dead > DEAD_ROWS and rows.dead > rows.live:
        yield warning(
            said,
            "psql -c 'VACUUM queuectl.jobs'; if that does not help, some transaction is held open (check transactions)",
        )
    else:
        yield ok(said)


def clocks(case: "Case") -> "Iterator[Finding]":
    """Whether this host and the database agree about the time, and time has not gone backwards."""
    is_fine = True
    if not case.store.dialect.is_local:
        skew = min((_round_trip_ms(case) for _ in range(ROUND_TRIPS)), key=lambda one: one[0])[1]
        if abs(skew) > SKEW_MS:
            is_fine = False
            yield warning(
                f"the clock of this host is {duration_text(abs(round(skew)))} {'ahead of' if skew > 0 else 'behind'} "
                "that of the database",
                "set both by NTP; jobs go by the clock of the database, what this host shows and reads is off",
            )
    newest, now = case.store.read(lambda tx: (health.newest_ms(tx), tx.now))
    if newest > now + FUTURE_MS:
        is_fine = False
        whose = "this host" if case.store.dialect.is_local else "the database server"
        yield warning(
            f"the newest row is {duration_text(newest - now)} in the future: the clock of {whose} was set back",
            "set it by NTP; jobs scheduled meanwhile run by the new time",
        )
    if is_fine:
        yield ok("the clocks agree" if not case.store.dialect.is_local else "nothing is from the future")


def _round_trip_ms(case: "Case") -> tuple[float, float]:
    """Return how long an answer took, and how far this host's clock is ahead of the database's, half of that off."""
    began = time.monotonic()
    theirs = case.store.read(lambda tx: tx.now)
    # BEGIN, whose answer holds the time, and COMMIT: two round trips.
    took_ms = (time.monotonic() - began) * 1000 / 2
    ours = clock.wall_ms() - 1.5 * took_ms
    return took_ms, ours - theirs
