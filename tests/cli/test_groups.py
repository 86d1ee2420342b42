"""Groups as people meet them: `wait`, `status`, `cancel` and `retry` with --group, --max-failures, --on-group-done."""

import json
import signal
import subprocess
from pathlib import Path

import pytest

from tests.cli.test_wait import end_of, start_wait
from tests.program import PROGRAM, QUOTED, Cli, lines_of, wait_for
from tests.scenarios.working import enqueue_all, on_sqlite


def counts_of(cli: Cli, group: str = "g") -> dict[str, int]:
    """Return how many jobs of a group are in each state that any is in."""
    [shape] = cli.json("status", "--group", group)
    jobs = shape["jobs"]
    assert isinstance(jobs, dict)
    return {state: number for state, number in jobs.items() if number}


def test_a_group_that_completes_gives_0_and_a_line_that_says_so(cli: Cli) -> None:
    enqueue_all(cli, ["true"] * 3, group="g")
    cli.ok("worker", "start", "-d")

    done = cli.run("wait", "--group", "g")

    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.splitlines()[-1].startswith("group g: 3 completed in ")


def test_failures_give_1_and_a_digest_with_the_command_that_shows_each_and_the_one_that_retries(cli: Cli) -> None:
    enqueue_all(cli, ["exit 7", "true", "exit 7", *["exit 9"] * 5], group="g", max_retries=0)
    cli.enqueue("--id", "never", "--group", "g", "--hold", "true")
    cli.ok("cancel", "never")
    cli.drain()

    done = cli.run("wait", "--group", "g")

    assert done.returncode == 1
    shows_all = "queuectl list --group g --state dead --error 'exit code 9'"
    first, *digest = done.stderr.splitlines()
    assert first.startswith("group g: 1 completed, 7 dead, 1 cancelled in ")
    assert digest == [
        f"4, 5, 6 and 2 more: dead, exit code 9; see: queuectl logs 4; all: {shows_all}",
        "1: dead, exit code 7; see: queuectl logs 1",
        "3: dead, exit code 7; see: queuectl logs 3",
        "never: cancelled before it ran; see: queuectl show never",
        "queuectl: 8 jobs of group g did not complete",
        "  run again with: queuectl retry --group g",
    ]
    assert len(cli.json("list", "--group", "g", "--state", "dead", "--error", "exit code 9")) == 5


def test_the_digest_of_many_different_failures_is_bounded_and_says_where_the_rest_is(cli: Cli) -> None:
    enqueue_all(cli, [f"exit {code}" for code in range(1, 41)], group="g", max_retries=0)
    cli.drain("-n", "2", "-j", "4")

    said = cli.run("wait", "--group", "g").stderr.splitlines()

    assert len(said) == 24
    assert said[21] == "and 20 more: queuectl list --group g --state dead,cancelled"


def test_jobs_that_are_added_meanwhile_are_waited_for(cli: Cli) -> None:
    gate = cli.folder / "gate"
    cli.enqueue("--group", "g", f"{QUOTED} enqueue --group g 'until test -e {gate}; do sleep 0.05; done'")
    cli.ok("worker", "start", "-d")
    process = start_wait(cli, "--group", "g")
    wait_for(lambda: counts_of(cli).get("processing") == 1 and counts_of(cli).get("completed") == 1, "the second runs")
    assert process.poll() is None

    gate.touch()

    code, said = end_of(process)
    assert code == 0
    assert "group g: 2 completed" in said


def test_a_group_that_is_not_over_in_time_gives_4(cli: Cli) -> None:
    enqueue_all(cli, ["true", "true"], group="g", delay="1h")

    done = cli.run("wait", "--group", "g", "--timeout", "200ms")

    assert done.returncode == 4
    assert "2 jobs of group g not over in time: 2 scheduled\n  see: queuectl status --group g\n" in done.stderr


