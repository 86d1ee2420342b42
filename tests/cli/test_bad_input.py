"""What is refused, with which exit code and which words; nothing is ever left behind by it."""

import io
import json
import subprocess
from pathlib import Path

import pytest

from queuectl.actions.connect import connect
from queuectl.cli.lines import MAX_LINE_BYTES, read_lines, read_pieces
from queuectl.errors import BadInput
from queuectl.store import config
from tests.program import PROGRAM, QUOTED, Cli

# What is typed, and what must be said about it.
BAD: list[tuple[list[str], list[str]]] = [
    (["enqueue"], ["no command given", "queuectl enqueue 'echo hello'"]),
    (["enqueue", "--"], ["no command given"]),
    (["enqueue", ""], ["command is empty"]),
    (["enqueue", "  \t "], ["command is empty"]),
    (["enqueue", "--", ""], ["program name is empty"]),
    (["enqueue", '{"command": "true"'], ["broken JSON", '{"id": "job1", "command": "sleep 2"}']),
    (["enqueue", '{"command": "true"} x'], ["broken JSON at line 1, column 21"]),
    (["enqueue", '{"command":\n "true",}'], ["broken JSON at line 2, column "]),
    (["enqueue", '{"command": "true", "priority": 1e99}'], ["priority must be a whole number, not 1e+99"]),
    (["enqueue", '{"command": "true", "priority": 99999999999}'], ["priority 99999999999 is out of range", "give -1"]),
    (["enqueue", '{"command": "true", "timeout": -1}'], ["timeout -1 is out of range", "90s, 5m"]),
    (["enqueue", '{"command": "true", "timeout": 1e99}'], ["timeout 1e+99 is out of range"]),
    (["enqueue", '{"command": "true", "max_retries": 99999999999}'], ["max_retries 99999999999 is out of range"]),
    (["enqueue", '{"command": "true", "id": "../x"}'], ['bad id "../x"', "begin with a letter or digit"]),
    (["enqueue", '{"command": "true", "id": "/etc/passwd"}'], ['bad id "/etc/passwd"']),
    (["enqueue", '{"command": "true", "queue": ".."}'], ['bad queue ".."']),
    (["enqueue", '{"command": "true", "delay": "yesterday"}'], ["delay: bad duration 'yesterday'"]),
    (["enqueue", '{"command": "true", "delay": {}}'], ["delay must be a duration such as 90s", "not {}"]),
    (["enqueue", '{"command": "true", "env": {"A": "a\\u0000"}}'], ["env A holds a NUL byte"]),
    (["enqueue", '{"command": "true", "cwd": "/a\\u0000"}'], ["cwd holds a NUL byte"]),
    (["enqueue", '{"argv": ["echo", "a\\u0000"]}'], ["argv holds a NUL byte"]),
    (["enqueue", '{"command": "true", "split_output": 1}'], ["split_output must be true or false, not 1"]),
    (["enqueue", "--priority", "1e99", "true"], ["priority must be a whole number", "1e99"]),
    (["enqueue", "--timeout", "-1", "true"], ["timeout: bad duration '-1'"]),
    (["enqueue", "--timeout", "999999w", "true"], ["duration '999999w' is more than 100 years"]),
    (["enqueue", "--max-retries", "99999999999", "true"], ["max_retries 99999999999 is out of range", "give 0 to"]),
    (["enqueue", "--max-retries", "-1", "true"], ["max_retries -1 is out of range"]),
    (["enqueue", "--stdin", "", "true"], ["--stdin is empty", "name a file"]),
    (["enqueue", "{}"], ["the job has no command"]),
    (["enqueue", '{"command": null}'], ["the job has no command"]),
    (["enqueue", '{"comand": "true"}'], ["unknown field 'comand'", "did you mean 'command'?"]),
    (["enqueue", '{"command": "true", "zzz": 1}'], ["unknown field 'zzz'", "known: id, command"]),
    (["enqueue", '{"command": 5}'], ["command must be text, not 5"]),
    (["enqueue", '{"command": ["ls"]}'], ["command must be text"]),
    (["enqueue", '{"command": "a\\u0000b"}'], ["command holds a NUL byte"]),
    (["enqueue", '{"command": "\\ud800"}'], ["command is not valid UTF-8"]),
    (["enqueue", '{"argv": []}'], ["argv must be a list of words"]),
    (["enqueue", '{"argv": ["echo", 5]}'], ["argv must be text, not 5"]),
    (["enqueue", '{"argv": ["ls"], "command": "ls"}'], ["either command", "or argv"]),
    (["enqueue", '{"command": "true", "priority": "high"}'], ["priority must be a whole number", '"high"']),
    (["enqueue", '{"command": "true", "priority": 1.5}'], ["priority must be a whole number, not 1.5"]),
    (["enqueue", '{"command": "true", "priority": true}'], ["priority must be a whole number, not true"]),
    (["enqueue", '{"command": "true", "max_retries": -1}'], ["max_retries -1 is out of range"]),
    (["enqueue", '{"command": "true", "max_retries": NaN}'], ["NaN"]),
    (["enqueue", '{"command": "true", "tags": "one"}'], ["tags must be a list of tags"]),
    (["enqueue", '{"command": "true", "env": ["A=b"]}'], ["env must be an object"]),
    (["enqueue", '{"command": "true", "env": {"A": 1}}'], ["env A must be text, not 1"]),
    (["enqueue", '{"command": "true", "cwd": "here"}'], ["cwd must be an absolute path"]),
    (["enqueue", '{"command": "true", "run_at": 5}'], ["run_at must be a time such as 2026-12-01T09:00"]),
    (["enqueue", '{"command": "true", "delay": 1, "run_at": "now"}'], ["either run_at or delay"]),
    (["enqueue", '{"command": "true", "id": 7}'], ["id must be text, not 7"]),
    (["enqueue", "--id", "../x", "true"], ['bad id "../x"', "begin with a letter or digit"]),
    (["enqueue", "--id", "", "true"], ['bad id ""']),
    (["enqueue", "--id", "a b", "true"], ['bad id "a b"']),
    (["enqueue", "--id", "a" * 129, "true"], ["bad id", "at most 128"]),
    (["enqueue", "--id", "42", "true"], ["bad id '42'", "add a letter"]),
    (["enqueue", "--id", "3-9", "true"], ["bad id '3-9'", "add a letter"]),
    (["enqueue", "--id", "last", "true"], ["bad id 'last'", "add a letter"]),
    (["enqueue", "--queue", "a/b", "true"], ['bad queue "a/b"']),
    (["enqueue", "--tag", "a b", "true"], ['bad tag "a b"']),
    (["enqueue", "--delay", "yesterday", "true"], ["delay: bad duration 'yesterday'", "90s, 5m, 1h30m"]),
    (["enqueue", "--delay", "-5", "true"], ["delay: bad duration '-5'"]),
    (["enqueue", "--delay", "5 parsecs", "true"], ["unknown unit 'parsecs'"]),
    (["enqueue", "--run-at", "sometime", "true"], ["bad time 'sometime'", "tomorrow 9:00"]),
    (["enqueue", "--run-at", "2026-02-30T00:00", "true"], ["bad time '2026-02-30T00:00'"]),
    (["list", "--since", "never"], ["bad time 'never'", "2h (two hours ago)"]),
    (["enqueue", "--run-at", "25:00", "true"], ["bad time '25:00'"]),
    (["enqueue", "--timeout", "long", "true"], ["timeout: bad duration 'long'"]),
    (["enqueue", "--max-retries", "many", "true"], ["max_retries must be a whole number"]),
    (["enqueue", "--backoff-base", "nan", "true"], ["backoff_base nan is out of range"]),
    (["enqueue", "--backoff-jitter", "2", "true"], ["backoff_jitter 2", "out of range"]),
    (["enqueue", "--backoff-strategy", "liner", "true"], ["unknown backoff_strategy 'liner'", "mean 'linear'?"]),
    (["enqueue", "--env", "NAME", "true"], ["--env 'NAME' has no '='", "--env NAME=VALUE"]),
    (["enqueue", "--env", "=x", "true"], ["bad variable name"]),
    (["enqueue", "--env", "QUEUECTL_HOME=/x", "true"], ["QUEUECTL_HOME is set by queuectl itself"]),
    (["enqueue", "--command", "true", "false"], ["give the command once"]),
    (["enqueue", "--from", "no-such-file"], ["cannot read no-such-file: No such file or directory"]),
    (["enqueue", "--from", "."], ["cannot read .: Is a directory"]),
    (["enqueue", "--from", "-", "true"], ["--from takes its jobs from the file alone"]),
    (["enqueue", "--from", "-", "--id", "job1"], ["--from takes its jobs from the file alone"]),
    (["enqueue", "--prioriy", "5", "true"], ["--prioriy", "did you mean '--priority'"]),
    (["list", "--state", "ded"], ["unknown state 'ded'", "mean 'dead'?"]),
    (["list", "--state", "xyz"], ["unknown state 'xyz'", "known: pending, scheduled"]),
    (["list", "--limit", "0"], ["bad --limit '0'", "from 1 to"]),
    (["list", "--limit", "ten"], ["bad --limit 'ten'"]),
    (["list", "--tag", "a%"], ["bad tag"]),
    (["dlq", "list", "--tag", "a%"], ["bad tag"]),
    (["list", "--frob"], ["--frob", "queuectl list --help"]),
    (["list", "--", "x"], ["nothing may follow '--' here"]),
    (["show"], ["which job?", "ID", "queuectl show --help"]),
    (["logs", "-n", "x"], ["bad --lines 'x'"]),
    (["worker", "start", "--count", "0"], ["bad --count '0'", "from 1 to"]),
    (["worker", "start", "-j", "many"], ["bad --concurrency 'many'"]),
    (["worker", "start", "--queue", "a b"], ['bad queue "a b"']),
    (["worker", "start", "--log-format", "xml"], ["unknown log-format 'xml'"]),
    (["worker", "stop", "--timeout", "soon"], ["bad duration 'soon'"]),
    (["worker", "frob"], ["unknown verb 'frob'", "queuectl worker --help"]),
    (["dlq", "retry"], ["which jobs?", "give ids, an error"]),
    (["dlq", "retry", "1", "--all"], ["either ids or a filter"]),
    (["queue", "pause", "../x"], ['bad queue "../x"']),
    (["queue", "pause"], ["NAME missing"]),
    (["config", "get", "max_retry"], ["unknown setting 'max_retry'", "did you mean 'max_retries'?"]),
    (["config", "set", "max_retries", "-1"], ["max_retries: bad number '-1'", "from 0 to"]),
    (["config", "set", "backoff_base", "fast"], ["backoff_base: bad number 'fast'"]),
    (["config", "set", "backoff_strategy", "liner"], ["unknown backoff strategy 'liner'", "mean 'linear'?"]),
    (["config", "set", "job_timeout", "long"], ["job_timeout: bad duration 'long'", "90s, 5m"]),
    (["config", "set", "max_output_bytes", "lots"], ["max_output_bytes: bad size 'lots'", "10MB"]),
    (["config", "set", "shell", "bash"], ["shell: bad shell 'bash'", "/bin/bash"]),
    (["config", "set", "lock_lease_seconds", "10"], ["lock_lease_seconds 10 is too short", "2 x heartbeat + 5 s"]),
    (["config", "set", "worker_heartbeat_interval", "40"], ["too short for worker_heartbeat_interval 40"]),
    (["config", "unset", "nonsense"], ["unknown setting 'nonsense'", "queuectl config list"]),
    (["frobnicate"], ["unknown command 'frobnicate'", "queuectl --help"]),
    (["pause"], ["unknown command 'pause'; did you mean 'queuectl queue pause'?"]),
    (["group"], ["unknown command 'group'; did you mean 'queuectl status --groups'?"]),
    (["start"], ["did you mean 'queuectl worker start'?"]),
    (["backup"], ["FILE missing", "queuectl backup --help"]),
    (["config", "set"], ["KEY and VALUE missing"]),
    (["doctor", "extra", "words"], ["unexpected word 'extra'", "queuectl doctor --help"]),
    (["enqueue", "true", "--max-retries"], ["--max-retries needs a value"]),
    (["enqueue", "true", "--tag", "-x"], ["--tag needs a value", "--tag=-x"]),
    (["logs", "-n"], ["--lines needs a value"]),
    (["list", "--json=yes"], ["--json takes no value"]),
    (["list", "--failed"], ["unknown option '--failed'", "write --state failed"]),
    (["completion", "basj"], ["unknown shell 'basj'", "did you mean 'bash'?"]),
    (["list", "--state", "runing"], ["unknown state 'runing'", "mean 'running'?"]),
    (["lst"], ["unknown command 'lst'", "did you mean 'list'?"]),
    (["--frob"], ["unknown option '--frob'"]),
    (["--jsn", "list"], ["unknown option '--jsn'", "did you mean '--json'?"]),
    (["--db"], ["--db needs a URL"]),
]


