"""The JSON of every command against its schema file: nothing missing, nothing extra, every value of its kind."""

import argparse
import json
import subprocess
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

import jsonschema
import pytest
from referencing import Registry, Resource
from referencing.jsonschema import SchemaRegistry

import queuectl.schemas
from queuectl.cli.main import COMMANDS
from queuectl.cli.parser import Parser, make_parser
from tests.cli.systemd import Recorder
from tests.program import PROGRAM, Cli, wait_for

SCHEMAS = Path(queuectl.schemas.__file__).parent
SHARED = {"types", "job", "attempt", "worker", "group"}
GROUPS = ("worker", "dlq", "queue", "limit", "schedule", "token", "config")
STAYS = {"serve"}
"""Says one line and stays: see the test below."""
NOWHERE = {"db": None, "json": False}


def test_every_command_and_verb_has_a_schema_file_and_every_schema_file_a_command() -> None:
    files = {path.stem for path in SCHEMAS.glob("*.json")}

    assert files - SHARED == set(_commands())


def test_what_the_schemas_share_is_used() -> None:
    text = "".join(path.read_text() for path in SCHEMAS.glob("*.json"))

    assert {name for name in SHARED if f'"$ref": "{name}.json' in text} == SHARED


@pytest.mark.parametrize("path", sorted(SCHEMAS.glob("*.json")), ids=lambda path: path.stem)
def test_a_schema_file_is_a_schema_of_the_draft_it_names(path: Path) -> None:
    schema = json.loads(path.read_text())

    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["$schema"] == jsonschema.Draft202012Validator.META_SCHEMA["$id"]
    assert schema["$id"] == path.name


