"""Limits: how many jobs that name the same one may run at once, and who holds it. Who waits for it is in parking.py.

Who holds a limit is counted from the running jobs, never from a number kept beside them, so nothing leaks when a worker
dies.
"""

from queuectl.model.job import Job, read_list
from queuectl.model.limits import LIMIT, Limit, slots_in
from queuectl.model.states import State
from queuectl.model.value import columns_of
from queuectl.store.jobs import COLUMNS as JOB_COLUMNS
from queuectl.store.jobs import listed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

    from queuectl.store.database import Tx

UNLIMITED = 1 << 31


COLUMNS = columns_of(Limit)


def all_limits(tx: "Tx") -> list[Limit]:
    """Return every limit somebody made, by name."""
    return sorted((Limit.of_row(row) for row in tx.rows(f"SELECT {COLUMNS} FROM limits")), key=lambda one: one.name)


def get(tx: "Tx", name: str) -> Limit | None:
    """Return a limit."""
    row = tx.row(f"SELECT {COLUMNS} FROM limits WHERE name = :name", {"name": name})
    return None if row is None else Limit.of_row(row)


def put(tx: "Tx", name: str, slots: int) -> None:
    """Make a limit, or give it another number."""
    tx.changed(
        """
        INSERT INTO limits (name, slots, created_at)
        VALUES (:name, :slots, :now)
        ON CONFLICT (name) DO UPDATE SET slots = :slots
        """,
        {"name": name, "slots": slots, "now": tx.now},
    )


def create_as_it_was(tx: "Tx", limit: Limit) -> bool:
    """Make a limit of another store; False means one of this name is here already, and stays as it is."""
    values = ", ".join(f":{name}" for name in Limit.FIELDS)
    return bool(
        tx.changed(
            f"INSERT INTO limits ({COLUMNS}) VALUES ({values}) ON CONFLICT (name) DO NOTHING",
            limit.as_dict(),  # type: ignore[arg-type]
        )
    )


def drop(tx: "Tx", name: str) -> bool:
    """Remove a limit; False means there was none."""
    return bool(tx.changed("DELETE FROM limits WHERE name = :name", {"name": name}))


def slots_of(tx: "Tx", keys: "Collection[str]") -> dict[str, int]:
    """Return how many may run at once, by key; a limit nobody made holds nothing back."""
    slots = {key: slots_in(key) or UNLIMITED for key in keys}
    named = [key.removeprefix(LIMIT) for key in keys if key.startswith(LIMIT)]
    if named:
        names, params = listed("name", named)
        rows = tx.rows(f"SELECT name, slots FROM limits WHERE name IN ({names})", params)
        slots |= {LIMIT + str(name): int(number or 0) for name, number in rows}
    return slots


def held(tx: "Tx") -> dict[str, int]:
    """Return how many running jobs hold each limit."""
    return _by_key(tx, State.PROCESSING)


def in_line(tx: "Tx") -> dict[str, int]:
    """Return how many ready jobs name each limit; a claim that meets one whose limit is full parks it."""
    return _by_key(tx, State.PENDING)


def rooms(tx: "Tx", keys: "Collection[str]") -> dict[str, int]:
    """Return how many more jobs each limit lets run. The caller has locked the keys in a statement before."""
    running = held(tx)
    return {key: slots - running.get(key, 0) for key, slots in slots_of(tx, keys).items()}


def users(tx: "Tx", key: str, most: int) -> list[str]:
    """Return the ids of some jobs that are not over and name a limit.

    Looks through all that wait and name any limit, and through all that wait for a time: nothing a claim should do.
    """
    found: list[str] = []
    for where in _NOT_OVER:
        rows = tx.rows(
            f"SELECT given_id, seq FROM jobs WHERE {where} AND {_NAMES} ORDER BY seq + 0 LIMIT :most",
            {"word": _word(key), "most": most - len(found)},
        )
        found += [str(given_id or seq) for given_id, seq in rows]
        if len(found) >= most:
            break
    return found


def holders(tx: "Tx", key: str) -> "list[Job]":
    """Return the running jobs that hold a limit, the first to start first."""
    rows = tx.rows(f"SELECT {JOB_COLUMNS} FROM jobs WHERE state = 'processing' AND {_NAMES}", {"word": _word(key)})
    return sorted(map(Job.of_row, rows), key=lambda job: (job.started_at or 0, job.seq))


def all_holders(tx: "Tx") -> dict[str, list[str]]:
    """Return the ids of the running jobs that hold each limit, the first to start first."""
    rows = tx.rows(
        "SELECT started_at, seq, given_id, limits FROM jobs WHERE state = 'processing' AND limits IS NOT NULL"
    )
    found: dict[str, list[str]] = {}
    for _, seq, given_id, limits in sorted(rows, key=lambda row: (int(row[0] or 0), int(row[1] or 0))):
        for key in read_list(str(limits)):
            found.setdefault(key, []).append(str(given_id or seq))
    return found


def ready(tx: "Tx", key: str, most: int) -> list[str]:
    """Return the ids of the next jobs in the line that name a limit; the claim parks them should it be full."""
    rows = tx.rows(
        f"SELECT given_id, seq FROM jobs WHERE state = 'pending' AND {_NAMES} ORDER BY priority DESC, seq LIMIT :most",
        {"word": _word(key), "most": most},
    )
    return [str(given_id or seq) for given_id, seq in rows]


# Whether a job names a limit: in the text of its limits each is quoted, and no name holds a quote.
_NAMES = "limits IS NOT NULL AND replace(limits, :word, '') <> limits"
# Spelt as the partial indexes are, so that none of these walks the history.
_NOT_OVER = (
    "state = 'processing'",
    "state = 'pending'",
    "state = 'blocked'",
    "state IN ('scheduled', 'failed')",
)


def _by_key(tx: "Tx", state: State) -> dict[str, int]:

    counts: dict[str, int] = {}
    rows = tx.rows(f"SELECT limits, count(*) FROM jobs WHERE state = '{state}' AND limits IS NOT NULL GROUP BY limits")
    for limits, number in rows:
        for key in read_list(str(limits)):
            counts[key] = counts.get(key, 0) + int(number or 0)
    return counts


def _word(key: str) -> str:
    return f'"{key}"'