@pytest.mark.parametrize("words, said", BAD, ids=lambda value: " ".join(value)[:40])
def test_bad_input_is_refused_with_what_is_wrong_and_what_to_do(local: Cli, words: list[str], said: list[str]) -> None:
    done = local.run(*words)

    assert (done.returncode, done.stdout) == (2, "")
    assert [part for part in said if part not in done.stderr] == [], done.stderr
    assert done.stderr.startswith("queuectl: ")
    assert "Traceback" not in done.stderr
    assert local.json("list") == []


@pytest.mark.parametrize("verb", ["show", "logs", "cancel", "retry", "delete"])
@pytest.mark.parametrize("job_id", ["nope", "99", "9" * 40, "last"])
def test_a_job_that_does_not_exist_is_not_found(local: Cli, verb: str, job_id: str) -> None:
    done = local.run(verb, job_id)

    assert (done.returncode, done.stdout) == (3, "")
    assert f"no job '{job_id}'" in done.stderr
    assert "queuectl list" in done.stderr


def test_the_nearest_job_is_named(cli: Cli) -> None:
    cli.run("enqueue", "--from", "-", stdin="".join(f'{{"id": "job{n:04}", "command": "true"}}\n' for n in range(900)))
    cli.enqueue("--id", "fetch", "true")

    for words in (["show", "fetsh"], ["logs", "fetsh"], ["cancel", "etch"]):
        done = cli.run(*words)
        assert done.returncode == 3
        assert f"no job '{words[1]}'; did you mean 'fetch'?" in done.stderr
    assert "mean" not in cli.run("show", "zzz").stderr


