"""queuectl stats: what came of runs, for people and as JSON."""

import re
from typing import Any

import pytest

from queuectl.cli.text import BARS, sparkline
from tests.program import Cli


def test_stats_count_what_ran_on_each_database(cli: Cli) -> None:
    lines = [
        '{"command": "true"}',
        '{"command": "true"}',
        '{"command": "exit 3", "id": "bad", "queue": "mail", "max_retries": 0}',
    ]
    cli.ok("enqueue", "--from", "-", stdin="\n".join(lines))
    cli.drain()

    whole: Any
    mail: Any
    [whole] = cli.json("stats")
    [mail] = cli.json("stats", "--range", "7d", "--queue", "mail")

    assert (whole["range"], whole["total"]["runs"], whole["total"]["completed"], whole["total"]["failures"]) == (
        "1h",
        3,
        2,
        1,
    )
    assert len(whole["buckets"]) == 60
    assert sum(bucket["runs"] for bucket in whole["buckets"]) == 3
    assert whole["wait"]["count"] == whole["run_time"]["count"] == 3
    assert 0 <= whole["wait"]["p50_ms"] <= whole["wait"]["p95_ms"] <= whole["wait"]["max_ms"]
    assert (mail["queue"], mail["total"]["results"]["failed"], mail["total"]["runs"]) == ("mail", 1, 1)
    assert [(group["error"], group["count"], group["sample"]) for group in mail["failing"]] == [
        ("exit code 3", 1, "bad")
    ]


def test_stats_are_readable(local: Cli) -> None:
    local.ok("enqueue", "--id", "bad", "--max-retries", "0", "exit 3")
    local.drain()

    text = local.ok("stats", "--range", "24h")

    assert re.search(r"(?m)^Runs: +1  [·▁-█]{48}$", text)
    assert re.search(r"(?m)^Failures: +1  ", text)
    assert re.search(r"(?m)^Not well: +1 failed$", text)
    assert re.search(r"(?m)^Wait: +p50 .+, p95 .+, at most .+$", text)
    assert re.search(r"(?m)^ +1  bad +exit code 3$", text)


def test_stats_of_an_empty_store_are_zero(local: Cli) -> None:
    text = local.ok("stats")

    assert re.search(r"(?m)^Runs: +0  ·{60}$", text)
    assert re.search(r"(?m)^Wait: +-$", text)


@pytest.mark.parametrize(
    "words, code, message",
    [
        (["--range", "2h"], 2, "bad range '2h'"),
        (["--range", ""], 2, "bad range ''"),
        (["--queue", "nowhere"], 3, "no queue 'nowhere'"),
        (["today"], 2, "today"),
    ],
)
def test_bad_questions_are_refused(local: Cli, words: list[str], code: int, message: str) -> None:
    done = local.run("stats", *words)

    assert done.returncode == code
    assert message in done.stderr


@pytest.mark.parametrize(
    "numbers, width, drawn",
    [
        ([], 5, ""),
        ([0, 0], 5, BARS[0] * 2),
        ([0, 1, 1000], 5, BARS[0] + BARS[1] + BARS[-1]),
        ([1, 1, 1, 1, 2], 3, BARS[-1] * 3),
        (list(range(9)), 9, BARS),
    ],
)
def test_a_sparkline_shows_the_least_that_is_not_nothing(numbers: list[int], width: int, drawn: str) -> None:
    assert sparkline(numbers, width) == drawn
