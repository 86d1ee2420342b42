"""queuectl enqueue: every way to hand in a job, every flag, and nothing but the id on stdout."""

import json
import re
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

import pytest

from tests.program import QUOTED, Cli


def test_a_quoted_word_is_a_shell_line_and_stdout_is_its_id_alone(cli: Cli) -> None:
    done = cli.run("enqueue", "echo one | tr a-z A-Z")

    assert (done.returncode, done.stdout, done.stderr) == (0, "1\n", "")
    cli.drain()
    assert cli.ok("logs", "1") == "ONE\n"


def test_words_after_two_dashes_run_literally_without_a_shell(cli: Cli) -> None:
    job_id = cli.enqueue("--", "echo", "a b", "$HOME", "--json", "--")

    cli.drain()

    assert cli.job(job_id)["argv"] == ["echo", "a b", "$HOME", "--json", "--"]
    assert cli.ok("logs", job_id) == "a b $HOME --json --\n"


def test_several_plain_words_are_a_program_and_its_arguments(local: Cli) -> None:
    job_id = local.enqueue("echo", "a  b", "$HOME")

    local.drain()

    assert local.ok("logs", job_id) == "a  b $HOME\n"


def test_one_word_after_two_dashes_is_a_program_and_not_a_shell_line(local: Cli) -> None:
    assert local.job(local.enqueue("--", "true"))["argv"] == ["true"]
    assert local.job(local.enqueue("true"))["argv"] is None


def test_a_json_object_is_a_job_with_its_own_values(cli: Cli) -> None:
    fields = {"id": "job1", "command": "echo hello", "priority": 4, "max_retries": 7, "tags": ["a", "b"]}

    job_id = cli.enqueue(json.dumps(fields))

    assert job_id == "job1"
    assert fields.items() <= cli.job("job1").items()


def test_a_shell_group_is_not_taken_for_json(local: Cli) -> None:
    job_id = local.enqueue("{ echo one; echo two; }")

    local.drain()

    assert local.ok("logs", job_id) == "one\ntwo\n"


def test_flags_win_over_what_the_json_says(local: Cli) -> None:
    local.enqueue("--id", "mine", "--priority", "9", '{"id": "theirs", "priority": 1, "queue": "mail", "command": "x"}')

    job = local.job("mine")

    assert (job["priority"], job["queue"], job["command"]) == (9, "mail", "x")


def test_a_time_given_by_flag_wins_over_a_delay_in_the_json(local: Cli) -> None:
    job_id = local.enqueue("--run-at", "2099-01-01T00:00:00Z", '{"command": "true", "delay": "1h"}')

    assert local.job(job_id)["run_at"] == "2099-01-01T00:00:00.000Z"


def test_a_delay_given_by_flag_wins_over_a_time_in_the_json(local: Cli) -> None:
    job_id = local.enqueue("--delay", "1h", '{"command": "true", "run_at": "2099-01-01T00:00:00Z"}')

    assert _waits_s(local.job(job_id), "created_at") == 3600


def test_a_file_may_mix_shell_lines_and_json_and_its_ids_come_in_order(cli: Cli) -> None:
    file = cli.folder / "jobs"
    file.write_text('echo one\n\n  \n{"id": "two", "command": "echo two", "priority": 5}\r\necho three\n')

    out = cli.ok("enqueue", "--from", "jobs")

    assert out == "1\ntwo\n3\n"
    assert [job["command"] for job in cli.json("list")] == ["echo three", "echo two", "echo one"]


def test_flags_hold_for_every_line_of_a_file_unless_the_line_says_otherwise(local: Cli) -> None:
    lines = 'true\n{"command": "true", "queue": "urgent", "run_at": "2099-01-01T00:00:00Z"}\n'

    local.ok("enqueue", "--from", "-", "--queue", "mail", "--tag", "batch", "--delay", "1h", stdin=lines)

    own, plain = local.json("list")
    assert (plain["queue"], plain["tags"], _waits_s(plain, "created_at")) == ("mail", ["batch"], 3600)
    assert (own["queue"], own["tags"], own["run_at"]) == ("urgent", ["batch"], "2099-01-01T00:00:00.000Z")


def test_an_empty_input_adds_nothing_and_prints_nothing(local: Cli) -> None:
    done = local.run("enqueue", "--from", "-", stdin="\n \n")

    assert (done.returncode, done.stdout) == (0, "")


