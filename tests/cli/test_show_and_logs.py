"""queuectl show and queuectl logs: one job, its runs, why it waits, what it printed."""

import json
import re

from tests.program import Cli


def test_show_says_all_there_is_to_say_of_a_waiting_job(local: Cli) -> None:
    local.enqueue(
        "--id", "job1", "--queue", "mail", "--priority", "5", "--timeout", "90s", "--env", "A=b", "--tag", "t",
        "--backoff-base", "3", "--cwd", "/usr", "echo one",
    )  # fmt: skip

    shown = _facts(local.ok("show", "job1"))

    assert shown["Job"] == "job1 (number 1)"
    assert shown["State"] == "pending"
    assert shown["Waits for"] == "a worker: none is running for queue mail"
    assert shown["Command"] == "echo one"
    assert shown["Queue"] == "mail, priority 5"
    assert shown["Attempts"] == "0/3"
    assert shown["Timeout"] == "1m30s"
    assert shown["Backoff"] == "backoff_base: 3.0"
    assert shown["Folder"] == "/usr"
    assert shown["Variable"] == "A=b"
    assert shown["Tags"] == "t"


def test_show_says_why_a_job_waits(cli: Cli) -> None:
    cli.ok("queue", "pause", "shut")
    cli.ok("enqueue", "--from", "-", stdin="""\
{"id": "paused", "command": "true", "queue": "shut"}
{"id": "later", "command": "true", "delay": "1h"}
{"id": "again", "command": "exit 1", "backoff_base": 100}
{"id": "busy", "command": "sleep 60"}
{"id": "next", "command": "true", "priority": -1}
""")  # fmt: skip
    cli.ok("worker", "start", "-d")
    cli.wait_for_state("busy", "processing")

    waits = {name: cli.job(name)["waits_for"] for name in ("paused", "later", "again", "busy", "next")}

    assert waits == {
        "paused": "its queue: shut is paused",
        "later": "its time",
        "again": "its next retry",
        "busy": None,
        "next": "a free worker",
    }


def test_show_lists_every_run_with_its_outcome(cli: Cli) -> None:
    job_id = cli.enqueue("--max-retries", "1", "--backoff-base", "0", "echo out; exit 7")
    cli.drain()

    text = cli.ok("show", job_id)

    header, *rows = text.split("\n\n")[1].splitlines()
    assert header.split()[:6] == ["RUN", "ATTEMPT", "OUTCOME", "EXIT", "STARTED", "TOOK"]
    assert [row.split()[:4] for row in rows] == [["1", "1", "exited", "7"], ["2", "2", "exited", "7"]]
    facts = _facts(text)
    assert (facts["Attempts"], facts["Exit code"]) == ("2/1", "7")
    assert facts["Cause"] == "exit code 7; 2 runs used, none left"


def test_last_means_the_newest_job_and_a_number_finds_a_named_one(local: Cli) -> None:
    local.enqueue("--id", "first", "true")
    local.enqueue("--id", "second", "true")

    assert local.job("last")["id"] == "second"
    assert local.job("1")["id"] == "first"


def test_numbers_are_never_reused(cli: Cli) -> None:
    cli.enqueue("true")
    cli.ok("delete", "1")

    assert cli.enqueue("true") == "2"


def test_logs_prints_both_streams_in_the_order_they_came(cli: Cli) -> None:
    job_id = cli.enqueue("echo one; echo two >&2; echo three >/dev/stderr; printf four")
    cli.drain()

    assert cli.ok("logs", job_id) == "one\ntwo\nthree\nfour"
    assert cli.ok("logs") == "one\ntwo\nthree\nfour"


def test_logs_prints_the_last_lines_alone_when_asked(local: Cli) -> None:
    local.enqueue("seq 100")
    local.drain()

    assert local.ok("logs", "-n", "2") == "99\n100\n"
    assert local.ok("logs", "1", "--lines", "1") == "100\n"


def test_logs_prints_the_attempt_that_is_asked_for_and_else_the_newest(local: Cli) -> None:
    job_id = local.enqueue("--max-retries", "1", "--backoff-base", "0", "echo attempt $QUEUECTL_ATTEMPT; exit 1")
    local.drain()

    assert local.ok("logs", job_id, "--attempt", "1") == "attempt 1\n"
    assert local.ok("logs", job_id) == "attempt 2\n"
    done = local.run("logs", job_id, "--attempt", "3")
    assert done.returncode == 3
    assert f"job {job_id} has no attempt 3" in done.stderr
    assert local.run("logs", job_id, "--attempt", "x").returncode == 2


def test_logs_of_a_job_that_has_not_run_are_empty_and_say_so(local: Cli) -> None:
    local.enqueue("true")

    done = local.run("logs", "1")

    assert (done.returncode, done.stdout) == (0, "")
    assert "job 1 is pending and has not run yet" in done.stderr


def test_logs_as_json_hold_the_output_as_text(local: Cli) -> None:
    local.enqueue(r"printf 'caf\303\251 \377\n'")
    local.drain()

    assert json.loads(local.ok("logs", "--json")) == {"id": "1", "run": 1, "attempt": 1, "output": "café \ufffd\n"}


