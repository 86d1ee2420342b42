"""queuectl queue: pausing keeps jobs from running, resuming lets them."""

from tests.program import Cli


def test_a_paused_queue_keeps_its_jobs_and_a_resumed_one_lets_them_run(cli: Cli) -> None:
    cli.enqueue("--id", "kept", "--queue", "mail", "true")
    cli.enqueue("--id", "free", "true")

    assert cli.ok("queue", "pause", "mail") == "mail is paused\n"
    cli.drain()
    assert (cli.job("kept")["state"], cli.job("free")["state"]) == ("pending", "completed")

    assert cli.ok("queue", "resume", "mail") == "mail is open\n"
    cli.drain()
    assert cli.job("kept")["state"] == "completed"


def test_a_worker_that_is_running_already_takes_up_a_resumed_queue(cli: Cli) -> None:
    cli.ok("queue", "pause", "default")
    cli.enqueue("--id", "kept", "true")
    cli.ok("worker", "start", "-d")

    cli.ok("queue", "resume", "default")

    cli.wait_for_state("kept", "completed")


def test_pausing_or_resuming_twice_says_so_and_is_no_error(local: Cli) -> None:
    local.ok("queue", "pause", "mail")

    assert local.ok("queue", "pause", "mail") == "mail was paused already\n"
    local.ok("queue", "resume", "mail")
    assert local.ok("queue", "resume", "mail") == "mail was open already\n"


def test_queues_are_listed_with_their_state_and_what_is_in_them(local: Cli) -> None:
    local.ok("enqueue", "--queue", "mail", "--from", "-", stdin="true\ntrue\n")
    local.enqueue("true")
    local.ok("queue", "pause", "mail")

    header, *rows = local.ok("queue", "list").splitlines()

    assert header.split() == ["QUEUE", "STATE", "PENDING", "PROCESSING", "DEAD"]
    assert rows[0].split() == ["default", "open", "1", "0", "0"]
    assert rows[1].split()[:2] == ["mail", "paused"]
    assert rows[1].split()[-3:] == ["2", "0", "0"]


def test_a_queue_may_be_paused_before_its_first_job(local: Cli) -> None:
    local.ok("queue", "pause", "future")

    local.enqueue("--queue", "future", "true")
    local.drain()

    assert local.job("1")["state"] == "pending"
