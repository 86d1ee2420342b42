"""Cron words: what a cron line says, as a person would say it. When it comes is worked out in cron.py."""

import re

from queuectl.model.cron import NICKNAMES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_MONTHS = [
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
]  # fmt: skip
_WEEKDAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
_ALL = "*"
_PLACES = {1: "1st", 2: "2nd", 3: "3rd", 21: "21st", 22: "22nd", 23: "23rd", 31: "31st"}


def cron_words(line: str) -> str:
    """Say a checked cron line in words: `30 2 * * mon-fri` comes "at 02:30, Monday to Friday"."""
    minute, hour, day, month, weekday = NICKNAMES.get(line, line).lower().split()
    parts = [_time_words(minute, hour), *_day_words(day, weekday)]
    if not _is_any(month):
        parts.append(f"in {_list_words(month, _month_word)}")
    if len(parts) == 1 and ":" in parts[0]:
        parts.append("every day")
    return ", ".join(parts)


def _time_words(minute: str, hour: str) -> str:
    if all(map(_is_number, minute.split(","))) and all(map(_is_number, hour.split(","))):
        return f"at {_joined([f'{int(h):02}:{int(m):02}' for h in hour.split(',') for m in minute.split(',')])}"
    minutes = _minute_words(minute)
    if _is_any(hour):
        return minutes
    step = _step(hour)
    if step is not None:
        return f"{minutes}, every {_ordinal(step)} hour"
    return f"{minutes}, {'in the hour' if _is_number(hour) else 'in the hours'} {_list_words(hour, _hour_word)}"


def _minute_words(minute: str) -> str:
    if _is_any(minute):
        return "every minute"
    step = _step(minute)
    if step is not None:
        return f"every {step} minutes"
    if minute == "0":
        return "every hour, on the hour"
    noun = "minute" if _is_number(minute) else "minutes"
    return f"at {noun} {_list_words(minute, str)} of the hour"


def _day_words(day: str, weekday: str) -> list[str]:
    """Say the days; cron takes a day that fits either of the two where both are given."""
    of_month = [] if _is_any(day) else [f"on {_list_words(day, _day_word)} of the month"]
    of_week = [] if _is_any(weekday) else [_list_words(weekday, _weekday_word)]
    if of_month and of_week and not day.startswith(_ALL) and not weekday.startswith(_ALL):
        return [f"{of_month[0]} or {of_week[0]}"]
    return of_month + of_week


def _list_words(field: str, word: "Callable[[str], str]") -> str:
    return _joined([_item_words(item, word) for item in field.split(",")])


def _item_words(item: str, word: "Callable[[str], str]") -> str:
    span, _, step = item.partition("/")
    low, _, high = span.partition("-")
    if _is_any(span):
        said = "every"
    elif high:
        said = f"{word(low)} to {word(high)}"
    else:
        said = word(low) + (" on" if step else "")
    if not step or step == "1":
        return said
    return f"every {_ordinal(int(step))} one" if said == "every" else f"every {_ordinal(int(step))} from {said}"


def _joined(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _is_any(field: str) -> bool:
    return field in (_ALL, "*/1", "?")


def _is_number(field: str) -> bool:
    return field.isascii() and field.isdigit()


def _step(field: str) -> int | None:
    match = re.fullmatch(r"\*/(\d+)", field)
    return int(match[1]) if match and int(match[1]) > 1 else None


def _hour_word(text: str) -> str:
    return f"{int(text):02}" if _is_number(text) else text


def _day_word(text: str) -> str:
    if text == "l":
        return "the last day"
    if text == "lw":
        return "the last weekday"
    return f"the {_ordinal(int(text))}" if _is_number(text) else text


def _month_word(text: str) -> str:
    if _is_number(text):
        return _MONTHS[(int(text) - 1) % len(_MONTHS)]
    return next((name for name in _MONTHS if name.lower().startswith(text)), text)


def _weekday_word(text: str) -> str:
    name, _, nth = text.partition("#")
    if name.endswith("l") and _is_number(name[:-1]):
        return f"the last {_WEEKDAYS[int(name[:-1])]} of the month"
    word = (
        _WEEKDAYS[int(name)] if _is_number(name) else next((d for d in _WEEKDAYS if d.lower().startswith(name)), name)
    )
    return f"the {_ordinal(int(nth))} {word} of the month" if nth else word


def _ordinal(number: int) -> str:
    return _PLACES.get(number, f"{number}th")
