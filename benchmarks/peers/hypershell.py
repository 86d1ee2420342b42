"""HyperShell on SQLite."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.bench import Bench
from benchmarks.peers.peer import Measure, Room
from benchmarks.peers.venv import PythonPeer, program

BUNDLE = 50
POLLS = "an idle one looks into its database up to 30 s apart; not waited for"


class HyperShell(PythonPeer):
    """hs cluster -N N."""

    name = "HyperShell, SQLite"
    package = "hypershell"
    durability = "SQLite rollback journal, synchronous=FULL (defaults)"
    durability_tag = "SQLite FULL"
    drain_jobs = 400
    bulk_jobs = 1000
    lacks = {Measure.PICKUP: POLLS, Measure.MEMORY: POLLS}  # noqa: RUF012

    @contextmanager
    def room(self, bench: Bench, folder: Path, workers: int) -> Iterator[Room]:
        """Give a file."""
        yield HyperShellRoom(folder, workers)


class HyperShellRoom(Room):
    """A queue in a file, and a port for its server."""

    def __init__(self, folder: Path, workers: int) -> None:
        super().__init__(folder, workers)
        self.environ |= {"HYPERSHELL_SITE": str(folder / "site"), "HOME": str(folder)}

    def adding_one(self, command: str) -> list[str]:
        """Submit a command line."""
        return [program("hs"), "submit", "--initdb", command]

    def adding_many(self) -> list[str]:
        """Submit lines, many in a transaction."""
        return [program("hs"), "submit", "--initdb", "-b", str(BUNDLE), "-f", "-"]

    def working(self) -> list[list[str]]:
        """Start a server and its client on a free port."""
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        cluster = [program("hs"), "cluster", "--restart", "-p", str(port), "-b", str(BUNDLE)]
        return [[*cluster, "-N", str(self.workers)]]
