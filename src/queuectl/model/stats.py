"""Statistics as values: which times they are about, what came of the runs that ended then, how long those took."""

from datetime import datetime
from enum import StrEnum

from queuectl.errors import BadInput
from queuectl.model.value import Value
from queuectl.model.verdict import FAILURES, Result

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from queuectl.model.job import Job
    from queuectl.model.states import State

    Counts = Mapping[Result, int]

_MINUTE = 60_000
_HOUR = 60 * _MINUTE


class Range(StrEnum):
    """How far back statistics look: 60 buckets of a minute, 48 of half an hour, or 42 of four hours."""

    HOUR = "1h"
    DAY = "24h"
    WEEK = "7d"

    @classmethod
    def read(cls, text: str) -> "Range":
        """Read a range as a person writes it."""
        if text not in tuple(cls):
            raise BadInput(f"bad range {text!r}", hint=f"it is one of: {', '.join(cls)}")
        return cls(text)

    @property
    def bucket_ms(self) -> int:
        """How long one bucket is."""
        return _BUCKETS[self][0]

    @property
    def buckets(self) -> int:
        """How many there are."""
        return _BUCKETS[self][1]

    def until(self, now: int) -> "Span":
        """Return the times it is about at some time: whole buckets, the last of which has not ended yet.

        Buckets begin at multiples of their length (in UTC), so that each keeps its place, and what it counts, while
        time goes on.
        """
        end = (now // self.bucket_ms + 1) * self.bucket_ms
        return Span(since=end - self.buckets * self.bucket_ms, until=end, bucket_ms=self.bucket_ms)


_BUCKETS = {Range.HOUR: (_MINUTE, 60), Range.DAY: (30 * _MINUTE, 48), Range.WEEK: (4 * _HOUR, 42)}


class Span(Value):
    """A stretch of time: from `since` to before `until`, in buckets."""

    since: int
    until: int
    bucket_ms: int

    @property
    def starts(self) -> "list[int]":
        """When each bucket begins."""
        return list(range(self.since, self.until, self.bucket_ms))


class Bucket(Value):
    """The runs that ended within a part of a span, by what came of them."""

    at: int
    counts: "Counts"

    @property
    def completed(self) -> int:
        """How many did well."""
        return self.counts.get(Result.COMPLETED, 0)

    @property
    def failures(self) -> int:
        """How many failed, in whatever way."""
        return sum(self.counts.get(result, 0) for result in FAILURES)

    @property
    def others(self) -> int:
        """How many neither did well nor failed: cancelled, snoozed, handed back."""
        return sum(self.counts.values()) - self.completed - self.failures


class Spread(Value):
    """How long something took, over `count` runs; nothing is known of none.

    A percentile is the nearest rank: the smallest value that at least so many of a hundred do not exceed.
    """

    count: int = 0
    p50_ms: int | None = None
    p95_ms: int | None = None
    max_ms: int | None = None


class Stats(Value):
    """What came of the runs that ended within a span."""

    range: Range
    now: int
    span: Span
    queue: str | None
    buckets: tuple[Bucket, ...]
    """Every bucket of the span, the earliest first, also where nothing ended."""
    wait: Spread
    """From when a job was ready until it was taken; runs from before that was noted are left out."""
    run_time: Spread
    today_since: int
    completed_today: int
    """How many jobs are completed that came to their end since then: jobs, where all else is about runs."""

    @property
    def total(self) -> Bucket:
        """All buckets together."""
        counts: dict[Result, int] = {}
        for bucket in self.buckets:
            for result, number in bucket.counts.items():
                counts[result] = counts.get(result, 0) + number
        return Bucket(at=self.span.since, counts=counts)


BOUNDS_MS = (5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000, 60_000, 300_000, 1_800_000, 7_200_000)
"""The bounds of histograms over all runs."""


class Histogram(Value):
    """How many runs took at most so long, for each of BOUNDS_MS, how many there are in all, and their sum."""

    at_most: tuple[int, ...]
    count: int
    sum_ms: int


class Totals(Value):
    """All runs on record, by what came of them, with how long they waited and ran."""

    counts: "Counts"
    wait: Histogram
    run_time: Histogram


class QueueFigures(Value):
    """How a queue fares: what is in it, which job is ready for longest, and what came of its runs of the last hour."""

    queue: str
    counts: "Mapping[State, int]"
    oldest: "Job | None"
    """The job that has been ready for longest."""
    last_hour: Bucket
    """The runs that ended within it."""


def midnight(now: int) -> int:
    """Return when the day began that a time falls on, where this program runs."""
    day = (
        datetime.fromtimestamp(now / 1000).astimezone().replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=None)
    )
    return int(day.timestamp()) * 1000


def nearest_rank(count: int, percent: int) -> int:
    """Return the place, from 1, of a percentile among so many values in order."""
    return max(1, -(-count * percent // 100))
