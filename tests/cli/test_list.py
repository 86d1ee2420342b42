"""queuectl list: order, filters, limits and forms."""

import re

import pytest

from queuectl.cli.columns import COLUMNS
from tests.cli.terminal import on_terminal
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
    assert re.search(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d  echo one$", row)
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
    footer = "50 of 60 matching jobs shown, the newest; see more with --limit 60, or older ones with: --before 11\n"
    assert done.stderr == footer
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


MANY = """\
{"id": "a", "command": "rsync -a /x /y", "tags": ["x", "y"], "priority": 1}
{"id": "b", "command": "RSYNC", "tags": ["x"], "priority": 9}
{"id": "c", "argv": ["rsync", "50%_done"], "tags": ["y"], "priority": 9}
{"id": "d", "command": "exit 7", "max_retries": 0}
"""


def test_jobs_are_found_by_what_their_command_and_error_hold_letter_by_letter(cli: Cli) -> None:
    cli.ok("enqueue", "--max-retries", "0", "--from", "-", stdin=MANY)

    assert cli.ok("list", "-q", "--command", "rsync").split() == ["c", "a"]
    assert cli.ok("list", "-q", "--command", "50%_d").split() == ["c"]
    assert cli.ok("list", "-q", "--command", "%").split() == ["c"]
    cli.drain()
    assert cli.ok("list", "-q", "--error", "code 7").split() == ["d"]
    assert cli.ok("list", "-q", "--error", "nothing").split() == []


def test_of_several_tags_a_job_must_have_all(cli: Cli) -> None:
    cli.ok("enqueue", "--from", "-", stdin=MANY)

    assert cli.ok("list", "-q", "--tag", "x").split() == ["b", "a"]
    assert cli.ok("list", "-q", "--tag", "x", "--tag", "y").split() == ["a"]


def test_jobs_are_found_by_when_they_were_added(cli: Cli) -> None:
    cli.enqueue("true")

    assert cli.ok("list", "-q", "--since", "1h").split() == ["1"]
    assert cli.ok("list", "-q", "--since", "2099-01-01").split() == []
    assert cli.ok("list", "-q", "--until", "1h").split() == []
    assert cli.ok("list", "-q", "--until", "2099-01-01", "--since", "yesterday").split() == ["1"]
    assert cli.run("list", "--since", "soon").returncode == 2


def test_jobs_are_named_by_ids_ranges_and_the_newest(cli: Cli) -> None:
    cli.ok("enqueue", "--from", "-", stdin=MANY + "true\n" * 6)

    assert cli.ok("list", "-q", "2-3", "7-99", "a", "last").split() == ["10", "9", "8", "7", "c", "b", "a"]
    assert cli.ok("list", "-q", "--id", "2-3", "--id", "6").split() == ["6", "c", "b"]
    assert cli.ok("list", "-q", "1-4", "--tag", "x").split() == ["b", "a"]
    assert cli.ok("list", "-q", "1-9", "--limit", "2").split() == ["9", "8"]
    assert cli.ok("list", "-q", "1-4", "--sort", "priority").split() == ["b", "c", "a", "d"]
    for words, code in ((["nope"], 3), (["50-60"], 3), (["9-3"], 2)):
        assert cli.run("list", *words).returncode == code


def test_older_jobs_are_paged_through_by_number(cli: Cli) -> None:
    cli.ok("enqueue", "--from", "-", stdin="true\n" * 7)

    assert cli.ok("list", "-q", "--limit", "3", "--before", "6").split() == ["5", "4", "3"]
    assert cli.ok("list", "-q", "2-6", "--before", "5").split() == ["4", "3", "2"]
    assert cli.ok("list", "-q", "--before", "1") == ""
    done = cli.run("list", "--limit", "2", "--state", "pending", "--before", "last")
    assert "2 of 6 matching jobs shown" in done.stderr
    assert "--before 5" in done.stderr


def test_jobs_can_be_listed_in_other_orders(cli: Cli) -> None:
    cli.ok("enqueue", "--from", "-", stdin=MANY)

    assert cli.ok("list", "-q", "--sort", "priority").split() == ["b", "c", "a", "d"]
    assert cli.ok("list", "-q", "--sort", "priority", "-r").split() == ["d", "a", "c", "b"]
    assert cli.ok("list", "-q", "-r", "--limit", "2").split() == ["a", "b"]
    cli.ok("cancel", "b")
    cli.ok("cancel", "a")
    assert cli.ok("list", "-q", "--sort", "finished").split() == ["a", "b", "d", "c"]
    assert cli.ok("list", "-q", "--sort", "finished", "--reverse").split()[:2] == ["b", "a"]
    assert "--before" not in cli.run("list", "--sort", "priority", "--limit", "1").stderr
    assert "did you mean 'finished'" in cli.run("list", "--sort", "finish").stderr


def test_jobs_that_have_started_come_first_by_start(local: Cli) -> None:
    local.ok("enqueue", "--from", "-", stdin="true\ntrue\n")
    local.drain()
    local.enqueue("true")

    assert local.ok("list", "-q", "--sort", "started").split() == ["2", "1", "3"]
    assert local.ok("list", "-q", "--sort", "started", "-r").split() == ["1", "2", "3"]


def test_every_column_can_be_asked_for(local: Cli) -> None:
    local.ok("enqueue", "--id", "job1", "--tag", "t", "--timeout", "90s", "--queue", "mail", "--cwd", "/usr", "exit 3")
    shown = {"tags": "t", "timeout": "1m30s", "queue": "mail", "folder": "/usr", "command": "exit 3", "number": "1"}

    for name in COLUMNS:
        header, row = local.ok("list", "--columns", f"state,{name}").splitlines()
        assert header.split() == list(dict.fromkeys(["STATE", name.upper()]))
        if name in shown:
            assert row.split(maxsplit=1)[1] == shown[name]


def test_all_columns_can_be_asked_for_at_once_and_a_wrong_one_gets_the_nearest(local: Cli) -> None:
    local.enqueue("exit 3")

    assert local.ok("list", "--columns", "all").splitlines()[0].lower().split() == list(COLUMNS)
    done = local.run("list", "--columns", "id,stat")
    assert (done.returncode, done.stdout) == (2, "")
    assert "unknown column 'stat'; did you mean 'state'?" in done.stderr
    assert "unknown column 'parent'\n  known: id, number" in local.run("list", "--columns", "parent").stderr
    assert local.run("list", "--columns", "id", "--json").returncode == 2
    assert local.run("list", "--columns", ",").returncode == 2


def test_columns_of_a_job_that_ran_say_how_it_went(local: Cli) -> None:
    local.enqueue("--max-retries", "0", "exit 3")
    local.drain()

    row = local.ok("list", "--columns", "exit,error,attempts,losses,runs,took,finished").splitlines()[1]

    assert re.match(r" +3  exit code 3 +1/0 +0 +1 +(?:0\.\d\ds|\d+ms) +\d{4}-", row)


def test_times_are_relative_on_a_terminal(local: Cli) -> None:
    local.enqueue("true")

    for words in (("list",), ("show", "1"), ("audit",)):
        assert re.search(r"\b\d+s ago|just now", on_terminal(local, *words).screen)
    for words in (("list",), ("show", "1"), ("audit",)):
        assert " ago" not in local.ok(*words)


def test_states_have_the_names_people_say(local: Cli) -> None:
    local.enqueue("--id", "kept", "--hold", "true")
    local.enqueue("--id", "waiting", "true")

    assert local.ok("list", "-q", "--state", "held") == "kept\n"
    assert local.ok("list", "-q", "--state", "running,pending") == "waiting\n"
    assert local.ok("list", "-q", "--state", "running") == ""


def test_those_that_a_person_holds_are_told_from_those_that_wait_for_a_limit(local: Cli) -> None:
    local.enqueue("--id", "kept", "--hold", "true")
    local.enqueue("--mutex", "db", "true")
    local.enqueue("--id", "parked", "--mutex", "db", "true")

    assert local.ok("list", "-q", "--state", "held") == "kept\n"
    assert local.ok("list", "-q", "--state", "parked") == "parked\n"
    assert local.ok("list", "-q", "--state", "held,blocked") == "parked\nkept\n"
    local.ok("cancel", "--state", "held", "--yes")
    assert local.ok("list", "-q", "--state", "cancelled") == "kept\n"
    assert "--state held" in local.ok("audit")


def test_columns_tell_what_a_job_asks_for_and_which_limit_it_waits_for(local: Cli) -> None:
    local.ok("limit", "set", "api", "1")
    local.enqueue("--mutex", "db", "true")
    local.enqueue("--mutex", "db", "--deadline", "1h", "true")
    local.enqueue("--limit", "api", "--needs", "gpu", "--use", "mem=4K", "true")

    _, needy, parked, plain = local.ok("list", "--columns", "limits,mutex,parked_for,deadline,needs").splitlines()

    assert plain.split() == ["-", "db", "-", "-", "-"]
    assert re.match(r"- +db +mutex db +\d{4}-\d\d-\d\d .* -$", parked)
    assert re.match(r"api +- .* gpu, mem=4KiB$", needy)


def test_columns_tell_what_a_job_belongs_to_and_runs_after(cli: Cli) -> None:
    for name in ("a", "b", "c", "d"):
        cli.enqueue("--id", name, "true")
    cli.enqueue("--group", "g", "--unique", "sync", "--after", "a,any:b", "true")
    cli.enqueue("--after", "a,b,c,fail:d", "true")
    cli.ok("schedule", "add", "nightly", "@daily", "true")
    cli.ok("schedule", "run", "nightly")

    _, of_schedule, later, first, *rest = cli.ok("list", "--columns", "id,group,unique,schedule,after").splitlines()

    assert first.split() == ["5", "g", "sync", "-", "a,any:b"]
    assert later.split(maxsplit=4) == ["6", "-", "-", "-", "a,b,c and 1 more"]
    assert of_schedule.split() == ["7", "-", "-", "nightly", "-"]
    assert rest[0].split() == ["d", "-", "-", "-", "-"]


def test_a_parent_that_is_gone_is_shown_by_its_number(cli: Cli) -> None:
    cli.enqueue("--id", "a", "true")
    cli.enqueue("--after", "any:a", "true")
    cli.ok("worker", "start", "--until-idle")
    cli.ok("delete", "a")

    assert cli.ok("list", "2", "--columns", "after").splitlines()[1] == "any:1"
