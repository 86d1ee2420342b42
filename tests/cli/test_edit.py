"""queuectl edit: every flag, what is said, and the command of a dead job that is mended and run again."""

import re
from collections.abc import Mapping
from pathlib import Path

from tests.program import Cli

# flag: (words, what the job holds then)
FLAGS: dict[str, tuple[list[str], Mapping[str, object]]] = {
    "--command": (["--command", "echo new"], {"command": "echo new", "argv": None}),
    "--queue": (["--queue", "mail"], {"queue": "mail"}),
    "--priority": (["--priority", "-7"], {"priority": -7}),
    "--delay": (["--delay", "1h"], {"state": "scheduled"}),
    "--run-at": (
        ["--run-at", "2099-01-01T00:00:00Z"],
        {"state": "scheduled", "run_at": "2099-01-01T00:00:00.000Z"},
    ),
    "--max-retries": (["--max-retries", "9"], {"max_retries": 9}),
    "--timeout": (["--timeout", "90s"], {"timeout": 90.0}),
    "--backoff-strategy": (["--backoff-strategy", "fixed"], {"backoff": {"backoff_strategy": "fixed"}}),
    "--backoff-base": (["--backoff-base", "3"], {"backoff": {"backoff_base": 3.0}}),
    "--backoff-max": (["--backoff-max", "1m"], {"backoff": {"max_backoff_seconds": 60.0}}),
    "--backoff-jitter": (["--backoff-jitter", "0.5"], {"backoff": {"backoff_jitter": 0.5}}),
    "--backoff-delay": (["--backoff-delay", "7"], {"backoff": {"job_retry_delay": 7.0}}),
    "--deadline": (["--deadline", "1h"], {"deadline": 3600.0}),
    "--needs": (["--needs", "gpu,big"], {"needs": ["big", "gpu"]}),
    "--use": (["--use", "gpu=1,mem=4G"], {"use": {"gpu": 1, "mem": 4 << 30}}),
    "--mutex": (["--mutex", "a", "--mutex", "b"], {"mutex": ["a", "b"]}),
    "--limit": (["--limit", "api"], {"limits": ["api"]}),
    "--at-most": (["--at-most", "thumbs:5"], {"at_most": ["thumbs:5"]}),
    "--after": (["--after", "1"], {"waits_for_jobs": 1, "state": "blocked"}),
    "--on-dead-dependency": (["--on-dead-dependency", "run"], {"on_dead_dependency": "run"}),
    "--retry-on": (["--retry-on", "75,timeout"], {"policy": {"retry_on": ["75", "timeout"]}}),
    "--no-retry-on": (["--no-retry-on", "2"], {"policy": {"no_retry_on": ["2"]}}),
    "--success-codes": (["--success-codes", "0,3"], {"policy": {"success_codes": [0, 3]}}),
    "--snooze-code": (
        ["--snooze-code", "99:5m", "--snooze-code", "98:1h"],
        {"policy": {"snooze_codes": {"99": 300.0, "98": 3600.0}}},
    ),
    "--memory": (["--memory", "1K"], {"launch": {"memory": 1024}}),
    "--cpu-seconds": (["--cpu-seconds", "5s"], {"launch": {"cpu_seconds": 5}}),
    "--nofile": (["--nofile", "99"], {"launch": {"nofile": 99}}),
    "--file-size": (["--file-size", "1M"], {"launch": {"file_size": 1 << 20}}),
    "--nice": (["--nice", "7"], {"launch": {"nice": 7}}),
    "--umask": (["--umask", "027"], {"launch": {"umask": "027"}}),
    "--shell": (["--shell", "/bin/bash"], {"launch": {"shell": "/bin/bash"}}),
    "--stdin": (["--stdin", "/etc/hostname"], {"launch": {"stdin": "/etc/hostname"}}),
    "--secret": (["--secret", "TOKEN", "--secret", "KEY"], {"launch": {"secrets": ["TOKEN", "KEY"]}}),
    "--cwd": (["--cwd", "/usr"], {"cwd": "/usr"}),
    "--env": (["--env", "B=2=3"], {"env": {"A": "1", "B": "2=3"}}),
    "--env-file": (["--env-file", str(Path(__file__).with_name("variables.env"))], {"env": {"A": "1", "B": "2"}}),
    "--unset-env": (["--unset-env", "A"], {"env": {}}),
    "--tag": (["--tag", "y"], {"tags": ["x", "y"]}),
    "--untag": (["--untag", "x"], {"tags": []}),
    "--no-tags": (["--no-tags", "--tag", "z"], {"tags": ["z"]}),
}
NEW = {
    "--deadline", "--needs", "--use", "--mutex", "--limit", "--retry-on", "--no-retry-on", "--success-codes",
    "--snooze-code", "--memory", "--cpu-seconds", "--nofile", "--file-size", "--nice", "--umask", "--shell", "--stdin",
    "--secret", "--at-most", "--after", "--on-dead-dependency",
}  # fmt: skip
"""What `none` takes back."""
TESTED_ELSEWHERE = {"--dry-run", "--db", "--json", "--help"}


