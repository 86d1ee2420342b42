"""The verbs of `queuectl schedule`: what they take, print and refuse."""

import json
import re
import sqlite3
import time
from typing import Any

import pytest

from tests.program import Cli
from tests.scenarios.working import seconds


def add(cli: Cli, *words: str) -> str:
    return cli.ok("schedule", "add", *words)


def shown(cli: Cli, name: str = "s") -> dict[str, Any]:
    return cli.json("schedule", "show", name)[0]


def job_of(cli: Cli, name: str = "s") -> dict[str, Any]:
    job: dict[str, Any] = shown(cli, name)["job"]
    return job


def test_a_schedule_is_added_with_words_after_two_dashes(local: Cli) -> None:
    text = add(local, "s", "*/5 * * * *", "--tz", "Europe/Oslo", "--", "echo", "two words", "-n")

    assert re.fullmatch(r"s: next \w{3} \d{4}-\d\d-\d\d \d\d:\d[05]:00 \+0[12]:00 \(in .+\)\n", text)
    schedule = shown(local)
    assert (schedule["cron"], schedule["every"], schedule["tz"]) == ("*/5 * * * *", None, "Europe/Oslo")
    assert job_of(local) == {"argv": ["echo", "two words", "-n"], "cwd": str(local.folder)}


def test_a_schedule_is_added_with_a_shell_line_wherever_its_options_stand(local: Cli) -> None:
    add(local, "s", "@daily", "--priority", "5", "echo a | cat", "--tag", "x")
    add(local, "t", "--every", "10m", "echo b")

    assert job_of(local) == {"command": "echo a | cat", "priority": "5", "tags": ["x"], "cwd": str(local.folder)}
    assert (shown(local, "t")["cron"], shown(local, "t")["every"]) == (None, 600)


def test_a_schedule_is_added_with_a_json_job_and_flags_win(local: Cli) -> None:
    job = {"command": "true", "priority": 1, "backoff": {"backoff_base": 3}, "timeout": None, "cwd": "/tmp"}

    add(local, "s", "@hourly", json.dumps(job), "--priority", "7")

    assert job_of(local) == {"command": "true", "priority": "7", "backoff_base": 3, "cwd": "/tmp"}


def test_every_flag_of_enqueue_is_taken(local: Cli) -> None:
    local.ok("limit", "set", "api", "2")

    add(
        local, "s", "@daily", "--queue", "mail", "--max-retries", "1", "--timeout", "5m", "--backoff-strategy", "fixed",
        "--deadline", "2h", "--needs", "gpu", "--use", "mem=1G", "--retry-on", "75", "--memory", "1G", "--umask", "027",
        "--mutex", "a,b", "--limit", "api", "--snooze-code", "99:5m", "--secret", "TOKEN", "--stdin", "in.txt",
        "--env", "A=b", "--split-output", "--cwd", "/", "--", "true",
    )  # fmt: skip

    local.ok("schedule", "run", "s")
    job: dict[str, Any] = local.json("list")[0]
    assert (job["queue"], job["max_retries"], job["timeout"], job["deadline"]) == ("mail", 1, 300, 7200)
    assert (job["mutex"], job["limits"], job["needs"], job["cwd"]) == (["a", "b"], ["api"], ["gpu"], "/")
    assert (job["state"], job["env"]["A"]) == ("pending", "b")


def test_list_shows_when_each_comes_next_and_what_came_of_the_last_time(local: Cli) -> None:
    add(local, "beat", "--every", "1h", "true")
    add(local, "nightly", "30 2 * * *", "--tz", "Europe/Oslo", "exit 3", "--max-retries", "0")
    local.ok("schedule", "run", "nightly")
    local.drain()
    local.ok("schedule", "pause", "beat")

    lines = local.ok("schedule", "list").splitlines()

    assert lines[0].split() == ["NAME", "WHEN", "NEXT", "LAST", "RESULT", "COMMAND"]
    assert re.fullmatch(r"beat +every 1h +paused +- +- +true", lines[1])
    at = r"\w{3} \d{4}-\d\d-\d\d"
    oslo = r"\+0[12]:00"
    assert re.fullmatch(
        rf"nightly +30 2 \* \* \* Europe/Oslo +{at} 02:30:00 {oslo} +{at} \S+ {oslo} +dead +exit 3", lines[2]
    )
    assert local.ok("schedule") == local.ok("schedule", "ls") == "\n".join(lines) + "\n"


