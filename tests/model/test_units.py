"""Durations, times and sizes as people write them: what is read, what is refused, and what is written back."""

import time
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queuectl.errors import BadInput
from queuectl.model.units import (
    DAY_MS,
    HOUR_MS,
    MAX_DURATION_MS,
    MAX_SIZE,
    MINUTE_MS,
    SECOND_MS,
    WEEK_MS,
    duration_ms,
    duration_text,
    iso_text,
    local_text,
    past_ms,
    rough_duration_text,
    rough_size_text,
    size_bytes,
    size_text,
    time_ms,
)

BERLIN = "CET-1CEST,M3.5.0,M10.5.0/3"


@pytest.fixture
def _berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A person in a zone with summer time; spelt out, so that no zone files are needed."""
    monkeypatch.setenv("TZ", BERLIN)
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(
    "text, ms",
    [
        ("0", 0),
        ("90", 90 * SECOND_MS),
        ("2.5", 2_500),
        ("500ms", 500),
        ("90s", 90 * SECOND_MS),
        ("5m", 5 * MINUTE_MS),
        ("1h30m", 90 * MINUTE_MS),
        ("2d", 2 * DAY_MS),
        ("1w", WEEK_MS),
        ("1w2d3h4m5s6ms", WEEK_MS + 2 * DAY_MS + 3 * HOUR_MS + 4 * MINUTE_MS + 5_006),
        ("1.5h", 90 * MINUTE_MS),
        ("  10 S ", 10 * SECOND_MS),
        ("1 hour 30 minutes", 90 * MINUTE_MS),
        ("2 days", 2 * DAY_MS),
        ("3 hrs 20 mins 10 secs", 3 * HOUR_MS + 20 * MINUTE_MS + 10 * SECOND_MS),
        ("36600d", MAX_DURATION_MS),
    ],
)
def test_a_duration_is_read_as_people_write_it(text: str, ms: int) -> None:
    assert duration_ms(text) == ms


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "abc",
        "-5s",
        "+5s",
        "1x",
        "1h30",
        "5 m x",
        "1e3",
        "1,5h",
        "\u0661s",
        "inf",
        "nan",
        "36601d",
        "9" * 400,
        "s5",
    ],
)
def test_a_bad_duration_is_refused_with_examples(text: str) -> None:
    with pytest.raises(BadInput, match="duration") as refused:
        duration_ms(text)

    assert "1h30m" in refused.value.hint


def test_an_unknown_unit_is_named() -> None:
    with pytest.raises(BadInput, match="unknown unit 'parsecs'"):
        duration_ms("12 parsecs")


@settings(deadline=None)
@given(st.integers(0, MAX_DURATION_MS))
def test_a_duration_that_was_written_is_read_back(ms: int) -> None:
    assert duration_ms(duration_text(ms)) == ms


@pytest.mark.parametrize(
    "ms, text", [(0, "0s"), (250, "250ms"), (90_000, "1m30s"), (WEEK_MS, "7d"), (3_600_001, "1h1ms")]
)
def test_a_duration_is_written_exactly(ms: int, text: str) -> None:
    assert duration_text(ms) == text


@pytest.mark.parametrize(
    "ms, text",
    [
        (0, "0ms"),
        (99, "99ms"),
        (250, "0.25s"),
        (9_990, "9.99s"),
        (12_400, "12s"),
        (185_000, "3m05s"),
        (2 * HOUR_MS + 10 * MINUTE_MS, "2h10m"),
        (5 * DAY_MS + 3 * HOUR_MS, "5d03h"),
    ],
)
def test_a_rough_duration_has_two_figures(ms: int, text: str) -> None:
    assert rough_duration_text(ms) == text


# Thursday, 2026-03-26, 10:00 in Berlin; summer time begins there on the 29th.
NOW = 1_774_515_600_000


@pytest.mark.usefixtures("_berlin")
@pytest.mark.parametrize(
    "text, utc",
    [
        ("now", "2026-03-26T09:00:00.000Z"),
        ("+90m", "2026-03-26T10:30:00.000Z"),
        ("in 5 minutes", "2026-03-26T09:05:00.000Z"),
        ("2026-12-01T09:00", "2026-12-01T08:00:00.000Z"),
        ("2026-07-01 09:00:30", "2026-07-01T07:00:30.000Z"),
        ("2026-12-01", "2026-11-30T23:00:00.000Z"),
        ("2026-12-01T09:00:00Z", "2026-12-01T09:00:00.000Z"),
        ("2026-12-01t09:00:00.250z", "2026-12-01T09:00:00.250Z"),
        ("2026-12-01T09:00+05:30", "2026-12-01T03:30:00.000Z"),
        ("14:30", "2026-03-26T13:30:00.000Z"),
        ("9:00", "2026-03-27T08:00:00.000Z"),
        ("10:00", "2026-03-27T09:00:00.000Z"),
        ("today 9:00", "2026-03-26T08:00:00.000Z"),
        ("today 23:59:59", "2026-03-26T22:59:59.000Z"),
        ("Tomorrow 9:00", "2026-03-27T08:00:00.000Z"),
        ("tomorrow", "2026-03-26T23:00:00.000Z"),
        ("friday 17:00", "2026-03-27T16:00:00.000Z"),
        ("sunday 17:00", "2026-03-29T15:00:00.000Z"),
        ("thursday 9:00", "2026-04-02T07:00:00.000Z"),
    ],
)
def test_a_time_is_read_as_people_write_it_in_their_own_zone(text: str, utc: str) -> None:
    assert iso_text(time_ms(text, NOW)) == utc


@pytest.mark.usefixtures("_berlin")
@pytest.mark.parametrize(
    "text",
    ["", "noon", "yesterday 9:00", "25:00", "9:60", "9:00:61", "tomorrow 9", "fryday 9:00", "2026-13-01", "2026-02-30",
     "1969-12-31T00:00Z", "12", "tomorrow tomorrow 9:00", "9:00 tomorrow"],
)  # fmt: skip
def test_a_bad_time_is_refused_with_examples(text: str) -> None:
    with pytest.raises(BadInput, match="time") as refused:
        time_ms(text, NOW)

    assert "tomorrow 9:00" in refused.value.hint


@pytest.mark.parametrize("text", ["+", "+soon", "in a while"])
def test_a_bad_distance_in_time_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match="bad duration"):
        time_ms(text, NOW)


@pytest.mark.usefixtures("_berlin")
def test_a_time_is_shown_in_the_zone_of_the_person() -> None:
    assert local_text(NOW + 999) == "2026-03-26 10:00:00"


@settings(deadline=None)
@given(st.integers(0, 253_402_300_799))
def test_a_time_that_was_written_is_read_back(seconds: int) -> None:
    assert time_ms(iso_text(seconds * 1000), NOW) == seconds * 1000


@pytest.mark.parametrize(
    "text, size",
    [
        ("0", 0),
        ("4096", 4096),
        ("512B", 512),
        ("16KiB", 16 << 10),
        ("10MB", 10_000_000),
        ("10 mb", 10_000_000),
        ("1.5k", 1_536),
        ("1GiB", 1 << 30),
        ("2T", 2 << 40),
        ("1PiB", MAX_SIZE),
    ],
)
def test_a_size_is_read_as_people_write_it(text: str, size: int) -> None:
    assert size_bytes(text) == size


@pytest.mark.parametrize("text", ["", "-1", "10XB", "1e3", "MB", "ten", "1 000", "2PiB", "9" * 400])
def test_a_bad_size_is_refused_with_examples(text: str) -> None:
    with pytest.raises(BadInput, match="size") as refused:
        size_bytes(text)

    assert "10MB" in refused.value.hint


@settings(deadline=None)
@given(st.integers(0, MAX_SIZE) | st.integers(0, 1 << 20).map(lambda count: count << 20))
def test_a_size_that_was_written_is_read_back(size: int) -> None:
    assert size_bytes(size_text(size)) == size


@pytest.mark.parametrize(
    "size, text", [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (10 << 20, "10.0 MiB"), (5 << 40, "5120.0 GiB")]
)
def test_a_rough_size_has_one_decimal(size: int, text: str) -> None:
    assert rough_size_text(size) == text


@pytest.mark.usefixtures("_berlin")
@pytest.mark.parametrize(
    "text, then",
    [
        ("2h", "2026-03-26 08:00:00"),
        ("90", "2026-03-26 09:58:30"),
        ("1 day 2 hours", "2026-03-25 08:00:00"),
        ("9:30", "2026-03-26 09:30:00"),
        ("14:30", "2026-03-25 14:30:00"),
        ("yesterday", "2026-03-25 00:00:00"),
        ("yesterday 9:00", "2026-03-25 09:00:00"),
        ("today", "2026-03-26 00:00:00"),
        ("thursday", "2026-03-26 00:00:00"),
        ("thursday 17:00", "2026-03-19 17:00:00"),
        ("friday", "2026-03-20 00:00:00"),
        ("now", "2026-03-26 10:00:00"),
        ("2026-03-01", "2026-03-01 00:00:00"),
        ("2026-03-01T09:00:00Z", "2026-03-01 10:00:00"),
        ("2027-01-01", "2027-01-01 00:00:00"),
    ],
)
def test_a_time_that_is_past_is_the_last_one_there_was(text: str, then: str) -> None:
    assert local_text(past_ms(text, NOW)) == then


@pytest.mark.parametrize("text", ["", "soon", "yesterday noon", "25:00", "2 moons", "-2h"])
def test_a_bad_past_time_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match="bad"):
        past_ms(text, NOW)
