"""Huey on SQLite, with threads as workers, as its consumer comes."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.bench import Bench
from benchmarks.peers.venv import AppRoom, PythonPeer, program


class Huey(PythonPeer):
    """huey_consumer -w N."""

    name = "Huey, SQLite"
    package = "huey"
    durability = "SQLite WAL, synchronous=FULL (default); a job is deleted when taken"
    durability_tag = "SQLite FULL, deleted when taken"
    drain_jobs = 1000
    bulk_jobs = 3000

    @contextmanager
    def room(self, bench: Bench, folder: Path, workers: int) -> Iterator[AppRoom]:
        """Give a file."""
        yield HueyRoom(folder, workers, str(folder / "huey.db"))


class HueyRoom(AppRoom):
    """A queue in a file."""

    app = "huey_app"

    def working(self) -> list[list[str]]:
        """Start a consumer."""
        return [[program("huey_consumer"), "huey_app.huey", "-w", str(self.workers)]]
