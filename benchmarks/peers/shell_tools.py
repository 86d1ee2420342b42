"""Tools that come as Debian packages: what the drivers of xargs, GNU parallel, task-spooler and nq share."""

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from shutil import which

from benchmarks.bench import Bench
from benchmarks.peers.peer import Measure, Peer, Room

LIST_JOBS = 5000
"""As many for xargs, GNU parallel and queuectl on SQLite, which are held against each other."""


class DebianPeer(Peer):
    """A peer that is a program of a Debian package."""

    program: str
    package: str

    def why_missing(self) -> str:
        """Say whether the program is there."""
        return "" if which(self.program) else f"no program {self.program}; on Debian: apt-get install {self.package}"

    def version(self) -> str:
        """Return the version of the package, where packages are known."""
        if not which("dpkg-query"):
            return ""
        argv = ["dpkg-query", "-W", "-f", "${source:Upstream-Version}", self.package]
        found = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
        return found.partition("+")[0]  # what follows is Debian's own


class ListPeer(DebianPeer):
    """A tool that takes its list when it starts: nothing can be added to it, and it is never idle."""

    lacks = dict.fromkeys((Measure.ADD, Measure.BULK, Measure.PICKUP, Measure.MEMORY), "")
    room_class: type["ListRoom"]

    @contextmanager
    def room(self, bench: Bench, folder: Path, workers: int) -> Iterator["ListRoom"]:
        """Give a list."""
        yield self.room_class(folder, workers)


class ListRoom(Room):
    """A room of a tool that reads its commands from standard input and knows no queue."""

    def fill(self, commands: Sequence[str]) -> None:
        """Write the list."""
        (self.folder / "list").write_text("".join(f"{command}\n" for command in commands))

    def start(self) -> None:
        """Start the tool on its list."""
        with (self.folder / "list").open("rb") as commands:
            for argv in self.working():
                self.spawn(argv, stdin=commands)

    def adding_one(self, command: str) -> list[str]:
        """Refuse: there is no queue."""
        raise NotImplementedError

    def adding_many(self) -> list[str]:
        """Refuse: there is no queue."""
        raise NotImplementedError


class GatedRoom(Room):
    """A room of a tool that begins with a command as soon as it is added: a first one waits for the start."""

    def __init__(self, folder: Path, workers: int) -> None:
        super().__init__(folder, workers)
        self._gate = str(folder / "gate")
        os.mkfifo(self._gate)
        self._held_open: int | None = None

    def waiting(self) -> str:
        """Return a command that ends when the gate is opened."""
        return f": <{self._gate}"

    def open_gate(self) -> None:
        """Let the waiting commands end, and all that come later pass."""
        self._held_open = os.open(self._gate, os.O_RDWR)

    def clear(self) -> None:
        """End all that was started in it, and let go of the gate."""
        super().clear()
        if self._held_open is not None:
            os.close(self._held_open)

    def working(self) -> list[list[str]]:
        """Start nothing: the tool is its own worker."""
        return []
