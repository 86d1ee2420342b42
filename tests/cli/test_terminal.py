"""On a real terminal: tables are drawn, and enqueue says what will run and whether anything will run it."""

import re

import pytest

from tests.cli.terminal import on_terminal
from tests.program import Cli

BOLD = "\x1b[1m"
GREEN = "\x1b[32m"


def test_a_table_is_drawn_with_colour_on_a_terminal_and_plain_in_a_pipe(local: Cli) -> None:
    local.enqueue("true")
    local.drain()

    seen = on_terminal(local, "list")

    assert seen.code == 0
    assert BOLD in seen.screen
    assert f"{GREEN}completed" in seen.screen
    assert "\x1b" not in local.ok("list")


def test_a_table_fits_the_terminal_and_cuts_the_last_column_alone(local: Cli) -> None:
    local.enqueue("--id", "job1", "echo " + "x" * 500)

    seen = on_terminal(local, "list", columns=90)

    lines = [re.sub(r"\x1b\[[0-9;]*m", "", line).rstrip() for line in seen.screen.splitlines()]
    assert max(map(len, lines)) <= 90
    assert lines[1].split()[:2] == ["job1", "pending"]
    assert lines[1].endswith("…")


@pytest.mark.parametrize("columns", [40, 60])
def test_a_narrow_terminal_shows_whole_ids_and_states_and_names_what_it_leaves_out(local: Cli, columns: int) -> None:
    local.enqueue("--id", "a-rather-long-name", "echo " + "x" * 500)

    seen = on_terminal(local, "list", columns=columns)

    lines = [re.sub(r"\x1b\[[0-9;]*m", "", line).rstrip() for line in seen.screen.splitlines()]
    assert max(map(len, lines)) <= columns
    assert lines[1].split()[:2] == ["a-rather-long-name", "pending"]
    assert lines[1].endswith("…")
    assert " ".join(lines[2:]).startswith("no room for")
    assert "ADDED" in " ".join(lines[2:])


def test_an_id_wider_than_the_terminal_goes_on_in_its_next_line(local: Cli) -> None:
    name = "n" * 60
    local.enqueue("--id", name, "true")

    assert name in on_terminal(local, "list", columns=30).screen


def test_numbers_of_a_narrow_table_are_never_cut(local: Cli) -> None:
    local.run("enqueue", "--from", "-", stdin="true\n" * 12345)

    seen = on_terminal(local, "status", columns=40)

    assert "12345" in seen.screen
    assert "default" in seen.screen
    assert re.search(r"\d…", seen.screen) is None


def test_colour_is_left_out_when_the_user_asks_for_none(local: Cli) -> None:
    local.enqueue("true")

    assert BOLD in on_terminal(local, "list").screen
    assert "\x1b[9" not in on_terminal(local, "list", env={"NO_COLOR": "1"}).screen


def test_terminal_sequences_of_a_command_are_not_obeyed_on_a_terminal(local: Cli) -> None:
    local.enqueue("--id", "evil", "echo \x1b]0;owned\x07 [red]markup[/red]")

    for words in (("list",), ("show", "evil")):
        screen = on_terminal(local, *words).screen
        assert "\x1b]0" not in screen
        assert r"\x1b]0;owned\x07 [red]markup[/red]" in screen


def test_enqueue_says_on_stderr_what_will_run_and_warns_that_no_worker_does(local: Cli) -> None:
    seen = on_terminal(local, "enqueue", "echo \x1b[2J hello", stdout_in_pipe=True)

    assert (seen.code, seen.piped) == (0, "1\n")
    assert r"will run: echo \x1b[2J hello" in seen.screen
    assert "warning: no worker is running; start one with: queuectl worker start -d" in seen.screen


def test_enqueue_warns_that_the_queue_is_paused_and_is_content_with_a_worker(cli: Cli) -> None:
    cli.ok("queue", "pause", "mail")
    cli.ok("worker", "start", "-d")

    paused = on_terminal(cli, "enqueue", "--queue", "mail", "true")
    content = on_terminal(cli, "enqueue", "true")

    assert "warning: queue mail is paused; resume it with: queuectl queue resume mail" in paused.screen
    assert "no worker" not in paused.screen
    assert "warning" not in content.screen


def test_enqueue_counts_the_jobs_of_a_file_instead_of_showing_each(local: Cli) -> None:
    (local.folder / "jobs").write_text("true\nfalse\n")

    seen = on_terminal(local, "enqueue", "--from", "jobs", stdout_in_pipe=True)

    assert seen.piped == "1\n2\n"
    assert "2 jobs added" in seen.screen


def test_purging_asks_first_and_an_answer_but_yes_changes_nothing(local: Cli) -> None:
    local.enqueue("--max-retries", "0", "exit 1")
    local.drain()

    refused = on_terminal(local, "dlq", "purge", typed="n\n")
    assert refused.code == 2
    assert "this removes 1 dead job for good; go on? [y/N]" in refused.screen
    assert len(local.json("dlq", "list")) == 1

    assert on_terminal(local, "dlq", "purge", typed="y\n").code == 0
    assert local.json("dlq", "list") == []


def test_help_fits_a_terminal_however_narrow(local: Cli) -> None:
    for columns in (0, 20, 80):
        assert on_terminal(local, "enqueue", "--help", columns=columns).code == 0
