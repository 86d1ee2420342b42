"""Words: how numbers, times and sizes are written on a page; the filters of the templates."""

import re
import time

from markupsafe import Markup

from queuectl import clock
from queuectl.model.units import (
    SECOND_MS,
    iso_text,
    local_text,
    rough_duration_text,
    rough_size_text,
    ticking_duration_text,
)
from queuectl.model.visible import safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

NONE = "-"
SPARK_HEIGHT = 24.0
SPARK_ROOM = 1.5
"""So much is left above and below, for the width of the line."""


def number(value: "float | None") -> str:
    """Write a number with its thousands apart: 1,204."""
    return NONE if value is None else f"{value:,.0f}" if float(value).is_integer() else f"{value:,.1f}"


def compact(value: int) -> str:
    """Write a number in four characters: 812, 1.2k, 14k, 3.1M."""
    for unit, name in ((1_000_000_000, "G"), (1_000_000, "M"), (1000, "k")):
        if value >= unit:
            return f"{value // (unit // 10) / 10:.1f}{name}" if value < 10 * unit else f"{value // unit}{name}"
    return str(value)


def took(ms: "float | None") -> str:
    """Write how long something took, as the command line does."""
    return NONE if ms is None else rough_duration_text(max(0, round(ms)))


def ticking(since: int, now: int) -> Markup:
    """Write how long something has gone on; ago.js lets it tick."""
    words = ticking_duration_text(max(0, now - since))
    return Markup('<time class="ticking" title="since {}" data-since="{}">{}</time>').format(
        local_text(since), since, words
    )


def size(count: "int | None") -> str:
    """Write a size: 512 B, 1.5 MiB."""
    return NONE if count is None else rough_size_text(count)


def ago(ms: "int | None") -> Markup:
    """Write when something was or will be, relative to now, with the time itself at hand; ago.js keeps it true."""
    if ms is None:
        return Markup(NONE)
    return Markup('<time datetime="{}" title="{}" data-ago>{}</time>').format(
        iso_text(ms), local_text(ms), _apart(ms, clock.wall_ms())
    )


def moment(ms: "int | None") -> Markup:
    """Write a time as it is, in the zone of the server."""
    if ms is None:
        return Markup(NONE)
    return Markup('<time datetime="{}" title="{}">{}</time>').format(iso_text(ms), iso_text(ms), local_text(ms))


def visible(text: object) -> str:
    """Write text of others so that all of it can be seen, and nothing of it turns or hides what stands beside it."""
    return safe(str(text), kept="\n\t")


def clock_time(ms: int, with_day: bool = False) -> str:
    """Write the time of day, in the zone of the server, with the day where several are shown."""
    return time.strftime("%d %b %H:%M" if with_day else "%H:%M", time.localtime(ms // SECOND_MS))


def clock_span(ms: int, length_ms: int) -> str:
    """Write a stretch of time: its day, and when it begins and ends."""
    return f"{clock_time(ms, with_day=True)} to {clock_time(ms + length_ms)}"


def cut(text: str, width: int) -> str:
    """Cut a text to a width, with a mark that something is missing."""
    return text if len(text) <= width else f"{text[: width - 1]}…"


def spark_path(values: "Sequence[float]") -> str:
    """Return the line through some numbers in a box of 100 by 24; nothing where there is no line to draw."""
    if len(values) < 2:
        return ""
    top = max(*values, 1)
    room = SPARK_HEIGHT - 2 * SPARK_ROOM
    points = (
        f"{100 * place / (len(values) - 1):.1f} {SPARK_HEIGHT - SPARK_ROOM - room * value / top:.1f}"
        for place, value in enumerate(values)
    )
    return "M" + " L".join(points)


def remedies(text: str) -> "list[tuple[str, str]]":
    """Take what may be done apart into single commands, each with the words before it: people copy one at a time."""
    found = re.fullmatch(r"(.*?)(?: \(or, (without \w+): (.*?)\))?(?:; (to give it up): (.*))?", text, re.DOTALL)
    first, without, other, giving_up, last = found.groups("") if found else (text, "", "", "", "")
    each = (("", first), (f"or, {without}", other), (giving_up, last))
    return [(words, command) for words, command in each if command]


FILTERS = {
    "n": number,
    "compact": compact,
    "took": took,
    "ticking": ticking,
    "bytes": size,
    "ago": ago,
    "moment": moment,
    "spark_path": spark_path,
    "visible": visible,
    "clock": clock_time,
    "clock_span": clock_span,
    "cut": cut,
    "remedies": remedies,
}


def _apart(then: int, now: int) -> str:
    apart = abs(now - then)
    if apart < SECOND_MS:
        return "now" if then > now else "just now"
    words = ticking_duration_text(apart)
    return f"in {words}" if then > now else f"{words} ago"
