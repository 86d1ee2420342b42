"""Which store a command means, and what it says when that store cannot be used."""

import os
import stat
from pathlib import Path

import apsw
import pytest

from tests.program import Cli
from tests.scenarios.faults import bound_by_modes, read_only

PASSWORD = "hunter2"


def test_a_missing_home_is_created_for_its_owner_alone(local: Cli, tmp_path: Path) -> None:
    home = tmp_path / "deep" / "home"

    assert local.ok("enqueue", "true", env=_home(home)) == "1\n"

    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    assert stat.S_IMODE((home / "queue.db").stat().st_mode) == 0o600


def test_the_home_of_the_user_is_the_default(local: Cli, tmp_path: Path) -> None:
    local.ok("enqueue", "true", env={"HOME": str(tmp_path), "QUEUECTL_HOME": "", "QUEUECTL_DATABASE_URL": ""})

    assert (tmp_path / ".queuectl" / "queue.db").exists()


@pytest.mark.parametrize("words", [["enqueue", "true"], ["list"], ["status"], ["worker", "start"]], ids=" ".join)
def test_a_home_that_cannot_be_created_is_named(local: Cli, tmp_path: Path, words: list[str]) -> None:
    (tmp_path / "file").touch()

    done = local.run(*words, env=_home(tmp_path / "file" / "home"))

    assert (done.returncode, done.stdout) == (5, "")
    assert "cannot create" in done.stderr
    assert "set QUEUECTL_HOME to a folder you may write to" in done.stderr


def test_a_file_in_place_of_the_home_is_named(local: Cli, tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    done = local.run("enqueue", "true", env=_home(tmp_path / "file"))

    assert done.returncode == 5
    assert str(tmp_path / "file") in done.stderr


def test_a_file_that_is_no_database_is_refused_and_left_as_it_was(local: Cli, tmp_path: Path) -> None:
    letter = tmp_path / "letter.txt"
    letter.write_text("hello, I am a letter\n")

    done = local.run("--db", f"sqlite://{letter}", "enqueue", "true")

    assert (done.returncode, done.stdout) == (5, "")
    assert f"{letter} is not a database" in done.stderr
    assert letter.read_text() == "hello, I am a letter\n"


def test_a_folder_in_place_of_the_database_is_refused(local: Cli, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()

    done = local.run("--db", f"sqlite://{tmp_path}/folder", "list")

    assert done.returncode == 5
    assert "internal error" not in done.stderr


def test_db_picks_another_store_before_or_after_the_command_and_its_verb(local: Cli, tmp_path: Path) -> None:
    other = f"sqlite://{tmp_path}/other.db"
    local.ok("enqueue", "--db", other, "--id", "there", "--max-retries", "0", "exit 1")
    local.ok("--db", other, "worker", "start", "--until-idle")

    assert local.json("list") == []
    assert local.ok("--db", other, "list", "-q") == "there\n"
    assert local.ok(f"--db={other}", "list", "-q") == "there\n"
    assert "there" in local.ok("dlq", "--db", other, "list")
    assert "there" in local.ok("dlq", "list", "--db", other)
    assert "there" in local.ok("--db", other, "dlq", "list")


@pytest.mark.parametrize("url", ["mysql://host/name", "queue.db", "sqlite://relative.db", "sqlite:", "postgresql:x"])
def test_a_url_of_no_known_kind_is_bad_input(local: Cli, url: str) -> None:
    done = local.run("--db", url, "list")

    assert (done.returncode, done.stdout) == (2, "")
    assert "bad database URL" in done.stderr
    assert "sqlite:///absolute/path or postgresql://user@host/name" in done.stderr


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://user:{PASSWORD}@host/name",
        f"postgres://user:{PASSWORD}@host/name",
        f"postgresql://user@host/name?password={PASSWORD}",
        f"postgresql://host/name?user=me&password={PASSWORD}",
        f"postgresql://user:a/{PASSWORD}@host/name",
    ],
)
def test_a_password_in_db_is_refused_because_ps_would_show_it(local: Cli, url: str) -> None:
    done = local.run("--db", url, "list")

    assert (done.returncode, done.stdout) == (2, "")
    assert "a password in --db would show in ps" in done.stderr
    assert "PGPASSFILE" in done.stderr
    assert PASSWORD not in done.stderr


@pytest.mark.parametrize(
    "url, code",
    [
        (f"postgresql://user:{PASSWORD}@localhost:1/name", 5),
        (f"postgresql://user@localhost:1/name?password={PASSWORD}", 5),
        (f"postgresql://user@localhost:1/name?passwrd={PASSWORD}", 5),
        (f"postgresql://user:{PASSWORD}@[::1/name", 5),
        (f"postgresql://user:{PASSWORD} x@localhost:1/name", 5),
        (f"postgresql://user:{PASSWORD}@localhost:port/name", 5),
        (f"postgresql://user:a/{PASSWORD}@localhost:1/name", 5),
        (f"mysql://user:{PASSWORD}@localhost/name", 2),
        (f"postgres:user:{PASSWORD}@localhost", 2),
    ],
)
def test_a_password_in_the_environment_never_shows_in_an_error(local: Cli, url: str, code: int) -> None:
    done = local.run("list", env={"QUEUECTL_DATABASE_URL": url, "PGCONNECT_TIMEOUT": "3"})

    assert PASSWORD not in done.stdout + done.stderr
    assert "internal error" not in done.stderr
    assert done.returncode == code


