"""`queuectl run`: the command's own output and exit code, through the queue."""

import json
import signal
import subprocess

import pytest

from tests.cli.terminal import on_terminal
from tests.program import PROGRAM, QUOTED, Cli, wait_for
from tests.scenarios.working import on_sqlite, wait_for_line, workers_of


def start_run(cli: Cli, *words: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [PROGRAM, "run", *words], env=cli.environ, cwd=cli.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True,
    )  # fmt: skip


def test_without_a_worker_it_runs_the_one_job_itself(cli: Cli) -> None:
    cli.enqueue("--id", "other", "--priority", "9", "true")

    done = cli.run("run", "echo out; echo err >&2; exit 5")

    assert (done.returncode, done.stdout) == (5, "out\n")
    assert done.stderr == "err\njob 2 is dead: exit code 5; see: queuectl show 2\n"
    assert cli.job("other")["state"] == "pending"
    assert workers_of(cli) == []


def test_a_worker_that_serves_its_queue_takes_it(cli: Cli) -> None:
    cli.ok("worker", "start", "-d", "--queue", "mail")
    [worker] = workers_of(cli)

    cli.ok("run", "--queue", "mail", "true")
    cli.ok("run", "true")

    first, second = (cli.job(number)["runs"] for number in "12")
    assert isinstance(first, list)
    assert isinstance(second, list)
    assert first[0]["worker"] == worker["id"] != second[0]["worker"]


def test_output_comes_while_the_command_runs(cli: Cli) -> None:
    process = start_run(cli, "echo first; until test -e go; do sleep 0.02; done; echo second")
    assert process.stdout is not None

    assert process.stdout.readline() == "first\n"
    (cli.folder / "go").touch()

    assert process.communicate(timeout=60) == ("second\n", "")
    assert process.returncode == 0


@pytest.mark.parametrize(
    "words, code",
    [
        (("exit 42",), 42),
        (("kill -TERM $$",), 143),
        (("--timeout", "200ms", "sleep 60"), 124),
        (("--", "no-such-program"), 127),
        (("--cwd", "/no/such/folder", "true"), 126),
        (("--", "true"), 0),
        (("--priority", "high", "true"), 125),
        (("--no-such-flag", "true"), 125),
        ((), 125),
    ],
)
@on_sqlite
def test_the_exit_code_is_the_commands_own(cli: Cli, words: tuple[str, ...], code: int) -> None:
    assert cli.run("run", *words).returncode == code


@on_sqlite
def test_a_store_that_cannot_be_used_is_125(cli: Cli) -> None:
    done = cli.run("run", "true", "--db", "sqlite:///no/such/folder/x.db")

    assert done.returncode == 125
    assert "no folder /no/such/folder" in done.stderr


def test_it_is_tried_once_unless_told_otherwise(cli: Cli) -> None:
    line = 'echo "attempt $QUEUECTL_ATTEMPT"; test "$QUEUECTL_ATTEMPT" = 2'

    once = cli.run("run", line)
    twice = cli.run("run", "--max-retries", "1", "--backoff-base", "0.1", line)

    assert (once.returncode, once.stdout) == (1, "attempt 1\n")
    assert (twice.returncode, twice.stdout) == (0, "attempt 1\nattempt 2\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupt_cancels_the_job_and_shows_its_last_words(cli: Cli, number: int) -> None:
    process = start_run(cli, "trap 'echo bye; exit 0' TERM; echo go >go; while :; do sleep 0.02; done")
    wait_for_line(cli.folder / "go", "go")

    process.send_signal(number)
    out, said = process.communicate(timeout=60)

    assert (process.returncode, out) == (130, "bye\n"), said
    assert "job 1 is cancelled" in said
    assert cli.job("1")["state"] == "cancelled"
    wait_for(lambda: not workers_of(cli), "its worker leaves")


def test_an_interrupt_cancels_a_job_that_waits(cli: Cli) -> None:
    process = start_run(cli, "--delay", "1h", "true")
    wait_for(lambda: cli.json("list") or None, "the job is there")

    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)

    assert process.returncode == 130
    assert cli.job("1")["state"] == "cancelled"


def test_a_job_that_somebody_else_cancels_is_a_failure_of_the_queue(cli: Cli) -> None:
    process = start_run(cli, "--delay", "1h", "true")
    wait_for(lambda: cli.json("list") or None, "the job is there")

    cli.ok("cancel", "1")
    _, said = process.communicate(timeout=60)

    assert process.returncode == 125
    assert "job 1 is cancelled: cancelled before it ran" in said


def test_a_job_that_is_deleted_is_a_failure_of_the_queue(cli: Cli) -> None:
    process = start_run(cli, "--delay", "1h", "true")
    wait_for(lambda: cli.json("list") or None, "the job is there")

    cli.ok("delete", "1")
    _, said = process.communicate(timeout=60)

    assert process.returncode == 125
    assert "job 1 was deleted" in said


