"""What `queuectl enqueue` may import: it is called in shell loops, so each module it loads is paid for each time."""

import json
import subprocess
import sys

import pytest

from tests.program import Cli

HEAVY = (
    "rich", "psycopg", "asyncio", "logging", "subprocess", "dataclasses", "typing", "datetime", "importlib", "locale",
    "struct",
)  # fmt: skip
ELSEWHERE = (
    "queuectl.runtime",
    "queuectl.web",
    "queuectl.api",
    "queuectl.actions.selection",
    "queuectl.model.joblines",
)
CODE = """
import sys
from queuectl.cli.main import main
code = main(sys.argv[1:])
import json
print(json.dumps([code, sorted(sys.modules)]))
"""


@pytest.mark.parametrize(
    "words",
    [
        ("enqueue", "true"),
        ("enqueue", "--id", "job1", "--priority", "5", "--delay", "5m", "--env", "A=b", "--tag", "t", "true"),
        ("enqueue", '{"command": "echo hello", "max_retries": 2}'),
        ("enqueue", "--", "echo", "a b"),
    ],
    ids=["shell line", "flags", "JSON", "argument vector"],
)
def test_enqueue_loads_nothing_heavy_and_nothing_of_the_workers(local: Cli, words: tuple[str, ...]) -> None:
    local.ok("list")

    code, modules = _modules_after(local, *words)

    assert code == 0
    assert [name for name in modules if name.split(".")[0] in HEAVY or name.startswith(ELSEWHERE)] == []


def test_the_first_enqueue_in_a_new_home_is_as_light(local: Cli) -> None:
    code, modules = _modules_after(local, "enqueue", "true")

    assert code == 0
    assert [name for name in modules if name.split(".")[0] in HEAVY or name.startswith(ELSEWHERE)] == []


def test_the_check_sees_what_a_heavier_command_loads(local: Cli) -> None:
    _, modules = _modules_after(local, "worker", "start", "--until-idle")

    assert "queuectl.runtime.supervisor" in modules


def test_a_start_of_workers_waits_for_none_of_the_other_verbs(local: Cli) -> None:
    code, modules = _modules_after(local, "worker", "start", "--until-idle")

    assert code == 0
    assert {"queuectl.actions.control", "queuectl.actions.submit", "secrets", "hashlib"} & set(modules) == set()


def _modules_after(cli: Cli, *words: str) -> tuple[int, list[str]]:
    done = subprocess.run(
        [sys.executable, "-c", CODE, *words],
        env=cli.environ,
        cwd=cli.folder,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    code, modules = json.loads(done.stdout.splitlines()[-1])
    return code, modules
