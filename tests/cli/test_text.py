"""Text for people: ages and how tables fit."""

import pytest

from queuectl.cli.text import age

NOW = 1_800_000_000_000


@pytest.mark.parametrize(
    "apart_ms, text",
    [
        (0, "just now"),
        (-999, "just now"),
        (-1_000, "1s ago"),
        (-4_980, "4s ago"),
        (-59_999, "59s ago"),
        (-185_000, "3m05s ago"),
        (400, "now"),
        (4_980, "in 4s"),
        (7_800_000, "in 2h10m"),
    ],
)
def test_an_age_is_in_whole_seconds(apart_ms: int, text: str) -> None:
    assert age(NOW + apart_ms, NOW) == text


def test_no_time_has_no_age() -> None:
    assert age(None, NOW) == "-"
