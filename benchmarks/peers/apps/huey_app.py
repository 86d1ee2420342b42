"""Huey on a SQLite file."""

# mypy: ignore-errors
# Runs in .venv-peers, whose packages the type checker does not see; so do the other apps.

import os
import sys

# Huey imports the drivers it finds; who queues in SQLite alone has none of those that the other peers brought here.
sys.modules |= {"redis": None, "psycopg": None}
from huey import SqliteHuey  # noqa: E402
from shell import run_shell  # noqa: E402

huey = SqliteHuey(filename=os.environ["PEER_STORE"])
run = huey.task()(run_shell)


def add(command: str) -> None:
    """Queue one command."""
    run(command)


def add_many(commands: list[str]) -> None:
    """Queue commands one by one: Huey knows no other way."""
    for command in commands:
        run(command)
