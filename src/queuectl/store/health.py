"""Health: what a store can tell about itself; judging it is for actions/checks. Nothing here changes anything."""

from queuectl.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queuectl.store.database import Tx

_NEWEST = (
    "SELECT created_at FROM jobs ORDER BY seq DESC LIMIT 1",
    "SELECT max(started_at) FROM jobs WHERE state = 'processing'",
    *(f"SELECT max(finished_at) FROM jobs WHERE state = '{state}'" for state in ("completed", "dead", "cancelled")),
    "SELECT max(beat_at) FROM workers WHERE state = 'live'",
    "SELECT at FROM audit ORDER BY id DESC LIMIT 1",
)


class Pages(Value):
    """How a SQLite file is laid out."""

    size: int
    count: int
    free: int
    auto_vacuum: int
    journal_mode: str

    @property
    def free_bytes(self) -> int:
        """What is kept in the file for later and holds nothing now."""
        return self.size * self.free


class Room(Value):
    """How many connections a PostgreSQL takes from us, and how many there are."""

    used: int
    most: int
    whose: str


class Transaction(Value):
    """A transaction of PostgreSQL that has been open for a while."""

    pid: int
    program: str
    state: str
    age_s: float
    user: str


class DeadRows(Value):
    """What PostgreSQL's own figures say of the table of jobs."""

    live: int
    dead: int
    vacuumed_s_ago: float | None


def newest_ms(tx: "Tx") -> int:
    """Return the latest time anything was written, as far as indexes tell; 0 in an empty store."""
    found = (tx.row(sql) for sql in _NEWEST)
    return max((int(row[0]) for row in found if row and row[0] is not None), default=0)


def pages(tx: "Tx") -> Pages:
    """Return how a SQLite file is laid out."""

    def pragma(name: str) -> object:
        row = tx.row(f"PRAGMA {name}")
        return row[0] if row else 0

    numbers = [int(str(pragma(name))) for name in ("page_size", "page_count", "freelist_count", "auto_vacuum")]
    return Pages.of_row([*numbers, str(pragma("journal_mode"))])


def room(tx: "Tx") -> Room:
    """Return the tightest of the limits of connections that PostgreSQL holds this role to."""
    rows = tx.rows(
        """
        SELECT count(*),
               current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int,
               'max_connections'
          FROM pg_stat_activity WHERE backend_type = 'client backend'
        UNION ALL
        SELECT (SELECT count(*) FROM pg_stat_activity a WHERE a.datid = d.oid AND a.backend_type = 'client backend'),
               d.datconnlimit, 'the limit of this database'
          FROM pg_database d WHERE d.datname = current_database() AND d.datconnlimit >= 0
        UNION ALL
        SELECT (SELECT count(*) FROM pg_stat_activity a WHERE a.usesysid = r.oid AND a.backend_type = 'client backend'),
               r.rolconnlimit, 'the limit of this role'
          FROM pg_roles r WHERE r.rolname = current_user AND r.rolconnlimit >= 0
        """
    )
    found = [Room(used=int(used or 0), most=int(most or 0), whose=str(whose)) for used, most, whose in rows]
    return min(found, key=lambda one: one.most - one.used)


def long_transactions(tx: "Tx", longer_than_s: float) -> list[Transaction]:
    """Return the transactions of others in this database, prepared ones too, that keep dead rows from being removed."""
    rows = tx.rows(
        """
        SELECT pid, COALESCE(NULLIF(application_name, ''), 'unnamed'), state,
               extract(epoch FROM clock_timestamp() - xact_start)::float8, usename::text
          FROM pg_stat_activity
         WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
           AND xact_start < clock_timestamp() - make_interval(secs => :seconds)
        UNION ALL
        SELECT 0, gid, 'prepared', extract(epoch FROM clock_timestamp() - prepared)::float8, owner::text
          FROM pg_prepared_xacts
         WHERE database = current_database() AND prepared < clock_timestamp() - make_interval(secs => :seconds)
        """,
        {"seconds": longer_than_s},
    )
    return sorted(map(Transaction.of_row, rows), key=lambda one: -one.age_s)


def dead_rows(tx: "Tx") -> DeadRows:
    """Return how many rows of jobs are dead and not yet removed."""
    row = tx.row(
        """
        SELECT n_live_tup, n_dead_tup,
               extract(epoch FROM clock_timestamp() - GREATEST(last_vacuum, last_autovacuum))::float8
          FROM pg_stat_user_tables WHERE relid = to_regclass('jobs')
        """
    )
    live, dead, ago = row or (0, 0, None)
    return DeadRows(live=int(live or 0), dead=int(dead or 0), vacuumed_s_ago=None if ago is None else float(ago))


def database_bytes(tx: "Tx") -> int:
    """Return how large the database of PostgreSQL is, indexes included."""
    row = tx.row("SELECT pg_database_size(current_database())")
    return int(row[0] or 0) if row else 0


def sqlite_version(tx: "Tx") -> str:
    """Return the version of SQLite itself."""
    row = tx.row("SELECT sqlite_version()")
    return str(row[0]) if row else ""


def server_version(tx: "Tx") -> str:
    """Return PostgreSQL's own version."""
    row = tx.row("SELECT current_setting('server_version')")
    return str(row[0]) if row else ""
