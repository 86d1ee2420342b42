"""HyperQueue through its Python package, which has server and worker in one process and no journal."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.bench import Bench
from benchmarks.peers.peer import APPS
from benchmarks.peers.venv import PYTHON, AppRoom, PythonPeer


class HyperQueue(PythonPeer):
    """A LocalCluster with one worker of N cores."""

    name = "HyperQueue"
    package = "hyperqueue"
    durability = "none: in memory (a LocalCluster has no journal); output in two files per job"
    durability_tag = "memory"
    drain_jobs = 300
    bulk_jobs = 20_000

    @contextmanager
    def room(self, bench: Bench, folder: Path, workers: int) -> Iterator[AppRoom]:
        """Give a server without workers."""
        room = HyperQueueRoom(folder, workers, str(folder / "server"))
        with subprocess.Popen(
            [PYTHON, str(APPS / "hyperqueue_app.py")],
            env=room.environ,
            cwd=folder,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        ) as server:
            assert server.stdout is not None
            server.stdout.readline()
            room.server = server
            try:
                yield room
            finally:
                server.kill()


class HyperQueueRoom(AppRoom):
    """A queue in the memory of a server."""

    app = "hyperqueue_app"
    server: "subprocess.Popen[str]"

    def working(self) -> list[list[str]]:
        """Start nothing: the server has its worker within."""
        return []

    def start(self) -> None:
        """Tell the server to have a worker."""
        assert self.server.stdin is not None
        self.server.stdin.write(f"{self.workers}\n")
        self.server.stdin.flush()
