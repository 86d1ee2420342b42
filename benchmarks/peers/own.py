"""queuectl itself, through the same driver as its peers."""

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import queuectl
from benchmarks.bench import POSTGRES, SQLITE, Bench
from benchmarks.machine import DURABILITY
from benchmarks.peers.brokers import POSTGRES_TAG, postmaster_pid
from benchmarks.peers.peer import Asker, Peer, Room, asking_through_an_app
from benchmarks.program import QUEUECTL
from benchmarks.stores import environ_of
from queuectl.actions.connect import Target

TAGS = {SQLITE: "SQLite FULL, results synced later", POSTGRES: POSTGRES_TAG}


class Own(Peer):
    """queuectl worker start -n N."""

    bulk_jobs = 50_000

    def __init__(self, kind: str, drain_jobs: int) -> None:
        self.name = f"queuectl, {kind}"
        self.kind = kind
        self.durability = DURABILITY[kind]
        self.durability_tag = TAGS[kind]
        self.drain_jobs = drain_jobs

    def why_missing(self) -> str:
        """Say nothing: it is always there."""
        return ""

    def version(self) -> str:
        """Return the version of this tree."""
        return queuectl.__version__

    @contextmanager
    def room(self, bench: Bench, folder: Path, workers: int) -> Iterator[Room]:
        """Give a store."""
        with bench.store(self.kind) as target:
            room = OwnRoom(folder, workers, target)
            if self.kind == POSTGRES:
                room.broker_pids = (postmaster_pid(target.url),)
            yield room


class OwnRoom(Room):
    """A queue in a store."""

    def __init__(self, folder: Path, workers: int, target: Target) -> None:
        super().__init__(folder, workers)
        self.environ = {**environ_of(target), **self.environ}

    def adding_one(self, command: str) -> list[str]:
        """Enqueue a line."""
        return [QUEUECTL, "enqueue", command]

    def adding_many(self) -> list[str]:
        """Enqueue all lines in one go."""
        return [QUEUECTL, "enqueue", "--from", "-"]

    def working(self) -> list[list[str]]:
        """Start workers under a supervisor."""
        return [[QUEUECTL, "worker", "start", "-n", str(self.workers)]]

    def asker(self) -> AbstractContextManager[Asker]:
        """Give a process that holds the API open."""
        return asking_through_an_app(self, sys.executable, "queuectl_app")