def test_the_folder_of_the_caller_is_where_the_job_runs(local: Cli) -> None:
    job_id = local.enqueue("pwd")

    local.drain()

    assert local.ok("logs", job_id).strip() == str(local.folder.resolve())


def test_inside_a_job_queuectl_reaches_the_same_queue(cli: Cli) -> None:
    outer = cli.enqueue(f"{QUOTED} enqueue --id inner 'echo from $QUEUECTL_JOB_ID'")

    cli.drain()

    assert cli.ok("logs", outer) == "inner\n"
    assert cli.ok("logs", "inner") == "from inner\n"


# What each flag must leave in `show --json`, whatever the other fields are.
FLAGS: dict[str, tuple[list[str], Mapping[str, object]]] = {
    "--id": (["--id", "job1", "true"], {"id": "job1"}),
    "--command": (["--command", "echo $HOME"], {"command": "echo $HOME", "argv": None}),
    "--queue": (["--queue", "mail", "true"], {"queue": "mail"}),
    "--hold": (["--hold", "true"], {"state": "blocked"}),
    "--split-output": (["--split-output", "true"], {"split_output": True}),
    "--priority": (["--priority", "-7", "true"], {"priority": -7}),
    "--delay": (["--delay", "1h30m", "true"], {"state": "scheduled"}),
    "--run-at": (
        ["--run-at", "2099-12-31T23:59:59Z", "true"],
        {"state": "scheduled", "run_at": "2099-12-31T23:59:59.000Z"},
    ),
    "--max-retries": (["--max-retries", "9", "true"], {"max_retries": 9}),
    "--timeout": (["--timeout", "90s", "true"], {"timeout": 90.0}),
    "--backoff-strategy": (["--backoff-strategy", "linear", "true"], {"backoff": {"backoff_strategy": "linear"}}),
    "--backoff-base": (["--backoff-base", "1.5", "true"], {"backoff": {"backoff_base": 1.5}}),
    "--backoff-max": (["--backoff-max", "5m", "true"], {"backoff": {"max_backoff_seconds": 300.0}}),
    "--backoff-jitter": (["--backoff-jitter", "0.25", "true"], {"backoff": {"backoff_jitter": 0.25}}),
    "--backoff-delay": (["--backoff-delay", "90s", "true"], {"backoff": {"job_retry_delay": 90.0}}),
    "--cwd": (["--cwd", "/usr/../usr", "true"], {"cwd": "/usr"}),
    "--env": (["--env", "A=b=c", "--env", "E=", "true"], {"env": {"A": "b=c", "E": ""}}),
    "--tag": (["--tag", "one", "--tag", "two", "true"], {"tags": ["one", "two"]}),
    "--needs": (["--needs", "linux,gpu", "true"], {"needs": ["gpu", "linux"]}),
    "--use": (["--use", "gpu=1,mem=4G", "true"], {"use": {"gpu": 1, "mem": 4 << 30}}),
    "--mutex": (["--mutex", "db", "--mutex", "disk,net", "true"], {"mutex": ["db", "disk", "net"]}),
    "--deadline": (["--deadline", "2h", "true"], {"deadline": 7200.0}),
    "--retry-on": (
        ["--retry-on", "75,111,timeout,signal", "true"],
        {"policy": {"retry_on": ["75", "111", "timeout", "signal"]}},
    ),
    "--no-retry-on": (["--no-retry-on", "2,126-127", "true"], {"policy": {"no_retry_on": ["2", "126", "127"]}}),
    "--success-codes": (["--success-codes", "3,0", "true"], {"policy": {"success_codes": [0, 3]}}),
    "--snooze-code": (
        ["--snooze-code", "99:5m", "--snooze-code", "98:1s", "true"],
        {"policy": {"snooze_codes": {"99": 300.0, "98": 1.0}}},
    ),
    "--memory": (["--memory", "512M", "true"], {"launch": {"memory": 512 << 20}}),
    "--cpu-seconds": (["--cpu-seconds", "60", "true"], {"launch": {"cpu_seconds": 60}}),
    "--nofile": (["--nofile", "100", "true"], {"launch": {"nofile": 100}}),
    "--file-size": (["--file-size", "1M", "true"], {"launch": {"file_size": 1 << 20}}),
    "--nice": (["--nice", "5", "true"], {"launch": {"nice": 5}}),
    "--umask": (["--umask", "27", "true"], {"launch": {"umask": "027"}}),
    "--shell": (["--shell", "/bin/bash", "true"], {"launch": {"shell": "/bin/bash"}}),
    "--stdin": (["--stdin", "/etc/../etc/hosts", "cat"], {"launch": {"stdin": "/etc/hosts"}}),
    "--secret": (["--secret", "KEY", "--secret", "OTHER", "true"], {"launch": {"secrets": ["KEY", "OTHER"]}}),
    "--at-most": (["--at-most", "thumbs:5", "--at-most", "net:2", "true"], {"at_most": ["net:2", "thumbs:5"]}),
    "--unique": (["--unique", "sync 7", "true"], {"unique": "sync 7"}),
    "--unique-for": (["--unique", "sync 7", "--unique-for", "6h", "true"], {"unique_for": 21600.0}),
    "--group": (["--group", "thumbs", "true"], {"group": "thumbs"}),
}
TESTED_ELSEWHERE = {
    "--from", "--db", "--json", "--help", "--limit", "--env-file", "--wait", "--after",
    "--on-dead-dependency", "--on-conflict", "--max-failures", "--on-group-done",
}  # fmt: skip


