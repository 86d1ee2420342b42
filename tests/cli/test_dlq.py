"""queuectl dlq: the dead letter queue."""

import re
from typing import Any

import pytest

from queuectl.actions.connect import connect
from queuectl.model.states import State
from tests.program import Cli
from tests.store.rows import add_job


@pytest.fixture
def with_dead(local: Cli) -> Cli:
    """Three dead jobs, one of them of another queue, and a completed one."""
    return _bury(local)


@pytest.fixture
def each_with_dead(cli: Cli) -> Cli:
    """The same on each database."""
    return _bury(cli)


def _bury(cli: Cli) -> Cli:
    lines = [
        '{"id": "fail1", "command": "exit 1"}',
        '{"id": "fail2", "command": "exit 2", "tags": ["t"]}',
        '{"id": "fail3", "command": "exit 3", "queue": "mail"}',
        '{"id": "fine", "command": "true"}',
    ]
    cli.ok("enqueue", "--max-retries", "0", "--from", "-", stdin="\n".join(lines))
    cli.drain()
    return cli


def test_an_empty_dlq_says_so(local: Cli) -> None:
    done = local.run("dlq", "list")

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "the dead letter queue is empty\n")


def test_dead_jobs_are_listed_with_command_attempts_and_error(with_dead: Cli) -> None:
    text = with_dead.ok("dlq", "list")

    assert re.findall(r"(?m)^\S+$", text) == ["fail3", "fail2", "fail1"]
    assert re.search(r"fail3\n  Command: +exit 3\n  Attempts: +1/0\n  Error: +exit code 3\n  Died: +\d{4}-", text)


def test_the_list_can_be_narrowed(with_dead: Cli) -> None:
    assert [job["id"] for job in with_dead.json("dlq", "list", "--queue", "mail")] == ["fail3"]
    assert [job["id"] for job in with_dead.json("dlq", "list", "--tag", "t")] == ["fail2"]
    assert [job["id"] for job in with_dead.json("dlq", "list", "--limit", "1")] == ["fail3"]
    assert [job["id"] for job in with_dead.json("dlq", "--queue", "mail")] == ["fail3"]


def test_one_dead_job_can_be_shown_and_a_living_one_is_refused(with_dead: Cli) -> None:
    assert "exit code 1" in with_dead.ok("dlq", "show", "fail1")
    done = with_dead.run("dlq", "show", "fine")
    assert done.returncode == 6
    assert "job fine is not in the DLQ; it is completed" in done.stderr


def test_a_revived_job_has_all_its_retries_again_and_keeps_its_history(with_dead: Cli) -> None:
    assert with_dead.ok("dlq", "retry", "fail1") == "fail1: has a fresh life\n"

    job = with_dead.job("fail1")
    assert (job["state"], job["attempts"], job["error"]) == ("pending", 0, None)
    runs = job["runs"]
    assert isinstance(runs, list)
    assert len(runs) == 1


@pytest.mark.parametrize("verb", ["retry", "purge"])
def test_a_job_that_is_not_dead_is_refused_and_none_of_the_others_touched(with_dead: Cli, verb: str) -> None:
    done = with_dead.run("dlq", verb, "fail1", "fine")

    assert (done.returncode, done.stdout) == (6, "")
    assert "job fine is not in the DLQ" in done.stderr
    assert with_dead.job("fail1")["state"] == "dead"


def test_all_dead_jobs_that_match_are_revived_together(each_with_dead: Cli) -> None:
    assert each_with_dead.ok("dlq", "retry", "--all", "--queue", "mail") == "1 job given a fresh life\n"
    assert each_with_dead.ok("dlq", "retry", "--all", "--yes") == "2 jobs given a fresh life\n"

    assert each_with_dead.ok("list", "-q", "--state", "pending").split() == ["fail3", "fail2", "fail1"]


def test_reviving_several_at_once_needs_a_yes_in_a_pipe(with_dead: Cli) -> None:
    done = with_dead.run("dlq", "retry", "--all")

    assert (done.returncode, done.stdout) == (2, "")
    assert "this gives 3 dead jobs a fresh life" in done.stderr
    assert "--yes" in done.stderr
    assert len(with_dead.json("dlq", "list")) == 3


def test_purging_all_needs_a_yes_in_a_pipe(with_dead: Cli) -> None:
    done = with_dead.run("dlq", "purge")

    assert done.returncode == 2
    assert "this removes 3 dead jobs for good" in done.stderr
    assert "--yes" in done.stderr
    assert len(with_dead.json("dlq", "list")) == 3


def test_purged_jobs_are_gone_and_others_stay(each_with_dead: Cli) -> None:
    assert each_with_dead.ok("dlq", "purge", "fail1") == "fail1: purged\n"
    assert each_with_dead.ok("dlq", "purge", "--yes", "--tag", "t") == "1 job purged\n"

    assert each_with_dead.ok("list", "-q").split() == ["fine", "fail3"]