def test_add_list_and_show_tell_the_jitter_of_the_next_instant_in_the_same_way(local: Cli) -> None:
    text = add(local, "s", "0 7 * * *", "--tz", "Europe/Oslo", "--jitter", "5m", "true")

    said = re.fullmatch(r"s: next (\w{3} \S+ 07:00:00 \+0[12]:00 \+[0-9ms]+) \(in .+\)\n", text)

    assert said
    assert said[1] in local.ok("schedule", "list")
    assert f"Next:         {said[1]} (in " in local.ok("schedule", "show", "s")


def test_list_of_a_schedule_in_a_zone_this_host_does_not_know_tells_its_times_in_utc(local: Cli) -> None:
    add(local, "s", "@daily", "--tz", "UTC", "true")
    with sqlite3.connect(local.folder / "home" / "queue.db") as store:
        store.execute("UPDATE schedules SET tz = 'Mars/Base'")

    assert re.search(r"@daily Mars/Base  \d{4}-\d\d-\d\dT00:00:00.000Z  -", local.ok("schedule", "list"))


def test_show_names_the_fields_of_the_job_as_show_of_a_job_does(local: Cli) -> None:
    add(
        local, "s", "@daily", "--tag", "a", "--tag", "b", "--env", "A=b", "--timeout", "90", "--queue", "mail",
        "--mutex", "db", "true",
    )  # fmt: skip

    lines = local.ok("schedule", "show", "s").splitlines()

    for line in (
        f"Folder:       {local.folder}", "Tags:         a, b", "Variable:     A=b", "Timeout:      1m30s",
        "Queue:        mail", "Mutex:        db",
    ):  # fmt: skip
        assert line in lines


def test_show_names_all_rules_and_the_newest_fires(local: Cli) -> None:
    add(local, "s", "--every", "1h", "--jitter", "5m", "--overlap", "skip", "--misfire", "all", "sleep 60")
    number = local.ok("schedule", "run", "s").strip()

    text = local.ok("schedule", "show", "s")

    for words in ("When:         every 1h, counted from", "all, at most 100 jobs", "up to 5m", f"by hand  {number}"):
        assert words in text
    assert len(shown(local)["fires"]) == 1
    assert local.json("schedule", "show", "s", "--fires", "0")[0]["fires"] == []


def test_show_of_a_job_says_which_schedule_it_comes_from(local: Cli) -> None:
    add(local, "s", "@daily", "echo $QUEUECTL_SCHEDULE $QUEUECTL_SCHEDULED_FOR")
    number = local.ok("schedule", "run", "s").strip()
    local.drain()

    job: dict[str, Any] = local.job(number)

    assert job["schedule"] == {"name": "s", "instant": shown(local)["fires"][0]["instant"]}
    assert f"Schedule:     s, for {job['schedule']['instant']}" in local.ok("show", number)
    assert "Variable" not in local.ok("show", number)
    assert local.ok("logs", number) == f"s {job['schedule']['instant']}\n"


def test_a_job_that_another_of_its_schedule_replaced_says_which(local: Cli) -> None:
    add(local, "s", "@daily", "--overlap", "replace", "true")
    old, new = (local.ok("schedule", "run", "s").strip() for _ in range(2))

    text = local.ok("show", old)

    assert f"Cause:        cancelled before it ran: replaced by job {new} of schedule s\n" in text
    assert local.job(old)["error"] == "cancelled before it ran: replaced by a newer job of schedule s"
    assert re.search(rf"by hand  {old} +cancelled  replaced by job {new}\n", local.ok("schedule", "show", "s"))
    local.ok("retry", old)
    local.ok("cancel", old)
    assert local.job(old)["cause"] == "cancelled before it ran"


