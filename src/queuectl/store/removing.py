"""Removing: jobs that are over, with everything kept of them. Who may be removed when is decided in actions/."""

from queuectl.store import edges
from queuectl.store.jobs import CHUNK, listed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from queuectl.model.states import State
    from queuectl.store.database import Tx

# A job that ended is needed for as long as another waits for it: those that it satisfied do not. Spelt with LIMIT:
# PostgreSQL would else read every edge there is into a table of its own.
_IS_NEEDED = """
    (jobs.has_dependents = 1 AND (
        SELECT 1
          FROM edges e
          JOIN jobs child ON child.seq = e.child_seq
         WHERE e.parent_seq = jobs.seq AND e.state <> 'satisfied'
           AND child.state NOT IN ('completed', 'dead', 'cancelled')
         LIMIT 1) IS NOT NULL)
"""


def finished_before(tx: "Tx", state: "State", before: int, limit: int) -> list[int]:
    """Return the numbers of jobs that came to a final state before a time, the longest over first; takes them.

    One that others still wait for is left out.
    """
    rows = tx.rows(
        f"""
        SELECT seq
          FROM jobs
         WHERE state = '{state}' AND finished_at < :before AND NOT {_IS_NEEDED}
         ORDER BY finished_at
         LIMIT :limit {tx.dialect.skip_locked}
        """,
        {"before": before, "limit": limit},
    )
    return [int(row[0] or 0) for row in rows]


def count_finished_before(tx: "Tx", state: "State", before: int) -> int:
    """Return how many jobs came to a final state before a time and are needed by nobody."""
    sql = f"SELECT count(*) FROM jobs WHERE state = '{state}' AND finished_at < :before AND NOT {_IS_NEEDED}"
    row = tx.row(sql, {"before": before})
    return int(row[0] or 0) if row else 0


def delete(tx: "Tx", seqs: "Sequence[int]", *, frees_keys: bool = True) -> int:
    """Remove jobs that are not running, with their runs and groups that have none left; return how many went.

    A key that keeps others away for a while after its job completed goes, too, or does so until it expires.
    """
    gone = 0
    names_of_groups: set[str] = set()
    for start in range(0, len(seqs), CHUNK):
        names, params = listed("seq", seqs[start : start + CHUNK])
        rows = tx.rows(
            f"DELETE FROM jobs WHERE state <> 'processing' AND seq IN ({names}) RETURNING seq, unique_key, group_name",
            params,
        )
        if rows:
            removed = [int(row[0] or 0) for row in rows]
            names_of_groups.update(str(row[2]) for row in rows if row[2] is not None)
            names, params = listed("seq", removed)
            tx.changed(f"DELETE FROM inputs WHERE job_seq IN ({names})", params)
            edges.drop(tx, removed)
            if frees_keys:
                _free_keys(tx, [(str(key), int(seq or 0)) for seq, key, _ in rows if key is not None])
            kept = tx.rows(
                f"DELETE FROM attempts WHERE job_seq IN ({names}) RETURNING output_file, stderr_file", params
            )
            tx.discard(str(name) for row in kept for name in row if name is not None)
        gone += len(rows)
    if names_of_groups:
        from queuectl.store import groups  # few jobs are of one

        groups.forget_empty(tx, names_of_groups)
    return gone


def _free_keys(tx: "Tx", keys: "Sequence[tuple[str, int]]") -> None:
    if keys:
        from queuectl.store import unique_keys  # few jobs have one

        unique_keys.forget(tx, keys)