def test_a_flag_changes_the_job_and_nothing_else(local: Cli) -> None:
    local.ok("limit", "set", "api", "4")
    line = '{"command": "true", "env": {"A": "1"}, "tags": ["x"]}\n'
    local.ok("enqueue", "--from", "-", stdin=line * len(FLAGS))
    before = local.json("list", "-r")

    for number, (words, _) in enumerate(FLAGS.values(), 1):
        local.ok("edit", str(number), *words)

    for was, job, (flag, (_, wanted)) in zip(before, local.json("list", "-r"), FLAGS.items(), strict=True):
        assert {name: job[name] for name in wanted} == wanted, flag
        changed = {name for name in job if job[name] != was[name]} - {"updated_at", "run_at", "deadline_at"}
        assert changed == set(wanted) - {"argv", "run_at"}, flag


def test_none_takes_back_what_was_asked_for(local: Cli) -> None:
    line = (
        '{"command": "true", "deadline": "1h", "needs": "gpu", "use": "mem=1G", "mutex": "a", "limits": "b",'
        ' "retry_on": 75, "no_retry_on": 2, "success_codes": "0,3", "snooze_codes": "99:5m", "memory": "1M",'
        ' "cpu_seconds": 5, "nofile": 99, "file_size": "1M", "nice": 7, "umask": "027", "shell": "/bin/bash",'
        ' "stdin": "/etc/hostname", "secrets": "TOKEN", "at_most": "c:2", "after": "1",'
        ' "on_dead_dependency": "keep"}'
    )
    local.ok("limit", "set", "b", "4")
    local.enqueue("true")
    local.enqueue(line)
    plain = local.job("1")

    local.ok("edit", "2", *(word for flag in sorted(NEW) for word in (flag, "none")))

    now = local.job("2")
    fields = (
        "state", "needs", "use", "mutex", "limits", "at_most", "policy", "launch", "deadline", "deadline_at",
        "waits_for_jobs", "on_dead_dependency",
    )  # fmt: skip
    assert [now[name] for name in fields] == [plain[name] for name in fields]


def test_what_was_kept_with_a_job_gives_way_to_a_file(local: Cli, tmp_path: Path) -> None:
    (tmp_path / "new").write_text("new\n")
    local.ok("enqueue", "--stdin", "-", "cat", stdin="old\n")

    local.ok("edit", "1", "--stdin", str(tmp_path / "new"))
    local.drain()

    assert local.ok("logs", "1") == "new\n"


def test_no_flag_of_edit_is_left_untested(local: Cli) -> None:
    shown = set(re.findall(r"(?m)^  (?:-\w, )?(--[a-z-]+)", local.ok("edit", "--help")))

    assert shown == FLAGS.keys() | TESTED_ELSEWHERE


def test_a_dead_job_is_mended_and_run_again(cli: Cli) -> None:
    cli.enqueue("--id", "job1", "--max-retries", "0", "ehco hi")
    cli.drain()

    assert cli.ok("edit", "job1", "--command", "echo hi") == 'job1: command "ehco hi" -> "echo hi"\n'
    cli.ok("retry", "job1")
    cli.drain()

    assert (cli.job("job1")["state"], cli.ok("logs", "job1")) == ("completed", "hi\n")


def test_words_after_two_dashes_are_a_program_and_its_arguments(cli: Cli) -> None:
    cli.enqueue("false")

    cli.ok("edit", "1", "--", "printf", "%s|", "a b", "--priority")
    cli.drain()

    assert cli.ok("logs", "1") == "a b|--priority|"


