"""Offers: a few jobs and tags that begin with what a person typed so far. Read by index and in bounds, however many."""

from queuectl.model.states import FINAL, State
from queuectl.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from queuectl.store.database import Tx
    from queuectl.store.dialect import Row, SqlValue

LOOKED_AT = 500
MAX_DIGITS = 16
_COLUMNS = "seq, given_id, state, substr(COALESCE(command, argv), 1, 80) AS line"

# The order each state's partial index is in, so that the first rows are found without sorting.
_ORDER = {
    State.PENDING: ("state = 'pending'", "lane_id DESC, priority, seq DESC"),
    State.SCHEDULED: ("state IN ('scheduled', 'failed') AND state = 'scheduled'", "run_at"),
    State.FAILED: ("state IN ('scheduled', 'failed') AND state = 'failed'", "run_at"),
    State.BLOCKED: ("state = 'blocked'", "lane_id"),
    State.PROCESSING: ("state = 'processing'", "worker_id"),
    **{state: (f"state = '{state}'", "state, finished_at DESC") for state in FINAL},
}


class Offer(Value):
    """A job in a few words; `line` is the beginning of its command."""

    seq: int
    given_id: str | None
    state: str
    line: str

    @property
    def id(self) -> str:
        """What people call the job."""
        return self.given_id or str(self.seq)


def jobs_named(tx: "Tx", states: "Sequence[State]", prefix: str, limit: int) -> list[Offer]:
    """Return jobs in these states (none: any) whose id begins with the prefix, newest first; some, never all."""
    rows = _first_ones(tx, states)
    if prefix:
        rows += _given_ids_from(tx, prefix)
        rows += [row for low, high in _number_ranges(tx, prefix) for row in _numbered(tx, low, high)]
    found = {offer.seq: offer for offer in map(Offer.of_row, rows)}
    wanted = [each for each in found.values() if each.id.startswith(prefix) and (not states or each.state in states)]
    return sorted(wanted, key=lambda offer: -offer.seq)[:limit]


def tags(tx: "Tx", prefix: str, limit: int) -> list[str]:
    """Return tags of the newest tagged jobs that begin with the prefix."""
    import json

    rows = tx.rows("SELECT tags FROM jobs WHERE tags IS NOT NULL ORDER BY seq DESC LIMIT :most", {"most": LOOKED_AT})
    found = {tag: None for row in rows for tag in json.loads(str(row[0])) if tag.startswith(prefix)}
    return list(found)[:limit]


def has_older_tagged(tx: "Tx") -> bool:
    """Whether there are tagged jobs beyond those that `tags` looks at."""
    older = "SELECT 1 FROM jobs WHERE tags IS NOT NULL ORDER BY seq DESC LIMIT 1 OFFSET :most"
    return bool(tx.rows(older, {"most": LOOKED_AT}))


def groups(tx: "Tx", prefix: str, limit: int) -> list[str]:
    """Return groups that begin with the prefix, by name."""
    rows = tx.rows(
        "SELECT name FROM job_groups WHERE name >= :prefix ORDER BY name LIMIT :most",
        {"prefix": prefix, "most": LOOKED_AT},
    )
    return [name for name in (str(row[0]) for row in rows) if name.startswith(prefix)][:limit]


def _first_ones(tx: "Tx", states: "Sequence[State]") -> "list[Row]":
    if not states:
        return tx.rows(f"SELECT {_COLUMNS} FROM jobs ORDER BY seq DESC LIMIT :most", {"most": LOOKED_AT})
    return [
        row
        for where, order in map(_ORDER.__getitem__, states)
        for row in tx.rows(
            f"SELECT {_COLUMNS} FROM jobs WHERE {where} ORDER BY {order} LIMIT :most", {"most": LOOKED_AT}
        )
    ]


def _given_ids_from(tx: "Tx", prefix: str) -> "list[Row]":
    # Not LIKE, which finds no index in most collations; what sorts in between is sorted out by the caller.
    return tx.rows(
        f"""
        SELECT {_COLUMNS}
          FROM jobs
         WHERE given_id IS NOT NULL AND given_id >= :prefix
         ORDER BY given_id
         LIMIT :most
        """,
        {"prefix": prefix, "most": LOOKED_AT},
    )


def _number_ranges(tx: "Tx", prefix: str) -> "list[tuple[int, int]]":
    """Return the ranges of numbers that begin with these digits: 12, 120 to 129, 1200 to 1299 and so on."""
    if not (prefix.isascii() and prefix.isdigit() and prefix[0] != "0" and len(prefix) < MAX_DIGITS):
        return []
    last, first = tx.dialect.last_number("jobs", "seq"), int(prefix)
    ranges = [(first * 10**more, (first + 1) * 10**more - 1) for more in range(MAX_DIGITS - len(prefix))]
    return [(low, high) for low, high in ranges if low <= last]


def _numbered(tx: "Tx", low: int, high: int) -> "list[Row]":
    params: dict[str, SqlValue] = {"low": low, "high": high, "most": LOOKED_AT}
    return tx.rows(
        f"SELECT {_COLUMNS} FROM jobs WHERE seq >= :low AND seq <= :high ORDER BY seq DESC LIMIT :most", params
    )
