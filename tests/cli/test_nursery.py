"""The nursery of the tests: a call in a child of it ends, prints and changes what a program of its own does."""

import subprocess
from pathlib import Path

import pytest

from tests import nursery
from tests.program import Cli
from tests.scenarios.working import another, on_sqlite

CALLS = (
    ("enqueue", "--id", "one", "pwd"),
    ("enqueue", "--id", "one", "pwd"),
    ("enqueue", "--from", "-"),
    ("config", "get", "max_retries"),
    ("worker", "start", "--until-idle"),
    ("logs", "one"),
    ("show", "nobody"),
    ("list", "--no-such-flag"),
    ("wait", "one"),
    ("_complete",),
)


@on_sqlite
def test_a_child_of_the_nursery_says_and_leaves_what_a_program_of_its_own_does(cli: Cli, tmp_path: Path) -> None:
    fresh = another(cli, tmp_path / "fresh")
    fresh.folder = cli.folder
    fresh.is_fresh = True

    said = [[ended(one, words) for words in CALLS] for one in (cli, fresh)]

    assert said[0] == said[1]


def ended(cli: Cli, words: tuple[str, ...]) -> tuple[int, str, str]:
    """Run a call and return how it ended and what it said; what workers tell has their ids and times in it."""
    done = cli.run(*words, stdin="true\nfalse\n", env={"QUEUECTL_MAX_RETRIES": "0"})
    return done.returncode, done.stdout, "" if words[0] == "worker" else done.stderr


@on_sqlite
def test_what_stays_or_changes_python_itself_is_a_program_of_its_own(cli: Cli) -> None:
    environ = cli.environ

    assert nursery.suits(("list",), environ)
    assert nursery.suits(("worker", "start", "--until-idle"), environ)
    assert not nursery.suits(("worker", "start", "-d"), environ)
    assert not nursery.suits(("list",), {**environ, "PYTHONPATH": "/elsewhere"})
    assert not nursery.suits(("list",), {**environ, "TZ": "Asia/Tokyo"})


@on_sqlite
def test_a_child_that_does_not_end_in_time_is_ended(cli: Cli) -> None:
    cli.enqueue("--id", "never", "true")

    with pytest.raises(subprocess.TimeoutExpired):
        cli.run("wait", "never", timeout=0.5)