def test_a_limit_somebody_made_ends_up_in_the_job(local: Cli) -> None:
    local.ok("limit", "set", "api", "4")

    assert local.job(local.enqueue("--limit", "api", "true"))["limits"] == ["api"]


def test_what_a_job_runs_after_ends_up_in_the_job(local: Cli) -> None:
    local.enqueue("true")

    job = local.job(local.enqueue("--after", "1", "--on-dead-dependency", "keep", "true"))

    assert (job["state"], job["waits_for_jobs"], job["on_dead_dependency"]) == ("blocked", 1, "keep")


def test_what_a_group_is_given_is_refused_without_one(local: Cli) -> None:
    for flag, value in (("--max-failures", "5"), ("--on-group-done", "true"), ("--on-conflict", "skip")):
        done = local.run("enqueue", flag, value, "true")
        assert (done.returncode, "is given without" in done.stderr) == (2, True), flag
    assert local.json("list") == []


def test_a_limit_nobody_made_is_refused_with_the_one_that_was_meant(local: Cli) -> None:
    local.ok("limit", "set", "api", "4")

    done = local.run("enqueue", "--limit", "apii", "true")

    assert done.returncode == 2
    for words in ("no limit 'apii'", "'api'", "limit set apii 4"):
        assert words in done.stderr
    assert local.json("list") == []


@pytest.mark.parametrize("flag", FLAGS)
def test_a_flag_ends_up_in_the_job(local: Cli, flag: str) -> None:
    words, wanted = FLAGS[flag]

    job = local.job(local.enqueue(*words))
    plain = local.job(local.enqueue("true"))

    assert {name: job[name] for name in wanted} == wanted
    assert {name: plain[name] for name in wanted} != wanted, "the test cannot tell whether the flag was read"


def test_no_flag_of_enqueue_is_left_untested(local: Cli) -> None:
    shown = set(re.findall(r"(?m)^  (?:-\w, )?(--[a-z-]+)", local.ok("enqueue", "--help")))
    shown |= set(re.findall(r"(?m)^  -\w, (--[a-z-]+)", local.ok("enqueue", "--help")))

    assert shown == FLAGS.keys() | TESTED_ELSEWHERE


def test_a_delay_counts_from_the_moment_the_job_was_added(cli: Cli) -> None:
    job = cli.job(cli.enqueue("--delay", "1h30m", "true"))

    assert _waits_s(job, "created_at") == 5400


def test_a_time_in_the_past_means_now(local: Cli) -> None:
    assert local.job(local.enqueue("--run-at", "2001-01-01T00:00", "true"))["state"] == "pending"


def test_a_job_runs_with_its_own_variables_in_its_own_folder(cli: Cli) -> None:
    job_id = cli.enqueue("--cwd", "/usr", "--env", "GREETING=good day", 'echo "$GREETING from $PWD"')

    cli.drain()

    assert cli.ok("logs", job_id) == "good day from /usr\n"


def test_a_job_runs_no_longer_than_its_timeout(cli: Cli) -> None:
    job_id = cli.enqueue("--timeout", "200ms", "--max-retries", "0", "sleep 60")

    cli.drain()

    [run] = _runs(cli.job(job_id))
    assert (run["outcome"], run["error"]) == ("timed_out", "timed out after 0.2 s")