def test_a_state_in_the_place_of_an_id_points_to_the_flag(cli: Cli) -> None:
    done = cli.run("list", "failed")

    assert done.returncode == 3
    assert "queuectl list --state failed" in done.stderr


@pytest.mark.parametrize("words", [["list", "--failed"], ["enqueue", "-la"]], ids=" ".join)
def test_an_option_that_is_not_near_is_not_suggested(local: Cli, words: list[str]) -> None:
    done = local.run(*words)

    assert done.returncode == 2
    assert f"unknown option '{words[1]}'\n" in done.stderr


@pytest.mark.parametrize("words", [["dlq", "show", "x"], ["dlq", "retry", "x"], ["dlq", "purge", "x"]], ids=" ".join)
def test_a_dead_job_that_does_not_exist_is_not_found(local: Cli, words: list[str]) -> None:
    assert local.run(*words).returncode == 3


def test_a_queue_nobody_named_cannot_be_resumed(local: Cli) -> None:
    done = local.run("queue", "resume", "nowhere")

    assert done.returncode == 3
    assert "no queue 'nowhere'" in done.stderr


def test_the_nearest_queue_is_named(cli: Cli) -> None:
    cli.ok("queue", "pause", "newsletter")

    done = cli.run("queue", "resume", "newsleter")

    assert (done.returncode, done.stdout) == (3, "")
    assert "no queue 'newsleter'; did you mean 'newsletter'?" in done.stderr
    assert "newsletter (paused)" in cli.ok("status")


