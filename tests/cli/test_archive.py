"""`queuectl backup` and `queuectl restore`: what they say, what they ask, and how they refuse."""

import json
import os
from pathlib import Path

import pytest

from queuectl.actions.connect import Target, connect
from tests.cli.terminal import on_terminal
from tests.program import Cli

ON_SQLITE = pytest.mark.parametrize("target", ["sqlite"], indirect=True)


@pytest.fixture
def copy(cli: Cli) -> str:
    """A backup of two jobs; the store has three by now."""
    for _ in range(2):
        cli.enqueue("true")
    path = str(cli.folder / "copy.db")
    cli.ok("backup", path)
    cli.enqueue("true")
    return path


def ids(cli: Cli) -> list[object]:
    """Return the ids of all jobs."""
    return [job["id"] for job in cli.json("list")]


def test_backup_says_what_it_made(cli: Cli) -> None:
    cli.enqueue("true")

    said = cli.ok("backup", "copy.db")
    (told,) = cli.json("backup", "copy.db", "--force")

    path = cli.folder / "copy.db"
    assert said.startswith(f"{path}: 1 job, ")
    assert told == {"file": str(path), "jobs": 1, "bytes": path.stat().st_size}


def test_a_backup_can_be_looked_at_as_a_store(cli: Cli, copy: str) -> None:
    listed = cli.ok("--db", f"sqlite://{copy}", "list", "--json")

    assert [json.loads(line)["id"] for line in listed.splitlines()] == ["2", "1"]


def test_a_backup_can_be_worked_off_as_a_store(cli: Cli, copy: str) -> None:
    cli.ok("--db", f"sqlite://{copy}", "worker", "start", "--until-idle")

    listed = cli.ok("--db", f"sqlite://{copy}", "list", "--json")
    assert [json.loads(line)["state"] for line in listed.splitlines()] == ["completed"] * 2
    assert {job["state"] for job in cli.json("list")} == {"pending"}


@ON_SQLITE
def test_backup_refuses_what_is_there_with_code_6_and_a_missing_folder_with_code_2(cli: Cli, copy: str) -> None:
    done = [cli.run("backup", path) for path in (copy, "none/copy.db")]

    assert [(each.returncode, each.stdout) for each in done] == [(6, ""), (2, "")]
    assert "--force" in done[0].stderr
    assert "mkdir -p" in done[1].stderr


def test_restore_says_what_it_did_and_where_the_old_state_is(cli: Cli, copy: str) -> None:
    done = cli.run("restore", copy, "--yes")

    assert (done.returncode, done.stdout) == (0, f"2 jobs restored from {copy}; they replace 3\n")
    kept = done.stderr.strip().rpartition(": ")[2]
    assert Path(kept).parent == Path(cli.target.home.root, "backups")
    assert ids(cli) == ["2", "1"]
    cli.ok("restore", kept, "--yes")
    assert ids(cli) == ["3", "2", "1"]


def test_restore_does_nothing_in_a_pipe_without_yes(cli: Cli, copy: str) -> None:
    done = cli.run("restore", copy)

    assert (done.returncode, done.stdout) == (2, "")
    assert f"this replaces 3 jobs by 2 jobs of {copy}" in done.stderr
    assert "--yes" in done.stderr
    assert len(ids(cli)) == 3


@ON_SQLITE
@pytest.mark.parametrize("answer, code, left", [("n", 2, 3), ("", 2, 3), ("y", 0, 2)])
def test_restore_asks_on_a_terminal(cli: Cli, copy: str, answer: str, code: int, left: int) -> None:
    seen = on_terminal(cli, "restore", copy, typed=f"{answer}\n")

    assert seen.code == code
    assert f"this replaces 3 jobs by 2 jobs of {copy}; go on? [y/N]" in seen.screen
    assert len(ids(cli)) == left


def test_restore_is_refused_while_workers_run_and_names_them(cli: Cli, copy: str) -> None:
    cli.ok("worker", "start", "-d")
    pids = [str(worker["pid"]) for worker in cli.json("worker", "list")]

    done = cli.run("restore", copy, "--yes")

    assert (done.returncode, done.stdout) == (6, "")
    assert "queuectl worker stop" in done.stderr
    if cli.target.sqlite_path:
        assert pids[0] in done.stderr
    cli.ok("worker", "stop")
    cli.ok("restore", copy, "--yes")
    assert ids(cli) == ["2", "1"]


@ON_SQLITE
def test_restore_names_whoever_else_has_the_file_open(cli: Cli, copy: str, target: Target) -> None:
    database = connect(target)

    done = cli.run("restore", copy, "--yes")

    assert done.returncode == 6
    assert f"(pid {os.getpid()})" in done.stderr
    database.close()


@ON_SQLITE
@pytest.mark.parametrize("name, code", [("none.db", 3), ("notes.txt", 5), (".", 2)])
def test_what_is_no_backup_is_refused(cli: Cli, copy: str, name: str, code: int) -> None:
    (cli.folder / "notes.txt").write_text("notes\n" * 100)

    done = cli.run("restore", name, "--yes")

    assert (done.returncode, done.stdout) == (code, "")
    assert len(ids(cli)) == 3


@ON_SQLITE
def test_file_names_are_shown_and_not_obeyed(cli: Cli) -> None:
    cli.enqueue("true")

    said = cli.ok("backup", "a\x1b[31mb.db")
    done = cli.run("restore", "a\x1b[31mb.db")

    assert "\\x1b[31m" in said + done.stderr
    assert "\x1b" not in said + done.stderr
