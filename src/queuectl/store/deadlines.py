"""Deadlines: burying jobs that wait beyond theirs. Those that run are stopped by their worker."""

from queuectl.model.job import Job
from queuectl.model.states import Move, State
from queuectl.store import moves, parking
from queuectl.store.jobs import COLUMNS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queuectl.store.database import Tx

DEADLINE_WORDS = "its deadline passed before it could run"
# Spelt as jobs_deadline is, so that both planners know that it holds the rows.
_HAS_DEADLINE = "deadline_at IS NOT NULL AND state IN ('pending', 'scheduled', 'blocked', 'failed')"


def expire(tx: "Tx", job: "Job") -> "Job | None":
    """Bury a job that waits and whose deadline has passed; None means it does not wait any more."""
    error = f"{DEADLINE_WORDS} again" if job.run else DEADLINE_WORDS
    tx.tell()
    return moves.move(tx, Move.EXPIRE, job.seq, State.DEAD, error=error)


def has_overdue(tx: "Tx") -> bool:
    """Whether the deadline of a job that waits has passed: one probe of jobs_deadline."""
    row = tx.row(f"SELECT min(deadline_at) FROM jobs WHERE {_HAS_DEADLINE}")
    return row is not None and row[0] is not None and int(row[0]) <= tx.now


def expire_overdue(tx: "Tx", most: int) -> tuple[int, list[Job]]:
    """Bury jobs that wait, for whatever, and whose deadline has passed, the longest over first.

    Return how many were looked at, and those that were buried.
    """
    # A lower bound, too: else PostgreSQL expects a third of all jobs to be overdue, and sorts instead of walking.
    rows = tx.rows(
        f"""
        SELECT {COLUMNS}
          FROM jobs
         WHERE {_HAS_DEADLINE} AND deadline_at >= 0 AND deadline_at <= :now
         ORDER BY deadline_at
         LIMIT :most {tx.dialect.skip_locked}
        """,
        {"now": tx.now, "most": most},
    )
    overdue = [Job.of_row(row) for row in rows]
    # Tried, not waited for, since the rows are held: those of a limit somebody is busy with are left for the next look.
    ours = tx.try_lock(key for job in overdue for key in job.limit_list)
    buried = [job for job in overdue if ours.issuperset(job.limit_list)]
    dead = [after for job in buried if (after := expire(tx, job)) is not None]
    parking.left_line(tx, buried)
    return len(rows), dead
