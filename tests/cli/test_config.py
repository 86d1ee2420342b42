"""queuectl config: what is in force, where it comes from, and how to change it."""

import pytest

from queuectl.settings import SETTINGS
from tests.program import Cli


def test_every_setting_is_listed_with_value_source_default_and_meaning(local: Cli) -> None:
    local.ok("config", "set", "max-retries", "5")

    header, *rows = local.ok("config", "list").splitlines()

    assert header.split() == ["SETTING", "VALUE", "SOURCE", "DEFAULT", "MEANING"]
    assert [row.split()[0] for row in rows] == list(SETTINGS)
    assert rows[0].split(maxsplit=4)[:4] == ["max_retries", "5", "database", "3"]
    assert rows[0].endswith("runs after the first until a job is buried")
    assert rows[1].split(maxsplit=4)[:4] == ["backoff_base", "2", "default", "2"]
    assert all(len(row.split(maxsplit=4)) == 5 for row in rows)


@pytest.mark.parametrize("key", SETTINGS)
def test_every_setting_can_be_set_to_what_it_shows(local: Cli, key: str) -> None:
    shown = local.ok("config", "get", key).strip()

    assert local.ok("config", "set", key, shown) == f"{key} = {shown}\n"

    assert local.ok("config", "get", key).strip() == shown
    assert local.json("config", "get", key)[0]["source"] == "database"


def test_a_stored_setting_holds_for_everybody_until_it_is_unset(cli: Cli) -> None:
    assert cli.ok("config", "set", "max_retries", "7") == "max_retries = 7\n"
    assert cli.job(cli.enqueue("true"))["max_retries"] == 7

    assert cli.ok("config", "unset", "max-retries") == "max_retries = 3 (default)\n"
    assert cli.job(cli.enqueue("true"))["max_retries"] == 3
    assert cli.ok("config", "unset", "max_retries") == "max_retries = 3 (default); it was not stored\n"


def test_the_environment_overrides_what_is_stored(local: Cli) -> None:
    local.ok("config", "set", "max_retries", "5")
    env = {"QUEUECTL_MAX_RETRIES": "9"}

    assert local.ok("config", "get", "max_retries", env=env) == "9\n"
    assert "environment" in local.ok("config", "list", env=env).splitlines()[1]
    job_id = local.ok("enqueue", "true", env=env).strip()
    assert local.job(job_id)["max_retries"] == 9
    assert local.ok("config", "get", "max_retries") == "5\n"


def test_setting_what_the_environment_overrides_warns(local: Cli) -> None:
    done = local.run("config", "set", "max_retries", "5", env={"QUEUECTL_MAX_RETRIES": "9"})

    assert (done.returncode, done.stdout) == (0, "max_retries = 5\n")
    assert "QUEUECTL_MAX_RETRIES is set here and overrides it" in done.stderr


def test_a_bad_value_in_the_environment_is_refused_with_its_name(local: Cli) -> None:
    done = local.run("enqueue", "true", env={"QUEUECTL_MAX_RETRIES": "many"})

    assert done.returncode == 2
    assert "max_retries: bad number 'many'" in done.stderr
    assert local.json("list") == []


@pytest.mark.parametrize(
    "key, typed, stored",
    [
        ("job_timeout", "1h30m", "5400"),
        ("max_backoff_seconds", "5m", "300"),
        ("retention_completed", "36h", "1d12h"),
        ("max_output_bytes", "10MB", "10000000B"),
        ("output_tail_bytes", "4KiB", "4KiB"),
        ("backoff-base", "1.5", "1.5"),
        ("backoff_strategy", "linear", "linear"),
        ("shell", "/bin/bash", "/bin/bash"),
        ("MAX_RETRIES", "0", "0"),
    ],
)
def test_values_are_written_as_people_write_them(local: Cli, key: str, typed: str, stored: str) -> None:
    local.ok("config", "set", key, typed)

    assert local.ok("config", "get", key) == f"{stored}\n"


def test_tries_are_retries_and_one(local: Cli) -> None:
    assert local.ok("config", "get", "default_max_tries") == "4\n"

    assert local.ok("config", "set", "default-max-tries", "1") == "max_retries = 0\n"

    assert local.ok("config", "get", "max_retries") == "0\n"
    assert local.run("config", "set", "default_max_tries", "0").returncode == 2


def test_the_shell_of_the_settings_runs_shell_lines(local: Cli) -> None:
    local.ok("config", "set", "shell", "/bin/bash")
    job_id = local.enqueue("echo ${BASH_VERSION:+yes}")

    local.drain()

    assert local.ok("logs", job_id) == "yes\n"
