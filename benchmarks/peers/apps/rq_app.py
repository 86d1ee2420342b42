"""RQ on Redis."""

# mypy: ignore-errors

import os

from redis import Redis
from rq import Queue
from shell import run_shell

queue = Queue(connection=Redis.from_url(os.environ["PEER_STORE"]))


def add(command: str) -> None:
    """Queue one command."""
    queue.enqueue(run_shell, command)


def add_many(commands: list[str]) -> None:
    """Queue commands in one go."""
    queue.enqueue_many([Queue.prepare_data(run_shell, [command]) for command in commands])
