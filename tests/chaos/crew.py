"""The crew: two supervisors with their workers, started again whenever one is gone."""

import random
import signal
import subprocess
import time
from pathlib import Path

from tests.chaos.notes import Notes
from tests.chaos.processes import Process, Role, processes_of, send, workers_of
from tests.program import PROGRAM, Cli

SUPERVISORS = 2
WORKERS_EACH = 2
SLOTS = ("1", "2", "4")
PAUSE_S = 0.5
USUAL_ENDS = (0, 1, -signal.SIGKILL, -signal.SIGTERM)
"""How a supervisor ends that was told to, or that was killed; 1 says that a worker died while it was stopping."""


class Crew:
    """Keeps supervisors running while it is told to."""

    def __init__(self, cli: Cli, folder: Path, notes: Notes, dice: random.Random) -> None:
        self._cli = cli
        self._notes = notes
        self._dice = dice
        self._log_path = folder / "workers.log"
        self._log = self._log_path.open("a")
        self._supervisors: list[subprocess.Popen[bytes]] = []
        self._next_start = 0.0
        self.failed: dict[int, int] = {}
        """Supervisors that gave up by themselves, with their exit codes."""

    @property
    def home(self) -> str:
        """The home all of them work for."""
        return self._cli.target.home.root

    @property
    def is_gone(self) -> bool:
        """Whether every supervisor has ended."""
        self._reap()
        return not self._supervisors

    def keep(self) -> None:
        """Start a supervisor where one is missing."""
        self._reap()
        while len(self._supervisors) < SUPERVISORS and time.monotonic() >= self._next_start:
            words = ["worker", "start", "-n", str(WORKERS_EACH), "-j", self._dice.choice(SLOTS)]
            supervisor = subprocess.Popen(
                [PROGRAM, *words], env=self._cli.environ, cwd=self._cli.folder,
                stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log,
            )  # fmt: skip
            self._supervisors.append(supervisor)
            self._next_start = time.monotonic() + PAUSE_S
            self._notes.tell(f"supervisor {supervisor.pid} started: {' '.join(words)}")

    def supervisors(self) -> list[Process]:
        """Return the living supervisors."""
        self._reap()
        pids = {supervisor.pid for supervisor in self._supervisors}
        return [process for process in processes_of(self.home) if process.pid in pids and process.role is Role.OTHER]

    def workers(self) -> list[Process]:
        """Return the living workers, those whose supervisor is dead included."""
        return workers_of(self.home)

    def workers_under(self, supervisor: Process) -> list[Process]:
        """Return the workers of one supervisor."""
        return [worker for worker in self.workers() if worker.parent == supervisor.pid]

    def said(self) -> str:
        """Return all that supervisors and workers have logged."""
        return self._log_path.read_text(errors="replace")

    def end(self) -> None:
        """End every process of the home, whatever it is."""
        until = time.monotonic() + 10
        while (left := processes_of(self.home)) and time.monotonic() < until:
            for process in left:
                send(process, signal.SIGKILL)
            self._reap()
            time.sleep(0.05)
        for supervisor in self._supervisors:
            supervisor.kill()
            supervisor.wait()
        self._log.close()

    def _reap(self) -> None:
        for supervisor in [*self._supervisors]:
            code = supervisor.poll()
            if code is not None:
                self._supervisors.remove(supervisor)
                self._notes.tell(f"supervisor {supervisor.pid} ended: {code}")
                if code not in USUAL_ENDS:
                    self.failed[supervisor.pid] = code