def test_what_changed_is_said_old_and_new(local: Cli) -> None:
    local.enqueue("--timeout", "90s", "--priority", "3", "true")

    said = local.ok("edit", "1", "--priority", "5", "--queue", "mail", "--timeout", "0", "--tag", "x", "--tag", "y")

    assert said == "1: queue default -> mail, priority 3 -> 5, timeout 1m30s -> none, tags none -> x,y\n"
    assert local.ok("edit", "1", "--timeout", "default") == "1: timeout none -> default\n"
    assert local.ok("edit", "1", "--priority", "5") == "1: is so already\n"
    assert re.fullmatch(
        r"1: state pending -> scheduled, run_at none -> \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\n",
        local.ok("edit", "1", "--delay", "1h"),
    )
    assert local.ok("edit", "1", "--deadline", "1h").startswith("1: deadline none -> 1h, deadline_at none -> 20")
    assert local.json("audit")[0]["target"] == "1 (deadline none -> 1h)"


def test_what_changed_is_said_by_the_names_of_the_flags(local: Cli) -> None:
    local.enqueue("--retry-on", "75,timeout", "--nice", "5", "true")

    said = local.ok(
        "edit", "1", "--nice", "7", "--memory", "1G", "--retry-on", "none", "--snooze-code", "99:5m",
        "--backoff-max", "1m", "--use", "mem=4K",
    )  # fmt: skip

    assert said == (
        "1: use none -> mem=4KiB, retry_on 75,timeout -> none, nice 5 -> 7, max_backoff_seconds default -> 1m,"
        " snooze_codes none -> 99:5m, memory none -> 1GiB\n"
    )
    assert local.json("audit")[0]["target"] == (
        "1 (use none -> mem=4096, max_backoff_seconds, memory none -> 1073741824, nice 5 -> 7, snooze_codes,"
        " retry_on 75+timeout -> none)"
    )
    assert "--deadline none" in local.run("edit", "1", "--deadline", "0").stderr


def test_as_json_the_changes_are_values(cli: Cli) -> None:
    cli.enqueue("true")

    (said,) = cli.json("edit", "1", "--priority", "5", "--timeout", "1.5")

    assert said == {
        "id": "1",
        "was": "pending",
        "result": "edited",
        "changes": {"priority": {"from": 0, "to": 5}, "timeout": {"from": None, "to": 1.5}},
    }


BAD = [
    (["1"], 2),
    ([], 2),
    (["--priority", "5"], 2),
    (["1", "--priority", "high"], 2),
    (["1", "--run-at", "now", "--delay", "1h"], 2),
    (["1", "--command", "true", "--", "true"], 2),
    (["1", "--"], 2),
    (["1", "--env", "A"], 2),
    (["1", "--env", "QUEUECTL_X=1"], 2),
    (["1", "--untag", "a b"], 2),
    (["1", "--stdin", "-"], 2),
    (["1", "--stdin", ""], 2),
    (["1", "--mutex", "none,b"], 2),
    (["1", "--env-file", "/nowhere"], 2),
    (["1", "--limit", "nosuch"], 2),
    (["1", "--retry-on", "2", "--no-retry-on", "2"], 2),
    (["1", "--env", "TOKEN=x", "--secret", "TOKEN"], 2),
    (["1", "--shell", "/bin/bash", "--", "true"], 2),
    (["1", "nope", "--priority", "5"], 3),
    (["7-9", "--priority", "5"], 3),
    (["1", "2", "--delay", "1h"], 6),
]


def test_a_bad_edit_is_refused_and_changes_nothing(local: Cli) -> None:
    local.ok("enqueue", "--from", "-", stdin="true\ntrue\n")
    local.ok("cancel", "2")
    before = local.json("list")

    for words, code in BAD:
        done = local.run("edit", *words)
        assert (done.returncode, done.stdout) == (code, ""), words
        assert "Traceback" not in done.stderr

    assert local.json("list") == before


def test_of_a_range_what_cannot_change_is_passed_by(cli: Cli) -> None:
    cli.ok("enqueue", "--from", "-", stdin="true\ntrue\ntrue\n")
    cli.ok("cancel", "2")

    assert cli.ok("edit", "1-3", "--delay", "1h") == "2 edited, 1 passed by: 1 cancelled\n"

    assert [job["state"] for job in cli.json("list")] == ["scheduled", "cancelled", "scheduled"]


def test_a_job_that_is_moved_to_another_queue_is_run_by_the_worker_that_serves_it(cli: Cli) -> None:
    cli.enqueue("--queue", "slow", "true")
    cli.ok("worker", "start", "-d", "--queue", "fast")

    cli.ok("edit", "1", "--queue", "fast")

    assert cli.wait_for_state("1", "completed")["queue"] == "fast"
