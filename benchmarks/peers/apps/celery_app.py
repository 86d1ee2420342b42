"""Celery on Redis, as it comes: no result backend, acknowledged when taken."""

# mypy: ignore-errors

import os

from celery import Celery
from shell import run_shell

app = Celery("peers", broker=os.environ["PEER_STORE"])
run = app.task(name="run")(run_shell)


def add(command: str) -> None:
    """Queue one command."""
    run.delay(command)


def add_many(commands: list[str]) -> None:
    """Queue commands one by one over one connection, which is also what a group does."""
    for command in commands:
        run.delay(command)