def test_whoever_closes_its_output_cancels_it(cli: Cli) -> None:
    process = start_run(cli, "echo first; sleep 0.5; yes")
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.readline()

    process.stdout.close()
    process.wait(timeout=60)
    process.stderr.close()

    assert process.returncode == 141
    cli.wait_for_state("1", "cancelled")


def test_json_has_the_job_the_code_and_what_it_printed(cli: Cli) -> None:
    done = cli.run("run", "--json", "echo out; echo err >&2; exit 3")

    shape = json.loads(done.stdout)
    assert done.returncode == shape["code"] == shape["exit_code"] == 3
    assert (shape["state"], shape["printed"]) == ("dead", {"stdout": "out\n", "stderr": "err\n"})


@on_sqlite
def test_bytes_pass_as_they_are(cli: Cli) -> None:
    done = subprocess.run(
        [PROGRAM, "run", r"printf '\377\000\033]0;x\007'"], env=cli.environ, capture_output=True, timeout=60
    )

    assert (done.returncode, done.stdout) == (0, b"\xff\x00\x1b]0;x\x07")


@on_sqlite
def test_on_a_terminal_both_streams_keep_their_order_and_nothing_steers_it(cli: Cli) -> None:
    line = r"echo one; echo two >&2; echo three; printf '\033[31mred\033[0m \033]0;title\007\n'"

    seen = on_terminal(cli, "run", line)

    assert seen.code == 0
    assert "one\ntwo\nthree\n" in seen.screen
    assert "\x1b[31mred" in seen.screen
    assert "\x1b]0;title" not in seen.screen


def test_a_run_inside_a_job_reaches_the_same_queue(cli: Cli) -> None:
    inner = f"'{PROGRAM}' run 'echo inner'"

    done = cli.run("run", inner)

    assert (done.returncode, done.stdout) == (0, "inner\n")
    assert len(cli.json("list")) == 2


def test_a_worker_that_is_stopped_before_it_took_the_job_is_stood_in_for(cli: Cli) -> None:
    cli.ok("worker", "start", "-d")
    cli.enqueue("--id", "busy", "sleep 600")
    cli.wait_for_state("busy", "processing")
    process = start_run(cli, "echo done")
    wait_for(lambda: len(cli.json("list")) == 2 or None, "the job is there")

    cli.ok("worker", "stop", "--now")

    assert process.communicate(timeout=60) == ("done\n", "")
    assert process.returncode == 0


def test_a_stop_of_all_workers_between_two_attempts_does_not_leave_it_waiting(cli: Cli) -> None:
    line = 'echo "$QUEUECTL_ATTEMPT"; test "$QUEUECTL_ATTEMPT" = 2'
    process = start_run(cli, "--max-retries", "1", "--backoff-strategy", "fixed", "--backoff-delay", "2s", line)
    wait_for(lambda: cli.json("list", "--state", "failed") or None, "the first attempt failed")

    cli.ok("worker", "stop")

    assert process.communicate(timeout=60)[0] == "1\n2\n"
    assert process.returncode == 0


def test_inside_a_job_it_does_not_wait_for_the_worker_that_waits_for_it(cli: Cli) -> None:
    cli.enqueue("--id", "outer", "--max-retries", "0", f"{QUOTED} run 'echo inner'")

    cli.drain("-j", "1")

    assert cli.job("outer")["state"] == "completed"
    assert cli.ok("logs", "outer") == "inner\n"


def test_a_second_interrupt_leaves_at_once(cli: Cli) -> None:
    cli.ok("config", "set", "kill_grace_seconds", "3")
    process = start_run(cli, "trap '' TERM; echo go >go; sleep 600")
    wait_for_line(cli.folder / "go", "go")

    process.send_signal(signal.SIGINT)
    cli.wait_for_state("1", "processing")
    wait_for(lambda: cli.job("1")["cancel_requested"] or None, "it is being cancelled")
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)

    assert process.returncode == 130
    assert "not waiting for job 1 to end" in said
    assert cli.job("1")["state"] == "processing"  # its worker sees to the rest, after the grace
    cli.wait_for_state("1", "cancelled")


@on_sqlite
def test_what_it_waits_for_is_said(cli: Cli) -> None:
    cli.ok("queue", "pause", "default")
    process = start_run(cli, "true")
    assert process.stderr is not None

    said = process.stderr.readline()
    cli.ok("queue", "resume", "default")
    process.communicate(timeout=60)

    assert said == "job 1 waits for its queue: default is paused; to change it: queuectl queue resume default\n"
    assert process.returncode == 0
