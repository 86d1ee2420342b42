"""One command under a real runner, without a store: what the worker's loop does, as far as one run needs it."""

import os
import secrets
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from queuectl.model.attempt import Report
from queuectl.model.job import Claim, Job, dumps
from queuectl.model.states import State
from queuectl.runtime.launchpad import Launchpad
from queuectl.runtime.loop import Loop
from queuectl.runtime.runner import Runner
from queuectl.settings import Settings, resolve
from queuectl.system import launch
from queuectl.system.home import Home, log_path
from queuectl.system.limits import close_inherited_on_exec
from queuectl.system.liveness import LifeLock
from queuectl.system.process import Left, Processes, end_left
from queuectl.system.variables import Variables
from tests.program import DEADLINE_S, pids_with

IN_ONE_CALL, STEP_BY_STEP = "in one call", "step by step"
WAYS = (IN_ONE_CALL, STEP_BY_STEP)
"""How plain commands are started: by the compiled module, or without it."""


def start_by(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have commands started in one way."""
    if way == STEP_BY_STEP:
        monkeypatch.setattr(launch, "_launch", None)
    elif not launch.is_compiled():
        reason = "system/_launch.c was not built: is there a C compiler?"
        pytest.fail(reason) if os.environ.get("CI") else pytest.skip(reason)


class Bench:
    """Starts commands and drives them to their report."""

    def __init__(self, root: Path) -> None:
        close_inherited_on_exec()
        self.home = Home(root=str(root))
        self.home.make()
        self.loop = Loop()
        self.worker_id = secrets.token_hex(8)
        keeper = Home(root=str(root.parent / "keeper"))
        keeper.make()
        self.lock = LifeLock(keeper, self.worker_id)
        self.pad = Launchpad(self.worker_id, self.lock)
        self._seq = 0

    def start(
        self,
        command: str | None = None,
        *,
        argv: str | None = None,
        cwd: str | None = "/",
        env: object = None,
        timeout_s: float | None = None,
        split_output: object = False,
        launch: object = None,
        kept_input: object = None,
        **settings: str,
    ) -> Runner:
        """Start a shell line, or an argument vector given as JSON; settings by key."""
        self._seq += 1
        job = a_job(self._seq, self.worker_id).replace(
            command=command,
            argv=argv,
            cwd=cwd,
            env=None if env is None else dumps(env),
            timeout_ms=None if timeout_s is None else round(timeout_s * 1000),
            split_output=int(bool(split_output)),
            launch=None if launch is None else dumps(launch),
        )
        assert kept_input is None or isinstance(kept_input, bytes)
        shared = Variables(os.environb)
        runner = Runner(Claim(job=job), self.home, the_settings(**settings), self.pad, self.loop)
        runner.start(shared, kept_input)
        return runner

    def turn(self, runner: Runner, until: float) -> None:
        """Do what a worker does between two settles."""
        self.loop.turn(min(until, runner.next_tick()))
        runner.tick(time.monotonic(), Processes())

    def turn_until(self, runner: Runner, look: Callable[[], object]) -> None:
        """Drive a command until something is so."""
        deadline = time.monotonic() + DEADLINE_S
        while not look():
            assert time.monotonic() < deadline, "the command did not get there in time"
            self.turn(runner, time.monotonic() + 0.02)

    def time_out(self, runner: Runner, look: Callable[[], object]) -> Report:
        """Drive a command until something is so, and let its timeout pass then: no sooner, however slow we are."""
        self.turn_until(runner, look)
        runner._timeout_s = min(runner._timeout_s, runner.elapsed_s)
        return self.finish(runner)

    def finish(self, runner: Runner) -> Report:
        """Drive a command to its report."""
        self.turn_until(runner, lambda: runner.report)
        assert runner.report is not None
        return runner.report

    def run(self, command: str | None = None, **options: object) -> Report:
        """Run a command from its start to its report."""
        return self.finish(self.start(command, **options))  # type: ignore[arg-type]

    def mark(self, runner: Runner) -> str:
        """Return the mark the processes of a command carry."""
        return f"{self.worker_id}:{runner.claim.job.seq}:{runner.claim.job.run}"

    def living(self, runner: Runner) -> list[int]:
        """Return the processes that carry the command's mark and have not ended."""
        return [pid for pid in pids_with("QUEUECTL_CLAIM", self.mark(runner)) if is_running(pid)]

    def log(self, runner: Runner) -> Path:
        """Return where the output of a command goes when it needs a file."""
        return Path(log_path(self.home, runner.claim.job.seq, runner.claim.job.run))

    def close(self) -> None:
        """Let go of what was opened, and end what a test that failed left running."""
        end_left([Left(mark=f"{self.worker_id}:")])
        self.pad.close()
        self.lock.release()
        self.loop.close()


def has_printed(runner: Runner) -> bool:
    """Whether some of a command's output has been seen."""
    return any(output._total for output in runner._outputs)


def is_running(pid: int) -> bool:
    """Whether a process exists and is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def the_settings(**changes: str) -> Settings:
    """Return the default settings with some changed, as a person would write them."""
    return resolve(changes, {})[0]


def a_job(seq: int, worker_id: str) -> Job:
    """Return a job in its first run."""
    return Job(
        seq=seq, given_id=None, state=State.PROCESSING, queue="default", lane_id=1, priority=0, run=1, attempts=0,
        losses=0, max_retries=3, cancel_requested=0, worker_id=worker_id, run_at=None, created_at=0, updated_at=0,
        started_at=0, finished_at=None, exit_code=None, error=None, timeout_ms=None, backoff=None, cwd=None, env=None,
        tags=None, command=None, argv=None, held_at=None, split_output=0, needs=None,
        limits=None, parked_for=None, deadline_ms=None, deadline_at=None, policy=None, launch=None, units=None,
        waits_for=0, has_dependents=0, on_dead=None, starved_at=None, unique_key=None, unique_for_ms=None,
        group_name=None, waited_ms=None,
    )  # fmt: skip
