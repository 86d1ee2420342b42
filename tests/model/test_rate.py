"""Rates: as people write them."""

import pytest

from queuectl.errors import BadInput
from queuectl.model.rate import Rate, read_rate


@pytest.mark.parametrize(
    "text, interval_ms, shown",
    [
        ("10/m", 6_000, "10/m"),
        ("7/s", 143, "7/s"),
        ("1 / hour", 3_600_000, "1/h"),
        ("3/10s", 3_334, "3/10s"),
        ("1000/s", 1, "1000/s"),
        ("5/min", 12_000, "5/m"),
    ],
)
def test_a_rate_is_read_and_never_rounded_up(text: str, interval_ms: int, shown: str) -> None:
    rate = read_rate(text)

    assert (rate.interval_ms, rate.text) == (interval_ms, shown)
    assert rate.interval_ms * rate.count >= rate.period_ms


@pytest.mark.parametrize("text", ["", "10", "/m", "0/m", "-1/m", "10/", "10/x", "1.5/s", "2000/s", "10/0s", "1/m/s"])
def test_a_bad_rate_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match="rate"):
        read_rate(text)


@pytest.mark.parametrize(
    "text, why",
    [
        ("0/m", "lets no job start"),
        ("1.5/s", "1.5 is no whole number"),
        ("1/99999999999d", "is more than 100 years"),
        ("1/fortnight", "no such period 'fortnight'"),
    ],
)
def test_what_is_wrong_with_a_rate_is_said(text: str, why: str) -> None:
    with pytest.raises(BadInput, match=why):
        read_rate(text)


def test_a_rate_of_one_is_one() -> None:
    assert read_rate("1/s") == Rate(count=1, period_ms=1000)
