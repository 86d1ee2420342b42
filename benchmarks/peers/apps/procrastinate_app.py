"""Procrastinate on PostgreSQL."""

# mypy: ignore-errors

import os

from procrastinate import App, PsycopgConnector
from shell import run_shell

app = App(connector=PsycopgConnector(conninfo=os.environ["PEER_STORE"]))
run = app.task(name="run")(run_shell)
opened = []


def add(command: str) -> None:
    """Queue one command."""
    _open()
    run.defer(command=command)


def add_many(commands: list[str]) -> None:
    """Queue commands in one go."""
    _open()
    run.batch_defer(*({"command": command} for command in commands))


def _open() -> None:
    """Open the app once, and not in the worker, which does so itself."""
    if not opened:
        opened.append(app.open())