def test_every_line_of_every_command_fits_its_schema(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Recorder(tmp_path, monkeypatch)
    seen: dict[str, list[str]] = {}
    for name, words in _walk(cli):
        done = cli.run(*words)
        assert done.returncode == 0, f"{words}: {done.stderr}"
        for line in done.stdout.splitlines():
            _check(name, line)
        seen.setdefault(name, []).extend(done.stdout.splitlines())

    assert set(seen) == set(_commands()) - STAYS
    assert [name for name, lines in seen.items() if not lines] == []
    for name, lines in seen.items():
        _check_strict(name, lines[-1])


def test_a_server_says_where_it_listens_in_one_line_that_fits_the_schema(cli: Cli) -> None:
    with subprocess.Popen(
        [PROGRAM, "serve", "--port", "0", "--json"],
        env=cli.environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        process.terminate()
        rest = process.stdout.read()

    _check("serve", line)
    _check_strict("serve", line)
    assert (rest, process.returncode) == ("", 0)


def test_a_worker_in_the_foreground_says_who_it_is_in_one_line_that_fits_the_schema(cli: Cli) -> None:
    with subprocess.Popen(
        [PROGRAM, "worker", "start", "-n", "2", "--json"],
        env=cli.environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        cli.ok("worker", "stop")
        rest = process.stdout.read()

    _check("worker-start", line)
    assert len(json.loads(line)["workers"]) == 2
    assert (rest, process.returncode) == ("", 0)


def test_a_worker_that_does_not_stop_in_time_is_named_in_what_stop_prints(cli: Cli) -> None:
    cli.enqueue("--id", "slow", "sleep 60")
    cli.ok("worker", "start", "-d")
    cli.wait_for_state("slow", "processing")

    done = cli.run("worker", "stop", "--timeout", "100ms", "--json")

    assert done.returncode == 4
    _check("worker-stop", done.stdout)
    assert len(json.loads(done.stdout)["remaining"]) == 1
    [stopping] = cli.json("worker", "list")
    _check("worker-list", json.dumps(stopping))
    assert stopping["stopping"] == "drain"


def test_the_worker_of_a_run_serves_no_queue_and_fits_the_schema(cli: Cli, tmp_path: Path) -> None:
    go = tmp_path / "go"
    running = cli.start("run", f"until [ -e {go} ]; do sleep 0.02; done")
    wait_for(lambda: len(cli.json("worker", "list")) == 1, "the worker of the run")

    [worker] = cli.json("worker", "list")
    [status] = cli.json("status")
    go.touch()

    assert worker["queues"] == []
    _check("worker-list", json.dumps(worker))
    _check("status", json.dumps(status))
    assert running.wait(timeout=60) == 0


def _walk(cli: Cli) -> Iterator[tuple[str, list[str]]]:
    """Yield every command in every state it can be met in; the caller runs each before it asks for the next."""
    for words in (
        "list",
        "status",
        "worker list",
        "worker list --all",
        "dlq list",
        "queue list",
        "config list",
        "stats",
    ):
        yield _line(f"{words} --json")
    yield _line("migrate --json")
    yield "doctor", ["doctor", "--json"]
    yield _line("limit set api 1 --json")
    yield _line("limit set api 1 --json")
    yield _line("queue set default --concurrency 100 --timeout 5m --json")
    yield _line("queue set default --concurrency 100 --json")
    yield "schedule-add", ["schedule", "add", "nightly", "30 2 * * *", "--tz", "Europe/Oslo", "--json", "true"]
    yield _line("schedule add beat --every 10m --jitter 30s --overlap queue --json -- echo beat")
    yield _line("schedule list --json")
    yield _line("schedule run beat --json")
    yield "enqueue", ["enqueue", "--json", "--from", str(_batch(cli.folder))]
    yield "map", ["map", "--json", "--queue", "shut", "--delay", "1h", "ls {}", ":::", "a b"]
    yield "map", ["map", "--json", "--queue", "shut", "--delay", "1h", "--unique", "{#}", "--", "ls", ":::", "a", "b"]
    yield "map", ["map", "--json", "--dry-run", "ls {}", ":::", "a b"]
    yield _line("logs done --json")
    yield _line("queue pause shut --json")
    yield _line("queue pause shut --json")
    yield _line("cancel unwanted --json")
    yield _line("worker start -d -j 8 --queue default --label ssd --resource gpu=2 --json")
    _wait_until_all_ran(cli)
    for words in ("list", "status", "worker list", "worker list --all", "dlq list", "dlq groups", "queue list"):
        yield _line(f"{words} --json")
    for words in ("queue show shut", "queue show default", "limit show api", "limit show --mutex nobody", "limit list"):
        yield _line(f"{words} --json")
    for job in cli.json("list"):
        yield "show", ["show", str(job["id"]), "--json"]
    yield "why", ["why", "--json", *(str(job["id"]) for job in cli.json("list"))]
    for words in ("graph dead", "graph done --up", "graph done --down --limit 1", "graph done"):
        yield _line(f"{words} --json")
    for job_id in ("done", "running", "later", "split", "split --stdout", "split --stderr", "done -f", "split -f"):
        yield _line(f"logs {job_id} --json")
    yield _line("schedule show nightly beat --json")
    yield _line("schedule list --json")
    yield _line("schedule preview beat 3 --json")
    yield _line("schedule preview @daily --json")
    yield _line("schedule edit beat --overlap skip --priority 5 --json")
    yield _line("schedule pause beat --json")
    yield _line("wait done --json")
    for words in (
        "wait --group plain",
        "status --group plain",
        "status --group mixed",
        "status --groups",
        "retry --group plain",
    ):
        yield _line(f"{words} --json")
    yield _line("cancel --group plain --dry-run --json")
    yield "run", ["run", "--json", "echo a; echo b >&2"]
    yield _line("completion bash --json")
    yield "export", ["export"]
    yield "export", ["export", "--json", str(cli.folder / "whole.jsonl")]
    (cli.folder / "export").write_text(cli.ok("export", "--state", "dead,failed"))
    yield "import", ["import", "--skip-existing", "--json", str(cli.folder / "export")]
    yield _line("dlq show dead --json")
    yield _line("dlq retry dead --json")
    yield _line("dlq retry --all --queue none --json")
    yield _line("stats --json")
    yield _line("stats --range 7d --queue default --json")
    wait_for(lambda: cli.job("dead")["state"] == "dead" or None, "dead a second time")
    yield _line("cancel kept follows --json")
    yield _line("dlq groups --json")
    yield _line("dlq purge dead --json")
    yield _line("cancel running waiting --json")
    wait_for(lambda: cli.job("running")["state"] == "cancelled" or None, "running cancelled")
    yield _line("show running --json")
    yield _line("hold later --json")
    yield _line("hold later --json")
    yield _line("show later --json")
    yield _line("edit later --priority 5 --tag x --delay 2h --timeout 90s --dry-run --json")
    yield _line("edit later --priority 5 --tag x --delay 2h --timeout 90s --json")
    yield _line("edit 1-3 --tag x --json")
    yield _line("release later --json")
    yield _line("hold --tag x --yes --json")
    yield _line("release --all --yes --json")
    yield _line("retry --queue nowhere --yes --json")
    yield _line("retry 1-3 --dry-run --json")
    yield _line("cancel --state completed --yes --json")
    yield _line("delete --tag nothing --yes --json")
    yield _line("audit --json")
    yield _line("retry later --json")
    yield _line("delete unwanted done --json")
    yield _line("worker restart --json")
    yield _line("worker stop --json")
    yield _line("worker stop --json")
    yield _line("worker install --json --dry-run")
    yield _line("worker install --json")
    yield _line("worker uninstall --json")
    yield _line("worker list --all --json")
    yield _line("dlq purge --yes --json")
    yield _line("queue resume shut --json")
    yield _line("queue set none --rate 10/m --max-retries 0 --priority -3 --json")
    yield _line("queue set none --rate none --json")
    yield _line("queue delete none --json")
    yield _line("limit set unused 0 --json")
    yield _line("limit delete unused --json")
    yield _line("token add ci --role submit --expires 30d --json")
    yield _line("token list --json")
    yield _line("token revoke ci --json")
    yield _line("schedule resume beat --json")
    yield _line("schedule remove beat --json")
    yield _line("config set default-max-tries 6 --json")
    yield _line("config list --json")
    yield _line("config get default_max_tries --json")
    yield _line("config get backoff-base --json")
    yield _line("config unset max_retries --json")
    yield _line("config unset max_retries --json")
    yield _line("prune --dry-run --json")
    yield _line("prune --json")
    copy = str(cli.folder / "copy.db")
    yield "backup", ["backup", copy, "--json"]
    yield "restore", ["restore", copy, "--yes", "--json"]


def _batch(folder: Path) -> Path:
    """Write jobs that end in every way a run can end, and some that wait."""
    jobs: list[dict[str, object]] = [
        {"id": "done", "command": "echo hello", "tags": ["one", "two"], "env": {"A": "b"}, "timeout": "5m"},
        {"id": "vector", "argv": ["printf", "%s\n", "a b"], "priority": -3},
        {"id": "split", "command": "echo out; echo err >&2", "split_output": True},
        {"id": "dead", "command": "exit 3", "max_retries": 0},
        {"id": "killed", "command": "kill -9 $$", "max_retries": 0},
        {"id": "slow", "command": "sleep 60", "timeout": 0.1, "max_retries": 0},
        {"id": "nowhere", "command": "true", "cwd": "/no/such/folder", "max_retries": 0},
        {"id": "waiting", "command": "exit 1", "backoff_strategy": "fixed", "job_retry_delay": "1h",
         "backoff_base": 3, "max_backoff_seconds": "2h", "backoff_jitter": 0.5},
        {"id": "running", "command": "sleep 60", "limits": ["api"]},
        {"id": "parked", "command": "true", "limits": ["api"], "mutex": ["db"]},
        {"id": "later", "command": "true", "delay": "1h", "queue": "shut"},
        {"id": "unwanted", "command": "true", "queue": "shut"},
        {"id": "ready", "command": "true", "queue": "shut"},
        {"id": "special", "command": "true", "needs": ["gpu"], "use": {"mem": "64G"}, "mutex": ["db"]},
        {"id": "follows", "command": "true", "after": "later,any:done", "run_at": "2099-01-01T00:00:00Z"},
        {"id": "starved", "command": "true", "after": ["dead"]},
        {"id": "kept", "command": "true", "after": ["dead"], "on_dead_dependency": "keep"},
        {"id": "instead", "command": "true", "after": "fail:dead,done"},
        {"command": "true", "run_at": "2099-01-01T00:00:00Z"},
        {"command": "true", "group": "plain"},
        {"command": "exit 4", "group": "mixed", "max_retries": 0, "max_failures": "0", "on_group_done": "true"},
        {"id": "stopped", "command": "true", "group": "mixed", "delay": "1h"},
    ]  # fmt: skip
    path = folder / "jobs"
    path.write_text("".join(f"{json.dumps(job)}\n" for job in jobs))
    return path


def _wait_until_all_ran(cli: Cli) -> None:
    wanted = {
        "done": "completed", "vector": "completed", "split": "completed", "dead": "dead", "killed": "dead",
        "slow": "dead", "nowhere": "dead", "waiting": "failed", "running": "processing", "ready": "pending",
        "unwanted": "cancelled", "stopped": "cancelled",
    }  # fmt: skip

    def have_all_ran() -> bool:
        states = {job["id"]: job["state"] for job in cli.json("list")}
        return wanted.items() <= states.items()

    wait_for(lambda: have_all_ran() or None, "every job in its state")


def _line(words: str) -> tuple[str, list[str]]:
    command, verb, *_ = words.split()
    return f"{command}-{verb}" if command in GROUPS else command, words.split()


def _check(name: str, line: str) -> None:
    problems = [f"{error.json_path}: {error.message}" for error in _validator(name).iter_errors(json.loads(line))]
    assert problems == [], f"{name}: {line}"


def _check_strict(name: str, line: str) -> None:
    """A schema that also takes less, or more, would not notice a change."""
    shape = json.loads(line)
    assert not _validator(name).is_valid({**shape, "surprise": 1}), name
    for key in shape:
        assert not _validator(name).is_valid({other: shape[other] for other in shape if other != key}), f"{name} {key}"
        assert not _validator(name).is_valid({**shape, key: {"surprise": 1.5}}), f"{name} {key}"


@cache
def _validator(name: str) -> jsonschema.Draft202012Validator:
    contents = {path.name: json.loads(path.read_text()) for path in SCHEMAS.glob("*.json")}
    registry: SchemaRegistry = Registry().with_resources(
        (file, Resource.from_contents(schema)) for file, schema in contents.items()
    )
    return jsonschema.Draft202012Validator(
        contents[f"{name}.json"],
        registry=registry,
        format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER,
    )


def _commands() -> Iterator[str]:
    """Yield `list`, `worker-start` and so on: each command, or each verb of a group."""
    for name, (module, _) in COMMANDS.items():
        verbs = _verbs(make_parser(name, import_module(f"queuectl.cli.{module}"), NOWHERE))
        yield from (f"{name}-{verb}" for verb in verbs) if verbs else [name]


def _verbs(parser: Parser) -> list[str]:
    groups = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    return [verb for group in groups for verb in group.choices]
