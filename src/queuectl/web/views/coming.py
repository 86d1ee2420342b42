"""Coming: when schedules come next, laid out as rows of marks along the hours of a day."""

import time
from functools import lru_cache
from itertools import islice, takewhile

from queuectl.errors import BadInput
from queuectl.model.rhythm import Rhythm
from queuectl.model.units import HOUR_MS, MINUTE_MS, local_text
from queuectl.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from queuectl.model.schedule import Schedule

SPAN_MS = 24 * HOUR_MS
MOST_MARKS = 150
"""With more marks than this a row is drawn as one band: they would touch each other anyway."""
MOST_ROWS = 40
EVERY_HOURS = 3
LABEL_ROOM = 5.0


class Mark(Value):
    """One fire to come; `x` is a part of a hundred of the line."""

    x: float
    title: str


class Row(Value):
    """One schedule: its marks, or a band where they are too many to be told apart."""

    name: str
    marks: tuple[Mark, ...] = ()
    band: "tuple[float, float] | None" = None
    words: str = ""


class Hour(Value):
    """One line of the axis."""

    x: float
    label: str


class TimeLine(Value):
    """All of it."""

    rows: tuple[Row, ...]
    hours: tuple[Hour, ...]
    zone: str
    more: int = 0
    """How many schedules that come within the span are left out, the later ones."""


def lay_out(known: "Sequence[Schedule]", now: int) -> TimeLine:
    """Lay the next day of some schedules out, those that come first on top; paused ones are left out."""
    coming = sorted(
        (one for one in known if one.next_at is not None and one.next_at < now + SPAN_MS),
        key=lambda one: (one.next_at or 0, one.name),
    )
    rows = [_row(one, now) for one in coming[:MOST_ROWS]]
    return TimeLine(
        rows=tuple(rows),
        hours=tuple(_hours(now)),
        zone=time.strftime("%Z", time.localtime(now // 1000)),
        more=max(0, len(coming) - MOST_ROWS),
    )


def _row(schedule: "Schedule", now: int) -> Row:
    instants = [schedule.fires_at(instant) for instant in _instants(schedule.rhythm, now // MINUTE_MS * MINUTE_MS)]
    shown = [at for at in instants if now <= at <= now + SPAN_MS]
    first = schedule.next_at or now
    if len(instants) <= MOST_MARKS:
        marks = tuple(Mark(x=_x(at, now), title=f"{schedule.name} {local_text(at)}") for at in shown)
        return Row(name=schedule.name, marks=marks, words=f"{len(marks)} times")
    band = (_x(first, now), 100.0)
    return Row(name=schedule.name, band=band, words=f"{schedule.rhythm.text}: again and again")


@lru_cache(maxsize=500)
def _instants(rhythm: Rhythm, since: int) -> tuple[int, ...]:
    """Return the instants of the span and a little more; kept for as long as the minute lasts, for all who look."""
    try:
        coming = takewhile(lambda instant: instant <= since + SPAN_MS + MINUTE_MS, rhythm.instants(since))
        return tuple(islice(coming, MOST_MARKS + 1))
    except BadInput:
        return ()  # a zone this host does not know


def _hours(now: int) -> "list[Hour]":
    begin = (now // HOUR_MS + 1) * HOUR_MS
    hours = []
    for at in range(begin, now + SPAN_MS, HOUR_MS):
        local = time.localtime(at // 1000)
        if local.tm_hour % EVERY_HOURS == 0 and _x(at, now) > LABEL_ROOM:
            hours.append(Hour(x=_x(at, now), label=time.strftime("%H:%M", local)))
    return hours


def _x(at: int, now: int) -> float:
    return round(100 * max(0, at - now) / SPAN_MS, 2)
