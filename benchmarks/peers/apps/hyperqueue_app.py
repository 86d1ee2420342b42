"""HyperQueue through its Python package: server and worker are threads of one process. Run, it is that process."""

# mypy: ignore-errors

import os
import sys

from hyperqueue import Client, Job, LocalCluster
from hyperqueue.cluster import WorkerConfig


def add(command: str) -> None:
    """Queue one command."""
    add_many([command])


def add_many(commands: list[str]) -> None:
    """Queue commands as the tasks of one job."""
    job = Job(max_fails=None)
    for command in commands:
        job.program(["sh", "-c", command])
    _client().submit(job)


clients = []


def _client() -> Client:
    if not clients:
        clients.append(Client(os.environ["PEER_STORE"]))
    return clients[0]


if __name__ == "__main__":
    with LocalCluster(os.environ["PEER_STORE"]) as cluster:
        print("up", flush=True)
        for line in sys.stdin:
            cluster.start_worker(WorkerConfig(cores=int(line)))
