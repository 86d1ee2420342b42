"""GNU parallel with a job log, which lets it resume after an interruption."""

from pathlib import Path

from benchmarks.peers.shell_tools import LIST_JOBS, ListPeer, ListRoom


class ParallelRoom(ListRoom):
    """A list for GNU parallel, which has been used before: what it found out about this machine is in its home."""

    def __init__(self, folder: Path, workers: int) -> None:
        super().__init__(folder, workers)
        home = folder.parent / "parallel-home"
        self.environ |= {"PARALLEL_SHELL": "/bin/sh", "PARALLEL_HOME": str(home)}
        if not home.exists():
            home.mkdir()
            self.run(["parallel", "--will-cite", "-j", str(workers), "--joblog", str(home / "log")], ":\n" * workers)

    def working(self) -> list[list[str]]:
        """Run each line."""
        return [["parallel", "--will-cite", "-j", str(self.workers), "--joblog", str(self.folder / "log")]]


class GnuParallel(ListPeer):
    """parallel -j N --joblog."""

    name = "GNU parallel --joblog"
    program, package = "parallel", "parallel"
    durability = "a line per ended job in the log, not synced; the list is the caller's"
    durability_tag = "log, no sync"
    drain_jobs = LIST_JOBS
    room_class = ParallelRoom