def test_a_server_that_does_not_answer_is_exit_code_5_with_what_to_check(local: Cli) -> None:
    done = local.run("list", env={"QUEUECTL_DATABASE_URL": "postgresql://user@localhost:1/name"})

    assert (done.returncode, done.stdout) == (5, "")
    assert "postgresql://user@localhost:1/name" in done.stderr
    assert "is the server running" in done.stderr


def test_migrate_says_that_there_is_nothing_to_do(cli: Cli) -> None:
    cli.ok("list")

    assert cli.ok("migrate").endswith(", nothing to do\n")


def _home(path: Path) -> dict[str, str]:
    return {"QUEUECTL_HOME": str(path), "QUEUECTL_DATABASE_URL": ""}


@pytest.mark.parametrize("part", [50, 512, 4096, "half"])
def test_a_database_that_was_cut_off_is_refused_and_left_as_it_is(local: Cli, part: int | str) -> None:
    path = in_one_file(local)
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2 if part == "half" else int(part)])
    left = path.read_bytes()

    for words in (["list"], ["enqueue", "true"], ["worker", "start", "--until-idle"]):
        done = local.run(*words)
        assert (done.returncode, done.stdout) == (5, ""), words
        assert f"{path} is not a database" in done.stderr
        assert "restore a copy" in done.stderr

    assert path.read_bytes() == left


def test_a_database_of_no_bytes_is_a_new_one(local: Cli) -> None:
    path = in_one_file(local)
    path.write_bytes(b"")

    assert local.json("list") == []
    assert local.enqueue("true") == "1"


@pytest.mark.parametrize("is_there", [True, False], ids=["emptied", "removed"])
def test_the_log_of_a_database_that_is_gone_is_not_thrown_away(local: Cli, is_there: bool) -> None:
    local.enqueue("true")
    path = Path(local.target.home.database)
    log = Path(f"{path}-wal")
    kept = log.read_bytes()
    path.write_bytes(b"")
    if not is_there:
        path.unlink()

    for words in (["list"], ["enqueue", "true"], ["migrate"], ["doctor"]):
        done = local.run(*words)
        said = done.stdout + done.stderr
        assert done.returncode == (1 if words == ["doctor"] else 5), words
        assert f"{log} holds changes of a database that is not there any more" in said
        assert "restore a copy" in said

    assert log.read_bytes() == kept
    assert path.exists() == is_there


@pytest.mark.parametrize("garbage", [b"", b"x" * 20, b"x" * 100_000], ids=len)
def test_garbage_in_place_of_the_log_costs_nothing_that_is_in_the_file(local: Cli, garbage: bytes) -> None:
    path = in_one_file(local)
    Path(f"{path}-wal").write_bytes(garbage)

    assert len(local.json("list", "--limit", "1000")) == 300
    assert local.enqueue("true") == "301"
    assert len(local.json("list", "--limit", "1000")) == 301


def test_a_log_that_was_cut_off_keeps_what_was_committed_before_the_cut(local: Cli) -> None:
    local.ok("enqueue", "--from", "-", stdin="true\n" * 300)
    log = Path(f"{local.target.home.database}-wal")
    size = log.stat().st_size
    local.ok("enqueue", "--from", "-", stdin="true\n" * 300)
    os.truncate(log, size + 2000)
    Path(f"{local.target.home.database}-shm").unlink()  # as after a power cut: made anew from the log

    assert len(local.json("list", "--limit", "1000")) == 300
    assert local.enqueue("true") == "301"


@pytest.mark.parametrize("words", [["enqueue", "true"], ["list"], ["status"], ["worker", "start"]], ids=" ".join)
def test_a_home_whose_parent_cannot_be_written_is_exit_code_5(local: Cli, tmp_path: Path, words: list[str]) -> None:
    parent = tmp_path / "parent"
    parent.mkdir()
    local.prefix = bound_by_modes()

    with read_only(parent):
        done = local.run(*words, env=_home(parent / "home"))

    assert (done.returncode, done.stdout) == (5, "")
    assert f"cannot create {parent}/home: Permission denied" in done.stderr
    assert "set QUEUECTL_HOME to a folder you may write to" in done.stderr
    assert list(parent.iterdir()) == []


def test_a_home_that_cannot_be_written_is_exit_code_5_and_loses_nothing(local: Cli) -> None:
    local.enqueue("true")
    prefix, local.prefix = local.prefix, bound_by_modes()

    with read_only(Path(local.target.home.root)):
        done = local.run("enqueue", "false")
        worker = local.run("worker", "start", "--until-idle")

    local.prefix = prefix
    assert (done.returncode, done.stdout) == (5, "")
    assert "you need write permission in" in done.stderr or "check the path, its permissions" in done.stderr
    assert worker.returncode == 5
    assert [job["command"] for job in local.json("list")] == ["true"]


def in_one_file(cli: Cli) -> Path:
    """Add jobs and move everything into the database file, so that nothing of it is in the log."""
    cli.ok("enqueue", "--from", "-", stdin="true\n" * 300)
    connection = apsw.Connection(cli.target.home.database)
    connection.execute("SELECT count(*) FROM jobs").fetchall()
    connection.close()
    assert not Path(f"{cli.target.home.database}-wal").exists()
    return Path(cli.target.home.database)
