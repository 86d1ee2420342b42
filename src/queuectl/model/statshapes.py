"""Shapes of statistics and error groups as JSON, the same on the command line and over HTTP."""

from queuectl.model.units import iso_text
from queuectl.model.verdict import Result

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from queuectl.model.errorgroup import ErrorGroup, FailureGroup
    from queuectl.model.stats import Bucket, Spread, Stats

    Shape = dict[str, object]


def stats_shape(stats: "Stats", failing: "Sequence[FailureGroup]") -> "Shape":
    """Return what came of the runs of a range of time: in all and in each bucket, how long they took, what fails."""
    return {
        "range": stats.range.value,
        "since": iso_text(stats.span.since),
        "until": iso_text(stats.span.until),
        "now": iso_text(stats.now),
        "bucket_seconds": stats.span.bucket_ms // 1000,
        "queue": stats.queue,
        "total": _bucket_shape(stats.total),
        "wait": _spread_shape(stats.wait),
        "run_time": _spread_shape(stats.run_time),
        "today": {"since": iso_text(stats.today_since), "completed": stats.completed_today},
        "failing": [failure_group_shape(group) for group in failing],
        "buckets": [{"at": iso_text(bucket.at), **_bucket_shape(bucket)} for bucket in stats.buckets],
    }


def error_group_shape(group: "ErrorGroup") -> "Shape":
    """Return dead jobs that died of the same; `error` is what `dlq retry --error` takes."""
    return {
        "error": group.name,
        "means": group.means or None,
        "count": group.count,
        "first_at": iso_text(group.first_at),
        "last_at": iso_text(group.last_at),
        "queues": dict(group.queues),
        "samples": list(group.samples),
        "texts": len(group.errors),
        "text": group.errors[0] or None,
        "since": iso_text(group.span.since),
        "bucket_seconds": group.span.bucket_ms // 1000,
        "deaths": list(group.deaths),
    }


def failure_group_shape(group: "FailureGroup") -> "Shape":
    """Return runs that failed of the same."""
    return {
        "error": group.name,
        "count": group.count,
        "last_at": iso_text(group.last_at),
        "sample": group.sample,
        "text": group.error or None,
    }


def _bucket_shape(bucket: "Bucket") -> "Shape":
    return {
        "runs": sum(bucket.counts.values()),
        "completed": bucket.completed,
        "failures": bucket.failures,
        "results": {result.value: bucket.counts.get(result, 0) for result in Result},
    }


def _spread_shape(spread: "Spread") -> "Shape":
    return {"count": spread.count, "p50_ms": spread.p50_ms, "p95_ms": spread.p95_ms, "max_ms": spread.max_ms}
