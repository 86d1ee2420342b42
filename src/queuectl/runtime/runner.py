"""Runner: one run of one command, from its start to its report, driven by the worker's poll loop."""

import os
import time
from functools import partial

from queuectl import clock
from queuectl.model.attempt import Report
from queuectl.model.verdict import Outcome
from queuectl.runtime.environment import own_variables
from queuectl.runtime.launchpad import Takeoff, outcome_of
from queuectl.runtime.wording import longest_run, stopped_outcome, words_of
from queuectl.system import launch as quick
from queuectl.system import process
from queuectl.system.home import log_path, remove_file, stderr_path
from queuectl.system.liveness import Leader
from queuectl.system.masking import Mask
from queuectl.system.output import NOTHING_KEPT, Kept, Output
from queuectl.system.pipes import inode_of
from queuectl.system.secrets import find_secrets

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from queuectl.model.job import Claim
    from queuectl.model.launch import Launch
    from queuectl.runtime.launchpad import Launchpad
    from queuectl.runtime.loop import Loop
    from queuectl.settings import Settings
    from queuectl.system.home import Home
    from queuectl.system.launch import Landed, Launched
    from queuectl.system.variables import Variables

PUMP_AFTER_MS = 3
PUMP_AFTER_S = PUMP_AFTER_MS / 1000  # most commands end sooner, and then their pipe is read once
FILE_AFTER_S = 0.2
SCAN_EVERY_S = 0.03
ANNOUNCE_AFTER_S = 0.2
STUCK_AFTER_S = 1.0
STUCK_SCAN_EVERY_S = 1.0
NEVER = float("inf")


