"""Outset: what a worker learns at the beginning of a turn, in one statement: its orders, what is due, and the lanes."""

from functools import cache

from queuectl.store.jobs import FIRST_RUN_AT
from queuectl.store.lanes import LANE_COLUMNS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queuectl.store.database import Tx
    from queuectl.store.dialect import Row


class Outset:
    """What a living worker is told (`drain`, `now`, or nothing), whether jobs are due, and every lane as a row."""

    __slots__ = ("is_due", "lanes", "stop")

    def __init__(self, stop: str, lanes: "list[Row]", *, is_due: bool) -> None:
        self.stop = stop
        self.lanes = lanes
        self.is_due = is_due


def outset(tx: "Tx", worker_id: str) -> Outset | None:
    """Return what a worker finds; None means that it was given up for dead.

    Its row cannot change before the transaction ends, so a claim or settle after this is a living worker's. On the way
    the transaction learns whether anybody watches, which saves it a question.
    """
    dialect = tx.dialect
    rows = tx.rows(_sql(dialect.is_watched, dialect.for_share), {"id": worker_id, "now": tx.now})
    if not rows:
        return None
    stop, is_watched, first_run_at = rows[0][:3]
    tx.is_watched = bool(is_watched)
    lanes = [row[3:] for row in rows] if rows[0][3] is not None else []
    return Outset(str(stop or ""), lanes, is_due=first_run_at is not None and int(first_run_at) <= tx.now)


@cache
def _sql(is_watched: str, for_share: str) -> str:
    return f"""
        SELECT w.stop, {is_watched}, ({FIRST_RUN_AT}), {LANE_COLUMNS}
          FROM (SELECT stop FROM workers WHERE id = :id AND state = 'live' {for_share}) AS w
          LEFT JOIN lanes l ON 1 = 1
          LEFT JOIN queues q ON q.name = l.queue
    """