def test_a_cancelled_job_that_came_with_an_instant_nobody_can_read_is_shown(local: Cli) -> None:
    add(local, "s", "@daily", "true")
    number = local.ok("schedule", "run", "s").strip()
    local.ok("cancel", number)
    exported = local.folder / "jobs.jsonl"
    text, changed = re.subn(r"(QUEUECTL_SCHEDULED_FOR\W+)[0-9T:.Z-]+", r"\1some day", local.ok("export"))
    exported.write_text(text)
    local.ok("delete", number)
    local.ok("import", str(exported))

    job: dict[str, Any] = local.job(number)
    assert (changed, job["schedule"]["instant"]) == (1, "some day")
    assert job["cause"] == "cancelled before it ran"


def test_preview_of_a_line_needs_no_store_and_tells_the_offset_on_both_sides_of_a_turned_clock(local: Cli) -> None:
    instants = local.json("schedule", "preview", "30 2 25 10 *", "2", "--tz", "Europe/Oslo")

    assert [str(each["local"])[15:] for each in instants] == ["02:30:00 +02:00", "02:30:00 +02:00"]
    assert not (local.folder / "home" / "queue.db").exists()


def test_preview_of_a_schedule_tells_its_jitter(local: Cli) -> None:
    add(local, "s", "--every", "1h", "--jitter", "30m", "true")

    [first, second] = local.json("schedule", "preview", "s", "2")

    assert str(first["instant"]) <= str(first["fires_at"]) < str(second["instant"])
    assert first["fires_at"] == shown(local)["next_at"]
    assert local.ok("schedule", "preview", "s", "2").splitlines()[0].split() == ["INSTANT", "UTC", "JITTER"]


def test_preview_of_a_period_counts_from_now(local: Cli) -> None:
    instants = [seconds(each["instant"]) for each in local.json("schedule", "preview", "--every", "10m", "3")]

    assert [instants[1] - instants[0], instants[2] - instants[1]] == [600, 600]
    assert 590 < instants[0] - time.time() <= 600
    assert len(local.ok("schedule", "preview", "--every", "10m").splitlines()) == 6


def test_edit_changes_what_is_named_and_says_so(local: Cli) -> None:
    add(local, "s", "@daily", "--tz", "UTC", "--tag", "a", "--env", "A=1", "--timeout", "5m", "true")

    text = local.ok(
        "schedule", "edit", "s", "0 3 * * *", "--tag", "b", "--untag", "a", "--env", "B=2", "--unset-env", "A",
        "--timeout", "none", "--overlap", "queue", "--", "echo", "x",
    )  # fmt: skip

    lines = text.splitlines()
    assert "s: cron @daily -> 0 3 * * *" in lines
    assert "s: timeout 5m -> none" in lines
    assert "s: tags a -> b" in lines
    assert "s: command true -> echo x" in lines
    assert re.search(r"^s: next \w{3} \S+ 00:00:00 \+00:00 -> \w{3} \S+ 03:00:00 \+00:00$", text, re.MULTILINE)
    assert job_of(local) == {"argv": ["echo", "x"], "cwd": str(local.folder), "tags": ["b"], "env": {"B": "2"}}
    assert local.ok("schedule", "edit", "s", "--overlap", "queue") == "s: is so already\n"


def test_edit_tells_durations_as_people_write_them(local: Cli) -> None:
    add(local, "s", "--every", "10s", "--tz", "UTC", "true")

    lines = local.ok("schedule", "edit", "s", "--every", "90s", "--jitter", "1500ms").splitlines()

    assert lines[:2] == ["s: every 10s -> 1m30s", "s: jitter none -> 1s500ms"]
    assert re.fullmatch(r"s: next \w{3} \S+ \S+ \+00:00 -> \w{3} \S+ \S+ \+00:00( \+\S+)?", lines[2])
    assert len(lines) == 3


