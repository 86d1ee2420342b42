"""queuectl cancel, retry and delete: what they do to jobs in each state, all or none."""

import pytest

from tests.program import Cli


def test_a_waiting_job_is_cancelled_at_once(cli: Cli) -> None:
    cli.enqueue("--id", "job1", "echo ran >> out")

    assert cli.ok("cancel", "job1") == "job1: cancelled\n"

    cli.drain()
    assert cli.job("job1")["state"] == "cancelled"
    assert not (cli.folder / "out").exists()


def test_a_running_job_is_cancelled_when_its_worker_has_stopped_it(cli: Cli) -> None:
    cli.enqueue("--id", "job1", "sleep 60")
    cli.ok("worker", "start", "-d")
    cli.wait_for_state("job1", "processing")

    out = cli.ok("kill", "job1")

    assert out == "job1: its worker is stopping it\n"
    assert cli.wait_for_state("job1", "cancelled")["error"] == "cancelled while running"


def test_a_finished_job_cannot_be_cancelled(local: Cli) -> None:
    local.enqueue("true")
    local.drain()

    done = local.run("cancel", "1")

    assert (done.returncode, done.stdout) == (6, "")
    assert "job 1 is completed already" in done.stderr


@pytest.mark.parametrize("verb", ["cancel", "retry", "delete"])
def test_one_id_that_does_not_exist_keeps_the_others_untouched(local: Cli, verb: str) -> None:
    local.enqueue("--delay", "1h", "true")
    before = local.job("1")

    done = local.run(verb, "1", "nope")

    assert (done.returncode, done.stdout) == (3, "")
    assert local.job("1") == before


def test_a_scheduled_job_that_is_retried_runs_now(cli: Cli) -> None:
    cli.enqueue("--delay", "1h", "true")

    assert cli.ok("retry", "1") == "1: runs now\n"

    cli.drain()
    assert cli.job("1")["state"] == "completed"


def test_a_failed_job_that_is_retried_runs_now_and_keeps_its_attempts(cli: Cli) -> None:
    cli.enqueue("--backoff-base", "200", "--max-retries", "1", "exit 1")
    cli.ok("worker", "start", "-d")
    cli.wait_for_state("1", "failed")

    cli.ok("retry", "1")

    assert cli.wait_for_state("1", "dead")["attempts"] == 2


@pytest.mark.parametrize("command", ["true", "exit 1"])
def test_a_finished_job_that_is_retried_gets_a_fresh_life_and_keeps_its_history(local: Cli, command: str) -> None:
    local.enqueue("--max-retries", "0", command)
    local.drain()

    assert local.ok("retry", "last") == "1: has a fresh life\n"
    assert local.job("1")["attempts"] == 0
    local.drain()

    job = local.job("1")
    runs = job["runs"]
    assert isinstance(runs, list)
    assert ([run["run"] for run in runs], [run["attempt"] for run in runs]) == ([1, 2], [1, 1])
    assert job["attempts"] == 1


def test_a_pending_job_is_ready_already(local: Cli) -> None:
    local.enqueue("true")

    assert local.ok("retry", "1") == "1: is ready already\n"


@pytest.mark.parametrize("verb", ["retry", "delete"])
def test_a_running_job_is_refused(cli: Cli, verb: str) -> None:
    cli.enqueue("sleep 60")
    cli.ok("worker", "start", "-d")
    cli.wait_for_state("1", "processing")

    done = cli.run(verb, "1")

    assert (done.returncode, done.stdout) == (6, "")
    assert "job 1 is running" in done.stderr
    assert "queuectl cancel 1" in done.stderr
    assert cli.job("1")["state"] == "processing"


def test_a_deleted_job_is_gone_with_its_history(cli: Cli) -> None:
    cli.enqueue("--id", "job1", "true")
    cli.drain()

    assert cli.ok("rm", "job1") == "job1: deleted\n"

    assert cli.run("show", "job1").returncode == 3
    assert cli.enqueue("--id", "job1", "true") == "job1"
    assert cli.job("job1")["runs"] == []


def test_several_jobs_are_acted_on_in_the_order_given_and_each_once(local: Cli) -> None:
    local.ok("enqueue", "--from", "-", stdin="true\ntrue\n")

    assert local.ok("delete", "2", "1", "2") == "2: deleted\n1: deleted\n"


def test_a_job_named_twice_in_two_ways_is_acted_on_once(local: Cli) -> None:
    local.enqueue("--id", "job1", "true")

    done = local.run("delete", "job1", "1", "last")

    assert (done.returncode, done.stdout) == (0, "job1: deleted\n")
