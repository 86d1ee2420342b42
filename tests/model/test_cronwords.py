"""Cron words: lines as people would say them."""

import pytest

from queuectl.errors import BadInput
from queuectl.model.cron import NICKNAMES, check_cron
from queuectl.model.cronwords import cron_words


@pytest.mark.parametrize(
    "line, words",
    [
        ("* * * * *", "every minute"),
        ("*/5 * * * *", "every 5 minutes"),
        ("0 * * * *", "every hour, on the hour"),
        ("15 * * * *", "at minute 15 of the hour"),
        ("30 2 * * *", "at 02:30, every day"),
        ("30 2 * * mon-fri", "at 02:30, Monday to Friday"),
        ("0 9,17 * * 1-5", "at 09:00 and 17:00, Monday to Friday"),
        ("*/5 * * * mon-fri", "every 5 minutes, Monday to Friday"),
        ("*/10 8-18 * * *", "every 10 minutes, in the hours 08 to 18"),
        ("*/10 8 * * *", "every 10 minutes, in the hour 08"),
        ("0 9 * jul *", "at 09:00, in July"),
        ("15 */2 * * *", "at minute 15 of the hour, every 2nd hour"),
        ("0 0 1 * *", "at 00:00, on the 1st of the month"),
        ("0 0 L * *", "at 00:00, on the last day of the month"),
        ("0 0 1,15 * *", "at 00:00, on the 1st and the 15th of the month"),
        ("0 0 13 * 5", "at 00:00, on the 13th of the month or Friday"),
        ("0 0 1 1 *", "at 00:00, on the 1st of the month, in January"),
        ("0 4 * jan-mar 0", "at 04:00, Sunday, in January to March"),
        ("0 4 * * 1#2", "at 04:00, the 2nd Monday of the month"),
        ("0 4 * * 5L", "at 04:00, the last Friday of the month"),
        ("@daily", "at 00:00, every day"),
        ("@weekly", "at 00:00, Sunday"),
    ],
)
def test_a_line_is_said_in_words(line: str, words: str) -> None:
    assert cron_words(check_cron("line", line)) == words


def test_whatever_cron_takes_can_be_said() -> None:
    fields = ("*", "*/2", "1", "1-5", "1,3", "1-5/2", "2-4,5", "L", "mon", "jan", "1/2", "LW", "1#3", "5L")
    said = 0
    for at in range(5):
        for field in fields:
            parts = ["*"] * 5
            parts[at] = field
            try:
                line = check_cron("line", " ".join(parts))
            except BadInput:
                continue
            said += bool(cron_words(line))

    assert said > 30
    assert all(map(cron_words, NICKNAMES))
