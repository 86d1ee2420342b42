"""The program as a person runs it: starting queuectl and others, timing them, and asking a store how it stands."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.stores import environ_of
from queuectl.actions.connect import Target, connect
from queuectl.store import workers
from queuectl.store.database import Database

QUEUECTL = str(Path(sys.executable).with_name("queuectl"))
BARE_PYTHON = (sys.executable, "-c", "pass")
DEADLINE_S = 120


@dataclass(frozen=True, kw_only=True)
class Spent:
    """What a command and all it started and waited for took."""

    wall_s: float
    cpu_s: float


def spend(argv: Sequence[str], environ: Mapping[str, str], stdin: bytes = b"") -> Spent:
    """Run a command to its end, output thrown away; it must succeed."""
    begun = time.perf_counter()
    with _started(argv, environ, subprocess.PIPE) as process:
        assert process.stdin is not None
        process.stdin.write(stdin)
        process.stdin.close()
        cpu_s = _reap(process)
    return Spent(wall_s=time.perf_counter() - begun, cpu_s=cpu_s)


def spend_together(argv: Sequence[str], copies: int, environ: Mapping[str, str]) -> Spent:
    """Run copies of a command side by side until the last has ended."""
    begun = time.perf_counter()
    with ExitStack() as stack:
        started = [stack.enter_context(_started(argv, environ, subprocess.DEVNULL)) for _ in range(copies)]
        cpu_s = sum([_reap(process) for process in started])
    return Spent(wall_s=time.perf_counter() - begun, cpu_s=cpu_s)


@contextmanager
def _started(argv: Sequence[str], environ: Mapping[str, str], stdin: int) -> Iterator[subprocess.Popen[bytes]]:
    """Give a command that does not outlive us, should we be told to stop before its end."""
    process = subprocess.Popen(argv, env=environ, stdin=stdin, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        if process.returncode is None:
            process.terminate()
            process.wait()


def _reap(process: subprocess.Popen[bytes]) -> float:
    """Wait for a command, which must succeed; return the CPU time of it and of all it started and waited for."""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, process.args)
    return usage.ru_utime + usage.ru_stime


def queuectl(target: Target, *words: str, stdin: bytes = b"") -> Spent:
    """Run one queuectl command on a store."""
    return spend([QUEUECTL, *words], environ_of(target), stdin)


def enqueue_lines(target: Target, lines: str) -> Spent:
    """Add a job per line in one go."""
    return queuectl(target, "enqueue", "--from", "-", stdin=lines.encode())


def drain(target: Target, *flags: str) -> Spent:
    """Work off all that is there and leave."""
    return queuectl(target, "worker", "start", *flags, "--until-idle")


def counts(target: Target) -> dict[str, int]:
    """Return how many jobs there are in each state."""
    found: dict[str, int] = json.loads(
        subprocess.check_output([QUEUECTL, "status", "--json"], env=environ_of(target), stdin=subprocess.DEVNULL)
    )["jobs"]
    return found


def check_count(target: Target, state: str, expected: int) -> None:
    """Fail where a run did not do what it was timed for."""
    found = counts(target)
    if found[state] != expected:
        raise AssertionError(f"{expected} jobs should be {state}: {found}")


@contextmanager
def running_workers(target: Target, *flags: str, count: int = 1) -> Iterator[subprocess.Popen[bytes]]:
    """Give a supervisor whose workers have all beaten, and stop it after the block."""
    words = [QUEUECTL, "worker", "start", "-n", str(count), *flags]
    supervisor = subprocess.Popen(
        words, env=environ_of(target), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        with closing(connect(target)) as database:
            wait_for(lambda: len(_beating(database)) == count)
        yield supervisor
    finally:
        supervisor.terminate()
        supervisor.wait()


def wait_for(is_so: Callable[[], bool], deadline_s: float = DEADLINE_S) -> None:
    """Come back when something is so."""
    until = time.monotonic() + deadline_s
    while not is_so():
        if time.monotonic() > until:
            raise TimeoutError(f"not so within {deadline_s} s")
        time.sleep(0.02)


def worker_pids(target: Target) -> list[int]:
    """Return the processes of the living workers, supervisors left out."""
    with closing(connect(target)) as database:
        return [row.pid for row in database.read(workers.live) if row.kind == workers.WORKER]


def _beating(database: Database) -> list[workers.Worker]:
    return [row for row in database.read(workers.live) if row.kind == workers.WORKER and row.beats]
