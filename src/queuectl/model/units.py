"""Durations, times and sizes as people write them, and back. Pure: the present comes in as an argument."""

import re
import time

from queuectl.errors import BadInput
from queuectl.model.patterns import ascii_pattern

SECOND_MS = 1_000
MINUTE_MS = 60 * SECOND_MS
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS
WEEK_MS = 7 * DAY_MS
MAX_DURATION_MS = 100 * 366 * DAY_MS
MAX_SIZE = 1 << 50

DURATION_HELP = "90s, 5m, 1h30m, 2d, 1w, 500ms; a bare number is seconds"
TIME_HELP = (
    "2026-12-01T09:00, 2026-12-01T09:00:00Z, 14:30, tomorrow 9:00, friday 17:00, now, or +90m; local unless it says Z"
)
PAST_HELP = "2h (two hours ago), 3d, 14:30, yesterday 9:00, friday, 2026-12-01T09:00, 2026-12-01T09:00:00Z"
SIZE_HELP = "4096, 16K, 512M, 10MB, 1GiB"

_DURATION_UNITS = {"ms": 1, "s": SECOND_MS, "m": MINUTE_MS, "h": HOUR_MS, "d": DAY_MS, "w": WEEK_MS}
_DURATION_NAMES = {
    "ms": "ms", "msec": "ms", "millisecond": "ms", "s": "s", "sec": "s", "second": "s", "m": "m", "min": "m",
    "minute": "m", "h": "h", "hr": "h", "hour": "h", "d": "d", "day": "d", "w": "w", "week": "w",
}  # fmt: skip
# Texts, compiled when first used: each costs `queuectl enqueue` a third of a millisecond.
_DURATION = r"(?:\d+(?:\.\d+)?\s*[a-z]+\s*)+"
_DURATION_PART = r"(\d+(?:\.\d+)?)\s*([a-z]+)"
_SIZE = r"(\d+(?:\.\d+)?)\s*([kmgtp]?)(i?)(b?)"
_NUMBER = r"\d+(?:\.\d+)?"
_CLOCK = r"(\d{1,2}):(\d{2})(?::(\d{2}))?"
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


def duration_ms(text: str) -> int:
    """Read a duration such as `90s`, `1h30m` or `2.5` (seconds) as milliseconds."""
    words = text.strip().lower()
    if ascii_pattern(_NUMBER).fullmatch(words):
        return _bounded(float(words) * SECOND_MS, text)
    if not ascii_pattern(_DURATION).fullmatch(words):
        raise BadInput(f"bad duration {text!r}", hint=f"write {DURATION_HELP}")
    total = 0.0
    for number, word in re.findall(_DURATION_PART, words, re.ASCII):
        unit = _DURATION_NAMES.get(word) or _DURATION_NAMES.get(word.removesuffix("s"))
        if unit is None:
            raise BadInput(f"bad duration {text!r}: unknown unit {word!r}", hint=f"write {DURATION_HELP}")
        total += float(number) * _DURATION_UNITS[unit]
    return _bounded(total, text)


def duration_text(ms: int) -> str:
    """Write a duration exactly, in the form `duration_ms` reads: 90000 is `1m30s`."""
    if ms == 0:
        return "0s"
    parts = []
    for unit in ("d", "h", "m", "s", "ms"):
        count, ms = divmod(ms, _DURATION_UNITS[unit])
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts)


def rough_duration_text(ms: int) -> str:
    """Write a duration for people, two figures or so: `42ms`, `0.25s`, `12s`, `3m05s`, `2h10m`, `5d03h`."""
    if ms < SECOND_MS // 10:
        return f"{ms}ms"
    return f"{ms / SECOND_MS:.2f}s" if ms < 10 * SECOND_MS else ticking_duration_text(ms)


def ticking_duration_text(ms: int) -> str:
    """Write for people how long something has gone on, in whole seconds: `3s`, else as a rough one (ago.js, too)."""
    if ms < MINUTE_MS:
        return f"{ms // SECOND_MS}s"
    if ms < HOUR_MS:
        return f"{ms // MINUTE_MS}m{ms % MINUTE_MS // SECOND_MS:02}s"
    if ms < DAY_MS:
        return f"{ms // HOUR_MS}h{ms % HOUR_MS // MINUTE_MS:02}m"
    return f"{ms // DAY_MS}d{ms % DAY_MS // HOUR_MS:02}h"


def time_ms(text: str, now_ms: int) -> int:
    """Read a point in time (see TIME_HELP) as milliseconds UTC; a time without a zone is local."""
    words = text.strip().lower()
    if words == "now":
        return now_ms
    if words.startswith(("+", "in ")):
        return now_ms + duration_ms(words.removeprefix("in ").removeprefix("+"))
    if words and (words[0].isalpha() or re.fullmatch(_CLOCK, words, re.ASCII)):
        return _day_and_clock_ms(words, now_ms, text)
    return _iso_ms(words, text)


