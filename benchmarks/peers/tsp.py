"""task-spooler: a server that lives as long as it has something to remember."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.bench import Bench
from benchmarks.peers.shell_tools import DebianPeer, GatedRoom


class TaskSpooler(DebianPeer):
    """tsp with N slots."""

    name = "task-spooler"
    program, package = "tsp", "task-spooler"
    durability = "none: in the memory of its server"
    durability_tag = "memory"
    drain_jobs = 500
    bulk_jobs = 300

    @contextmanager
    def room(self, bench: Bench, folder: Path, workers: int) -> Iterator[GatedRoom]:
        """Give a server of its own."""
        room = SpoolerRoom(folder, workers)
        room.run(room.adding_one(room.waiting()))
        yield room


class SpoolerRoom(GatedRoom):
    """A server with one slot, until it is started with more."""

    def __init__(self, folder: Path, workers: int) -> None:
        super().__init__(folder, workers)
        self.environ |= {"TS_SOCKET": str(folder / "socket"), "TS_SLOTS": "1"}

    def start(self) -> None:
        """Give it its slots and let it begin."""
        self.run(["tsp", "-S", str(self.workers)])
        self.open_gate()

    def adding_one(self, command: str) -> list[str]:
        """Call its client."""
        return ["tsp", "sh", "-c", command]

    def adding_many(self) -> list[str]:
        """Call its client for each line."""
        return ["sh", "-c", 'while IFS= read -r line; do tsp sh -c "$line"; done']