def test_a_job_that_is_not_dead_is_not_revived_from_the_dlq(cli: Cli) -> None:
    cli.enqueue("--id", "job1", "true")
    before = cli.job("job1")

    done = cli.run("dlq", "retry", "job1")

    assert (done.returncode, done.stdout) == (6, "")
    assert "job1" in done.stderr
    assert "pending" in done.stderr
    assert cli.job("job1") == before


def test_a_word_that_is_no_text_is_refused(cli: Cli) -> None:
    for words in ([b"show", b"\xff"], [b"enqueue", b"\xff"], [b"cancel", b"a\xff"], [b"config", b"get", b"\xff"]):
        done = subprocess.run([PROGRAM.encode(), *words], env=cli.environ, capture_output=True)
        assert (done.returncode, done.stdout) == (2, b""), words
        assert b"internal error" not in done.stderr
        assert done.stderr.startswith(b"queuectl: ")

    assert cli.json("list") == []


def test_a_stored_setting_that_cannot_be_read_is_named_and_can_be_forgotten(cli: Cli) -> None:
    database = connect(cli.target)
    database.write(lambda tx: config.put(tx, "max_retries", "many"))
    database.close()

    done = cli.run("enqueue", "true")

    assert (done.returncode, done.stdout) == (2, "")
    assert "stored setting max_retries: bad number 'many'" in done.stderr
    assert "queuectl config unset max_retries" in done.stderr
    cli.ok("config", "unset", "max_retries")
    assert cli.enqueue("true") == "1"


