"""Choosing the jobs to act on: by name, range and filter; the question before many, and what is passed by."""

import pytest

from tests.cli.terminal import on_terminal
from tests.program import Cli

VERBS = ["cancel", "retry", "delete", "hold", "release"]
JOBS = """\
{"id": "a", "command": "rsync one", "queue": "mail", "tags": ["t", "u"]}
{"id": "b", "command": "rsync two", "tags": ["t"]}
{"id": "c", "command": "exit 7", "max_retries": 0, "priority": 9}
{"id": "d", "command": "true", "delay": "1h"}
"""


@pytest.fixture
def each(cli: Cli) -> Cli:
    """Four jobs on each database: two ready, one dead, one scheduled."""
    return _fill(cli)


@pytest.fixture
def filled(local: Cli) -> Cli:
    """The same on SQLite alone."""
    return _fill(local)


def _fill(cli: Cli) -> Cli:
    cli.ok("enqueue", "--from", "-", stdin=JOBS)
    cli.ok("hold", "a", "b")
    cli.drain()
    cli.ok("release", "a", "b")
    return cli


def states(cli: Cli) -> dict[str, str]:
    """Return the state of each job."""
    return {str(job["id"]): str(job["state"]) for job in cli.json("list")}


BEFORE = {"a": "pending", "b": "pending", "c": "dead", "d": "scheduled"}


# a filter: how many it would cancel, and pass by
FILTERS = {
    "--state pending": (2, {}),
    "--state pending,scheduled,dead": (3, {"dead": 1}),
    "--queue mail": (1, {}),
    "--tag t": (2, {}),
    "--tag t --tag u": (1, {}),
    "--command rsync": (2, {}),
    "--error 7": (0, {"dead": 1}),
    "--since 1h": (3, {"dead": 1}),
    "--ended-since 1h": (0, {"dead": 1}),
    "--until 1h": (0, {}),
    "--all": (3, {"dead": 1}),
}


def test_each_filter_chooses_what_is_acted_on(each: Cli) -> None:
    for words, (count, passed) in FILTERS.items():
        (tally,) = each.json("cancel", *words.split(), "--dry-run")
        assert tally == {"count": count, "passed_by": passed, "dry_run": True}, words

    each.ok("cancel", "--tag", "t", "--queue", "mail", "--yes")
    assert states(each) == {**BEFORE, "a": "cancelled"}


def test_a_range_passes_by_what_the_act_does_not_apply_to_and_counts_it(each: Cli) -> None:
    assert each.ok("cancel", "2-4") == "2 cancelled, 1 passed by: 1 dead\n"
    assert (
        each.ok("cancel", "1-4", "--json")
        == '{"count": 1, "passed_by": {"cancelled": 2, "dead": 1}, "dry_run": false}\n'
    )

    assert states(each) == {"a": "cancelled", "b": "cancelled", "c": "dead", "d": "cancelled"}


def test_options_may_stand_between_ids(filled: Cli) -> None:
    assert filled.ok("list", "a", "--tag", "t", "b", "-q").split() == ["b", "a"]
    assert filled.ok("edit", "a", "--priority", "5", "b", "--tag", "x", "d").count("priority 0 -> 5") == 3
    assert filled.run("cancel", "a", "--tga", "t", "b").returncode == 2


def test_ranges_ids_and_the_newest_stand_together(each: Cli) -> None:
    assert each.ok("hold", "1-2", "last") == "3 held\n"

    assert states(each) == {"a": "blocked", "b": "blocked", "c": "dead", "d": "blocked"}


def test_without_a_word_on_which_jobs_nothing_is_done_and_a_range_of_none_is_not_found(filled: Cli) -> None:
    for verb in VERBS:
        done = filled.run(verb, "--yes")
        assert (done.returncode, done.stdout) == (2, ""), verb
        assert "which jobs?" in done.stderr
        done = filled.run(verb, "50-60", "--yes")
        assert (done.returncode, done.stdout) == (3, ""), verb
        assert "no job has a number in 50-60" in done.stderr

    assert states(filled) == BEFORE


def test_what_a_filter_finds_is_told_and_needs_a_yes_in_a_pipe(filled: Cli) -> None:
    done = filled.run("cancel", "--tag", "t")

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "queuectl: this cancel affects 2 jobs (2 pending): a, b\n  add --yes to do it\n"
    assert states(filled) == BEFORE


def test_on_a_terminal_the_question_is_asked_and_only_yes_goes_on(filled: Cli) -> None:
    refused = on_terminal(filled, "delete", "--state", "pending", typed="\n")
    assert refused.code == 2
    assert "this delete affects 2 jobs (2 pending): a, b; go on? [y/N]" in refused.screen
    assert "nothing was changed" in refused.screen
    assert states(filled) == BEFORE

    assert on_terminal(filled, "delete", "--state", "pending", typed="y\n").code == 0
    assert states(filled) == {"c": "dead", "d": "scheduled"}