def test_pause_resume_and_remove_take_many_names(local: Cli) -> None:
    add(local, "a", "@daily", "true")
    add(local, "b", "@daily", "true")

    assert local.ok("schedule", "pause", "a") == "a: paused\n"
    assert local.ok("schedule", "pause", "a", "b") == "a: is paused already\nb: paused\n"
    assert local.ok("schedule", "resume", "b") == "b: goes on\n"
    assert local.ok("schedule", "rm", "a", "b") == "a: removed; its jobs stay\nb: removed; its jobs stay\n"
    assert local.json("schedule", "list") == []


@pytest.mark.parametrize(
    "words, code, said",
    [
        (["add", "s"], 2, "when?"),
        (["add", "s", "@daily"], 2, "no command given"),
        (["add", "s", "*/5", "*", "*", "*", "*", "true"], 2, "1 field, not five"),
        (["add", "s", "0 0 30 2 *", "true"], 2, "there is no day 30 in month 2"),
        (["add", "s", "@reboot", "true"], 2, "is no time"),
        (["add", "s", "@daily", "--tz", "Oslo", "true"], 2, "did you mean 'Europe/Oslo'"),
        (["add", "s", "@daily", "--misfire", "al", "true"], 2, "did you mean 'all'"),
        (["add", "s", "@daily", "--overlap", "x", "true"], 2, "allow, skip, queue, replace"),
        (["add", "s", "@daily", "--jitter", "x", "true"], 2, "bad duration"),
        (["add", "s", "--every", "100ms", "true"], 2, "whole seconds"),
        (["add", "s", "--every", "5m", "@daily", "true"], 2, "either a cron line or --every"),
        (["add", "s", "@daily", "--after", "1", "true"], 2, "after has no place"),
        (["add", "s", "@daily", "--hold", "true"], 2, "hold has no place"),
        (["add", "s", "--every", "5m", "--jitter", "5m", "true"], 2, "jitter 5m is too long"),
        (["add", "s", "--every", "5m", "--start", "x", "true"], 2, "bad time"),
        (["add", "s", "@daily", "--start", "now", "true"], 2, "--start goes with --every"),
        (["add", "s", "@daily", "--id", "x", "true"], 2, "id has no place"),
        (["add", "s", "@daily", "--delay", "5m", "true"], 2, "delay has no place"),
        (["add", "s", "@daily", "--run-at", "now", "true"], 2, "run_at has no place"),
        (["add", "s", "@daily", '{"id": "x", "command": "true"}'], 2, "id has no place"),
        (["add", "s", "@daily", '{"command": 5}'], 2, "command must be text"),
        (["add", "s", "@daily", "{command: 5}"], 2, "looks like JSON"),
        (["add", "s", "@daily", "--env", "QUEUECTL_SCHEDULE=x", "true"], 2, "is set by queuectl itself"),
        (["add", "s", "@daily", "--limit", "api", "true"], 2, "no limit 'api'"),
        (["add", "-x", "@daily", "true"], 2, ""),
        (["add", "a b", "@daily", "true"], 2, 'bad schedule name "a b"'),
        (["add", "s", "61 2 * * *", "true"], 2, 'the minute "61" cannot be used; it is 0-59'),
        (["add", "there", "@daily", "true"], 6, "exists already"),
        (["edit", "there"], 2, "nothing to change"),
        (["edit", "there", "@daily", "x"], 2, "unexpected word 'x'"),
        (["edit", "there", "--command", "x", "--", "y"], 2, "once"),
        (["edit", "there", "--start", "now"], 2, "--start goes with --every"),
        (["edit", "ther", "@daily"], 3, "did you mean 'there'"),
        (["show", "nowhere"], 3, "no schedule 'nowhere'"),
        (["run", "nowhere"], 3, "no schedule 'nowhere'"),
        (["pause", "there", "nowhere"], 3, "no schedule 'nowhere'"),
        (["resume", "nowhere"], 3, "no schedule"),
        (["remove", "nowhere"], 3, "no schedule"),
        (["remove"], 2, "NAME missing"),
        (["preview", "nowhere"], 3, "no schedule"),
        (["preview", "there", "0"], 2, "out of range"),
        (["preview", "there", "x"], 2, "a whole number"),
        (["preview", "there", "--tz", "UTC"], 2, "its own zone"),
        (["preview", "* * * *"], 2, "4 fields"),
        (["preview"], 2, "preview of what?"),
        (["preview", "--every", "10m", "3", "4"], 2, "unexpected word '4'"),
        (["preview", "--every", "x"], 2, "bad duration"),
        (["list", "x"], 2, "unexpected word"),
        (["ad"], 2, "did you mean 'add'"),
    ],
    ids=lambda value: " ".join(value)[:60] if isinstance(value, list) else "",
)  # fmt: skip
def test_bad_input_is_refused_with_what_to_do(schedule_there: Cli, words: list[str], code: int, said: str) -> None:
    done = schedule_there.run("schedule", *words)

    assert (done.returncode, done.stdout) == (code, ""), done.stderr
    assert said in done.stderr
    assert len(done.stderr.splitlines()) <= 2
    assert [each["name"] for each in schedule_there.json("schedule", "list")] == ["there"]


