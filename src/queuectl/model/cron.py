"""Cron: lines as Debian's cron reads them, and the instants they mean in a zone. No other module knows cronsim.

Nothing but the zone's rules is read, and those are the same wherever they lie.
"""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo, available_timezones

from cronsim import CronSim, CronSimError

from queuectl.errors import BadInput, UnknownName
from queuectl.model.checks import as_text, shown_value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

NICKNAMES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
CRON_HELP = "minute hour day month weekday, e.g. '*/5 * * * *', '30 2 * * mon-fri', '@daily'"
MAX_LENGTH = 500
FIELD_COUNT = 5
_VALUES = (
    ("minute", "0-59"),
    ("hour", "0-23"),
    ("day", "1-31, L or LW"),
    ("month", "1-12 or jan-dec"),
    ("weekday", "0-7 or sun-sat"),
)
UTC_NAME = "UTC"
_DAY_S = 86_400
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - clocks on the wall have no zone here
# Any instant will do to see whether a line ever comes: the calendar repeats itself after 28 years, within a century.
_SOME_DAY = datetime(2000, 1, 1)  # noqa: DTZ001


def check_cron(name: str, value: object) -> str:
    """Return a line that comes at some time, its fields one blank apart, or raise."""
    text = " ".join(as_text(name, value).split())
    if len(text) > MAX_LENGTH:
        raise BadInput(f"{name} has {len(text)} characters; the limit is {MAX_LENGTH}", hint=f"write {CRON_HELP}")
    if text.startswith("@"):
        return _nickname(name, text.lower())
    fields = text.split()
    if len(fields) != FIELD_COUNT:
        raise BadInput(
            f"bad {name} {shown_value(text)}: it has {_fields(len(fields))}, not five", hint=_count_hint(text)
        )
    try:
        sim = CronSim(text, _SOME_DAY)
    except (CronSimError, AssertionError):
        raise BadInput(f"bad {name} {shown_value(text)}: {_fault(fields)}", hint=f"write {CRON_HELP}") from None
    if next(iter(sim), None) is None:
        raise BadInput(f"{name} {shown_value(text)} never comes", hint="no day is all that its fields ask for")
    return text


def check_zone(name: str, value: object) -> str:
    """Return the name of a zone, or raise with the nearest."""
    text = as_text(name, value).strip()
    known = available_timezones()
    if text in known:
        return text
    folded = {zone.lower(): zone for zone in sorted(known)}
    if text.lower() in folded:
        return folded[text.lower()]
    hint = "write its name, e.g. Europe/Oslo or UTC; they are listed in: timedatectl list-timezones"
    # The place alone is what people know: Oslo.
    places = {zone.rpartition("/")[2]: zone for zone in sorted(known)}
    if text.lower() in (lower := {place.lower(): zone for place, zone in places.items()}):
        raise UnknownName(f"unknown {name} {text!r}; did you mean {lower[text.lower()]!r}?", hint=hint)
    raise UnknownName.among(name, text, sorted(known), hint=hint)


