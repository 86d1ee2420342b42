"""xargs: the unit of every drain. No queue, no memory of what it ran."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.bench import Bench
from benchmarks.peers.shell_tools import LACKS_A_QUEUE, DebianPeer, ListRoom


class Xargs(DebianPeer):
    """xargs -P N."""

    name = "xargs"
    program, package = "xargs", "findutils"
    durability = "none: nothing is kept"
    drain_jobs = 2000
    lacks = LACKS_A_QUEUE

    @contextmanager
    def room(self, bench: Bench, folder: Path, workers: int) -> Iterator[ListRoom]:
        """Give a list."""
        yield XargsRoom(folder, workers)


class XargsRoom(ListRoom):
    """A list for xargs."""

    def working(self) -> list[list[str]]:
        """Run each line through sh."""
        return [["xargs", "-P", str(self.workers), "-I{}", "sh", "-c", "{}"]]
