"""queuectl through its Python API, in the queue of the environment; run by the project's own Python."""

from queuectl import Queue

queue = Queue()


def add(command: str) -> None:
    """Queue one command."""
    queue.enqueue(command)