@pytest.fixture
def schedule_there(local: Cli) -> Cli:
    """A store with one schedule."""
    local.ok("schedule", "add", "there", "@daily", "true")
    return local


def test_what_comes_in_on_standard_input_is_kept_where_it_is_text(local: Cli) -> None:
    done = local.run("schedule", "add", "s", "@daily", "--stdin", "-", "--", "cat", stdin="hello")
    assert done.returncode == 0, done.stderr

    number = local.ok("schedule", "run", "s").strip()
    local.drain()

    assert local.ok("logs", number) == "hello"


def test_without_a_zone_the_line_is_in_that_of_the_person(local: Cli) -> None:
    for name, zone in (("s", "Asia/Kolkata"), ("t", ":America/Lima"), ("u", "Nowhere/Land")):
        local.ok("schedule", "add", name, "@daily", "true", env={"TZ": zone})

    assert [shown(local, name)["tz"] for name in "st"] == ["Asia/Kolkata", "America/Lima"]
    assert shown(local, "u")["tz"] != "Nowhere/Land"


def test_schedules_travel_with_an_export_and_those_that_are_there_stay(local: Cli) -> None:
    add(local, "s", "30 2 * * *", "--tz", "Europe/Oslo", "--misfire", "all", "--overlap", "queue", "echo one")
    add(local, "t", "--every", "1h", "--jitter", "5m", "--", "echo", "two")
    local.ok("schedule", "pause", "t")
    number = local.ok("schedule", "run", "s").strip()
    file = local.folder / "whole.jsonl"
    local.ok("export", str(file))
    before = {name: shown(local, name) for name in ("s", "t")}
    local.ok("schedule", "remove", "t")
    local.ok("schedule", "edit", "s", "--command", "echo mine")
    local.ok("delete", number)

    text = local.ok("import", str(file))

    assert "1 schedule" in text
    came = shown(local, "t")
    assert {**came, "updated_at": 0} == {**before["t"], "updated_at": 0}
    assert job_of(local)["command"] == "echo mine"
    came_from: dict[str, Any] = local.job(number)
    assert came_from["schedule"]["name"] == "s"


@pytest.mark.parametrize(
    "change",
    [
        {"cron": "* * *"}, {"tz": "Nowhere"}, {"every_ms": 5000}, {"job": {"command": "x", "id": "y"}},
        {"job": {"commnd": "x"}}, {"misfire": "x"}, {"name": "a b"}, {"jitter_ms": -1},
    ],
    ids=lambda change: next(iter(change)),
)  # fmt: skip
def test_a_broken_schedule_in_a_file_is_refused_by_its_line(local: Cli, change: dict[str, object]) -> None:
    add(local, "s", "@daily", "true")
    header, line, *rest = local.ok("export").splitlines()
    file = local.folder / "broken.jsonl"
    file.write_text("\n".join([header, json.dumps({**json.loads(line), **change}), *rest]) + "\n")

    done = local.run("import", str(file))

    assert done.returncode == 2
    assert done.stderr.startswith("queuectl: line 2: ")
