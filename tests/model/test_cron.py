"""Cron lines: what is taken and refused, a year of random lines and the nights of turned clocks against croniter."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice, takewhile
from zoneinfo import ZoneInfo

import pytest
from croniter import croniter
from hypothesis import given, settings
from hypothesis import strategies as st

from queuectl.errors import BadInput
from queuectl.model.cron import NICKNAMES, Cron, check_cron, check_zone, zoned_text

MINUTE = timedelta(minutes=1)
MOST_OF_A_MONTH = 20
# Zone, and when (UTC) its clock is put forward and back: by an hour, by half an hour, at midnight, in the south.
TURNS = [
    ("Europe/Oslo", "2026-03-29T01:00", "2026-10-25T01:00"),
    ("America/New_York", "2026-03-08T07:00", "2026-11-01T06:00"),
    ("Australia/Lord_Howe", "2026-10-03T15:30", "2026-04-04T15:00"),
    ("America/Santiago", "2026-09-06T04:00", "2026-04-05T03:00"),
    ("Asia/Beirut", "2026-03-28T22:00", "2026-10-24T21:00"),
    ("Africa/Cairo", "2026-04-23T22:00", "2026-10-29T21:00"),
]
NIGHTS = [(zone, turn) for zone, *turns in TURNS for turn in turns]
LINES = [
    "* * * * *", "*/10 * * * *", "*/7 * * * *", "0 * * * *", "30 * * * *", "@hourly", "*/10 2 * * *", "*/15 0,1 * * *",
    "5 */2 * * *", "15 2 * * *", "30 0 * * *", "0 0 * * *", "@daily", "0,30 1,2,3 * * *", "45 1 * * *", "0 1 * * *",
    "0 2 * * *", "0 3 * * *", "59 23 * * *", "10-20 1 * * *", "1-59/2 0-3 * * sun", "@weekly", "0 2 29 3 *",
]  # fmt: skip


def number(low: int, high: int) -> st.SearchStrategy[str]:
    return st.integers(low, high).map(str)


def a_range(low: int, high: int) -> st.SearchStrategy[str]:
    ends = st.tuples(st.integers(low, high), st.integers(low, high)).filter(lambda pair: pair[0] < pair[1])
    return ends.map(lambda pair: f"{pair[0]}-{pair[1]}")


def a_field(low: int, high: int) -> st.SearchStrategy[str]:
    """Yield what may stand in a field, in every form of Debian's cron but names."""
    step = st.integers(1, high).map(str)
    ranges = st.one_of(a_range(low, high), st.builds("{}/{}".format, a_range(low, high), step))
    items = st.lists(st.one_of(number(low, high), ranges), min_size=1, max_size=3).map(",".join)
    return st.one_of(st.just("*"), st.builds("*/{}".format, step), items)


A_LINE = st.builds(
    "{} {} {} {} {}".format,
    a_field(0, 59),
    a_field(0, 23),
    a_field(1, 31),
    a_field(1, 12),
    st.one_of(a_field(0, 7), st.sampled_from(["mon", "fri", "sun", "mon-fri", "sat,sun", "tue-thu/2"])),
)


def is_possible(line: str) -> bool:
    try:
        check_cron("cron", line)
    except BadInput:
        return False
    return True


@given(A_LINE.filter(is_possible))
@settings(max_examples=200, deadline=None)
def test_a_year_of_a_random_line_is_what_another_library_makes_of_it(line: str) -> None:
    months = [datetime(2028, month, 1, tzinfo=UTC) for month in range(1, 13)]  # 2028 has a 29th of February

    ours = [instant for month in months for instant in _first(_ours(line, month), MOST_OF_A_MONTH)]

    assert ours == [instant for month in months for instant in _first(_theirs(line, month), MOST_OF_A_MONTH)]


@pytest.mark.parametrize("zone, turn", NIGHTS)
@pytest.mark.parametrize("line", LINES)
def test_the_nights_of_turned_clocks_are_those_of_debians_cron(zone: str, turn: str, line: str) -> None:
    begin, end = around(turn)

    assert instants(line, zone, begin, end) == walked(NICKNAMES.get(line, line), zone, begin, end)


@given(st.builds("{} {} * * *".format, a_field(0, 59), a_field(0, 5)), st.sampled_from(NIGHTS))
@settings(max_examples=150, deadline=None)
def test_any_line_of_such_a_night_is_that_of_debians_cron(line: str, night: tuple[str, str]) -> None:
    zone, turn = night
    begin, end = around(turn)

    assert instants(line, zone, begin, end) == walked(line, zone, begin, end)