class Cron:
    """A line in a zone. Both have been checked where they were handed in; another host may not know the zone."""

    def __init__(self, line: str, zone: str) -> None:
        self._line = NICKNAMES.get(line, line)
        self._zone = _zone_of(zone)
        minute, hour, *_ = self._line.split()
        self._is_of_fixed_time = not minute.startswith("*") and not hour.startswith("*")

    def instants(self, after_ms: int) -> "Iterator[int]":
        """Yield the instants after one, each once, in order, as long as there are any.

        A line of fixed time (no `*` at the beginning of minute and hour) comes once for each time on the calendar: one
        that the clock skips comes when the clock has skipped it, one that the clock shows twice comes the first time.
        Any other goes by what the clock shows: a skipped time does not come, one that is shown twice comes twice.
        """
        walk = self._by_calendar if self._is_of_fixed_time else self._by_clock
        return (second * 1000 for second in walk(after_ms // 1000))

    def _by_calendar(self, after: int) -> "Iterator[int]":
        last = after
        for shown in CronSim(self._line, _EPOCH + timedelta(seconds=after + self._offset(after))):
            second = self._first_of(shown)
            if second > last:
                last = second
                yield second

    def _first_of(self, shown: datetime) -> int:
        """Return when the clock first shows a time, or, if it skips it, when it has done so."""
        local = shown.replace(tzinfo=self._zone)
        second = int(local.timestamp())
        if second + self._offset(second) == _seconds(shown):
            return second
        return self._turn_of_clock(int(local.replace(fold=1).timestamp()), second)

    def _by_clock(self, after: int) -> "Iterator[int]":
        """Walk from one turn of the clock to the next: between two of them it is as regular as UTC."""
        begin: int | None = after + 1
        while begin is not None:
            begin_of_next = None
            offset, last = self._offset(begin), begin
            for shown in CronSim(self._line, _EPOCH + timedelta(seconds=begin + offset - 1)):
                second = _seconds(shown) - offset
                if (turn := self._next_turn(last, second)) is not None:
                    begin_of_next = turn
                    break
                yield second
                last = second
            begin = begin_of_next

    def _next_turn(self, begin: int, end: int) -> int | None:
        """Return when the clock is first turned between two instants, the second included."""
        probes = [*range(begin, end, _DAY_S), end]
        for low, high in pairwise(probes):
            if self._offset(low) != self._offset(high):
                return self._turn_of_clock(low, high)
        return None

    def _turn_of_clock(self, low: int, high: int) -> int:
        """Return the first second that has the offset of the latter of two instants; the former has another."""
        offset = self._offset(high)
        while high - low > 1:
            middle = (low + high) // 2
            if self._offset(middle) == offset:
                high = middle
            else:
                low = middle
        return high

    def _offset(self, second: int) -> int:
        offset = datetime.fromtimestamp(second, self._zone).utcoffset()
        return 0 if offset is None else int(offset.total_seconds())


def zoned_text(instant_ms: int, zone: str) -> str:
    """Write an instant as the clock of a zone shows it, with how far that is from UTC."""
    local = datetime.fromtimestamp(instant_ms // 1000, UTC).astimezone(_zone_of(zone))
    return local.strftime("%a %Y-%m-%d %H:%M:%S ") + local.isoformat()[19:]


def _zone_of(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (LookupError, ValueError, OSError):
        raise BadInput(f"this host knows no zone {name!r}", hint="upgrade its tzdata: pip install -U tzdata") from None


def _seconds(shown: datetime) -> int:
    return int((shown - _EPOCH).total_seconds())


def _nickname(name: str, text: str) -> str:
    if text in NICKNAMES:
        return text
    if text == "@reboot":
        raise BadInput(f"{name} '@reboot' is no time", hint="let the system start it, e.g. with a systemd unit")
    if text.startswith("@every"):
        raise BadInput(f"bad {name} {shown_value(text)}", hint=f"write --every{text.removeprefix('@every') or ' 10m'}")
    raise UnknownName.among(name, text, list(NICKNAMES))


def _fault(fields: "list[str]") -> str:
    """Say which field is broken; where each by itself is right, no month has such a day."""
    for place, field in enumerate(fields):
        if place == 2 and field.isdigit() and 1 <= int(field) <= 31:
            continue
        try:
            CronSim(" ".join(field if at == place else "*" for at in range(FIELD_COUNT)), _SOME_DAY)
        except (CronSimError, AssertionError):
            name, values = _VALUES[place]
            return f"the {name} {shown_value(field)} cannot be used; it is {values}"
    return f"there is no day {fields[2]} in month {fields[3]}"


def _fields(count: int) -> str:
    return "1 field" if count == 1 else f"{count} fields"


def _count_hint(text: str) -> str:
    if len(text.split()) == FIELD_COUNT + 1:
        return f"for less than a minute: --every 10s; else write {CRON_HELP}"
    return f"quote the whole line; write {CRON_HELP}"