def test_a_group_nobody_knows_gives_3_with_the_nearest(cli: Cli) -> None:
    cli.enqueue("--group", "nightly", "true")

    for words in (("wait",), ("status",), ("cancel",), ("retry",), ("retry", "--dry-run")):
        done = cli.run(*words, "--group", "nightl")
        assert done.returncode == 3
        assert done.stderr == "queuectl: no group 'nightl'; did you mean 'nightly'?\n  the newest are: nightly\n"


def test_a_group_all_of_whose_jobs_are_deleted_meanwhile_gives_3(cli: Cli) -> None:
    cli.enqueue("--group", "g", "--hold", "true")
    process = start_wait(cli, "--group", "g")
    assert process.stderr is not None
    assert "waits for being released" in process.stderr.readline()

    cli.ok("delete", "1")

    code, said = end_of(process)
    assert (code, "no job of group g is left" in said) == (3, True)


def test_any_returns_with_the_first_of_a_group_that_ended(cli: Cli) -> None:
    cli.enqueue("--group", "g", "--delay", "1h", "true")
    process = start_wait(cli, "--group", "g", "--any")
    cli.enqueue("--group", "g", "true")
    cli.drain()

    assert end_of(process)[0] == 0


def test_a_job_cannot_wait_for_its_own_group(cli: Cli) -> None:
    job_id = cli.enqueue("--group", "g", "--max-retries", "0", f"{QUOTED} wait --group g")

    cli.drain()

    assert cli.job(job_id)["exit_code"] == 2
    assert f"job {job_id} is of group g and cannot wait for it" in cli.ok("logs", job_id)


def test_an_interrupt_says_that_the_group_goes_on_and_leaves_with_130(cli: Cli) -> None:
    cli.enqueue("--group", "g", "--hold", "true")
    process = start_wait(cli, "--group", "g")
    assert process.stderr is not None
    process.stderr.readline()  # that it is held: from now on it waits

    process.send_signal(signal.SIGINT)

    code, said = end_of(process)
    assert (code, said) == (130, "group g goes on; wait for it again with: queuectl wait --group g\n")


def test_further_filters_mean_the_jobs_they_find_now_and_acts_by_them_need_a_yes(cli: Cli) -> None:
    cli.enqueue("--group", "g", "--tag", "a", "true")
    cli.enqueue("--group", "g", "--delay", "1h", "true")
    cli.drain()

    assert cli.run("wait", "--group", "g", "--tag", "a").returncode == 0
    refused = cli.run("cancel", "--group", "g", "--state", "scheduled")
    assert (refused.returncode, "add --yes" in refused.stderr) == (2, True)
    assert cli.ok("cancel", "--group", "g", "--state", "scheduled", "--yes") == "1 cancelled\n"


def test_the_end_of_a_wait_is_one_object_with_counts_and_failures(cli: Cli) -> None:
    enqueue_all(cli, ["true", *["exit 3"] * 4], group="g", max_retries=0)
    cli.drain()

    done = cli.run("wait", "--group", "g", "--json")

    assert done.returncode == 1
    shape = json.loads(done.stdout)
    assert (shape["group"], shape["total"], shape["ended"]) == ("g", 5, 5)
    assert (shape["jobs"]["completed"], shape["jobs"]["dead"]) == (1, 4)
    assert shape["failures"] == [{"state": "dead", "error": "exit code 3", "count": 4, "ids": ["2", "3", "4"]}]


def test_cancel_and_retry_of_a_named_group_ask_nobody(cli: Cli) -> None:
    enqueue_all(cli, ["true"] * 3, group="g")
    cli.enqueue("--group", "other", "true")

    assert cli.ok("cancel", "--group", "g") == "3 cancelled\n"
    assert counts_of(cli, "other") == {"pending": 1}
    assert cli.ok("retry", "--group", "g", "--dry-run").startswith("3 would be retried\n")
    assert counts_of(cli) == {"cancelled": 3}
    assert cli.ok("retry", "--group", "g") == "3 retried: 3 cancelled\n"
    assert cli.json("retry", "--group", "g") == [{"count": 0, "passed_by": {}, "dry_run": False}]


