"""Rhythm: when a schedule comes, by a cron line in a zone or by a stored anchor and a period. Pure."""

from collections import deque
from itertools import islice, pairwise, takewhile

from queuectl.errors import BadInput
from queuectl.model.checks import as_duration
from queuectl.model.cron import Cron
from queuectl.model.units import HOUR_MS, SECOND_MS, duration_text
from queuectl.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_COUNTED = 1000
GAPS_SEEN = 50
_FIRST_WINDOW_MS = HOUR_MS


def check_every(name: str, value: object) -> int:
    """Return a period in milliseconds, of whole seconds, or raise.

    The instants of all rhythms so lie on whole seconds, and never where a fire by hand does.
    """
    every_ms = as_duration(name, value)
    if every_ms < SECOND_MS or every_ms % SECOND_MS:
        raise BadInput(f"{name} {value} is no period: whole seconds, at least one", hint="write e.g. 10s, 10m, 1h30m")
    return every_ms


class Rhythm(Value):
    """A cron line in a zone, or a period and the instant it is counted from; checked."""

    cron: str | None = None
    every_ms: int | None = None
    anchor: int | None = None
    tz: str

    @property
    def text(self) -> str:
        """What a person wrote, without the zone."""
        return self.cron if self.cron is not None else f"every {duration_text(self.every_ms or 0)}"

    def instants(self, after: int) -> "Iterator[int]":
        """Yield the instants after one, in order."""
        if self.cron is not None:
            return Cron(self.cron, self.tz).instants(after)
        return self._by_period(after)

    def next_after(self, after: int) -> int | None:
        """Return the first instant after one; None where no more come, for half a century at least."""
        return next(self.instants(after), None)

    def smallest_gap(self, after: int) -> int | None:
        """Return the shortest time from one of the next instants to the one after it; None where there are no two."""
        if self.every_ms is not None:
            return self.every_ms
        return min((late - early for early, late in pairwise(islice(self.instants(after), GAPS_SEEN))), default=None)

    def newest(self, after: int, until: int, most: int) -> list[int]:
        """Return the newest instants after one and up to another, at most so many, in order.

        Their number is all that it costs: a schedule of each second that rested for a year is not walked through.
        """
        if self.cron is None:
            return self._newest_by_period(after, until, most)
        span = _FIRST_WINDOW_MS
        while True:
            begin = max(after, until - span)
            found = deque(takewhile(lambda instant: instant <= until, self.instants(begin)), maxlen=most)
            if len(found) == most or begin == after:
                return list(found)
            span *= 4

    def count(self, after: int, until: int) -> int:
        """Return how many instants lie after one and up to another; from MOST_COUNTED on nobody counts further."""
        if self.every_ms is not None:
            return min(MOST_COUNTED, self._steps(until) - self._steps(after))
        return sum(1 for _ in islice(takewhile(lambda instant: instant <= until, self.instants(after)), MOST_COUNTED))

    def _steps(self, until: int) -> int:
        """Return how many instants there are up to one, from the anchor on."""
        return max(0, (until - (self.anchor or 0)) // (self.every_ms or 1) + 1)

    def _by_period(self, after: int) -> "Iterator[int]":
        anchor, every_ms = self.anchor or 0, self.every_ms or 1
        instant = anchor + self._steps(after) * every_ms
        while True:
            yield instant
            instant += every_ms

    def _newest_by_period(self, after: int, until: int, most: int) -> list[int]:
        anchor, every_ms = self.anchor or 0, self.every_ms or 1
        first, end = self._steps(after), self._steps(until)
        return [anchor + step * every_ms for step in range(max(first, end - most), end)]
