"""Outset: what a worker learns at the beginning of a turn, in one statement: its orders, what is due, and the lanes."""

from functools import cache

from queuectl.store.dialect import Question
from queuectl.store.jobs import FIRST_RUN_AT
from queuectl.store.lanes import LANE_COLUMNS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queuectl.store.database import Tx
    from queuectl.store.dialect import Dialect, Row


class Outset:
    """What a living worker is told (`drain`, `now`, or nothing), whether jobs are due, and every lane as a row."""

    __slots__ = ("is_due", "lanes", "stop")

    def __init__(self, stop: str, lanes: "list[Row]", *, is_due: bool) -> None:
        self.stop = stop
        self.lanes = lanes
        self.is_due = is_due


def question(dialect: "Dialect", worker_id: str) -> Question | None:
    """Return what `outset` asks, for a transaction to begin with; None where no server is asked."""
    if dialect.is_local:
        return None
    sql = _question_sql(dialect.clock, dialect.is_watched, dialect.for_share)
    return Question(name="outset", sql=sql, about=worker_id)


def outset(tx: "Tx", worker_id: str) -> Outset | None:
    """Return what a worker finds; None means that it was given up for dead.

    Its row cannot change before the transaction ends, so a claim or settle after this is a living worker's. On the way
    the transaction learns whether anybody watches, which saves it a question.
    """
    if tx.answer is None:
        rows = tx.rows(_sql(tx.dialect.is_watched, tx.dialect.for_share), {"id": worker_id, "now": tx.now})
    else:
        rows = [row[1:] for row in tx.answer if row[1] is not None]
    if not rows:
        return None
    _, stop, is_watched, first_run_at = rows[0][:4]
    tx.is_watched = bool(is_watched)
    lanes = [row[4:] for row in rows] if rows[0][4] is not None else []
    return Outset(str(stop or ""), lanes, is_due=first_run_at is not None and int(first_run_at) <= tx.now)


@cache
def _sql(is_watched: str, for_share: str) -> str:
    return f"""
        SELECT w.id, w.stop, {is_watched}, ({FIRST_RUN_AT}), {LANE_COLUMNS}
          FROM (SELECT id, stop FROM workers WHERE id = :id AND state = 'live' {for_share}) AS w
          LEFT JOIN lanes l ON 1 = 1
          LEFT JOIN queues q ON q.name = l.queue
    """


@cache
def _question_sql(clock: str, is_watched: str, for_share: str) -> str:
    found = _sql(is_watched, for_share).replace(":now", clock).replace(":id", "$1")
    return f"SELECT {clock}, found.* FROM (SELECT 1) AS always LEFT JOIN ({found}) AS found ON 1 = 1"
