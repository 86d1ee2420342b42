"""The driver: measures any peer, all through the same code. Rounds and figures are made of it in workload.py."""

import os
import random
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.bench import Bench
from benchmarks.peers.finish import FinishLine, gate
from benchmarks.peers.marks import end_marked, steady_mb, with_descendants
from benchmarks.peers.peer import Peer, Room
from benchmarks.pickups import make_fifo, spawn_s
from benchmarks.processes import bare_interpreter_mb, pss_mb
from benchmarks.program import BARE_PYTHON

ADDS = 2
PICKUPS = 7
PAUSE_S = (0.03, 0.13)
"""Between two pick-ups, at random, so that it does not keep step with a peer that polls."""
IDLE_WORKERS = 4
HELD_BACK_S = 1.0
"""A command that has not begun by then waits behind another one."""
MOST_HELD_BACK = 16


@dataclass(frozen=True, kw_only=True)
class Drained:
    """A queue worked off: everything queued, then the workers started."""

    jobs: int
    first_s: float
    """From the start of the workers to the end of the first command."""
    whole_s: float
    """From the start of the workers to the end of the last command."""

    @property
    def rate(self) -> float:
        """Commands per second, the start of the workers included."""
        return self.jobs / self.whole_s

    @property
    def running_rate(self) -> float:
        """Commands per second once they run."""
        return (self.jobs - 1) / (self.whole_s - self.first_s)


@dataclass(frozen=True, kw_only=True)
class Added:
    """Commands added while nobody works: one by one from a shell beside a bare Python, then many at once."""

    one_s: list[float]
    python_s: list[float]
    bulk_rate: float
    """Commands per second, the start of the program that adds them taken off."""


@dataclass(frozen=True, kw_only=True)
class PickedUp:
    """From asking an idle worker for a command to its first act, beside starting the same command right here."""

    own_s: list[float]
    spawn_s: list[float]


@dataclass(frozen=True, kw_only=True)
class Weighed:
    """The memory of idle workers, of what they need besides, and of a Python that does nothing."""

    workers_mb: float
    broker_mb: float
    python_mb: float


def drain(bench: Bench, peer: Peer, workers: int, jobs: int) -> Drained:
    """Queue everything, then start the workers, and see every command end."""
    with _room(bench, peer, workers) as (room, line):
        room.fill([line.command] * jobs)
        begun = time.perf_counter()
        room.start()
        first, last = line.wait(jobs)
    return Drained(jobs=jobs, first_s=first - begun, whole_s=last - begun)


def add(bench: Bench, peer: Peer) -> Added:
    """Add commands to a queue that nobody works off."""
    with _room(bench, peer, 1) as (room, _):
        room.run(room.adding_one(":"))  # sets the queue up
        one_s, python_s = [], []
        for _ in range(ADDS):
            python_s.append(room.run(BARE_PYTHON))
            one_s.append(room.run(room.adding_one(":")))
        all_s = room.run(room.adding_many(), ":\n" * peer.bulk_jobs)
    return Added(one_s=one_s, python_s=python_s, bulk_rate=(peer.bulk_jobs - 1) / (all_s - statistics.median(one_s)))


def pick_up(bench: Bench, peer: Peer) -> PickedUp:
    """Ask one idle worker for commands, one at a time."""
    own, unit = [], []
    with _room(bench, peer, 1) as (room, line), room.asker() as asker:
        fifo = make_fifo(str(room.folder))
        room.start()
        for turn in range(PICKUPS + 1):
            asker.ask(line.command)
            _, arrived = line.wait(1)
            asked = asker.asked_at()
            if turn:  # the first one waited for the worker to start
                own.append(arrived - asked)
                unit.append(spawn_s(fifo))
            time.sleep(random.uniform(*PAUSE_S))
    return PickedUp(own_s=own, spawn_s=unit)


def weigh(bench: Bench, peer: Peer) -> Weighed:
    """Let workers run a command each, all at the same time, and weigh them when they have ended."""
    with _room(bench, peer, IDLE_WORKERS) as (room, line), gate(room.folder / "release") as (waiting, released):
        room.start()
        added = _occupy_all(room, line, f"{line.command}; {waiting}; {line.command}")
        os.write(released, b"\n" * added)
        line.wait(2 * added - IDLE_WORKERS)
        workers_mb = steady_mb(str(room.folder))
        broker_mb = pss_mb(with_descendants(room.broker_pids))
    return Weighed(workers_mb=workers_mb, broker_mb=broker_mb, python_mb=bare_interpreter_mb())


def _occupy_all(room: Room, line: FinishLine, command: str) -> int:
    """Add commands that cross the line and wait, until every worker runs one; return how many that took.

    Some workers put commands by while they run one: then those of the others are yet to be added.
    """
    room.fill([command] * IDLE_WORKERS)
    added = IDLE_WORKERS
    line.wait(1)
    running = 1
    while running < IDLE_WORKERS:
        try:
            line.wait(1, HELD_BACK_S)
            running += 1
        except TimeoutError:
            if added == MOST_HELD_BACK:
                raise
            room.fill([command])
            added += 1
    return added


@contextmanager
def _room(bench: Bench, peer: Peer, workers: int) -> Iterator[tuple[Room, FinishLine]]:
    """Give a fresh room and its finish line; after the block nothing of it is left."""
    folder = Path(tempfile.mkdtemp(dir=bench.folder))
    line = FinishLine(folder / "finish")
    try:
        with peer.room(bench, folder, workers) as room:
            try:
                yield room, line
            finally:
                room.clear()
    finally:
        end_marked(str(folder))  # where its making failed half-way
        line.close()
        shutil.rmtree(folder, ignore_errors=True)
