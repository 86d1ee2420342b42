"""Secrets from the worker to the command: who gets them, who does not, and that nothing of them is kept."""

import pytest

from queuectl.actions.connect import Target, connect
from queuectl.runtime.worker import _base_env


def test_commands_inherit_no_secret_that_they_do_not_name(target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    connect(target).close()
    monkeypatch.setenv("QUEUECTL_SECRET_API_KEY", "hunter2")
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", "/run/credentials/queuectl.service")
    monkeypatch.setenv("COLOUR", "blue")

    env = _base_env(target)

    assert env[b"COLOUR"] == b"blue"
    assert not [name for name in env if b"SECRET" in name or name == b"CREDENTIALS_DIRECTORY"]