def test_a_duplicate_id_is_refused_and_the_old_job_stays_as_it_was(cli: Cli) -> None:
    cli.enqueue("--id", "job1", "--priority", "5", "echo old")
    before = cli.job("job1")

    done = cli.run("enqueue", "--id", "job1", "echo new")

    assert (done.returncode, done.stdout) == (6, "")
    assert "job 'job1' exists already" in done.stderr
    assert cli.job("job1") == before
    assert len(cli.json("list")) == 1


def test_one_bad_line_keeps_the_whole_batch_out(cli: Cli) -> None:
    done = cli.run("enqueue", "--from", "-", stdin='true\n{"command":5}\n')

    assert (done.returncode, done.stdout) == (2, "")
    assert "line 2: command must be text, not 5" in done.stderr
    assert cli.json("list") == []


@pytest.mark.parametrize(
    "last, said",
    [
        ('{"command": "true", "priority": "x"}', "line 100000: priority"),
        ('{"command": "true"', "line 100000: broken JSON at column 19: Expecting ',' delimiter"),
        ("a\0b", "line 100000: command holds a NUL byte"),
        ('{"id": "same", "command": "true"}\n{"id": "same", "command": "true"}', "id 'same' is given twice"),
    ],
    ids=["wrong type", "broken JSON", "NUL", "the same id twice"],
)
def test_a_batch_of_100_000_lines_whose_last_is_bad_adds_nothing(local: Cli, last: str, said: str) -> None:
    lines = "".join(f'{{"id": "j{number}", "command": "true"}}\n' for number in range(99_999))

    done = local.run("enqueue", "--from", "-", stdin=f"{lines}{last}\n")

    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert local.json("list") == []


def test_a_large_batch_with_one_id_that_is_taken_adds_nothing(cli: Cli) -> None:
    cli.enqueue("--id", "taken", "true")
    lines = "true\n" * 20_000 + '{"id": "taken", "command": "true"}\n'

    done = cli.run("enqueue", "--from", "-", stdin=lines)

    assert (done.returncode, done.stdout) == (6, "")
    assert [job["id"] for job in cli.json("list")] == ["taken"]


def test_a_command_of_two_megabytes_is_refused(local: Cli) -> None:
    done = local.run("enqueue", "--from", "-", stdin=f"echo {'x' * 2_000_000}\n")

    assert done.returncode == 2
    assert "line 1: command has 2000005 bytes; the limit is 1048576" in done.stderr
    assert "put it in a script" in done.stderr
    assert len(done.stderr) < 1000


@pytest.mark.needs("prlimit")
@pytest.mark.parametrize("words", [["enqueue", "--from", "/dev/zero"], ["import", "/dev/zero"]], ids=" ".join)
def test_a_line_without_an_end_is_refused_before_it_fills_memory(local: Cli, words: list[str]) -> None:
    local.prefix = ("prlimit", f"--as={1 << 30}")

    done = local.run(*words)

    assert done.returncode == 2, done.stderr
    assert "line 1: longer than" in done.stderr
    assert local.json("list") == []


@pytest.mark.parametrize("line", ["true", "x" * 5_000_000], ids=["before-a-short-one", "in-many-pieces"])
def test_a_line_that_is_too_long_is_named_by_its_number(line: str) -> None:
    data = b"true\n# " + line.encode() + b"\n\n" + b"x" * (MAX_LINE_BYTES + 1) + b"\ntrue\n"

    with pytest.raises(BadInput, match="line 4: longer than 16MiB"):
        read_pieces(io.BytesIO(data), MAX_LINE_BYTES, "nothing was added")
    with pytest.raises(BadInput, match="line 4: longer than 16MiB"):
        list(read_lines(io.BytesIO(data), MAX_LINE_BYTES, "nothing was added"))


def test_a_line_as_long_as_may_be_is_read_whole() -> None:
    lines = [b"true\n", b"x" * (MAX_LINE_BYTES - 1) + b"\n", b"last"]

    assert read_pieces(io.BytesIO(b"".join(lines)), MAX_LINE_BYTES, "") == b"".join(lines)
    assert list(read_lines(io.BytesIO(b"".join(lines)), MAX_LINE_BYTES, "")) == lines


def test_bytes_that_are_no_text_are_refused_with_their_line(local: Cli) -> None:
    done = subprocess.run(
        [PROGRAM, "enqueue", "--from", "-"], input=b"true\n\xff\xfe\n", env=local.environ, capture_output=True
    )

    assert done.returncode == 2
    assert b"line 2: not valid UTF-8" in done.stderr
    assert local.json("list") == []