@given(A_LINE.filter(is_possible), st.sampled_from(NIGHTS), st.integers(-200_000, 200_000))
@settings(max_examples=200, deadline=None)
def test_instants_do_not_depend_on_where_one_begins_to_look(line: str, night: tuple[str, str], shift_s: int) -> None:
    zone, turn = night
    begin = datetime.fromisoformat(turn).replace(tzinfo=UTC) + timedelta(seconds=shift_s)
    walk = Cron(line, zone).instants(int(begin.timestamp() * 1000))

    first, second = next(walk), next(walk)

    assert int(begin.timestamp() * 1000) < first < second
    assert next(Cron(line, zone).instants(first)) == second
    assert next(Cron(line, zone).instants(first - 1)) == first
    assert next(Cron(line, zone).instants(second - 1)) == second


def test_a_fixed_time_that_is_skipped_comes_right_after_the_gap_and_once() -> None:
    walk = Cron("0,15,30 2 * * *", "Europe/Oslo").instants(ms("2026-03-28T12:00"))

    assert [zoned_text(next(walk), "Europe/Oslo") for _ in range(2)] == [
        "Sun 2026-03-29 03:00:00 +02:00",
        "Mon 2026-03-30 02:00:00 +02:00",
    ]


def test_a_fixed_time_that_is_shown_twice_comes_the_first_time_alone() -> None:
    walk = Cron("30 2 * * *", "Europe/Oslo").instants(ms("2026-10-24T12:00"))

    assert [zoned_text(next(walk), "Europe/Oslo") for _ in range(2)] == [
        "Sun 2026-10-25 02:30:00 +02:00",
        "Mon 2026-10-26 02:30:00 +01:00",
    ]


def test_a_wildcard_goes_by_the_clock_on_both_nights() -> None:
    spring = Cron("*/30 * * * *", "Europe/Oslo").instants(ms("2026-03-29T00:15"))
    autumn = Cron("*/30 * * * *", "Europe/Oslo").instants(ms("2026-10-25T00:15"))

    assert [zoned_text(next(spring), "Europe/Oslo")[15:] for _ in range(3)] == [
        "01:30:00 +01:00", "03:00:00 +02:00", "03:30:00 +02:00",
    ]  # fmt: skip
    assert [zoned_text(next(autumn), "Europe/Oslo")[15:] for _ in range(4)] == [
        "02:30:00 +02:00", "02:00:00 +01:00", "02:30:00 +01:00", "03:00:00 +01:00",
    ]  # fmt: skip


@pytest.mark.parametrize("nickname, line", NICKNAMES.items())
def test_a_nickname_means_its_line(nickname: str, line: str) -> None:
    begin, end = datetime(2026, 1, 1, tzinfo=UTC), datetime(2028, 1, 1, tzinfo=UTC)

    assert check_cron("cron", nickname.upper()) == nickname
    assert instants(nickname, "UTC", begin, end) == instants(line, "UTC", begin, end)


@pytest.mark.parametrize(
    "line, day",
    [
        ("0 0 L * *", "2026-02-28"),  # the last day of the month
        ("0 0 LW * *", "2026-02-27"),  # the last of them from Monday to Friday
        ("0 0 * * fri#2", "2026-02-13"),  # the second Friday
        ("0 0 * * 5L", "2026-02-27"),  # the last Friday
        ("0 0 13 * fri", "2026-02-06"),  # either, since neither begins with a star
        ("0 0 */13 * fri", "2026-02-27"),  # both: the 1st, the 14th or the 27th, and a Friday
    ],
)
def test_days_beyond_plain_numbers(line: str, day: str) -> None:
    first = next(Cron(line, "UTC").instants(ms("2026-02-01T12:00")))

    assert zoned_text(first, "UTC")[4:14] == day


@pytest.mark.parametrize(
    "line, words",
    [
        ("0 0 30 2 *", "there is no day 30 in month 2"),
        ("0 0 31 4,6 *", "there is no day 31 in month 4,6"),
        ("0 0 */31 * mon#2", "never comes"),
        ("61 * * * *", 'the minute "61"'),
        ("* 24 * * *", 'the hour "24"'),
        ("* * 0 * *", 'the day "0"'),
        ("* * * foo *", 'the month "foo"'),
        ("* * * * 8", 'the weekday "8"'),
        ("* * * * fri-mon", 'the weekday "fri-mon"'),
        ("*/0 * * * *", 'the minute "*/0"'),
        ("* * * *", "4 fields"),
        ("", "0 fields"),
        ("* * * * * *", "6 fields"),
        ("@reboot", "is no time"),
        ("@every 5m", "@every 5m"),
        ("@dayly", "did you mean '@daily'"),
        ("1" * 501, "501 characters"),
        ("\uff11 * * * *", "the minute"),
        ("1\0 * * * *", "NUL"),
    ],
)
def test_what_cannot_come_is_refused_and_named(line: str, words: str) -> None:
    with pytest.raises(BadInput, match=re.escape(words)):
        check_cron("cron", line)