class Runner:
    """A command under way. `report` is set when it is over, and then nothing of it is left.

    `stuck` is what outlived SIGKILL: another user's, or held up in the kernel. The command is not over before it is.
    """

    # How all begin; for most commands it stays like this, so that a start need not set it.
    report: Report | None = None
    is_over = False
    """Whether its first process has ended; the next tick finds out what became of it."""
    is_announced = False
    is_starved = False
    stuck: "Sequence[int]" = ()
    is_stuck_told = False
    _takeoff: Takeoff | None = None
    _pid = -1
    _pidfd = -1
    _landing = -1
    """Where the output comes of a command that was launched in one call, until somebody looks after it."""
    _is_watching_output = False
    _is_long = False
    _script: str | None = None
    _stop_reason: str | None = None
    _kill_at = 0.0
    _scan_at = 0.0
    _again_at = NEVER
    _is_signalled = False
    _ended_s: float | None = None
    _empty_scans = 0

    def __init__(self, claim: "Claim", home: "Home", settings: "Settings", pad: "Launchpad", loop: "Loop") -> None:
        self.claim = claim
        self._home = home
        self._settings = settings
        self._loop = loop
        self._pad = pad
        self._mark = claim.mark
        self._known: dict[int, float] = {}
        self.started = time.monotonic()
        self._kills_before = pad.kills.before_start(self.started)
        self._begun_s = clock.boot_s()
        self._timeout_s, self._timeout_reason = longest_run(claim.job, settings.job_timeout)
        self._outputs: list[Output] = []

    @property
    def elapsed_s(self) -> float:
        """How long the command has run."""
        return time.monotonic() - self.started

    def is_long(self, now: float) -> bool:
        """Whether it has run, at a monotonic time, for so long that people want to know."""
        return now - self.started >= ANNOUNCE_AFTER_S

    @property
    def pid(self) -> int:
        """The first process of the command; -1 when it did not start."""
        return self._pid

    def stop(self, reason: str, grace_s: float | None = None) -> None:
        """Have the whole tree ended from the next tick on; the first reason decides, and the shortest grace.

        A command that has ended by itself, though the loop has not seen it yet, keeps its own outcome.
        """
        if self.report is not None or (self._stop_reason is None and process.is_over(self._pid)):
            return
        now = time.monotonic()
        kill_at = now + (self._settings.kill_grace_seconds if grace_s is None else grace_s)
        if self._stop_reason is not None:
            self._kill_at = min(self._kill_at, kill_at)
            return
        self._stop_reason = reason
        self._kill_at = kill_at
        self._scan_at = now

    def next_tick(self) -> float:
        """Return the monotonic time at which `tick` has something to do."""
        if self._again_at != NEVER:  # it is over; to collect it is all there is to do
            return self._again_at
        after_s = FILE_AFTER_S if self._is_watching_output else PUMP_AFTER_S
        tick = NEVER if self._is_long else self.started + after_s
        if self._stop_reason is not None:
            return min(tick, self._scan_at)
        return min(tick, self.started + self._timeout_s) if self._timeout_s else tick

    def tick(self, now: float, processes: process.Processes) -> None:
        """Do what is due: look at the output, give it a file, notice the timeout, look after a stop."""
        if self.report is not None:
            return
        if self.is_over and not self._is_signalled:
            self._end()
            return
        if not self._is_watching_output and now >= self.started + PUMP_AFTER_S:
            self._is_watching_output = True
            self._adopt_output()
            for output in self._outputs:
                self._loop.watch(output.read_fd, partial(self._on_output, output))
        if now >= self.started + FILE_AFTER_S:
            self._is_long = True
            for output in self._outputs:
                output.open_file()
        if self._stop_reason is not None:
            if now >= self._scan_at:
                self._look_after_stop(now, processes)
        elif self._timeout_s and now >= self.started + self._timeout_s:
            self.stop(self._timeout_reason)

    def start(self, variables: "Variables", kept_input: bytes | None = None, *, is_patient: bool = False) -> None:
        """Start the command; a patient caller waits a moment for its end, while nothing else happens."""
        job = self.claim.job
        launch = job.launch_options
        shell = self._settings.shell if launch is None else launch.shell or self._settings.shell
        try:
            argv, self._script = words_of(job, shell, self._home)
            own = own_variables(job, self._mark)
            if launch is None and not job.split_output and self._launch(argv, variables, own, is_patient=is_patient):
                return
            self._open_outputs()
            env = variables.with_own(own)
            if launch is not None and launch.secrets:
                self._add_secrets(env, launch.secrets)
            leader = self._note_before()
            if launch is None:
                self._pid = process.spawn(
                    argv,
                    env,
                    job.cwd or "/",
                    stdin=self._pad.devnull,
                    output=self._outputs[0].write_fd,
                    errors=self._outputs[-1].write_fd,
                )
            else:
                self._pid = self._take_off(launch, argv, env, kept_input)
            self._pad.lock.note_pid(leader, self._pid, clock.boot_s())
            for output in self._outputs:
                output.started()
            self._pidfd = self._open_pidfd(leader)
        except process.CannotStart as error:
            self.is_starved = error.is_passing
            outcome = Outcome.not_started(error.code, error.reason)
            if error.is_passing:
                outcome = Outcome.handed_back(error.reason)
            self._finish(outcome, None)
            return
        self._loop.watch_once(self._pidfd, self._on_exit)

    def _launch(self, argv: list[str], variables: "Variables", own: bytes, *, is_patient: bool) -> bool:
        """Start a plain command in one call; False means that it takes several."""
        job, pad = self.claim.job, self._pad
        blocks = variables.blocks(own, has_others_names=job.env is not None)
        patience_ms = 0 if not is_patient or 0 < self._timeout_s < PUMP_AFTER_S else PUMP_AFTER_MS
        command = job.seq, job.run, argv, blocks, job.cwd or "/"
        where = pad.signals, pad.devnull, pad.lock.notes_for(job.seq), self._loop.fileno()
        _, launched = quick.launch([command], *where, patience_ms, NEVER, self._settings.output_tail_bytes)
        if launched is None:
            return False
        self._take_over(launched)
        return True

    def go_on(self, launched: "Launched", earliest: float, kills_before: int) -> None:
        """Look after one that was launched behind others, as from when it began.

        That is known on the clock that goes on while this machine sleeps, which is no time of the command's: on ours it
        was not before `earliest`, when the first of them began. The kernel had killed so often by then.
        """
        self.started = max(earliest, self.started - (self._begun_s - launched[3]))
        self._kills_before = kills_before
        self._take_over(launched)

    def _take_over(self, launched: "Launched") -> None:
        self._pid, self._pidfd, self._landing, self._begun_s, landed = launched
        if landed is None:
            self._loop.watch_once(self._pidfd, self._on_exit)
        else:
            self._take(landed)

    def _adopt_output(self) -> None:
        """Look after the output of a command that was launched in one call as after that of any other."""
        if self._landing >= 0:
            path = log_path(self._home, self.claim.job.seq, self.claim.job.run)
            self._outputs.append(self._make_output(path, self._landing))
            self._landing = -1

    def _open_outputs(self) -> None:
        """Open the pipes that the command will print into."""
        job = self.claim.job
        try:
            self._outputs.append(self._make_output(log_path(self._home, job.seq, job.run)))
            if job.split_output:
                self._outputs.append(self._make_output(stderr_path(self._home, job.seq, job.run)))
        except OSError as error:
            reason = f"cannot make a pipe for its output: {error.strerror}"
            raise process.CannotStart(process.CANNOT_RUN, reason, is_passing=True) from None

    def _note_before(self) -> Leader:
        """Write down what will tell the command before it is started: this worker may die before it knows the pid."""
        job = self.claim.job
        pipes = tuple([inode_of(output.write_fd) for output in self._outputs])
        leader = Leader.of_row((job.seq, job.run, 0, 0.0, self._begun_s, pipes))
        self._pad.lock.note_start(leader)
        return leader

    def _open_pidfd(self, leader: Leader) -> int:
        """Return what tells us of the command's end; without it nothing could, so the command is ended at once."""
        try:
            return os.pidfd_open(self._pid)
        except OSError as error:
            now = clock.boot_s()
            left = process.Left(mark=self._mark, leader=self._pid, started=now, seen_at=now, pipes=leader.pipes)
            process.end_left([left])
            os.waitpid(self._pid, 0)
            self._pid = -1
            reason = f"cannot watch over it: {error.strerror}"
            raise process.CannotStart(process.CANNOT_RUN, reason, is_passing=True) from None

    def _add_secrets(self, env: dict[bytes, bytes], names: tuple[str, ...]) -> None:
        """Give the command the secrets it names, and hide their values in all that is kept of its output."""
        secrets = find_secrets(names, self._home.secrets, os.environb)
        env.update(secrets)
        for output in self._outputs:
            output.mask = Mask(secrets.values())

    def _take_off(self, launch: "Launch", argv: list[str], env: dict[bytes, bytes], kept_input: bytes | None) -> int:
        """Start a command that asks for something, and return its pid."""
        job = self.claim.job
        cwd = job.cwd or "/"
        self._takeoff = Takeoff(launch, self._pad, f"{job.seq}.{job.run}")
        stdin = self._takeoff.open_stdin(cwd, kept_input)
        try:
            return process.spawn(
                argv,
                env,
                cwd,
                stdin=self._pad.devnull if stdin is None else stdin,
                output=self._outputs[0].write_fd,
                errors=self._outputs[-1].write_fd,
                preparation=self._takeoff.preparation(),
            )
        finally:
            if stdin is not None:
                os.close(stdin)

    def _make_output(self, path: str, read_fd: int | None = None) -> Output:
        settings = self._settings
        return Output(path, tail_bytes=settings.output_tail_bytes, max_bytes=settings.max_output_bytes, read_fd=read_fd)

    def _on_output(self, output: Output) -> None:
        if not output.pump():
            self._loop.unwatch(output.read_fd)

    def _on_exit(self) -> None:
        self.is_over = True
        self._ended_s = clock.boot_s()

    def _end(self) -> None:
        """Take what is left of a command that ended by itself."""
        if self._landing >= 0:
            self._land()
            return
        ended = process.reap(self._pid)
        if ended is None:
            self._again_at = time.monotonic() + SCAN_EVERY_S  # a debugger has it still
            return
        self._close()
        outcome = None if self._takeoff is None else self._takeoff.outcome(ended)
        self._finish(outcome or self._own_outcome(ended), ended)

    def _land(self) -> None:
        """Take what is left of one that was launched in one call, and has ended by itself."""
        landed = quick.land(self._pid, self._pidfd, self._landing, self._settings.output_tail_bytes)
        if landed is None:
            self._again_at = time.monotonic() + SCAN_EVERY_S  # a debugger has it still
        else:
            self._take(landed)

    def _take(self, landed: "Landed") -> None:
        status, cpu_us, peak_kib, printed, self._ended_s = landed
        if status == 0 and printed is not None and self._script is None:
            self.report = Report.of_success(round(cpu_us / 1000), peak_kib, printed, self._begun_s, self._ended_s)
            return
        ended, kept = process.Ended.of_status(status, cpu_us / 1000, peak_kib), None
        if printed is None:
            self._adopt_output()
        else:
            kept = Kept(total_bytes=len(printed), file=None, tail=printed)
        self._finish(self._own_outcome(ended), ended, kept)

    def _own_outcome(self, ended: process.Ended) -> Outcome:
        return outcome_of(ended, max(self._kills_before, self._pad.kills.lately), self._pad.kills)

    def _look_after_stop(self, now: float, processes: process.Processes) -> None:
        """Ask it to end, and end what is left after the grace; done when two looks find nothing but the dead leader.

        The first look comes before the first signal: who is tied to the command by a parent alone must be known before
        that parent dies of it.
        """
        self._scan_at = now + SCAN_EVERY_S
        members = processes.tree(self._pid, self._mark, self._known)
        if not self._is_signalled:
            if process.is_over(self._pid):  # asked as late as can be: looking at all processes takes milliseconds
                return  # it ended by itself, and the loop is about to see it
            self._is_signalled = True
            process.terminate(self._pid)
        if now >= self._kill_at:
            process.kill(members)
        if now >= self._kill_at + STUCK_AFTER_S:
            self.stuck = members
            self._scan_at = now + (STUCK_SCAN_EVERY_S if members else SCAN_EVERY_S)
        is_gone = self.is_over and not members
        self._empty_scans = self._empty_scans + 1 if is_gone else 0
        if self._empty_scans >= 2:
            ended = process.reap(self._pid)
            if ended is not None:
                self._adopt_output()
                self._close()
                deadline_ms = self.claim.job.deadline_ms or 0
                self._finish(stopped_outcome(self._stop_reason, ended, self._timeout_s, deadline_ms), ended)

    def _close(self) -> None:
        if self._is_watching_output:
            for output in self._outputs:
                self._loop.unwatch(output.read_fd)
        os.close(self._pidfd)

    def _finish(self, outcome: Outcome, ended: process.Ended | None, kept: Kept | None = None) -> None:
        if self._script is not None:
            remove_file(self._script)
        if self._takeoff is not None:
            self._takeoff.end()
        if kept is None:
            kept = self._outputs[0].finish() if self._outputs else NOTHING_KEPT
        self.report = Report(
            outcome=outcome,
            cpu_ms=ended.cpu_ms if ended else None,
            peak_memory_bytes=ended.peak_memory_bytes if ended else None,
            output_bytes=kept.total_bytes,
            output_file=self._name_of(kept),
            output_tail=kept.tail,
            begun_s=self._begun_s,
            ended_s=clock.boot_s() if self._ended_s is None or self._is_signalled else self._ended_s,
        )
        for output in self._outputs[1:]:
            kept = output.finish()
            self.report = self.report.replace(
                stderr_bytes=kept.total_bytes, stderr_file=self._name_of(kept), stderr_tail=kept.tail
            )

    def _name_of(self, kept: Kept) -> str | None:
        return None if kept.file is None else os.path.relpath(kept.file, self._home.logs)
