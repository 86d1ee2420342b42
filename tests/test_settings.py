"""Settings: where a value comes from, how keys and values are read, and which combinations are refused."""

import pytest

from queuectl.errors import BadInput, UnknownName
from queuectl.model.retry import Backoff, BackoffStrategy
from queuectl.settings import SETTINGS, Settings, normal_key, parse, resolve, setting_key, shown

DEFAULTS = {
    "max_retries": 3, "backoff_base": 2, "backoff_strategy": "exponential", "max_backoff_seconds": 300,
    "backoff_jitter": 0, "job_retry_delay": 2, "job_timeout": 0, "kill_grace_seconds": 10, "stop_timeout": 0,
    "lock_lease_seconds": 60, "worker_heartbeat_interval": 5, "max_concurrent_jobs": 1, "max_output_bytes": 10 << 20,
    "output_tail_bytes": 16 << 10, "retention_completed": 7 * 86_400, "retention_cancelled": 7 * 86_400,
    "retention_dead": 0, "shell": "/bin/sh",
}  # fmt: skip


def test_the_defaults_are_those_of_the_design() -> None:
    settings, sources = resolve({}, {})

    assert settings.as_dict() == DEFAULTS
    assert set(sources.values()) == {"default"}


def test_every_setting_has_a_field_and_a_meaning() -> None:
    assert list(SETTINGS) == list(DEFAULTS)
    assert set(Settings.FIELDS) == set(DEFAULTS)
    assert all(setting.meaning for setting in SETTINGS.values())


def test_the_database_wins_over_the_default_and_the_environment_over_both() -> None:
    stored = {"max_retries": "5", "backoff_base": "3"}
    environ = {"QUEUECTL_MAX_RETRIES": "7", "PATH": "/bin"}

    settings, sources = resolve(stored, environ)

    assert (settings.max_retries, settings.backoff_base, settings.shell) == (7, 3, "/bin/sh")
    assert [sources[key] for key in ("max_retries", "backoff_base", "shell")] == ["environment", "database", "default"]


def test_an_alias_in_the_environment_is_the_setting_it_stands_for() -> None:
    settings, sources = resolve({"max_retries": "5"}, {"QUEUECTL_DEFAULT_MAX_TRIES": "1"})

    assert (settings.max_retries, sources["max_retries"]) == (0, "environment")


def test_other_variables_of_the_program_are_not_settings() -> None:
    environ = {"QUEUECTL_HOME": "/h", "QUEUECTL_DATABASE_URL": "x", "QUEUECTL_DEBUG": "1", "QUEUECTL_JOB_ID": "7"}

    settings, _ = resolve({}, environ)

    assert settings.as_dict() == DEFAULTS


@pytest.mark.parametrize("stored, environ", [({"max_retries": "many"}, {}), ({}, {"QUEUECTL_MAX_RETRIES": "many"})])
def test_a_bad_value_is_an_error_wherever_it_stands(stored: dict[str, str], environ: dict[str, str]) -> None:
    with pytest.raises(BadInput, match="max_retries: bad number 'many'"):
        resolve(stored, environ)


def test_a_stored_key_of_a_newer_program_is_left_alone() -> None:
    settings, _ = resolve({"colour": "blue"}, {})

    assert settings.as_dict() == DEFAULTS


@pytest.mark.parametrize("name", ["max-retries", "max_retries", "MAX_RETRIES", " Max-Retries "])
def test_a_key_may_be_written_with_dashes_or_in_capitals(name: str) -> None:
    assert normal_key(name) == "max_retries"
    assert parse(name, "4") == ("max_retries", 4)


def test_default_max_tries_is_max_retries_and_one_more() -> None:
    assert parse("default-max-tries", "4") == ("max_retries", 3)
    assert shown("default_max_tries", 3) == "4"
    assert setting_key("default_max_tries") == "max_retries"


@pytest.mark.parametrize("text", ["0", "-1", "x"])
def test_there_is_at_least_one_try(text: str) -> None:
    with pytest.raises(BadInput, match="default_max_tries: bad number"):
        parse("default_max_tries", text)


@pytest.mark.parametrize(
    "name, near",
    [("max_retrys", "max_retries"), ("backoff-bas", "backoff_base"), ("default_max_trys", "default_max_tries")],
)
def test_an_unknown_key_names_the_nearest(name: str, near: str) -> None:
    with pytest.raises(UnknownName, match=f"unknown setting '{name}'; did you mean '{near}'") as refused:
        parse(name, "1")

    assert refused.value.exit_code == 2
    assert "queuectl config list" in refused.value.hint


