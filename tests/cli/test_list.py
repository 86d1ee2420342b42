"""queuectl list: order, filters, limits and forms."""

import pytest

from tests.program import Cli

STATES = ["pending", "scheduled", "blocked", "processing", "completed", "failed", "dead", "cancelled"]


def test_an_empty_list_is_empty_on_stdout_and_says_what_to_do_on_stderr(local: Cli) -> None:
    done = local.run("list")

    assert (done.returncode, done.stdout) == (0, "")
    assert "queuectl enqueue 'echo hello'" in done.stderr


def test_jobs_come_newest_first(cli: Cli) -> None:
    cli.ok("enqueue", "--from", "-", stdin='{"id": "a", "command": "true", "priority": 9}\ntrue\ntrue\n')

    assert cli.ok("list", "-q") == "3\n2\na\n"
    assert [job["id"] for job in cli.json("ls")] == ["3", "2", "a"]


def test_in_a_pipe_a_list_is_plain_aligned_text(local: Cli) -> None:
    local.enqueue("--id", "job1", "--queue", "mail", "--priority", "5", "echo one")

    header, row = local.ok("list").splitlines()

    assert header.split() == ["ID", "STATE", "QUEUE", "PRIORITY", "ATTEMPTS", "ADDED", "COMMAND"]
    assert row.split()[:5] == ["job1", "pending", "mail", "5", "0/3"]
    assert row.endswith("ago  echo one")
    assert header.index("COMMAND") == row.index("echo one")


def test_filters_choose_by_state_queue_and_tag_together(cli: Cli) -> None:
    lines = [
        '{"id": "a", "command": "true", "queue": "mail", "tags": ["x"]}',
        '{"id": "b", "command": "true", "queue": "mail", "tags": ["xy"]}',
        '{"id": "c", "command": "true", "tags": ["x", "z"]}',
        '{"id": "d", "command": "true", "delay": "1h", "tags": ["x_z"]}',
        '{"id": "e", "command": "true"}',
    ]
    cli.ok("enqueue", "--from", "-", stdin="\n".join(lines))
    cli.ok("cancel", "e")

    assert cli.ok("list", "-q", "--tag", "x").split() == ["c", "a"]
    assert cli.ok("list", "-q", "--tag", "x_z").split() == ["d"]
    assert cli.ok("list", "-q", "--queue", "mail").split() == ["b", "a"]
    assert cli.ok("list", "-q", "--queue", "mail", "--tag", "x").split() == ["a"]
    assert cli.ok("list", "-q", "--state", "scheduled,cancelled").split() == ["e", "d"]
    assert cli.ok("list", "-q", "--state", "Pending", "--tag", "x").split() == ["c", "a"]


@pytest.mark.parametrize("state", STATES)
def test_every_state_can_be_asked_for(local: Cli, state: str) -> None:
    done = local.run("list", "--state", state)

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "no jobs match\n")


def test_a_limit_keeps_the_newest_and_says_that_there_are_more(local: Cli) -> None:
    local.ok("enqueue", "--from", "-", stdin="true\n" * 60)

    assert local.ok("list", "--limit", "3", "-q").split() == ["60", "59", "58"]
    assert len(local.ok("list", "-q").split()) == 50
    done = local.run("list")
    assert "the newest 50 are shown; see more with --limit 500" in done.stderr
    assert local.run("list", "--limit", "60").stderr == ""


def test_ids_alone_can_be_handed_to_another_command(local: Cli) -> None:
    local.ok("enqueue", "--from", "-", stdin="true\ntrue\n")

    local.ok("cancel", *local.ok("list", "--state", "pending", "-q").split())

    assert local.ok("list", "-q", "--state", "cancelled").split() == ["2", "1"]


def test_a_long_command_is_cut_with_a_mark_in_the_table_and_whole_in_json(local: Cli) -> None:
    line = "echo " + "x" * 1000
    local.enqueue(line)

    row = local.ok("list").splitlines()[1]

    assert row.endswith("x…")
    assert len(row) < 300
    assert local.json("list")[0]["command"] == line
