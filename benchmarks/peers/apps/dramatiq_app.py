"""Dramatiq on Redis."""

# mypy: ignore-errors

import os

import dramatiq
from dramatiq.brokers.redis import RedisBroker
from shell import run_shell

dramatiq.set_broker(RedisBroker(url=os.environ["PEER_STORE"]))
run = dramatiq.actor(run_shell)


def add(command: str) -> None:
    """Queue one command."""
    run.send(command)


def add_many(commands: list[str]) -> None:
    """Queue commands one by one, which is also what a group does."""
    for command in commands:
        run.send(command)