def test_a_group_is_retried_by_state_or_as_a_whole_but_not_with_dependents(cli: Cli) -> None:
    cli.enqueue("--group", "g", "true")

    done = cli.run("retry", "--group", "g", "--with-dependents")

    assert done.returncode == 2
    assert "--with-dependents is for jobs" in done.stderr


@pytest.mark.parametrize("most, total, dead", [("5", 20, 6), ("10%", 30, 4)])
def test_beyond_max_failures_the_rest_is_cancelled_running_ones_too(cli: Cli, most: str, total: int, dead: int) -> None:
    slow = cli.enqueue("--group", "g", "--max-failures", most, "--priority", "9", "sleep 600")
    enqueue_all(cli, ["exit 1"] * (total - 1), group="g", max_retries=0)
    cli.ok("worker", "start", "-d", "-n", "2")

    done = cli.run("wait", "--group", "g")

    assert done.returncode == 1
    assert counts_of(cli) == {"dead": dead, "cancelled": total - dead}
    assert cli.job(slow)["cause"] == "cancelled while running"
    text = cli.ok("status", "--group", "g")
    assert f"Failures:     {dead} dead; at most {dead - 1} may be" in text
    assert "to let it go on: queuectl retry --group g" in text

    refused = cli.run("enqueue", "--group", "g", "true")
    assert refused.returncode == 6
    assert f"group 'g' was stopped: more than {most} of its jobs failed" in refused.stderr
    assert "queuectl retry --group g" in refused.stderr
    again = cli.run("retry", "--group", "g")
    assert again.stdout == f"{total} retried: {total - dead} cancelled, {dead} dead\n"
    assert "group g was stopped, and goes on now" in again.stderr


def test_the_hook_runs_when_all_have_ended_and_again_after_a_retry(cli: Cli, tmp_path: Path) -> None:
    told = tmp_path / "told"
    hook = f"echo $QUEUECTL_GROUP $QUEUECTL_GROUP_COMPLETED $QUEUECTL_GROUP_DEAD $QUEUECTL_GROUP_CANCELLED >>{told}"
    cli.enqueue("--group", "g", "--on-group-done", hook, "--max-retries", "0", "test -e mended")
    enqueue_all(cli, ["true"] * 4, group="g")
    cli.ok("worker", "start", "-d", "-n", "2")
    assert cli.run("wait", "--group", "g").returncode == 1
    wait_for(lambda: len(lines_of(told)) == 1, "the hook ran")

    (cli.folder / "mended").touch()
    cli.ok("retry", "--group", "g")

    assert cli.run("wait", "--group", "g").returncode == 0
    wait_for(lambda: len(lines_of(told)) == 2, "the hook ran again")
    assert lines_of(told) == ["g 4 1 0", "g 5 0 0"]
    assert f"When done:    {hook[:40]}" in cli.ok("status", "--group", "g")


def test_status_tells_how_far_a_group_is_and_what_failed(cli: Cli) -> None:
    enqueue_all(cli, ["true", "exit 3"], group="g", max_retries=0, max_failures="50%", on_group_done="echo over")
    cli.drain("--queue", "default")
    enqueue_all(cli, ["true"] * 2, group="g", delay="1h")

    text = cli.ok("status", "--group", "g")
    [shape] = cli.json("status", "--group", "g")

    lines = text.splitlines()
    assert lines[:2] == ["Group:        g", "Jobs:         2 scheduled, 1 completed, 1 dead"]
    assert lines[2].startswith("Progress:     2 of 4 ended (50 %), ")
    assert lines[2].endswith(" left")
    assert lines[3] == "Failures:     1 dead; at most 2 may be (50% of 4 jobs)"
    assert lines[4].startswith("When done:    echo over")
    assert lines[-1] == "2: dead, exit code 3; see: queuectl logs 2"
    assert (shape["may_fail"], shape["max_failures"], shape["stopped_at"]) == (2, "50%", None)