@given(st.text(alphabet="0123456789*/,-L#W@ monjan\t\u00b2\u0661", max_size=30))
@settings(max_examples=300, deadline=None)
def test_any_text_is_a_line_that_comes_or_is_refused(text: str) -> None:
    try:
        line = check_cron("cron", text)
    except BadInput:
        return

    assert next(Cron(line, "Europe/Oslo").instants(ms("2026-01-01T00:00"))) > ms("2026-01-01T00:00")


@pytest.mark.parametrize(
    "zone, meant",
    [("Oslo", "Europe/Oslo"), ("Europe/Osle", "Europe/Oslo"), ("new_york", "America/New_York")],
)
def test_an_unknown_zone_gets_the_nearest(zone: str, meant: str) -> None:
    with pytest.raises(BadInput, match=meant):
        check_zone("zone", zone)


@pytest.mark.parametrize("zone", ["", "/etc/localtime", "../UTC", "Europe", "x\0", "é"])
def test_what_is_no_zone_is_refused(zone: str) -> None:
    with pytest.raises(BadInput):
        check_zone("zone", zone)


def test_a_zone_may_be_written_in_any_case() -> None:
    assert check_zone("zone", "europe/oslo") == "Europe/Oslo"


def ms(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


def around(turn: str) -> tuple[datetime, datetime]:
    """Return the times between which a night of turned clocks lies."""
    when = datetime.fromisoformat(turn).replace(tzinfo=UTC)
    return when - timedelta(hours=4), when + timedelta(hours=5)


def instants(line: str, zone: str, begin: datetime, end: datetime) -> list[datetime]:
    """Return the instants of a line from one time on, before another."""
    walk = Cron(line, zone).instants(int(begin.timestamp() * 1000) - 1)
    times = (datetime.fromtimestamp(instant / 1000, UTC) for instant in walk)
    return list(takewhile(lambda when: when < end, times))


def walked(line: str, zone: str, begin: datetime, end: datetime) -> list[datetime]:
    """Return the same by looking at the clock each minute, as Debian's cron(8) says that it does.

    "If the time has moved forwards, those jobs which would have run in the time that was skipped will be run soon after
    the change. Conversely, if the time has moved backwards by less than 3 hours, those jobs that fall into the repeated
    time will not be re-run. Only jobs that run at a particular time (not specified as @hourly, nor with '*' in the hour
    or minute specifier) are affected."
    """
    minute, hour, *_ = line.split()
    is_fixed = not minute.startswith("*") and not hour.startswith("*")
    minutes, hours, days, months, weekdays = croniter.expand(line)[0]

    def is_shown(shown: datetime) -> bool:
        values = (shown.minute, shown.hour, shown.day, shown.month, shown.isoweekday() % 7)
        fields = (minutes, hours, days, months, weekdays)
        return all(value in field or "*" in field for value, field in zip(values, fields, strict=True))

    found = []
    now = begin
    seen_until = begin.astimezone(ZoneInfo(zone)).replace(tzinfo=None) - MINUTE
    while now < end:
        shown = now.astimezone(ZoneInfo(zone)).replace(tzinfo=None)
        passed = list(_minutes(seen_until, shown)) if is_fixed else [shown]
        if any(is_shown(each) for each in passed):
            found.append(now)
        seen_until = max(seen_until, shown)
        now += MINUTE
    return found


def _minutes(after: datetime, until: datetime) -> Iterator[datetime]:
    each = after + MINUTE
    while each <= until:
        yield each
        each += MINUTE


def _ours(line: str, begin: datetime) -> Iterator[datetime]:
    walk = Cron(line, "UTC").instants(int(begin.timestamp() * 1000) - 1)
    return (datetime.fromtimestamp(instant / 1000, UTC) for instant in walk)


def _theirs(line: str, begin: datetime) -> Iterator[datetime]:
    # A day field that begins with a star counts as a star, as in Debian's cron: croniter calls that a bug of cron.
    walk = croniter(line, begin - timedelta(seconds=1), implement_cron_bug=True, max_years_between_matches=60)
    while True:
        yield walk.get_next(datetime)


def _first(walk: Iterator[datetime], most: int) -> list[datetime]:
    return list(islice(walk, most))