def test_runs_that_were_lost_with_their_worker_are_counted(with_dead: Cli) -> None:
    assert "Lost:" not in with_dead.ok("dlq", "list")
    database = connect(with_dead.target)
    add_job(database, State.DEAD, given_id="killer", losses=3, error="its worker died 3 times while running it")
    database.close()

    assert re.search(r"killer\n(  .*\n)*  Lost:     3 runs, each with its worker\n", with_dead.ok("dlq", "list"))


def test_the_dead_are_found_by_error_command_and_time(each_with_dead: Cli) -> None:
    assert [job["id"] for job in each_with_dead.json("dlq", "list", "--error", "code 2")] == ["fail2"]
    assert [job["id"] for job in each_with_dead.json("dlq", "list", "--command", "exit 3")] == ["fail3"]
    assert each_with_dead.json("dlq", "list", "--until", "1h") == []
    assert each_with_dead.ok("dlq", "retry", "--all", "--error", "code 1") == "1 job given a fresh life\n"
    assert each_with_dead.run("dlq", "retry", "fail2", "--error", "x").returncode == 2


def test_groups_say_what_jobs_died_of_and_can_be_handed_back(each_with_dead: Cli) -> None:
    each_with_dead.ok("enqueue", "--id", "fail12", "--max-retries", "0", "exit 12")
    each_with_dead.drain()

    groups: Any = each_with_dead.json("dlq", "groups")

    assert {group["error"]: group["samples"] for group in groups} == {
        "exit code 1": ["fail1"],
        "exit code 2": ["fail2"],
        "exit code 3": ["fail3"],
        "exit code 12": ["fail12"],
    }
    assert [group["error"] for group in each_with_dead.json("dlq", "groups", "--error", "exit code 1")] == [
        "exit code 1"
    ]
    assert each_with_dead.json("dlq", "retry", "--error", "exit code 1") == [{"count": 1}]
    assert each_with_dead.job("fail1")["state"] == "pending"
    assert each_with_dead.job("fail12")["state"] == "dead"


def test_groups_are_a_table_with_what_to_type_next(with_dead: Cli) -> None:
    done = with_dead.run("dlq", "groups", "--range", "1h")

    header, first, *_ = done.stdout.splitlines()
    assert header.split() == ["JOBS", "DEATHS", "IN", "1h", "LAST", "QUEUES", "SAMPLE", "ERROR"]
    assert re.match(r" *1  [·▁-█]+  \d{4}-.*  default 1 +fail1 +exit code 1$", first)
    assert "queuectl dlq retry --error 'exit code 1' --canary" in done.stderr


def test_groups_of_an_empty_dlq_say_so(local: Cli) -> None:
    done = local.run("dlq", "groups")

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "the dead letter queue is empty\n")


def test_a_canary_is_one_job_and_the_command_for_the_rest_means_the_others(each_with_dead: Cli) -> None:
    done = each_with_dead.run("dlq", "retry", "--error", "exit code", "--queue", "default", "--canary")

    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("fail2: ")
    assert "then the other 1: queuectl dlq retry --queue default --error 'exit code'" in done.stderr
    assert [each_with_dead.job(name)["state"] for name in ("fail1", "fail2", "fail3")] == ["dead", "pending", "dead"]
    assert each_with_dead.json("dlq", "retry", "--queue", "default", "--error", "exit code") == [{"count": 1}]
    assert [each_with_dead.job(name)["state"] for name in ("fail1", "fail3")] == ["pending", "dead"]


def test_a_canary_in_json_names_the_job_and_how_many_are_left(with_dead: Cli) -> None:
    told: Any
    [told] = with_dead.json("dlq", "retry", "--all", "--canary")

    assert (told["canary"]["id"], told["rest"]) == ("fail3", 2)


@pytest.mark.parametrize(
    "words, code, message",
    [
        (["retry", "--error", "exit code 99", "--canary"], 3, "no dead job matches"),
        (["retry", "fail1", "--canary"], 2, "give either ids or a filter, not both"),
        (["retry", "--canary"], 2, "which jobs?"),
        (["retry", "--error", "", "--canary"], 2, "an empty text"),
        (["groups", "--range", "2h"], 2, "bad range '2h'"),
        (["groups", "fail1"], 2, "fail1"),
    ],
)
def test_bad_questions_about_groups_are_refused(with_dead: Cli, words: list[str], code: int, message: str) -> None:
    done = with_dead.run("dlq", *words)

    assert done.returncode == code
    assert message in done.stderr
    assert with_dead.job("fail1")["state"] == "dead"
