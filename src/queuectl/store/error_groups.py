"""Error groups: dead jobs, and runs that failed, by what their errors say; over all of them, never estimated."""

from queuectl.model.errorgroup import ErrorGroup, FailureGroup, group_name
from queuectl.model.states import State
from queuectl.model.stats import Range, Span
from queuectl.model.verdict import FAILURES
from queuectl.store.jobs import Filter, where_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from queuectl.store.database import Tx

SAMPLES = 3
ERRORS_AT_ONCE = 5_000
"""How many texts one statement looks for."""
DEAD = Filter(states=(State.DEAD,))

# Few texts are distinct, so the database counts by text and the names are given afterwards.
_DEATHS = """
    SELECT COALESCE(error, ''), queue, bucket, count(*), min(finished_at), max(finished_at)
      FROM (SELECT error, queue, finished_at,
                   CASE WHEN finished_at >= :begin AND finished_at < :end
                        THEN (finished_at - :begin) / :width
                        ELSE -1 END AS bucket
              FROM jobs
             WHERE {where}) AS dead
     GROUP BY error, queue, bucket
"""
_FAILED = ", ".join(f"'{result}'" for result in FAILURES)


class _Tally:
    """One group while it is counted."""

    def __init__(self, buckets: int) -> None:
        self.count = 0
        self.first_at: int | None = None
        self.last_at = 0
        self.queues: dict[str, int] = {}
        self.deaths = [0] * buckets
        self.latest: list[tuple[int, str]] = []
        """When the last of each part died, and what its error is."""
        self.errors: set[str] = set()

    def add(self, error: str, queue: str, bucket: int, count: int, first_at: int, last_at: int) -> None:
        """Count jobs with the same error, queue and bucket."""
        self.count += count
        self.first_at = first_at if self.first_at is None else min(self.first_at, first_at)
        self.last_at = max(self.last_at, last_at)
        self.queues[queue] = self.queues.get(queue, 0) + count
        if bucket >= 0:
            self.deaths[bucket] += count
        self.latest.append((last_at, error))
        self.errors.add(error)


def groups(tx: "Tx", wanted: Filter = DEAD, range_: Range = Range.DAY) -> list[ErrorGroup]:
    """Return the dead jobs that match by what their errors say, the largest group first."""
    span = range_.until(tx.now)
    tallies: dict[str, _Tally] = {}
    where, params = where_of(wanted.replace(states=(State.DEAD,)))
    begin = {"begin": span.since, "end": span.until, "width": span.bucket_ms}
    for row in tx.rows(_DEATHS.format(where=where), {**params, **begin}):
        error, queue = str(row[0]), str(row[1])
        bucket, count, first_at, last_at = (int(each or 0) for each in row[2:])
        tally = tallies.setdefault(group_name(error), _Tally(range_.buckets))
        tally.add(error, queue, bucket, count, first_at, last_at)
    found = [_group(tx, wanted, name, tally, span) for name, tally in tallies.items()]
    return sorted(found, key=lambda group: (-group.count, group.name))


def group(tx: "Tx", name: str, wanted: Filter = DEAD, range_: Range = Range.DAY) -> ErrorGroup | None:
    """Return one group by its name; None means that no dead job that matches belongs to it."""
    return next((each for each in groups(tx, wanted, range_) if each.name == name), None)


def groups_meant(tx: "Tx", wanted: Filter, range_: Range = Range.DAY) -> list[ErrorGroup]:
    """Return the groups of the dead jobs that are meant: the one whose name is `error`, else of errors that hold it."""
    if wanted.error is not None:
        named = group(tx, wanted.error, wanted.replace(error=None), range_)
        if named is not None:
            return [named]
    return groups(tx, wanted, range_)


def meant(tx: "Tx", wanted: Filter) -> list[Filter]:
    """Return what finds the dead jobs that are meant: all of a group of errors where `error` is the name of one.

    Else `error` is a text that errors hold, as everywhere.
    """
    if wanted.error is None:
        return [wanted]
    others = wanted.replace(error=None)
    errors = errors_of(tx, wanted.error, others)
    return filters_of(others, errors) if errors else [wanted]


