"""queuectl worker: starting in the foreground and in the background, stopping, listing."""

import json
import os
import signal

import pytest

from tests.program import Cli, wait_for


def test_workers_in_the_foreground_say_so_and_stop_when_told(cli: Cli) -> None:
    process = cli.start("worker", "start", "--count", "2")
    assert process.stderr is not None
    words = "2 workers running in the foreground; Ctrl-C stops when the jobs end"
    said = next((line for line in process.stderr if words in line), "it ended without a word of it")

    assert cli.ok("worker", "stop") == "2 workers stopped\n"

    process.communicate(timeout=60)
    assert process.returncode == 0
    assert words in said
    assert cli.json("worker", "list") == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_lets_the_running_job_end_and_takes_no_more(local: Cli, number: signal.Signals) -> None:
    local.enqueue("touch begun; until [ -e go ]; do sleep 0.02; done")
    local.enqueue("true")
    process = local.start("worker", "start")
    wait_for((local.folder / "begun").exists, "the first job")

    process.send_signal(number)
    assert process.stderr is not None
    assert any("stopping when the running jobs end" in line for line in iter(process.stderr.readline, ""))
    (local.folder / "go").touch()

    process.communicate(timeout=60)
    assert process.returncode == 0
    assert (local.job("1")["state"], local.job("2")["state"]) == ("completed", "pending")


def test_workers_in_the_background_outlive_the_command_that_started_them(cli: Cli) -> None:
    done = cli.run("worker", "start", "-d", "-n", "2")

    assert done.returncode == 0
    assert "2 workers running in the background" in done.stdout
    assert "queuectl worker stop" in done.stderr
    workers = cli.json("worker", "list")
    assert len(workers) == 2
    for worker in workers:
        os.kill(int(str(worker["pid"])), 0)


def test_a_worker_of_one_queue_leaves_the_others_alone(cli: Cli) -> None:
    cli.enqueue("--id", "mine", "--queue", "mail", "true")
    cli.enqueue("--id", "other", "true")

    cli.drain("--queue", "mail")

    assert (cli.job("mine")["state"], cli.job("other")["state"]) == ("completed", "pending")


def test_a_worker_runs_as_many_commands_at_once_as_it_has_slots(local: Cli) -> None:
    # Each waits for the other, so both end only when both run at once.
    local.enqueue("touch a; until [ -e b ]; do sleep 0.02; done")
    local.enqueue("touch b; until [ -e a ]; do sleep 0.02; done")

    local.drain("-j", "2")

    assert [job["state"] for job in local.json("list")] == ["completed", "completed"]


def test_the_number_of_slots_comes_from_the_settings_when_it_is_not_given(local: Cli) -> None:
    local.ok("config", "set", "max_concurrent_jobs", "3")

    local.ok("worker", "start", "-d")

    assert local.json("worker", "list")[0]["slots"] == 3


def test_options_before_the_verb_count_as_much_as_behind_it(local: Cli) -> None:
    local.ok("worker", "-n", "2", "-d", "--queue", "mail", "start")

    workers = json.loads("[" + ",".join(local.ok("worker", "--json", "list").splitlines()) + "]")

    assert [worker["queues"] for worker in workers] == [["mail"], ["mail"]]


def test_without_a_verb_workers_are_listed_and_none_is_started(local: Cli) -> None:
    plain, with_options = local.run("worker"), local.run("worker", "-n", "2")

    assert (plain.returncode, "no worker is running" in plain.stderr) == (0, True)
    assert (with_options.returncode, "queuectl worker start" in with_options.stderr) == (2, True)


def test_stopping_now_hands_the_running_job_back_uncharged(cli: Cli) -> None:
    cli.enqueue("sleep 60")
    cli.ok("worker", "start", "-d")
    cli.wait_for_state("1", "processing")

    cli.ok("worker", "stop", "--now")

    job = cli.job("1")
    assert (job["state"], job["attempts"]) == ("pending", 0)


def test_stopping_waits_no_longer_than_asked_and_then_exits_with_4(local: Cli) -> None:
    local.enqueue("sleep 60")
    local.ok("worker", "start", "-d")
    local.wait_for_state("1", "processing")

    done = local.run("worker", "stop", "--timeout", "200ms")

    assert done.returncode == 4
    assert "1 worker still alive" in done.stderr
    assert "queuectl worker stop --now" in done.stderr


def test_stopping_says_which_job_it_waits_for_and_nothing_of_kill(local: Cli) -> None:
    gate = local.folder / "gate"
    local.enqueue("--id", "slow", f"until test -e {gate}; do sleep 0.05; done")
    local.ok("worker", "start", "-d")
    local.wait_for_state("slow", "processing")

    done = local.run("worker", "stop", "--timeout", "7s")
    gate.touch()

    first = done.stderr.splitlines()[0]
    assert first == "waiting for job slow to end; stop it with: queuectl worker stop --now"
    assert "kill" not in done.stderr


def test_stopping_when_nothing_runs_is_no_error(local: Cli) -> None:
    assert local.ok("worker", "stop") == "no worker is running\n"


def test_a_list_without_workers_says_how_to_start_one(local: Cli) -> None:
    done = local.run("worker", "list")

    assert (done.returncode, done.stdout) == (0, "")
    assert "queuectl worker start -d" in done.stderr


def test_ended_workers_and_supervisors_are_listed_on_request(local: Cli) -> None:
    local.drain()

    header, *rows = local.ok("worker", "list", "--all").splitlines()

    assert header.split()[:3] == ["WORKER", "KIND", "STATE"]
    assert sorted(row.split()[1] for row in rows) == ["supervisor", "worker"]
    assert {row.split()[2] for row in rows} == {"ended"}


def test_log_lines_for_machines_name_job_and_run(local: Cli) -> None:
    local.enqueue("--id", "job1", "true")

    done = local.run("worker", "start", "--until-idle", "--log-format", "json")

    lines = [json.loads(line) for line in done.stderr.splitlines()]
    assert any(line.get("job") == "job1" and line.get("run") == 1 for line in lines)
