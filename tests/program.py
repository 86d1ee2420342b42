"""The program under test as its users meet it: real processes, real terminals' streams, one home each."""

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import TypeVar

from queuectl.actions.connect import Target, open_if_there
from queuectl.errors import QueuectlError
from queuectl.store import jobs, workers
from queuectl.store.database import Database, Tx
from tests import nursery

PROGRAM = str(Path(sys.executable).with_name("queuectl"))
QUOTED = shlex.quote(PROGRAM)
"""The program as a shell line names it: a clone may lie in a folder with a blank in its name."""
DEADLINE_S = 120.0
DRAIN_S = 280.0
ASK_EVERY_S = 1.0
Found = TypeVar("Found")


class Cli:
    """Runs `queuectl` against one store and keeps track of the processes it left running."""

    def __init__(self, target: Target, folder: Path) -> None:
        self.target = target
        self.folder = folder
        self.prefix: tuple[str, ...] = ()
        """What runs the program, where it is not to be run as it is: `setpriv ...`, `strace ...`."""
        self.is_fresh = False
        """Whether every call is to be a program of its own from its first instruction on, whatever that costs."""
        self._started: list[subprocess.Popen[str]] = []

    @property
    def environ(self) -> dict[str, str]:
        """The environment the program gets: the store, and nothing of queuectl's from outside."""
        clean = {name: value for name, value in os.environ.items() if not name.startswith("QUEUECTL_")}
        return {**clean, "QUEUECTL_HOME": self.target.home.root, "QUEUECTL_DATABASE_URL": self.target.url}

    def run(
        self, *words: str, stdin: str = "", env: Mapping[str, str] = {}, timeout: float = DEADLINE_S
    ) -> subprocess.CompletedProcess[str]:
        """Run a command line and return its exit code and streams, whatever they are."""
        environ = {**self.environ, **env}
        if not self.prefix and not self.is_fresh and nursery.suits(words, environ):
            return self._run_child(words, stdin, environ, timeout)
        return subprocess.run(
            [*self.prefix, PROGRAM, *words],
            input=stdin,
            env=environ,
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=timeout,
        )

    def _run_child(
        self, words: Sequence[str], stdin: str, environ: Mapping[str, str], timeout: float
    ) -> subprocess.CompletedProcess[str]:
        """Run a command line in a process that need not import the program first."""
        argv = [PROGRAM, *words]
        with TemporaryFile() as given, TemporaryFile() as printed, TemporaryFile() as said:
            given.write(stdin.encode())
            given.seek(0)
            code = nursery.run(argv, environ, str(self.folder), (given, printed, said), timeout)
            texts = []
            for file in (printed, said):
                file.seek(0)
                texts.append(file.read().decode().replace("\r\n", "\n").replace("\r", "\n"))
        return subprocess.CompletedProcess(argv, code, *texts)

    def ok(self, *words: str, stdin: str = "", env: Mapping[str, str] = {}) -> str:
        """Run a command line that must succeed and return what it printed."""
        done = self.run(*words, stdin=stdin, env=env)
        assert done.returncode == 0, f"{words} -> {done.returncode}: {done.stderr}"
        return done.stdout

    def json(self, *words: str) -> list[dict[str, object]]:
        """Run a command line with --json and return its objects."""
        return [json.loads(line) for line in self.ok(*words, "--json").splitlines()]

    def enqueue(self, *words: str) -> str:
        """Add a job and return its id."""
        return self.ok("enqueue", *words).strip()

    def start(self, *words: str) -> "subprocess.Popen[str]":
        """Start a command that stays in the foreground, such as `worker start`; ended with the test at the latest."""
        process = subprocess.Popen(
            [*self.prefix, PROGRAM, *words], env=self.environ, cwd=self.folder,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        self._started.append(process)
        return process

    def job(self, job_id: str) -> dict[str, object]:
        """Return a job with its runs."""
        return self.json("show", job_id)[0]

    def wait_for_state(self, job_id: str, *states: str) -> dict[str, object]:
        """Wait until a job is in one of the states and return it."""
        seen: list[object] = []

        def look() -> dict[str, object] | None:
            job = self.job(job_id)
            seen[:] = [job["state"]]
            return job if job["state"] in states else None

        def is_likely(tx: Tx) -> bool:
            job = jobs.find(tx, job_id)
            return job is None or job.state in states

        return self.wait_for(look, is_likely, lambda: f"job {job_id} {' or '.join(states)}; it is {seen}")

    def wait_for(
        self, look: Callable[[], Found | None], is_likely: Callable[[Tx], bool], what: str | Callable[[], str]
    ) -> Found:
        """Wait until the program tells something; it is asked when the store has it, and each second all the same.

        To ask it over and over would take the processor from what is waited for.
        """
        with closing(_Peephole(self.target, is_likely)) as peephole:
            return wait_for(lambda: look() if peephole.may_ask() else None, what)

    def drain(self, *words: str) -> None:
        """Run workers until nothing is left to do."""
        done = self.run("worker", "start", "--until-idle", *words, timeout=DRAIN_S)
        assert done.returncode == 0, f"drain {words} -> {done.returncode}: {done.stderr}"

    def clean_up(self) -> None:
        """End what is left of this test's own processes."""
        for process in self._started:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
                process.send_signal(signal.SIGTERM)
        if self._may_have_workers():
            self.run("worker", "stop", "--now", "--timeout", "20")
        for process in self._started:
            try:
                process.communicate(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                for stream in (process.stdout, process.stderr):  # not read to their end: what it started may have them
                    if stream is not None:
                        stream.close()

    def _may_have_workers(self) -> bool:
        """Whether the store says that somebody lives, or cannot be asked; quicker to ask here than by a program."""
        try:
            database = open_if_there(self.target)
            if database is None:
                return False
            with closing(database):
                return bool(database.read(workers.live))
        except (QueuectlError, OSError):
            return True


class _Peephole:
    """A look at the store from here, at a tenth of what a program takes; what counts is what the program tells."""

    def __init__(self, target: Target, is_likely: Callable[[Tx], bool]) -> None:
        self._target = target
        self._is_likely = is_likely
        self._database: Database | None = None
        self._ask_at = 0.0

    def may_ask(self) -> bool:
        """Whether to ask the program: the store has what it is to tell or cannot be read, or a second has passed."""
        now = time.monotonic()
        if now < self._ask_at and not self._has_it():
            return False
        self._ask_at = now + ASK_EVERY_S
        return True

    def _has_it(self) -> bool:
        try:
            self._database = self._database or open_if_there(self._target)
            return self._database is None or self._database.read(self._is_likely)
        except (QueuectlError, OSError):
            return True

    def close(self) -> None:
        """Leave the store."""
        if self._database is not None:
            self._database.close()


@contextmanager
def running_cli(target: Target, folder: Path) -> Iterator[Cli]:
    """Give a program and end its processes afterwards."""
    cli = Cli(target, folder)
    try:
        yield cli
    finally:
        cli.clean_up()


def wait_for(look: Callable[[], Found | None], what: str | Callable[[], str], deadline_s: float = DEADLINE_S) -> Found:
    """Look again and again until something is found; fail loudly, with what is there instead, at the deadline.

    Between two looks it rests for as long as one took: what is waited for needs the processor, too.
    """
    until = time.monotonic() + deadline_s
    while True:
        began = time.monotonic()
        found = look()
        if found:
            return found
        assert time.monotonic() < until, f"not within {deadline_s} s: {what if isinstance(what, str) else what()}"
        time.sleep(min(max(0.02, time.monotonic() - began), 0.25))


def pids_with(variable: str, value: str) -> list[int]:
    """Return the living processes whose environment holds NAME=value."""
    found: list[int] = []
    for name in os.listdir("/proc"):
        try:
            with open(f"/proc/{name}/environ", "rb") as file:
                if name.isdigit() and f"{variable}={value}".encode() in file.read().split(b"\0"):
                    found.append(int(name))
        except (OSError, ValueError):
            continue
    return found


def lines_of(path: Path) -> Sequence[str]:
    """Return the lines of a file that commands append to; none when it is not there yet."""
    return path.read_text().splitlines() if path.exists() else []
