"""Runs that ended: which they are, by what came of them, when, where and of which error; and how many.

The same runs that stats.py and error_groups.py count. Walked along the index attempts_ended, each result by itself.
"""

from queuectl.model.attempt import Attempt
from queuectl.model.errorgroup import group_name
from queuectl.model.value import Value
from queuectl.model.verdict import Result
from queuectl.store import attempts, jobs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queuectl.model.job import Job
    from queuectl.store.database import Tx
    from queuectl.store.dialect import SqlValue

    Place = tuple[int, int, int]
    Condition = tuple[str, dict[str, SqlValue]]

ERRORS_AT_ONCE = 5_000
"""How many texts one statement looks for."""


class Ended(Value):
    """Which runs are meant: those that ended from `since` to before `until`, by what came of them."""

    results: tuple[Result, ...]
    since: int
    until: int
    queue: str | None = None
    error: str | None = None
    """The name of the group that their error belongs to."""


class Run(Value):
    """A run that ended, and its job as it is now."""

    attempt: Attempt
    job: "Job"

    @property
    def place(self) -> "Place":
        """Where it stands: a page begins behind one."""
        return place_of(self.attempt)


def place_of(attempt: Attempt) -> "Place":
    """Return where a run stands among all that ended."""
    return attempt.finished_at or 0, attempt.job_seq, attempt.run


def count(tx: "Tx", wanted: Ended) -> int:
    """Return how many runs are meant."""
    tx.dialect.keep_to_indexes()
    total = 0
    for where, params in _conditions(tx, wanted):
        row = tx.row(f"SELECT count(*) FROM attempts WHERE {where}", params)
        total += int(row[0] or 0) if row else 0
    return total


def page(tx: "Tx", wanted: Ended, limit: int, after: "Place | None" = None) -> list[Run]:
    """Return the runs that ended last of those meant, or last before another, the latest first."""
    tx.dialect.keep_to_indexes()
    found: list[Attempt] = []
    for where, params in _conditions(tx, wanted):
        behind, beyond = _behind(after)
        rows = tx.rows(
            f"""
            SELECT {attempts.COLUMNS}
              FROM attempts
             WHERE {where} {behind}
             ORDER BY finished_at DESC, job_seq DESC, run DESC
             LIMIT :limit
            """,
            {**params, **beyond, "limit": limit},
        )
        found += map(Attempt.of_row, rows)
    latest = sorted(found, key=place_of, reverse=True)[:limit]
    by_number = {job.seq: job for job in jobs.by_seqs(tx, list({each.job_seq for each in latest}))}
    return [Run(attempt=each, job=by_number[each.job_seq]) for each in latest if each.job_seq in by_number]


def _behind(after: "Place | None") -> "Condition":
    if after is None:
        return "", {}
    behind = "AND finished_at <= :at AND (finished_at < :at OR (job_seq, run) < (:after_seq, :after_run))"
    return behind, {"at": after[0], "after_seq": after[1], "after_run": after[2]}


def _conditions(tx: "Tx", wanted: Ended) -> "list[Condition]":
    """Return what holds for the runs that are meant, in parts of which each is a stretch of the index."""
    of_queue = "" if wanted.queue is None else "AND queue = :queue"
    shared: dict[str, SqlValue] = {"since": wanted.since, "until": wanted.until}
    if wanted.queue is not None:
        shared["queue"] = wanted.queue
    parts: list[Condition] = []
    for result in wanted.results:
        where = f"result = '{result}' AND finished_at >= :since AND finished_at < :until {of_queue}"
        parts += [(where, shared)] if wanted.error is None else _of_error(tx, wanted.error, where, shared)
    return parts


def _of_error(tx: "Tx", name: str, where: str, params: "dict[str, SqlValue]") -> "list[Condition]":
    """Narrow a condition to the runs of one group of errors: to the texts it has there."""
    rows = tx.rows(f"SELECT DISTINCT COALESCE(error, '') FROM attempts WHERE {where}", params)
    texts = sorted(error for error in (str(row[0]) for row in rows) if group_name(error) == name)
    parts: list[Condition] = []
    for start in range(0, len(texts), ERRORS_AT_ONCE):
        names, errors = jobs.listed("error", texts[start : start + ERRORS_AT_ONCE])
        parts.append((f"{where} AND COALESCE(error, '') IN ({names})", {**params, **errors}))
    return parts