@pytest.mark.parametrize(
    "key, text, value",
    [
        ("max_retries", " 0 ", 0),
        ("backoff_base", "1.5", 1.5),
        ("backoff_strategy", "fixed", "fixed"),
        ("max_backoff_seconds", "5m", 300),
        ("backoff_jitter", "0.25", 0.25),
        ("job_timeout", "1h30m", 5_400),
        ("job_timeout", "0", 0),
        ("max_output_bytes", "1MiB", 1 << 20),
        ("output_tail_bytes", "2KiB", 2_048),
        ("retention_dead", "30d", 30 * 86_400),
        ("shell", "/bin/bash", "/bin/bash"),
    ],
)
def test_a_good_value_is_read(key: str, text: str, value: object) -> None:
    assert parse(key, text) == (key, value)


@pytest.mark.parametrize(
    "key, text",
    [
        ("max_retries", "-1"),
        ("max_retries", "3.5"),
        ("max_retries", "1000001"),
        ("max_retries", "\u0663"),
        ("max_retries", ""),
        ("backoff_base", "-1"),
        ("backoff_base", "nan"),
        ("backoff_base", "inf"),
        ("backoff_base", "two"),
        ("backoff_strategy", "random"),
        ("backoff_jitter", "1.01"),
        ("max_backoff_seconds", "-5"),
        ("max_backoff_seconds", "soon"),
        ("kill_grace_seconds", "2h"),
        ("lock_lease_seconds", "4"),
        ("worker_heartbeat_interval", "0"),
        ("max_concurrent_jobs", "0"),
        ("max_output_bytes", "1KiB"),
        ("output_tail_bytes", "2MiB"),
        ("output_tail_bytes", "big"),
        ("shell", "bash"),
        ("shell", "/bin/\0sh"),
    ],
)
def test_a_bad_value_is_refused_with_its_key_and_what_to_write(key: str, text: str) -> None:
    with pytest.raises(BadInput, match=f"^{key}: ") as refused:
        parse(key, text)

    assert refused.value.hint


def test_an_unknown_strategy_names_the_nearest() -> None:
    with pytest.raises(BadInput, match="did you mean 'exponential'"):
        parse("backoff_strategy", "exponentail")


@pytest.mark.parametrize("key", SETTINGS)
def test_a_value_that_is_shown_is_read_back(key: str) -> None:
    assert parse(key, shown(key, SETTINGS[key].default)) == (key, SETTINGS[key].default)


@pytest.mark.parametrize(
    "key, text, stored",
    [
        ("job_timeout", "1h30m", "5400"),
        ("backoff_base", "2", "2"),
        ("backoff_base", "1e3", "1000"),
        ("max_output_bytes", "1048576", "1MiB"),
        ("retention_completed", "36h", "1d12h"),
        ("retention_completed", "0", "0"),
    ],
)
def test_a_value_has_one_form_however_it_was_typed(key: str, text: str, stored: str) -> None:
    assert shown(key, parse(key, text)[1]) == stored


@pytest.mark.parametrize("heartbeat, lease, is_fine", [("5", "15", True), ("5", "14.9", False), ("30", "60", False)])
def test_the_lease_is_at_least_two_heartbeats_and_five_seconds(heartbeat: str, lease: str, is_fine: bool) -> None:
    stored = {"worker_heartbeat_interval": heartbeat, "lock_lease_seconds": lease}

    if is_fine:
        resolve(stored, {})
        return
    with pytest.raises(BadInput, match=r"lock_lease_seconds .* is too short") as refused:
        resolve(stored, {})

    assert f"{2 * int(heartbeat) + 5} s" in refused.value.hint


def test_the_kept_tail_is_no_longer_than_the_kept_output() -> None:
    with pytest.raises(BadInput, match="output_tail_bytes 1MiB is more than max_output_bytes 64KiB"):
        resolve({"output_tail_bytes": "1MiB", "max_output_bytes": "64KiB"}, {})


def test_the_backoff_of_the_settings_is_in_milliseconds() -> None:
    settings, _ = resolve(
        {"backoff_strategy": "linear", "max_backoff_seconds": "1.5"}, {"QUEUECTL_JOB_RETRY_DELAY": "0.25"}
    )

    assert settings.backoff == Backoff(
        strategy=BackoffStrategy.LINEAR, base=2.0, max_ms=1_500, fixed_ms=250, jitter=0.0
    )
    assert settings.value_of("job_retry_delay") == 0.25
