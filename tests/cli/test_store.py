"""Which store a command means, and what it says when that store cannot be used."""

import stat
from pathlib import Path

import pytest

from tests.program import Cli

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
