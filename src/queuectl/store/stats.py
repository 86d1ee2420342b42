"""Statistics: what came of the runs that ended within some time, counted afresh from the records, never estimated.

All of it is read from the index attempts_ended, which holds the runs by result and time: the buckets of a range are
counts of parts of it, so nothing is sorted or grouped.
"""

from queuectl.model.states import State
from queuectl.model.stats import (
    BOUNDS_MS,
    Bucket,
    Histogram,
    QueueFigures,
    Range,
    Span,
    Spread,
    Stats,
    Totals,
    midnight,
    nearest_rank,
)
from queuectl.model.verdict import Result
from queuectl.store import jobs, overview

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from queuectl.store.database import Tx
    from queuectl.store.dialect import SqlValue

LAST_HOUR_MS = 3_600_000

_RESULTS = ", ".join(f"'{result}'" for result in Result)
_WAIT, _RUN_TIME = "waited_ms", "finished_at - started_at"
_ENDED = f"result IN ({_RESULTS}) AND finished_at >= :since AND finished_at < :until"
_OF_QUEUE = "AND queue = :queue"

# A count for each bucket of each result. A million runs in 42 buckets: 0.1 s on SQLite, where GROUP BY takes 1.1 s,
# since it sorts them.
_BUCKETS = """
    WITH RECURSIVE buckets (at) AS (
        SELECT CAST(:since AS BIGINT)
         UNION ALL
        SELECT at + :width FROM buckets WHERE at + :width < :until
    ), results (name) AS (
        VALUES {results}
    )
    SELECT at, name, (SELECT count(*)
                        FROM attempts
                       WHERE result = name AND finished_at >= at AND finished_at < at + :width {of_queue})
      FROM results
     CROSS JOIN buckets
"""


def stats(tx: "Tx", range_: Range, queue: str | None = None) -> Stats:
    """Return what came of the runs that ended within a range of time until now, of all queues or of one."""
    tx.dialect.keep_to_indexes()
    span = range_.until(tx.now)
    today = midnight(tx.now)
    wait, run_time = spreads(tx, span, queue)
    return Stats(
        range=range_,
        now=tx.now,
        span=span,
        queue=queue,
        buckets=buckets(tx, span, queue),
        wait=wait,
        run_time=run_time,
        today_since=today,
        completed_today=jobs.count_matching(tx, jobs.Filter(states=(State.COMPLETED,), queue=queue, ended_since=today)),
    )


def buckets(tx: "Tx", span: Span, queue: str | None = None) -> tuple[Bucket, ...]:
    """Return the runs that ended within each part of a span, the earliest first."""
    counts: dict[int, dict[Result, int]] = {at: {} for at in span.starts}
    found = [str(row[0]) for row in tx.rows(_present(), {"since": span.since, "until": span.until})]
    if found:
        sql = _BUCKETS.format(results=_values(found), of_queue=_of(queue))
        for at, result, count in tx.rows(sql, {**_params(span, queue), "width": span.bucket_ms}):
            if count:
                counts[int(at or 0)][Result(str(result))] = int(count)
    return tuple(Bucket(at=at, counts=counts[at]) for at in span.starts)


def spreads(tx: "Tx", span: Span, queue: str | None = None) -> tuple[Spread, Spread]:
    """Return how long the runs that ended within a span waited, and how long they took."""
    where = f"FROM attempts WHERE {_ENDED} {_of(queue)}"
    params = _params(span, queue)
    (row,) = tx.rows(f"SELECT count({_WAIT}), max({_WAIT}), count(*), max({_RUN_TIME}) {where}", params)
    waits, longest_wait, runs, longest_run = (int(each or 0) for each in row)
    # First how many there are, then the values at the places that follow from that.
    ranks = [*_ranks(tx, _WAIT, waits), *_ranks(tx, _RUN_TIME, runs)]
    found = [int(each or 0) for each in tx.rows(f"SELECT {', '.join(ranks)} {where}", params)[0]] if ranks else []
    wait, run_time = Spread(), Spread()
    if runs:
        run_time = Spread(count=runs, p50_ms=found[-2], p95_ms=found[-1], max_ms=longest_run)
    if waits:
        wait = Spread(count=waits, p50_ms=found[0], p95_ms=found[1], max_ms=longest_wait)
    return wait, run_time


def totals(tx: "Tx", since: int = 0, until: int = 1 << 62) -> Totals:
    """Return all runs on record that ended from one time to before another, with how long they waited and ran.

    The parts of a time that is split add up to the whole: whoever asks often keeps what it knows of the past.
    """
    tx.dialect.keep_to_indexes()
    span = Span(since=since, until=until, bucket_ms=1)
    rows = tx.rows(f"SELECT result, count(*) FROM attempts WHERE {_ENDED} GROUP BY result", _params(span, None))
    return Totals(
        counts={Result(str(result)): int(count or 0) for result, count in rows},
        wait=_histogram(tx, _WAIT, span),
        run_time=_histogram(tx, _RUN_TIME, span),
    )


def queue_figures(tx: "Tx") -> list[QueueFigures]:
    """Return how each queue fares, by name."""
    counts = jobs.counts(tx)
    names = [str(row[0]) for row in tx.rows("SELECT name FROM queues ORDER BY name")]
    oldest = overview.oldest_by_queue(tx, names)
    ended = _ended_last_hour(tx)
    return [
        QueueFigures(
            queue=name,
            counts=counts.get(name, {}),
            oldest=oldest.get(name),
            last_hour=Bucket(at=tx.now - LAST_HOUR_MS, counts=ended.get(name, {})),
        )
        for name in names
    ]


def _ended_last_hour(tx: "Tx") -> "dict[str, dict[Result, int]]":
    tx.dialect.keep_to_indexes()
    rows = tx.rows(
        f"SELECT queue, result, count(*) FROM attempts WHERE {_ENDED} GROUP BY queue, result",
        {"since": tx.now - LAST_HOUR_MS, "until": tx.now + 1},
    )
    found: dict[str, dict[Result, int]] = {}
    for queue, result, count in rows:
        found.setdefault(str(queue), {})[Result(str(result))] = int(count or 0)
    return found


def _ranks(tx: "Tx", value: str, count: int) -> list[str]:
    """Return what gives the percentiles of a value that so many runs have."""
    return [tx.dialect.at_rank(value, nearest_rank(count, percent), count) for percent in (50, 95)] if count else []


def _histogram(tx: "Tx", value: str, span: Span) -> Histogram:
    bounds = ", ".join(f"count(*) FILTER (WHERE {value} <= {bound})" for bound in BOUNDS_MS)
    (row,) = tx.rows(f"SELECT count({value}), sum({value}), {bounds} FROM attempts WHERE {_ENDED}", _params(span, None))
    count, total, *at_most = (int(each or 0) for each in row)
    return Histogram(at_most=tuple(at_most), count=count, sum_ms=total)


def _present() -> str:
    """Return a statement that says which results there are within a span: one probe for each."""
    each = (
        f"SELECT '{result}' WHERE EXISTS (SELECT 1 FROM attempts WHERE result = '{result}'"
        " AND finished_at >= :since AND finished_at < :until)"
        for result in Result
    )
    return " UNION ALL ".join(each)


def _values(results: "Sequence[str]") -> str:
    return ", ".join(f"('{result}')" for result in results)


def _of(queue: str | None) -> str:
    return "" if queue is None else _OF_QUEUE


def _params(span: Span, queue: str | None) -> "dict[str, SqlValue]":
    return {"since": span.since, "until": span.until, **({} if queue is None else {"queue": queue})}
