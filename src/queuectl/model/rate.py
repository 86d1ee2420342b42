"""Rate: how often jobs of a queue may start. The next permitted start is kept with the queue, in the store."""

import re

from queuectl.errors import BadInput
from queuectl.model.units import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS, duration_ms, duration_text
from queuectl.model.value import Value

RATE_HELP = "10/m, 5/s, 100/h, 3/10s; at most 1000 a second"
MAX_COUNT = 1_000_000
_PERIODS = {"s": SECOND_MS, "m": MINUTE_MS, "h": HOUR_MS, "d": DAY_MS}


class Rate(Value):
    """At most so many starts in a period, evenly spread."""

    count: int
    period_ms: int

    @property
    def interval_ms(self) -> int:
        """The time between two starts, rounded so that the rate is never exceeded."""
        return -(-self.period_ms // self.count)

    @property
    def text(self) -> str:
        """As people write it."""
        names = {ms: name for name, ms in _PERIODS.items()}
        return f"{self.count}/{names.get(self.period_ms) or duration_text(self.period_ms)}"


def read_rate(text: str) -> Rate:
    """Read a rate such as `10/m`."""
    match = re.fullmatch(r"\s*(\d{1,9}(?:\.\d+)?)\s*/\s*(\S+)\s*", text, re.ASCII)
    if match is None:
        raise BadInput(f"bad rate {text!r}", hint=f"write {RATE_HELP}")
    period_ms = _period_ms(text, match[2])
    if "." in match[1]:
        raise BadInput(f"bad rate {text!r}: {match[1]} is no whole number", hint="write e.g. 3/2s for 1.5 a second")
    count = int(match[1])
    if not count:
        raise BadInput(f"rate {text!r} lets no job start", hint="stop a queue with: queuectl queue pause NAME")
    if count > MAX_COUNT or period_ms < 1:
        raise BadInput(f"bad rate {text!r}", hint=f"write {RATE_HELP}")
    if count > period_ms:
        raise BadInput(f"rate {text!r} is more than 1000 a second", hint="leave the rate out, or limit --concurrency")
    return Rate(count=count, period_ms=period_ms)


def _period_ms(text: str, period: str) -> int:
    word = period.lower().removeprefix("per")
    if word in _PERIODS or word in _LONG:
        return _PERIODS[word[0]]
    try:
        return duration_ms(word)
    except BadInput as error:
        why = error.message if "more than" in error.message else f"no such period {period!r}"
        raise BadInput(f"bad rate {text!r}: {why}", hint=f"write {RATE_HELP}") from None


_LONG = frozenset({"sec", "second", "min", "minute", "hour", "day"})