def past_ms(text: str, now_ms: int) -> int:
    """Read a point in time that is over: `2h` is two hours ago, `14:30` and `friday` the last ones there were."""
    words = text.strip().lower()
    if re.fullmatch(rf"{_NUMBER}|{_DURATION}", words, re.ASCII):
        return now_ms - duration_ms(words)
    try:
        return _latest_ms(words, now_ms)
    except BadInput:
        raise BadInput(f"bad time {text!r}", hint=f"write {PAST_HELP}") from None


def _latest_ms(words: str, now_ms: int) -> int:
    """Return the last of such times that is not to come."""
    day_word = re.sub(rf"\s*{_CLOCK}$", "", words)
    if day_word == "yesterday":
        return time_ms(words.replace("yesterday", "today"), now_ms - DAY_MS)
    days = 7 if day_word in _WEEKDAYS else 1 if day_word == "" else 0
    seen_from = now_ms
    while (then := time_ms(words, seen_from)) > now_ms and days:
        seen_from -= days * DAY_MS
    return then


def size_bytes(text: str) -> int:
    """Read a size as bytes: `10MB` counts in 1000s, `16KiB` and `16K` in 1024s, as GNU tools do."""
    match = re.fullmatch(_SIZE, text.strip().lower(), re.ASCII)
    if not match:
        raise BadInput(f"bad size {text!r}", hint=f"write {SIZE_HELP}")
    number, prefix, binary, byte = match.groups()
    is_decimal = bool(prefix and byte and not binary)
    unit: int = (1000 if is_decimal else 1024) ** " kmgtp".index(prefix or " ")
    size = float(number) * unit
    if size > MAX_SIZE:
        raise BadInput(f"size {text!r} is too large", hint=f"write {SIZE_HELP}")
    return round(size)


def size_text(size: int) -> str:
    """Write a size exactly where a binary unit divides it, else in bytes: 10485760 is `10MiB`."""
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if size and size % unit == 0:
            return f"{size // unit}{name}"
    return f"{size}B"


def counted(count: int, noun: str) -> str:
    """Write a number of things: `1 worker`, `2 workers`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def rough_size_text(size: int) -> str:
    """Write a size for people: `512 B`, `1.5 MiB`."""
    value = float(size)
    for name in ("B", "KiB", "MiB", "GiB"):
        if value < 1024 or name == "GiB":
            break
        value /= 1024
    return f"{size} B" if name == "B" else f"{value:.1f} {name}"


def iso_text(ms: int) -> str:
    """Write a time as JSON carries it: `2026-12-01T09:00:00.000Z`."""
    seconds, millis = divmod(ms, 1000)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{millis:03}Z"


def local_text(ms: int) -> str:
    """Write a time for people, in their own zone, to the second."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(ms // 1000))


def _bounded(ms: float, text: str) -> int:
    if ms > MAX_DURATION_MS:
        raise BadInput(f"duration {text!r} is more than 100 years", hint=f"write {DURATION_HELP}")
    return round(ms)


def _day_and_clock_ms(words: str, now_ms: int, text: str) -> int:
    import datetime  # costs 2 ms, and few commands name a time

    now = datetime.datetime.fromtimestamp(now_ms / 1000)  # noqa: DTZ006 - people mean their own zone
    day_word, _, clock_word = words.rpartition(" ") if re.search(_CLOCK, words, re.ASCII) else (words, "", "0:00")
    hour, minute, second = _clock(clock_word, text)
    day = now.date()
    if day_word == "tomorrow":
        day += datetime.timedelta(days=1)
    elif day_word in _WEEKDAYS:
        day += datetime.timedelta(days=(_WEEKDAYS.index(day_word) - now.weekday() - 1) % 7 + 1)
    elif day_word not in ("", "today"):
        raise _bad_time(text)
    when = datetime.datetime.combine(day, datetime.time(hour, minute, second))
    if day_word == "" and when <= now:
        when += datetime.timedelta(days=1)
    return int(when.timestamp() * 1000)


def _clock(word: str, text: str) -> tuple[int, int, int]:
    match = re.fullmatch(_CLOCK, word, re.ASCII)
    if not match:
        raise _bad_time(text)
    hour, minute, second = (int(part or 0) for part in match.groups())
    if hour > 23 or minute > 59 or second > 59:
        raise _bad_time(text)
    return hour, minute, second


def _iso_ms(words: str, text: str) -> int:
    import datetime

    try:
        when = datetime.datetime.fromisoformat(words.upper())
        ms = int(when.timestamp() * 1000)
    except (ValueError, OverflowError, OSError):
        raise _bad_time(text) from None
    if not 0 <= ms < 253_402_300_800_000:  # the year 10000, where ISO-8601 needs another digit
        raise _bad_time(text)
    return ms


def _bad_time(text: str) -> BadInput:
    return BadInput(f"bad time {text!r}", hint=f"write {TIME_HELP}")
