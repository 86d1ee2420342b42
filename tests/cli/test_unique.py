"""Unique keys and `enqueue --wait` as people type them: what is printed, which exit code, who is left alone."""

import json
import signal
import subprocess

import pytest

from tests.program import PROGRAM, Cli, wait_for
from tests.scenarios.working import workers_of


def start(cli: Cli, *words: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [PROGRAM, *words], env=cli.environ, cwd=cli.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def printed(process: "subprocess.Popen[str]") -> str:
    """Return the first line a command prints."""
    assert process.stdout is not None
    return process.stdout.readline().rstrip("\n")


def test_the_second_of_a_key_gets_the_id_of_the_first(cli: Cli) -> None:
    assert cli.ok("enqueue", "--unique", "sync 7", "--id", "first", "true") == "first\n"

    done = cli.run("enqueue", "--unique", "sync 7", "true")

    assert (done.returncode, done.stdout) == (0, "first\n")
    assert done.stderr == "job first has the key 'sync 7'; it stands for this one\n"
    assert [job["id"] for job in cli.json("list")] == ["first"]


def test_a_skipped_job_prints_no_id_and_leaves_with_0(cli: Cli) -> None:
    cli.enqueue("--unique", "k", "true")

    done = cli.run("enqueue", "--unique", "k", "--on-conflict", "skip", "true")

    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == "job 1 has the key 'k'; this one is skipped\n"


def test_a_conflict_is_refused_where_that_is_asked_for(cli: Cli) -> None:
    cli.enqueue("--unique", "k", "true")

    done = cli.run("enqueue", "--unique", "k", "--on-conflict", "error", "true")

    assert (done.returncode, done.stdout) == (6, "")
    assert "job 1 has the key 'k'" in done.stderr
    assert "queuectl show 1; nothing was added" in done.stderr


def test_a_job_that_waits_gives_way_to_the_one_that_replaces_it(cli: Cli) -> None:
    cli.enqueue("--unique", "k", "echo old >> order")

    assert cli.ok("enqueue", "--unique", "k", "--on-conflict", "replace", "echo new >> order") == "2\n"
    cli.drain()

    assert (cli.job("1")["state"], cli.job("2")["state"]) == ("cancelled", "completed")
    assert (cli.folder / "order").read_text() == "new\n"


def test_a_running_job_is_stopped_before_the_one_that_replaces_it_begins(cli: Cli) -> None:
    script = "echo on >> order; trap 'sleep 0.3; echo off >> order; exit 1' TERM; sleep 60 & wait"
    cli.enqueue("--unique", "k", script)
    cli.ok("worker", "start", "-d", "-n", "2")
    wait_for(lambda: (cli.folder / "order").exists() or None, "the first to run")

    cli.ok("enqueue", "--unique", "k", "--on-conflict", "replace", "echo next >> order")

    cli.wait_for_state("2", "completed")
    assert cli.job("1")["state"] == "cancelled"
    assert (cli.folder / "order").read_text().split() == ["on", "off", "next"]


def test_a_window_keeps_others_away_after_it_completed(local: Cli) -> None:
    local.enqueue("--unique", "k", "--unique-for", "1h", "true")
    local.enqueue("--unique", "short", "--unique-for", "1ms", "true")
    local.drain()

    [kept] = local.json("enqueue", "--unique", "k", "true")
    [free] = local.json("enqueue", "--unique", "short", "true")

    assert kept == {"id": "1", "result": "attached"}
    assert free == {"id": "3", "result": "added"}


def test_of_a_file_each_line_says_what_became_of_it(local: Cli) -> None:
    lines = [
        {"command": "true", "unique": "a", "id": "first"},
        {"command": "true", "unique": "a"},
        {"command": "true", "unique": "b", "on_conflict": "skip"},
        {"command": "true", "unique": "b", "on_conflict": "skip"},
        {"command": "true"},
    ]
    path = local.folder / "jobs"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))

    said = local.json("enqueue", "--from", str(path))

    assert [(line["id"], line["result"]) for line in said] == [
        ("first", "added"), ("first", "attached"), ("2", "added"), ("2", "skipped"), ("3", "added"),
    ]  # fmt: skip


# Staying.


@pytest.mark.parametrize(
    "words, code",
    [
        (["true"], 0),
        (["exit 42"], 42),
        (["kill -TERM $$"], 143),
        (["kill -KILL $$"], 137),
        (["--timeout", "100ms", "sleep 60"], 124),
        (["--", "/nowhere/at/all"], 127),
        (["--success-codes", "3", "exit 3"], 3),
    ],
)
def test_who_waits_for_the_job_it_adds_leaves_with_the_exit_code_of_the_command(
    cli: Cli, words: list[str], code: int
) -> None:
    cli.ok("worker", "start", "-d")

    done = cli.run("enqueue", "--wait", "--max-retries", "0", *words)

    assert (done.returncode, done.stdout) == (code, "1\n")
    assert ("is dead" in done.stderr) == (cli.job("1")["state"] == "dead")


def test_a_job_that_is_tried_again_is_waited_for_until_it_is_over(cli: Cli) -> None:
    cli.ok("worker", "start", "-d")
    script = "test -e once || { touch once; exit 9; }"

    done = cli.run("enqueue", "--wait", "--backoff-strategy", "fixed", "--backoff-delay", "0.1", script)

    assert (done.returncode, done.stdout, done.stderr) == (0, "1\n", "")


