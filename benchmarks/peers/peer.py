"""Peer: what the driver asks of a tool it measures, and what most share. Each tool has a file of its own."""

import os
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from enum import StrEnum
from pathlib import Path
from typing import IO

from benchmarks.bench import Bench
from benchmarks.peers.marks import MARK, end_marked

APPS = Path(__file__).parent / "apps"
DROPPED = ("QUEUECTL_", "PYTHON")


class Measure(StrEnum):
    """What is measured of a peer."""

    DRAIN = "drain"
    ADD = "add one"
    BULK = "bulk add"
    PICKUP = "pick-up"
    MEMORY = "idle memory"


class Asker(ABC):
    """Somebody who adds commands to a queue while it is worked off, and knows when he asked."""

    @abstractmethod
    def ask(self, command: str) -> None:
        """Begin to add a command."""

    @abstractmethod
    def asked_at(self) -> float:
        """Return when the last one was asked for, once it is added."""


class Room(ABC):
    """A fresh queue with its broker and a number of workers: filled first, then started, thrown away in the end."""

    broker_pids: Sequence[int] = ()
    """What must run besides the workers, if anything."""

    def __init__(self, folder: Path, workers: int, store: str = "") -> None:
        self.folder = folder
        self.workers = workers
        kept = {name: value for name, value in os.environ.items() if not name.startswith(DROPPED)}
        self._started: list[subprocess.Popen[bytes]] = []
        self.environ = {**kept, MARK: str(folder), "TMPDIR": str(folder), "PEER_STORE": store}

    @abstractmethod
    def adding_one(self, command: str) -> list[str]:
        """Return how a person adds one command from a shell."""

    @abstractmethod
    def adding_many(self) -> list[str]:
        """Return what adds each line of its standard input."""

    @abstractmethod
    def working(self) -> list[list[str]]:
        """Return what is to be started for the queue to be worked off."""

    def fill(self, commands: Sequence[str]) -> None:
        """Queue commands; none runs before the start."""
        self.run(self.adding_many(), "".join(f"{command}\n" for command in commands))

    def start(self) -> None:
        """Let the workers begin."""
        for argv in self.working():
            self.spawn(argv)

    def asker(self) -> AbstractContextManager[Asker]:
        """Give somebody who adds commands from a shell, each with a program of its own."""
        return _asking_from_a_shell(self)

    def run(self, argv: Sequence[str], lines: str = "") -> float:
        """Run something to its end, which must be a good one, and return how long it took."""
        begun = time.perf_counter()
        done = subprocess.run(
            argv,
            env=self.environ,
            cwd=self.folder,
            input=lines.encode(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        took = time.perf_counter() - begun
        if done.returncode:
            last = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
            raise ChildProcessError(f"{argv[0]} exited with {done.returncode}: {last}")
        return took

    def spawn(self, argv: Sequence[str], stdin: IO[bytes] | int = subprocess.DEVNULL) -> None:
        """Start something that is ended with the room."""
        self._started.append(
            subprocess.Popen(
                argv,
                env=self.environ,
                cwd=self.folder,
                stdin=stdin,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        )

    def clear(self) -> None:
        """End all that was started in it, by whomever."""
        end_marked(str(self.folder))
        for process in self._started:
            process.wait()


class Peer(ABC):
    """A tool that runs shell commands for people."""

    name: str
    durability: str
    """What of an acknowledged job survives, as its documentation or code has it."""
    durability_tag: str
    """The same in two or three words, for a plot."""
    drain_jobs: int
    """How many commands it works off, mostly in a second or two."""
    bulk_jobs: int = 0
    lacks: Mapping[Measure, str] = {}
    """What cannot be measured of it, and why; no reason where there is no such thing."""

    @abstractmethod
    def why_missing(self) -> str:
        """Say why it cannot run here; nothing where it can."""

    @abstractmethod
    def version(self) -> str:
        """Return the version that is installed."""

    @abstractmethod
    def room(self, bench: Bench, folder: Path, workers: int) -> AbstractContextManager[Room]:
        """Give a fresh queue in an empty folder; what it started and did not mark is gone after the block."""


class _ShellAsker(Asker):
    def __init__(self, room: Room) -> None:
        self._room = room
        self._asked_at = 0.0
        self._adding: subprocess.Popen[bytes] | None = None

    def ask(self, command: str) -> None:
        argv = self._room.adding_one(command)
        self._asked_at = time.perf_counter()
        self._adding = subprocess.Popen(
            argv, env=self._room.environ, cwd=self._room.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    def asked_at(self) -> float:
        if self._adding is not None:
            self._adding.wait()
        return self._asked_at


class _AppAsker(Asker):
    def __init__(self, adding: "subprocess.Popen[str]") -> None:
        assert adding.stdin is not None
        assert adding.stdout is not None
        self._stdin, self._stdout = adding.stdin, adding.stdout

    def ask(self, command: str) -> None:
        self._stdin.write(f"{command}\n")
        self._stdin.flush()

    def asked_at(self) -> float:
        return float(self._stdout.readline())


@contextmanager
def _asking_from_a_shell(room: Room) -> Iterator[Asker]:
    yield _ShellAsker(room)


@contextmanager
def asking_through_an_app(room: Room, python: str, app: str) -> Iterator[Asker]:
    """Give somebody who adds commands through the API of a peer, in one process that stays."""
    with subprocess.Popen(
        [python, str(APPS / "add.py"), app, "live"],
        env=room.environ,
        cwd=room.folder,
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as adding:
        yield _AppAsker(adding)