def test_a_job_of_a_higher_priority_runs_first(local: Cli) -> None:
    for priority in ("-5", "0", "5"):
        local.enqueue("--priority", priority, f"echo {priority} >> order")

    local.drain()

    assert (local.folder / "order").read_text().split() == ["5", "0", "-5"]


@pytest.mark.parametrize(
    "flags, wait_s",
    [
        (["--backoff-base", "50"], 50),
        (["--backoff-base", "100", "--backoff-max", "70"], 70),
        (["--backoff-strategy", "fixed", "--backoff-delay", "33"], 33),
        (["--backoff-strategy", "linear", "--backoff-base", "44"], 44),
    ],
    ids=["base", "max", "delay", "strategy"],
)
def test_a_failed_run_waits_as_its_own_backoff_says(local: Cli, flags: list[str], wait_s: int) -> None:
    job_id = local.enqueue(*flags, "exit 1")
    local.start("worker", "start")

    job = local.wait_for_state(job_id, "failed")

    assert _waits_s(_runs(job)[-1] | {"run_at": job["run_at"]}, "finished_at") == wait_s


def test_linear_backoff_grows_by_the_base_where_exponential_would_multiply(local: Cli) -> None:
    job_id = local.enqueue("--backoff-strategy", "linear", "--backoff-base", "40", "exit 1")
    local.start("worker", "start")
    local.wait_for_state(job_id, "failed")
    local.ok("retry", job_id)

    job = local.wait_for_state(job_id, "failed")

    assert job["attempts"] == 2
    assert _waits_s(_runs(job)[-1] | {"run_at": job["run_at"]}, "finished_at") == 80


def test_jitter_spreads_the_waits(local: Cli) -> None:
    line = '{"command": "exit 1", "backoff_base": 100}\n'
    local.ok("enqueue", "--from", "-", "--backoff-jitter", "0.5", stdin=line * 8)
    local.start("worker", "start", "-j", "8")
    jobs = [local.wait_for_state(str(number), "failed") for number in range(1, 9)]

    waits = [_waits_s(_runs(job)[-1] | {"run_at": job["run_at"]}, "finished_at") for job in jobs]

    assert all(50 <= wait <= 150 for wait in waits)
    assert len(set(waits)) > 1


def test_a_retry_count_of_its_own_decides_when_a_job_is_buried(local: Cli) -> None:
    job_id = local.enqueue("--max-retries", "2", "--backoff-base", "0", "exit 1")

    local.drain()

    job = local.job(job_id)
    assert (job["state"], job["attempts"], len(_runs(job))) == ("dead", 3, 3)


def _runs(job: Mapping[str, object]) -> list[dict[str, object]]:
    runs = job["runs"]
    assert isinstance(runs, list)
    return runs


def _waits_s(job: Mapping[str, object], since: str) -> float:
    """How long after `since` the job runs next."""
    return (datetime.fromisoformat(str(job["run_at"])) - datetime.fromisoformat(str(job[since]))).total_seconds()


def test_a_file_is_read_from_the_folder_of_the_caller(local: Cli, tmp_path: Path) -> None:
    (tmp_path / "here").write_text("true\n")

    assert local.ok("enqueue", "--from", "here") == "1\n"


def test_a_file_without_jobs_is_said_to_have_none(local: Cli) -> None:
    done = local.run("enqueue", "--from", "/dev/null")

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "no jobs in /dev/null\n")


def test_a_folder_that_is_not_there_is_named_and_the_job_added_all_the_same(local: Cli) -> None:
    done = local.run("enqueue", "--cwd", "/no/such/folder", "true")

    assert (done.returncode, done.stdout) == (0, "1\n")
    assert "warning: no folder /no/such/folder here now" in done.stderr
    assert local.run("enqueue", "--cwd", "/", "true").stderr == ""


def test_a_shell_line_behind_two_dashes_is_warned_of(local: Cli) -> None:
    line = local.run("enqueue", "--", "echo hi; ls")
    program = local.run("enqueue", "--", "echo", "hi there")

    assert (line.returncode, line.stdout) == (0, "1\n")
    assert "warning: 'echo hi; ls' is taken as the name of one program; a shell line has no -- before it" in line.stderr
    assert program.stderr == ""
