"""`queuectl wait`: exit codes, the digest, and who is waited for."""

import subprocess

import pytest

from tests.program import PROGRAM, QUOTED, Cli, wait_for
from tests.scenarios.working import enqueue_all, on_sqlite


def start_wait(cli: Cli, *words: str) -> "subprocess.Popen[str]":
    """Start a wait and return once it waits: what it says on the way is in the pipe."""
    return subprocess.Popen(
        [PROGRAM, "wait", *words], env=cli.environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def end_of(process: "subprocess.Popen[str]") -> tuple[int, str]:
    _, said = process.communicate(timeout=60)
    return process.returncode, said


def test_jobs_that_all_complete_give_0_and_silence(cli: Cli) -> None:
    ids = [cli.enqueue("true"), cli.enqueue("sleep 0.2")]
    cli.ok("worker", "start", "-d")

    done = cli.run("wait", *ids)

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_dead_and_a_cancelled_job_give_1_and_a_digest_that_names_each(cli: Cli) -> None:
    cli.enqueue("--id", "bad", "--max-retries", "0", "echo why; exit 7")
    cli.enqueue("--id", "unwanted", "--delay", "1h", "true")
    cli.enqueue("--id", "good", "true")
    cli.ok("cancel", "unwanted")
    cli.drain()

    done = cli.run("wait", "bad", "unwanted", "good")

    assert done.returncode == 1
    assert "bad: dead, exit code 7; see: queuectl logs bad\n" in done.stderr
    assert "unwanted: cancelled before it ran; see: queuectl show unwanted\n" in done.stderr
    assert "2 jobs did not complete" in done.stderr
    assert "good" not in done.stderr


def test_a_wait_goes_on_until_the_last_has_ended_though_one_is_dead(cli: Cli) -> None:
    cli.enqueue("--id", "bad", "--max-retries", "0", "false")
    cli.drain()
    cli.enqueue("--id", "slow", "true")
    process = start_wait(cli, "bad", "slow")
    assert "job slow waits for a worker" in (process.stderr.readline() if process.stderr else "")

    cli.drain()

    assert end_of(process)[0] == 1
    assert cli.job("slow")["state"] == "completed"


def test_a_job_that_does_not_end_in_time_gives_4_and_says_where_it_stands(cli: Cli) -> None:
    cli.enqueue("--id", "later", "--delay", "1h", "true")

    done = cli.run("wait", "later", "--timeout", "200ms")

    assert done.returncode == 4
    assert "1 job not over in time: later is scheduled" in done.stderr


def test_a_job_that_is_deleted_meanwhile_gives_3(cli: Cli) -> None:
    cli.enqueue("--id", "gone", "true")
    process = start_wait(cli, "gone")
    assert process.stderr is not None
    process.stderr.readline()  # it warns that no worker runs, and then waits

    cli.ok("delete", "gone")

    code, said = end_of(process)
    assert code == 3
    assert "1 job deleted meanwhile: 1" in said


def test_any_returns_with_the_first_that_ended(cli: Cli) -> None:
    cli.enqueue("--id", "never", "--delay", "1h", "true")
    cli.enqueue("--id", "soon", "true")
    cli.drain()

    assert cli.run("wait", "--any", "never", "soon").returncode == 0


def test_any_gives_1_when_the_first_that_ended_is_dead(cli: Cli) -> None:
    cli.enqueue("--id", "never", "--delay", "1h", "true")
    cli.enqueue("--id", "bad", "--max-retries", "0", "false")
    cli.drain()

    assert cli.run("wait", "--any", "never", "bad").returncode == 1


def test_a_retry_is_waited_for(cli: Cli) -> None:
    cli.enqueue("--id", "shaky", "--backoff-base", "0.1", 'test "$QUEUECTL_ATTEMPT" = 2')
    cli.ok("worker", "start", "-d")

    assert cli.run("wait", "shaky").returncode == 0
    assert cli.job("shaky")["attempts"] == 2


def test_a_tag_means_the_jobs_that_have_it_now(cli: Cli) -> None:
    cli.enqueue("--tag", "nightly", "--tag", "a", "true")
    cli.enqueue("--tag", "nightly", "--max-retries", "0", "--id", "bad", "false")
    cli.enqueue("--tag", "other", "--delay", "1h", "true")
    cli.drain()

    done = cli.run("wait", "--tag", "nightly")

    assert done.returncode == 1
    assert "bad: dead" in done.stderr


def test_a_queue_means_the_jobs_that_are_in_it_now(cli: Cli) -> None:
    cli.enqueue("--queue", "mail", "true")
    cli.enqueue("--delay", "1h", "true")
    cli.drain()

    assert cli.run("wait", "--queue", "mail").returncode == 0


def test_each_job_is_an_object_a_line_as_it_stands_at_the_end(cli: Cli) -> None:
    ids = [cli.enqueue("true"), cli.enqueue("true")]
    cli.drain()

    waited = cli.json("wait", *ids)

    assert [(job["id"], job["state"]) for job in waited] == [(job_id, "completed") for job_id in ids]


def test_what_a_person_must_change_first_is_said(cli: Cli) -> None:
    cli.enqueue("--id", "held", "--hold", "true")
    cli.enqueue("--id", "shut", "--queue", "mail", "true")
    cli.ok("queue", "pause", "mail")
    cli.ok("worker", "start", "-d")

    done = cli.run("wait", "held", "shut", "--timeout", "100ms")

    assert done.returncode == 4
    assert "job held waits for being released" in done.stderr
    assert "to change it: queuectl release held" in done.stderr
    assert "see why with: queuectl why held\n" in done.stderr
    assert "to change it: queuectl queue resume mail" in done.stderr


@on_sqlite
@pytest.mark.parametrize(
    "words, code, message",
    [
        ((), 2, "which jobs?"),
        (("--any",), 2, "which jobs?"),
        (("nobody",), 3, "no job 'nobody'"),
        (("--tag", "none"), 3, "no job matches"),
        (("last", "--tag", "a"), 3, "no job matches"),
        (("last", "--timeout", "soon"), 2, "bad duration 'soon'"),
    ],
)
def test_what_cannot_be_waited_for_is_refused(cli: Cli, words: tuple[str, ...], code: int, message: str) -> None:
    cli.enqueue("true")

    done = cli.run("wait", *words)

    assert (done.returncode, message in done.stderr) == (code, True), done.stderr


@on_sqlite
def test_a_job_cannot_wait_for_itself(cli: Cli) -> None:
    cli.enqueue("--id", "me", "--max-retries", "0", f"{QUOTED} wait me")

    cli.drain()

    assert cli.job("me")["exit_code"] == 2
    assert "job me cannot wait for itself" in cli.ok("logs", "me")


def test_an_interrupt_says_that_many_jobs_go_on_and_names_them_by_their_range(cli: Cli) -> None:
    enqueue_all(cli, ["true"] * 8)
    process = start_wait(cli, "1-8")
    assert process.stderr is not None
    process.stderr.readline()  # that no worker runs: from now on it waits

    process.send_signal(2)

    assert end_of(process) == (130, "the jobs go on; wait again with: queuectl wait 1-8\n")


def test_a_wait_survives_an_interrupt_with_130(cli: Cli) -> None:
    cli.enqueue("true")
    process = start_wait(cli, "last")
    assert process.stderr is not None
    process.stderr.readline()

    process.send_signal(2)

    assert end_of(process) == (130, "the job goes on; wait again with: queuectl wait 1\n")
    wait_for(lambda: process.poll() is not None, "it is over")
