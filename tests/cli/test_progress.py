"""The line that shows how far jobs are: on a terminal alone, whatever its size, and gone when they have ended."""

from collections.abc import Iterator
from functools import partial

import pytest

from queuectl.cli.progress import Pace, left_text, rate_text
from tests.cli.terminal import Pane, on_terminal
from tests.program import Cli, wait_for
from tests.scenarios.working import enqueue_all

BAR = "━"


@pytest.fixture
def pane(local: Cli) -> Iterator[Pane]:
    """A shell in a window, with some words on it; it was told of the size of another."""
    pane = Pane(local, ["bash", "--norc", "--noprofile"], columns=100, env={"COLUMNS": "80"})
    pane.press("PS1='$ '; clear; echo words above", "Enter")
    pane.wait_for("words above\n$")
    yield pane
    pane.close()


def gated(cli: Cli, number: int, **fields: object) -> list[str]:
    """Add jobs of group g that end, the first half of them badly, when the file of their number is there."""
    return enqueue_all(
        cli,
        [f"until test -e {n}; do sleep 0.05; done; exit {int(n < number // 2)}" for n in range(number)],
        group="g",
        max_retries=0,
        **fields,
    )


def open_gates(cli: Cli, *numbers: int) -> None:
    for number in numbers:
        (cli.folder / str(number)).touch()


@pytest.mark.needs("tmux")
def test_a_line_shows_how_far_a_group_is_and_gives_way_to_the_digest(local: Cli, pane: Pane) -> None:
    gated(local, 4)
    local.ok("worker", "start", "-d", "-j", "4")
    pane.press("queuectl wait --group g", "Enter")
    text = pane.wait_for("0/4  4 running")
    assert f"g {BAR}" in text

    open_gates(local, 0, 3)
    pane.wait_for("2/4  1 failed  2 running")
    pane.wait_for(" left")
    enqueue_all(local, ["true"], group="g", delay="1h")
    pane.wait_for("2/5  1 failed  2 running")
    local.ok("cancel", "--group", "g")

    text = pane.wait_for("run again with: queuectl retry --group g\n$")
    assert BAR not in text
    assert "words above\n$ queuectl wait --group g\ngroup g: 1 completed, 1 dead, 3 cancelled" in text


def last_line(pane: Pane, columns: int) -> str | None:
    """Return the line of progress if it is the last thing on the screen and fits.

    A terminal that is resized just while a line is drawn may keep a part of the one before above it.
    """
    lines = [line for line in pane.text().splitlines() if line.strip()]
    is_drawn = lines[-1].startswith("g ") and "1/2" in lines[-1] and len(lines[-1]) < columns
    return lines[-1] if is_drawn else None


@pytest.mark.needs("tmux")
def test_the_line_fits_a_terminal_that_is_made_narrower_and_wider(local: Cli, pane: Pane) -> None:
    gated(local, 2)
    local.ok("worker", "start", "-d", "-j", "2")
    pane.press("queuectl wait --group g", "Enter")
    pane.wait_for(BAR)

    for columns in (40, 12, 70, 100):
        pane.resize(columns)
        open_gates(local, 0)
        assert wait_for(partial(last_line, pane, columns), partial("{} columns: {!r}".format, columns, pane))

    open_gates(local, 1)
    text = pane.wait_for("retry --group g\n$")
    assert BAR not in text
    assert "words above" in pane.history()


@pytest.mark.needs("tmux")
def test_an_interrupt_takes_the_line_away_and_says_what_goes_on(local: Cli, pane: Pane) -> None:
    gated(local, 2)
    local.ok("worker", "start", "-d", "-j", "2")
    pane.press("queuectl wait --group g", "Enter")
    pane.wait_for(BAR)

    pane.press("C-c")
    pane.wait_for("wait --group g\n$")
    pane.press("echo left with $?", "Enter")

    text = pane.wait_for("left with 130")
    assert BAR not in text
    assert "group g goes on; wait for it again with: queuectl wait --group g" in text
    open_gates(local, 0, 1)


@pytest.mark.needs("tmux")
def test_several_jobs_that_are_waited_for_by_id_are_shown_too_and_one_is_not(local: Cli, pane: Pane) -> None:
    gated(local, 4)
    local.ok("worker", "start", "-d", "-j", "4")
    pane.press("queuectl wait 2-3", "Enter")
    pane.wait_for("2 jobs ━")
    open_gates(local, 1, 2)
    assert BAR not in pane.wait_for("retry 2\n$")

    pane.press("clear; queuectl wait 1", "Enter")
    open_gates(local, 0, 3)

    assert BAR not in pane.wait_for("retry 1\n$")


def test_a_dumb_terminal_gets_plain_lines_at_the_end_alone(local: Cli) -> None:
    enqueue_all(local, ["true", "sleep 0.5"], group="g")
    local.ok("worker", "start", "-d")

    seen = on_terminal(local, "wait", "--group", "g", env={"TERM": "dumb"})

    assert seen.code == 0
    assert "\x1b" not in seen.screen
    assert seen.screen.startswith("group g: 2 completed in ")


def test_a_terminal_without_colour_gets_a_line_without(local: Cli) -> None:
    enqueue_all(local, ["true", "sleep 2"], group="g")
    local.ok("worker", "start", "-d")

    seen = on_terminal(local, "wait", "--group", "g", env={"NO_COLOR": "1"})

    assert BAR in seen.screen
    assert "\x1b[3" not in seen.screen
    assert "\r\x1b[Jgroup g: 2 completed in " in seen.screen


def test_a_pace_is_that_of_the_last_half_minute() -> None:
    pace = Pace()
    for second in range(100):
        pace.add(second, second if second < 50 else 50 + (second - 50) * 10)

    assert pace.per_s == pytest.approx(10, rel=0.05)


def test_a_pace_of_slow_jobs_reaches_back_to_the_last_few_ends() -> None:
    pace = Pace()
    for minute in range(20):
        pace.add(minute * 60, minute)

    assert pace.per_s == pytest.approx(1 / 60, rel=0.01)


def test_a_pace_begins_anew_when_jobs_are_given_a_fresh_life() -> None:
    pace = Pace()
    pace.add(0, 0)
    pace.add(1, 100)

    pace.add(2, 10)
    assert pace.per_s is None
    pace.add(4, 12)
    assert pace.per_s == 1


@pytest.mark.parametrize(
    "per_s, text",
    [(1234.4, "1234/s"), (12.34, "12/s"), (1.25, "1.2/s"), (0.5, "30/min"), (0.001, "3.6/h"), (0, "0.0/h")],
)
def test_a_rate_is_written_in_the_unit_that_suits_it(per_s: float, text: str) -> None:
    assert rate_text(per_s) == text


@pytest.mark.parametrize("ms, text", [(0, "1s"), (1499, "1s"), (59_000, "59s"), (3_600_000, "1h00m")])
def test_the_time_left_is_no_finer_than_a_guess(ms: int, text: str) -> None:
    assert left_text(ms) == text
