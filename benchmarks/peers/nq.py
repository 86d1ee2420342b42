"""nq: every queued command is a process that waits for the lock files of those before it. A folder is a queue."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from benchmarks.bench import Bench
from benchmarks.peers.shell_tools import DebianPeer, GatedRoom

ADD_EACH_LINE = 'while IFS= read -r line; do nq -q sh -c "$line"; done'


class Nq(DebianPeer):
    """nq with N folders."""

    name = "nq"
    program, package = "nq", "nq"
    durability = "none: waiting processes; only output files survive"
    durability_tag = "memory: waiting processes"
    drain_jobs = 500
    bulk_jobs = 300

    @contextmanager
    def room(self, bench: Bench, folder: Path, workers: int) -> Iterator[GatedRoom]:
        """Give folders."""
        room = NqRoom(folder, workers)
        for queue in range(workers):
            room.run([*room.in_queue(queue), "nq", "-q", "sh", "-c", room.waiting()])
        yield room


class NqRoom(GatedRoom):
    """As many folders as there are to be workers, since nq runs the commands of one in turn."""

    def in_queue(self, number: int) -> list[str]:
        """Return how a command is told its folder."""
        return ["env", f"NQDIR={self.folder}/queue{number}"]

    def fill(self, commands: Sequence[str]) -> None:
        """Deal the commands out to the folders."""
        for queue in range(self.workers):
            lines = "".join(f"{command}\n" for command in commands[queue :: self.workers])
            self.run([*self.in_queue(queue), "sh", "-c", ADD_EACH_LINE], lines)

    def start(self) -> None:
        """Let the first command of each folder end."""
        self.open_gate()

    def adding_one(self, command: str) -> list[str]:
        """Add to the first folder."""
        return [*self.in_queue(0), "nq", "-q", "sh", "-c", command]

    def adding_many(self) -> list[str]:
        """Add each line to the first folder."""
        return [*self.in_queue(0), "sh", "-c", ADD_EACH_LINE]