def test_logs_pass_on_bytes_that_are_no_text(local: Cli) -> None:
    local.enqueue("head -c 100000 /dev/zero | tr '\\0' '\\377' | wc -c")
    local.drain()

    assert local.ok("logs").strip() == "100000"


def _facts(text: str) -> dict[str, str]:
    return dict(re.findall(r"(?m)^([A-Z][a-z ]+): +(.*)$", text))


def test_show_says_what_would_end_the_wait(cli: Cli) -> None:
    cli.ok("queue", "pause", "shut")
    cli.ok("enqueue", "--from", "-", stdin="""\
{"id": "paused", "command": "true", "queue": "shut"}
{"id": "later", "command": "true", "delay": "1h"}
{"id": "held", "command": "true", "hold": true}
{"id": "alone", "command": "true", "queue": "nobody"}
{"id": "again", "command": "exit 1", "backoff_base": 100}
""")  # fmt: skip
    cli.ok("worker", "start", "-d", "--queue", "default")
    cli.wait_for_state("again", "failed")

    remedies = {name: cli.job(name)["remedy"] for name in ("paused", "later", "held", "alone", "again")}

    assert remedies == {
        "paused": "queuectl queue resume shut",
        "later": "queuectl retry later",
        "held": "queuectl release held",
        "alone": "queuectl worker start -d --queue nobody",
        "again": "queuectl retry again",
    }
    facts = _facts(cli.ok("show", "held"))
    assert re.fullmatch(r"being released: a person holds it since \d{4}-.*", facts["Waits for"])
    assert facts["To change it"] == "queuectl release held"


def test_show_says_in_one_line_what_ended_a_job(cli: Cli) -> None:
    cli.ok("enqueue", "--from", "-", stdin="""\
{"id": "exit", "command": "exit 3", "max_retries": 1, "backoff_base": 0}
{"id": "killed", "command": "kill -9 $$", "max_retries": 0}
{"id": "missing", "command": "no-such-command-of-this-name", "max_retries": 0}
{"id": "slow", "command": "sleep 60", "timeout": 0.1, "max_retries": 0}
{"id": "nowhere", "command": "true", "cwd": "/no/such/folder", "max_retries": 0}
{"id": "unwanted", "command": "true", "delay": "1h"}
{"id": "again", "command": "exit 4", "job_retry_delay": "1h", "backoff_strategy": "fixed"}
{"id": "fine", "command": "true"}
""")  # fmt: skip
    cli.ok("cancel", "unwanted")
    cli.ok("worker", "start", "-d", "-j", "4")
    for name in ("exit", "killed", "missing", "slow", "nowhere"):
        cli.wait_for_state(name, "dead")
    cli.wait_for_state("again", "failed")
    cli.wait_for_state("fine", "completed")

    causes = {str(job["id"]): cli.job(str(job["id"]))["cause"] for job in cli.json("list")}

    nowhere = str(causes.pop("nowhere"))
    assert nowhere.startswith("it could not be started: ")
    assert "/no/such/folder" in nowhere
    assert causes == {
        "exit": "exit code 3; 2 runs used, none left",
        "killed": "killed by SIGKILL (signal 9); 1 run used, none left",
        "missing": "exit code 127 (as a shell says: no such command); 1 run used, none left",
        "slow": "timed out after 0.1 s; 1 run used, none left",
        "unwanted": "cancelled before it ran",
        "again": "exit code 4; 3 runs left",
        "fine": None,
    }


def test_show_of_a_failed_job_ends_with_its_last_lines_and_says_where_the_rest_is(local: Cli) -> None:
    local.enqueue("--max-retries", "0", "seq 20; printf '\\033[2Jbad\\n'; exit 1")
    local.enqueue("echo fine")
    local.drain()

    end = local.ok("show", "1").split("\n\n")[-1]

    assert end == (
        "Last 5 lines of the output of run 1; all of it: queuectl logs 1\n  17\n  18\n  19\n  20\n  \\x1b[2Jbad\n"
    )
    assert "Last" not in local.ok("show", "2")


def test_several_jobs_can_be_shown_in_the_order_named(cli: Cli) -> None:
    cli.ok("enqueue", "--from", "-", stdin="true\n" * 4)

    assert re.findall(r"(?m)^Job: +(\d)", cli.ok("show", "4", "1-2", "last")) == ["4", "1", "2"]
    assert [job["id"] for job in cli.json("show", "2-3")] == ["2", "3"]
    assert cli.run("show", "1", "nope").returncode == 3


def test_logs_and_show_say_why_a_program_could_not_be_started_and_how_to_mend_it(cli: Cli) -> None:
    cli.enqueue("--id", "typo", "--max-retries", "0", "--", "gzpi", "x")
    cli.drain()

    logs = cli.run("logs", "typo")

    assert (logs.returncode, logs.stdout) == (0, "")
    assert logs.stderr == "job typo could not be started: cannot run 'gzpi': not found on PATH\n"
    assert "queuectl edit typo -- program argument ..." in cli.ok("show", "typo")