def errors_of(tx: "Tx", name: str, wanted: Filter = DEAD) -> list[str]:
    """Return every text that dead jobs of a group have as their error; none means that there is no such group."""
    where, params = where_of(wanted.replace(states=(State.DEAD,)))
    rows = tx.rows(f"SELECT DISTINCT COALESCE(error, '') FROM jobs WHERE {where}", params)
    return sorted(error for error in (str(row[0]) for row in rows) if group_name(error) == name)


def filters_of(wanted: Filter, errors: "Iterable[str]") -> list[Filter]:
    """Return what finds the dead jobs that match and have one of some errors, in parts a statement can take."""
    texts = sorted(errors)
    return [
        wanted.replace(states=(State.DEAD,), errors=tuple(texts[start : start + ERRORS_AT_ONCE]))
        for start in range(0, len(texts), ERRORS_AT_ONCE)
    ]


def failing(tx: "Tx", range_: Range, queue: str | None = None) -> list[FailureGroup]:
    """Return the runs that failed within a range of time until now by what their errors say, most first."""
    tx.dialect.keep_to_indexes()
    span = range_.until(tx.now)
    rows = tx.rows(
        f"""
        SELECT COALESCE(error, ''), count(*), max(finished_at)
          FROM attempts
         WHERE result IN ({_FAILED}) AND finished_at >= :since AND finished_at < :until
               {"" if queue is None else "AND queue = :queue"}
         GROUP BY error
        """,
        {"since": span.since, "until": span.until, **({} if queue is None else {"queue": queue})},
    )
    counts: dict[str, int] = {}
    last: dict[str, tuple[int, str]] = {}
    for error, count, last_at in rows:
        name = group_name(str(error))
        counts[name] = counts.get(name, 0) + int(count or 0)
        last[name] = max(last.get(name, (0, "")), (int(last_at or 0), str(error)))
    return [
        FailureGroup.of_row((name, count, last[name][0], _failed_job(tx, queue, *last[name]), last[name][1], span))
        for name, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    ]


def _group(tx: "Tx", wanted: Filter, name: str, tally: _Tally, span: Span) -> ErrorGroup:
    return ErrorGroup(
        name=name,
        count=tally.count,
        first_at=tally.first_at or 0,
        last_at=tally.last_at,
        queues=dict(sorted(tally.queues.items(), key=lambda item: (-item[1], item[0]))),
        samples=_samples(tx, wanted, sorted(tally.latest, reverse=True)[:SAMPLES]),
        span=span,
        deaths=tuple(tally.deaths),
        errors=tuple(sorted(tally.errors)),
    )


def _samples(tx: "Tx", wanted: Filter, latest: "list[tuple[int, str]]") -> tuple[str, ...]:
    """Return the ids of jobs that match and died at some times, of some errors: one probe of jobs_finished for each."""
    where, params = where_of(wanted.replace(states=(State.DEAD,)))
    found: dict[str, None] = {}
    for at, error in latest:
        rows = tx.rows(
            f"""
            SELECT COALESCE(given_id, CAST(seq AS TEXT))
              FROM jobs
             WHERE {where} AND finished_at = :died_at AND COALESCE(error, '') = :died_of
             ORDER BY seq DESC
             LIMIT :most
            """,
            {**params, "died_at": at, "died_of": error, "most": SAMPLES},
        )
        found |= dict.fromkeys(str(row[0]) for row in rows)
    return tuple(found)[:SAMPLES]


def _failed_job(tx: "Tx", queue: str | None, at: int, error: str) -> str:
    row = tx.row(
        f"""
        SELECT COALESCE(given_id, CAST(seq AS TEXT))
          FROM jobs
         WHERE seq IN (SELECT job_seq
                         FROM attempts
                        WHERE result IN ({_FAILED}) AND finished_at = :at AND COALESCE(error, '') = :error
                              {"" if queue is None else "AND queue = :queue"})
         ORDER BY seq DESC
         LIMIT 1
        """,
        {"at": at, "error": error, **({} if queue is None else {"queue": queue})},
    )
    return str(row[0]) if row else ""