@pytest.mark.parametrize("words", ["enqueue true", "export out.jsonl", "backup out.db"])
def test_a_folder_that_was_removed_meanwhile_is_named_as_the_problem(local: Cli, tmp_path: Path, words: str) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()

    done = subprocess.run(
        ["/bin/sh", "-c", f"rmdir '{gone}'; exec {QUOTED} {words}"],
        cwd=gone,
        env=local.environ,
        capture_output=True,
        text=True,
    )

    assert done.returncode == 2
    assert "the current folder does not exist any more" in done.stderr


ESCAPES = "\x1b[2J\x1b]0;owned\x07\u202e\b"
OBEYED = set("\x1b\x07\u202e\b")


def test_terminal_sequences_in_a_command_are_shown_and_never_obeyed(cli: Cli) -> None:
    cli.enqueue(json.dumps({"id": "evil", "command": f": {ESCAPES}; exit 1", "max_retries": 0, "cwd": f"/{ESCAPES}"}))
    cli.enqueue(json.dumps({"id": "evil2", "argv": ["false", ESCAPES], "max_retries": 0, "env": {"A": ESCAPES}}))
    cli.drain()

    for words in ("list", "show evil", "show evil2", "dlq list", "dlq show evil", "status"):
        shown = cli.ok(*words.split())
        assert not set(shown) & OBEYED, words
    assert r"\x1b[2J\x1b]0;owned\x07\u202e\x08" in cli.ok("list")


@pytest.mark.parametrize(
    "words",
    [
        ("show", f"x{ESCAPES}"),
        ("list", "--state", ESCAPES),
        ("config", "get", ESCAPES),
        ("enqueue", f'{{"{ESCAPES[0:4]}": 1}}'),
        ("enqueue", "--id", ESCAPES, "true"),
        ("enqueue", "--delay", ESCAPES, "true"),
        ("enqueue", "--from", f"x{ESCAPES}"),
        ("enqueue", f"--{ESCAPES}", "true"),
        (f"x{ESCAPES}",),
        ("dlq", f"x{ESCAPES}"),
        ("--db", f"x{ESCAPES}", "list"),
    ],
    ids=lambda words: words[0] if words[0].isprintable() else "command",
)
def test_terminal_sequences_in_what_was_typed_are_not_obeyed_by_errors(local: Cli, words: tuple[str, ...]) -> None:
    done = local.run(*words)

    assert done.returncode in (2, 3)
    assert not set(done.stderr) & OBEYED


def test_a_reader_that_leaves_early_is_not_an_error(local: Cli) -> None:
    local.ok("enqueue", "--from", "-", stdin="true\n" * 5000)

    done = subprocess.run(
        ["/bin/sh", "-c", f"{QUOTED} list --limit 5000 --json | head -n 1"],
        env=local.environ,
        capture_output=True,
        text=True,
    )

    assert len(done.stdout.splitlines()) == 1
    assert done.stderr == ""


def test_an_output_that_cannot_be_written_is_an_error_without_a_traceback(local: Cli) -> None:
    local.enqueue("true")

    with open("/dev/full", "w") as full:
        done = subprocess.run([PROGRAM, "list"], env=local.environ, stdout=full, stderr=subprocess.PIPE, text=True)

    assert done.returncode == 1
    assert "No space left on device" in done.stderr
    assert "internal error" not in done.stderr


def test_an_output_that_cannot_be_written_is_said_also_by_a_command_that_fails(local: Cli) -> None:
    local.enqueue("--max-retries", "0", "exit 3")
    local.drain()

    buffered = {name: value for name, value in local.environ.items() if name != "PYTHONUNBUFFERED"}
    with open("/dev/full", "w") as full:
        words = [PROGRAM, "wait", "--json", "1"]
        done = subprocess.run(words, env=buffered, stdout=full, stderr=subprocess.PIPE, text=True)

    assert done.returncode == 1
    assert "cannot write the output: No space left on device" in done.stderr
    assert "did not complete" in done.stderr


def test_the_id_can_be_caught_in_a_shell_variable(local: Cli) -> None:
    done = subprocess.run(
        ["/bin/sh", "-c", f"id=$({QUOTED} enqueue 'echo hi'); echo \"<$id>\""],
        env=local.environ,
        capture_output=True,
        text=True,
    )

    assert done.stdout == "<1>\n"