def test_status_of_everything_names_the_groups_that_are_under_way(cli: Cli) -> None:
    cli.enqueue("--group", "over", "true")
    cli.drain()
    assert "under way" not in cli.ok("status")
    for name in ("a", "b", "c", "d", "e", "f"):
        cli.enqueue("--group", name, "--delay", "1h", "true")

    assert "groups under way: f, e, d, c, b; see: queuectl status --groups\n" in cli.ok("status")
    assert cli.json("status")[0]["groups"] == ["f", "e", "d", "c", "b"]
    for name in ("a", "b", "c", "d", "e"):
        cli.ok("cancel", "--group", name)
    assert "\ngroup under way: f; see: queuectl status --group f\n" in cli.ok("status")


def test_a_watched_group_is_an_object_per_change(cli: Cli) -> None:
    cli.enqueue("--group", "g", "--hold", "true")
    process = subprocess.Popen(
        [PROGRAM, "status", "--group", "g", "--watch", "--json"], env=cli.environ, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    first = json.loads(process.stdout.readline())

    cli.ok("cancel", "--group", "g")
    second = json.loads(process.stdout.readline())
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=100)

    assert (first["jobs"]["blocked"], second["jobs"]["cancelled"]) == (1, 1)
    assert process.returncode == 0


@on_sqlite
def test_a_thousand_jobs_that_were_cancelled_are_retried(cli: Cli) -> None:
    enqueue_all(cli, ["exit 1", *["true"] * 2500], group="g", max_retries=0, max_failures=0, on_group_done="echo over")
    cli.drain("--queue", "default")
    assert counts_of(cli) == {"dead": 1, "cancelled": 2500}

    assert cli.ok("retry", "--group", "g") == "2,501 retried: 2,500 cancelled, 1 dead\n"
    assert counts_of(cli) == {"pending": 2501}


def test_groups_are_listed_with_how_far_each_is(cli: Cli) -> None:
    assert (cli.ok("status", "--groups"), cli.json("status", "--groups")) == ("", [])
    enqueue_all(cli, ["true", "exit 1"], group="old", max_retries=0)
    enqueue_all(cli, ["exit 1", "true"], group="shut", max_retries=0, max_failures=0)
    cli.drain()
    enqueue_all(cli, ["true"], group="new")

    headers, *rows = cli.ok("status", "--groups").splitlines()

    assert headers.split() == ["GROUP", "JOBS", "COMPLETED", "FAILED", "IS", "ADDED"]
    assert sorted(row.rsplit(maxsplit=2)[0].split(maxsplit=4) for row in rows) == [
        ["new", "1", "0", "0", "under way"],
        ["old", "2", "1", "1", "over"],
        ["shut", "2", "0", "2", "stopped"],
    ]
    assert {group["group"] for group in cli.json("status", "--groups")} == {"new", "old", "shut"}
    for words in (("--group", "old"), ("--watch",)):
        assert cli.run("status", "--groups", *words).returncode == 2


def test_a_retry_that_cannot_bring_a_job_back_names_the_one_that_has_to_go_first(cli: Cli) -> None:
    cli.enqueue("--id", "r1", "--max-retries", "0", "exit 1")
    cli.enqueue("--group", "g", "--after", "r1", "true")
    cli.drain()

    done = cli.run("retry", "--group", "g")

    assert done.stdout == "0 retried\n"
    assert "1 cancelled stays so: job 2 was to run after job r1, which is dead" in done.stderr
    assert "queuectl retry r1" in done.stderr


def test_a_cancel_of_a_group_says_how_many_are_still_being_stopped(cli: Cli) -> None:
    gone = cli.folder / "gone"
    stubborn = f"trap '' TERM; until test -e {gone}; do sleep 0.05; done"
    enqueue_all(cli, [stubborn, *["true"] * 3], group="g")
    cli.ok("worker", "start", "-d")
    wait_for(lambda: counts_of(cli).get("processing") == 1, "the first runs")

    said = cli.ok("cancel", "--group", "g")
    gone.touch()

    assert said == "3 cancelled; 1 is with its worker, which stops it unless it has ended by then\n"
