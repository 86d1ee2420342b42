"""Failing: the dead jobs by what they died of, counted."""

from queuectl.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queuectl.store.database import Tx


class Failing(Value):
    """The dead jobs with one error."""

    error: str
    count: int
    last_at: int
    sample: int
    """The number of one of them."""


def failing(tx: "Tx", limit: int) -> list[Failing]:
    """Return the errors that most dead jobs have, the most frequent first."""
    rows = tx.rows(
        """
        SELECT COALESCE(error, ''), count(*), max(finished_at), max(seq)
          FROM jobs
         WHERE state IN ('completed', 'dead', 'cancelled') AND state = 'dead'
         GROUP BY 1
         ORDER BY 2 DESC, 3 DESC
         LIMIT :limit
        """,
        {"limit": limit},
    )
    return [Failing.of_row(row) for row in rows]
