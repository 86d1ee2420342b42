"""queuectl status, and bare queuectl."""

import pytest

from tests.program import Cli


@pytest.mark.parametrize("words", [(), ("status",)], ids=["bare", "status"])
def test_an_empty_home_gets_three_commands_to_try(local: Cli, words: tuple[str, ...]) -> None:
    out = local.ok(*words)

    tries = [line.strip() for line in out.splitlines() if line.startswith("  queuectl ")]
    assert len(tries) == 3
    assert [line.split()[1] for line in tries] == ["enqueue", "worker", "logs"]


def test_the_three_commands_to_try_work_as_they_stand(local: Cli) -> None:
    local.ok("enqueue", "echo hello from $QUEUECTL_JOB_ID")
    local.ok("worker", "start", "--until-idle")

    assert local.ok("logs", "last") == "hello from 1\n"


def test_bare_queuectl_is_status(local: Cli) -> None:
    local.enqueue("true")

    assert local.ok() == local.ok("status")
    assert local.ok("--json") == local.ok("status", "--json")


def test_status_counts_by_queue_and_state_and_in_all(cli: Cli) -> None:
    cli.ok("enqueue", "--from", "-", stdin='true\n{"command": "exit 1", "max_retries": 0}\n')
    cli.drain()
    cli.ok("enqueue", "--queue", "mail", "--from", "-", stdin='true\ntrue\n{"command": "true", "delay": "1h"}\n')
    cli.ok("queue", "pause", "mail")

    header, *rows = [line.split() for line in cli.ok("status").splitlines()]

    assert header == ["QUEUE", "PENDING", "SCHEDULED", "PROCESSING", "COMPLETED", "FAILED", "DEAD"]
    assert rows[0] == ["default", "0", "0", "0", "1", "0", "1"]
    assert rows[1] == ["mail", "(paused)", "2", "1", "0", "0", "0", "0"]
    assert rows[2] == ["(all)", "2", "1", "0", "1", "0", "1"]
    [status] = cli.json("status")
    jobs = status["jobs"]
    assert isinstance(jobs, dict)
    assert (jobs["pending"], jobs["scheduled"], jobs["completed"], jobs["dead"]) == (2, 1, 1, 1)


def test_status_says_that_no_worker_runs_and_how_to_start_one(local: Cli) -> None:
    local.enqueue("true")

    assert "no worker is running; start one: queuectl worker start -d" in local.ok("status")


def test_status_advises_the_worker_that_would_run_what_waits_where_no_other_would(local: Cli) -> None:
    local.enqueue("--queue", "render", "--needs", "gpu", "true")

    text = local.ok("status")

    assert "no worker is running\n" in text
    assert text.endswith("has: gpu; start one: queuectl worker start -d --queue render --label gpu\n")


def test_status_lists_the_living_workers_and_what_they_run(cli: Cli) -> None:
    cli.enqueue("--id", "busy", "sleep 60")
    cli.ok("worker", "start", "-d", "-n", "2")
    cli.wait_for_state("busy", "processing")

    text = cli.ok("status")

    rows = text.split("\n\n")[1].splitlines()
    assert rows[0].split() == ["WORKER", "PID", "HOST", "QUEUES", "SLOTS", "JOBS", "HEARTBEAT"]
    assert len(rows) == 3
    assert sum(" busy " in row for row in rows) == 1