def test_a_dry_run_says_what_would_be_done_and_does_nothing(filled: Cli) -> None:
    before = filled.json("list")

    for words, said in {
        "cancel --all": "3 would be cancelled, 1 passed by: 1 dead\n  2 pending, 1 scheduled: a, b, d\n",
        "retry --all": "1 would be retried, 3 passed by: 2 pending, 1 scheduled\n  1 dead: c\n",
        "delete 1-2": "2 would be deleted\n  2 pending: a, b\n",
        "hold a": "a: would be: held\n",
        "retry c": "c: would be: has a fresh life\n",
        "edit a --priority 5": "a: would be: priority 0 -> 5\n",
        "edit 1-2 --priority 5": "2 would be edited\n  2 pending: a, b\n",
    }.items():
        assert filled.ok(*words.split(), "--dry-run") == said

    assert filled.json("list") == before


def test_a_filter_that_finds_nothing_asks_nothing(filled: Cli) -> None:
    done = filled.run("delete", "--tag", "nowhere")

    assert (done.returncode, done.stdout, done.stderr) == (0, "0 deleted\n", "no jobs match\n")


def test_what_could_mean_two_things_is_refused(filled: Cli) -> None:
    for words in ("a --tag t", "a --all", "--all --tag t", "--state dead last", "--state ,", "--command= "):
        assert filled.run("delete", *words.split(" "), "--yes").returncode == 2, words

    assert states(filled) == BEFORE


def test_a_running_job_is_passed_by_when_many_are_deleted(cli: Cli) -> None:
    cli.enqueue("--id", "busy", "sleep 60")
    cli.ok("worker", "start", "-d")
    cli.wait_for_state("busy", "processing")
    cli.ok("enqueue", "--delay", "1h", "true")

    assert cli.ok("edit", "1-2", "--tag", "y") == "2 edited\n"
    assert cli.ok("delete", "--all", "--yes") == "1 deleted, 1 passed by: 1 processing\n"
    assert cli.run("hold", "busy").returncode == 6
    assert cli.run("edit", "busy", "--priority", "3").returncode == 6
    assert cli.ok("edit", "busy", "--tag", "x") == "busy: tags y -> y,x\n"
    assert cli.ok("cancel", "--state", "processing", "--yes").startswith("0 cancelled; 1 is with its worker")
    assert cli.wait_for_state("busy", "cancelled")["error"] == "cancelled while running"


def test_jobs_that_failed_are_retried_by_their_error(each: Cli) -> None:
    assert each.ok("retry", "--error", "exit code 7", "--yes") == "1 retried\n"

    assert states(each) == {**BEFORE, "c": "pending"}


def test_held_jobs_stay_until_they_are_released(each: Cli) -> None:
    each.ok("hold", "--state", "pending,scheduled", "--yes")
    assert each.ok("hold", "a") == "a: is held already\n"
    each.drain()
    assert states(each) == {"a": "blocked", "b": "blocked", "c": "dead", "d": "blocked"}
    done = each.run("retry", "a")
    assert done.returncode == 6
    assert "queuectl release a" in done.stderr

    assert each.ok("release", "a", "d") == "a: released\nd: released; it waits for its time\n"
    assert each.run("release", "a").returncode == 6
    assert states(each) == {"a": "pending", "b": "blocked", "c": "dead", "d": "scheduled"}


def test_an_idle_worker_picks_up_what_is_released(cli: Cli) -> None:
    cli.enqueue("--hold", "--id", "held", "true")
    cli.enqueue("--id", "first", "true")
    cli.ok("worker", "start", "-d")
    cli.wait_for_state("first", "completed")
    assert cli.job("held")["state"] == "blocked"

    cli.ok("release", "held")

    cli.wait_for_state("held", "completed")


def test_a_json_job_may_say_that_it_is_held(local: Cli) -> None:
    local.enqueue('{"id": "job1", "command": "true", "hold": true}')

    job = local.job("job1")

    assert (job["state"], job["held_at"] is not None) == ("blocked", True)
    assert local.run("enqueue", '{"command": "true", "hold": "yes"}').returncode == 2


def test_names_with_terminal_sequences_are_shown_and_not_obeyed(filled: Cli) -> None:
    done = filled.run("cancel", "\x1b]0;owned\x07")

    assert done.returncode == 3
    assert "\x1b" not in done.stderr
    filled.ok("edit", "a", "--command", "echo \x1b[2J")
    assert "\x1b" not in filled.ok("edit", "a", "--command", "true")
    assert "\x1b" not in filled.ok("audit")