def test_a_job_that_is_cancelled_meanwhile_gives_125(cli: Cli) -> None:
    process = start(cli, "enqueue", "--wait", "true")
    assert printed(process) == "1"

    cli.ok("cancel", "1")

    _, said = process.communicate(timeout=60)
    assert process.returncode == 125
    assert "job 1 is cancelled: cancelled before it ran; see: queuectl show 1" in said


def test_of_several_jobs_one_that_fails_gives_1_and_is_named(cli: Cli) -> None:
    cli.ok("worker", "start", "-d")
    (cli.folder / "jobs").write_text("true\nexit 5\n")

    done = cli.run("enqueue", "--wait", "--max-retries", "0", "--from", "jobs")

    assert (done.returncode, done.stdout) == (1, "1\n2\n")
    assert "2: dead, exit code 5; see: queuectl logs 2" in done.stderr


def test_of_several_jobs_that_complete_nothing_is_said(cli: Cli) -> None:
    cli.ok("worker", "start", "-d")
    (cli.folder / "jobs").write_text("true\ntrue\n")

    done = cli.run("enqueue", "--wait", "--from", "jobs")

    assert (done.returncode, done.stdout, done.stderr) == (0, "1\n2\n", "")


def test_who_attaches_and_waits_leaves_with_the_exit_code_of_the_first(cli: Cli) -> None:
    script = "until test -e go; do sleep 0.02; done; exit 7"
    cli.enqueue("--unique", "k", "--max-retries", "0", script)
    cli.ok("worker", "start", "-d")
    cli.wait_for_state("1", "processing")

    waiting = [start(cli, "enqueue", "--wait", "--unique", "k", "echo never") for _ in range(3)]
    assert [printed(process) for process in waiting] == ["1"] * 3
    (cli.folder / "go").touch()

    assert [(process.wait(60), process.communicate()[0]) for process in waiting] == [(7, "")] * 3
    assert [job["id"] for job in cli.json("list")] == ["1"]


def test_who_attaches_to_a_job_that_completed_within_its_window_leaves_with_its_code_at_once(local: Cli) -> None:
    local.enqueue("--unique", "k", "--unique-for", "1h", "--success-codes", "3", "exit 3")
    local.drain()

    done = local.run("enqueue", "--wait", "--unique", "k", "true")

    assert (done.returncode, done.stdout) == (3, "1\n")


def test_a_skipped_job_is_not_waited_for(local: Cli) -> None:
    local.enqueue("--unique", "k", "--hold", "true")

    done = local.run("enqueue", "--wait", "--unique", "k", "--on-conflict", "skip", "true")

    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize("words", [[], ["--unique", "k"]], ids=["own", "attached"])
def test_an_interrupt_leaves_the_job_alone(cli: Cli, words: list[str]) -> None:
    if words:
        cli.enqueue(*words, "--hold", "true")
    process = start(cli, "enqueue", "--wait", *words, "true")
    assert printed(process) == "1"

    process.send_signal(signal.SIGINT)

    process.communicate(timeout=60)
    assert process.returncode == 130
    assert cli.job("1")["state"] in ("pending", "blocked")


# Run.


def test_a_run_that_attaches_shows_the_output_of_the_first_and_leaves_with_its_code(cli: Cli) -> None:
    cli.enqueue("--unique", "k", "--max-retries", "0", "echo first; until test -e go; do sleep 0.02; done; exit 7")
    cli.ok("worker", "start", "-d")
    cli.wait_for_state("1", "processing")

    process = start(cli, "run", "--unique", "k", "echo second")
    assert printed(process) == "first"
    (cli.folder / "go").touch()

    rest, said = process.communicate(timeout=60)
    assert (process.returncode, rest) == (7, "")
    assert "job 1 has the key 'k'; it stands for this one" in said


def test_an_interrupt_of_a_run_that_attached_leaves_the_first_alone(cli: Cli) -> None:
    cli.enqueue("--unique", "k", "echo first; until test -e go; do sleep 0.02; done")
    cli.ok("worker", "start", "-d")
    cli.wait_for_state("1", "processing")
    process = start(cli, "run", "--unique", "k", "echo second")
    assert printed(process) == "first"

    process.send_signal(signal.SIGINT)

    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "not waiting for job 1 to end" in said
    (cli.folder / "go").touch()
    cli.wait_for_state("1", "completed")


def test_a_run_that_attaches_to_a_job_nobody_runs_runs_it(cli: Cli) -> None:
    cli.enqueue("--unique", "k", "echo first")

    done = cli.run("run", "--unique", "k", "echo second")

    assert (done.returncode, done.stdout) == (0, "first\n")
    assert workers_of(cli) == []


def test_a_run_that_is_skipped_leaves_with_0_and_runs_nothing(cli: Cli) -> None:
    cli.enqueue("--unique", "k", "echo first")

    done = cli.run("run", "--unique", "k", "--on-conflict", "skip", "echo second")

    assert (done.returncode, done.stdout) == (0, "")
    assert cli.job("1")["state"] == "pending"
