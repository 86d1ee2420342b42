"""Worker: one process that claims jobs, runs up to `slots` commands at once, and settles them."""

import json
import os
import sys
import time

from queuectl.actions import settle as settling
from queuectl.actions.connect import Target, connect, locate, point_at, settings_of
from queuectl.actions.settle import Holder, Step, settle_and_claim
from queuectl.errors import BadInput, QueuectlError, StoreError
from queuectl.model.states import State
from queuectl.model.units import rough_duration_text
from queuectl.model.value import Value
from queuectl.runtime.bell import make_bell
from queuectl.runtime.heartbeat import Heartbeat
from queuectl.runtime.identity import Identity
from queuectl.runtime.log import Log, one_line
from queuectl.runtime.loop import Loop
from queuectl.runtime.runner import CANCEL, HAND_BACK, Runner
from queuectl.store import claims, workers
from queuectl.system.limits import allow_open_files, close_inherited_on_exec
from queuectl.system.logfile import LogFile
from queuectl.system.memory import keep_freed_memory
from queuectl.system.names import CLAIM_VARIABLE, WORKER_VARIABLE
from queuectl.system.signals import leave_signals_to_supervisor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queuectl.model.attempt import Report
    from queuectl.model.job import Claim, Job
    from queuectl.settings import Settings
    from queuectl.store.database import Tx

ORDERS_EVERY_S = 1.0
SETTINGS_EVERY_S = 1.0
UNTIL_IDLE_POLL_S = 0.05
TROUBLE_PAUSE_S = 0.5
STARVED_PAUSE_S = 1.0
ANNOUNCE_AFTER_S = 0.2
FILES_PER_RUN = 5  # pipe, process, log and its two segments
OWN_FILES = 32
DRAIN_BYTE = b"d"
NOW_BYTE = b"n"
_PRIVATE_VARIABLES = frozenset(
    {CLAIM_VARIABLE, WORKER_VARIABLE, "QUEUECTL_JOB_ID", "QUEUECTL_ATTEMPT", "QUEUECTL_RUN", "QUEUECTL_QUEUE"}
)


class WorkerOptions(Value):
    """What a supervisor tells a worker process it starts."""

    worker_id: str
    supervisor_id: str
    queues: tuple[str, ...] | None
    slots: int
    until_idle: bool
    log_form: str
    log_to_file: bool


class Worker:
    """The main loop of one worker process."""

    def __init__(self, target: Target, options: WorkerOptions, log: Log) -> None:
        self._target = target
        self._options = options
        self._log = log
        self._environ = dict(os.environ)
        self._loop = Loop()
        self._database = connect(target, is_durable=False)
        self._settings = self._load_settings()
        self._settings_at = time.monotonic()
        self._identity = Identity(
            self._database,
            target.home,
            options.worker_id,
            kind=workers.WORKER,
            supervisor_id=options.supervisor_id,
            queues=options.queues,
            slots=options.slots,
        )
        self._holder = Holder(worker_id=self._identity.id, host=self._identity.host, queues=options.queues)
        self._bell = make_bell(target, self._database, self._loop, self._on_bell)
        interval = self._settings.worker_heartbeat_interval
        self._heartbeat = Heartbeat(target, self._identity.id, interval, self._loop)
        self._base_env = _base_env(target)
        self._devnull = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
        self._running: list[Runner] = []
        self._ended: list[tuple[Claim, Report]] = []
        self._is_looking = True
        self._is_draining = False
        self._has_doubt = False
        self._next_look = 0.0
        self._next_orders = 0.0
        self._retry_at = 0.0
        self._idle_looks = 0
        self._trouble: str | None = None
        self._is_over = False

    def run(self) -> None:
        """Work until told to stop, or until idle where that was asked for."""
        self._loop.watch(0, self._on_supervisor)
        self._heartbeat.start()
        self._log.info("started", f"started, {self._options.slots} at once")
        while not self._is_over:
            self._turn()
        self._heartbeat.stop()
        self._identity.end()
        self._database.close()
        self._log.info("ended", "ended")

    def _turn(self) -> None:
        now = time.monotonic()
        if now < self._retry_at:
            self._poll(self._retry_at)
            return
        try:
            if self._ended or self._is_looking or now >= self._next_look:
                self._settle_and_claim(now)
            elif self._running and now >= self._next_orders:
                self._take_orders(now)
        except StoreError as error:
            self._log.warning("store", f"{error.message}; trying again")
            self._has_doubt = self._is_looking = True
            self._retry_at = time.monotonic() + TROUBLE_PAUSE_S
            return
        self._watch_heartbeat()
        if self._is_draining and not self._running and not self._ended:
            self._is_over = True
            return
        self._bell.attend()
        if not self._is_looking and not self._ended:
            self._poll(self._wake_at())

    def _poll(self, until: float) -> None:
        for runner in self._running:
            until = min(until, runner.next_tick())
        self._loop.turn(until)
        now = time.monotonic()
        for runner in self._running:
            runner.tick(now)
        self._collect()

    def _collect(self) -> None:
        """Set the runs that are over aside for the next settle; say of the others that they run."""
        for runner in [*self._running]:
            if runner.report is not None:
                self._running.remove(runner)
                self._ended.append((runner.claim, runner.report))
            elif not runner.is_announced and runner.elapsed_s >= ANNOUNCE_AFTER_S:
                runner.is_announced = True
                job = runner.claim.job
                self._log.info("running", f"running: {one_line(job.line)}", job=job.id, run=job.run)

    def _settle_and_claim(self, now: float) -> None:
        free = 0 if self._is_draining else self._options.slots - len(self._running)
        if self._has_doubt:
            self._resolve_doubt()
            free = min(free, self._options.slots - len(self._running))
        step = settle_and_claim(self._database, self._holder, self._ended, free, self._environ)
        self._is_looking = False
        self._say(step)
        self._ended = []
        if not step.is_alive:
            self._start_over()
            return
        self._refresh_settings(now)
        self._next_look = now + self._bell.poll_s
        if step.claimed:
            self._idle_looks = 0
        for claim in step.claimed:
            self._start(claim)
        self._collect()
        if step.stop:
            self._obey(step.stop)
        elif len(step.claimed) < free:
            self._plan_next_look(step, now)

    def _plan_next_look(self, step: Step, now: float) -> None:
        """Nothing more is ready: sleep until somebody rings, a job is due, or the net poll."""
        if step.next_run_at is not None:
            self._next_look = min(self._next_look, now + max(0.001, (step.next_run_at - step.now) / 1000))
        if self._options.until_idle and not self._running and not step.claimed:
            if settling.is_drained(self._database, self._holder):
                self._is_draining = True
            # Others still run something: their last settle rings no bell, so look again, ever more patiently.
            self._idle_looks += 1
            self._next_look = min(self._next_look, now + UNTIL_IDLE_POLL_S * min(self._idle_looks, 10))

    def _wake_at(self) -> float:
        if not self._running:
            return self._next_look
        if len(self._running) >= self._options.slots or self._is_draining:
            self._next_look = float("inf")  # no free slot: a command that ends brings the next look
            return self._next_orders
        return min(self._next_look, self._next_orders)

    def _take_orders(self, now: float) -> None:
        """See whether a person wants a running job cancelled, or this worker stopped."""
        self._next_orders = now + ORDERS_EVERY_S

        def read(tx: "Tx") -> tuple[str | None, list[int]]:
            return workers.orders(tx, self._identity.id), claims.cancel_requests(tx, self._identity.id)

        stop, cancelled = self._database.write(read) if self._target.sqlite_path is None else self._database.read(read)
        for runner in self._running:
            if runner.claim.job.seq in cancelled:
                runner.stop(CANCEL)
        if stop is None:
            self._start_over()
        elif stop:
            self._obey(stop)

    def _start(self, claim: "Claim") -> None:
        runner = Runner(claim, self._target.home, self._settings, self._base_env, self._devnull, self._loop)
        self._running.append(runner)
        if runner.is_starved:
            self._log.warning("starved", "no memory, processes or files left to start a command; trying again shortly")
            self._retry_at = time.monotonic() + STARVED_PAUSE_S

    def _obey(self, stop: str) -> None:
        self._is_draining = True
        if stop == workers.NOW:
            for runner in self._running:
                runner.stop(HAND_BACK)

    def _resolve_doubt(self) -> None:
        """After a failed transaction, which may have been committed all the same: go by what the database says is ours.

        A run that ended and is not ours any more was settled; a run that is ours and was never begun is begun now.
        """
        held = {(claim.job.seq, claim.job.run): claim for claim in self._database.read(self._read_held)}
        self._ended = [(claim, report) for claim, report in self._ended if (claim.job.seq, claim.job.run) in held]
        known = {(runner.claim.job.seq, runner.claim.job.run) for runner in self._running}
        known |= {(claim.job.seq, claim.job.run) for claim, _ in self._ended}
        for key, claim in held.items():
            if key not in known:
                self._start(claim)
        self._has_doubt = False

    def _read_held(self, tx: "Tx") -> "list[Claim]":
        return claims.held_by(tx, self._identity.id)

    def _start_over(self) -> None:
        """Given up for dead: another may run our jobs, so stop them and end; the supervisor starts a new worker."""
        self._log.warning("given_up", "was given up for dead; stopping its commands")
        for runner in self._running:
            runner.stop(HAND_BACK)
        while self._running:
            self._poll(time.monotonic() + ORDERS_EVERY_S)
        sys.exit(1)

    def _watch_heartbeat(self) -> None:
        if self._heartbeat.is_given_up:
            self._start_over()
        if self._heartbeat.trouble != self._trouble:
            self._trouble = self._heartbeat.trouble
            if self._trouble is not None:
                self._log.warning("heartbeat", f"no heartbeat: {self._trouble}")

    def _on_bell(self) -> None:
        self._is_looking = len(self._running) < self._options.slots and not self._is_draining
        self._next_orders = 0.0
        if not self._running:
            self._is_looking = True

    def _on_supervisor(self) -> None:
        word = os.read(0, 64)
        if not word:
            self._loop.unwatch(0)
            self._log.warning("orphaned", "its supervisor is gone; finishing the running jobs and leaving")
        self._obey(workers.NOW if NOW_BYTE in word else workers.DRAIN)

    def _load_settings(self) -> "Settings":
        return self._database.read(lambda tx: settings_of(tx, self._environ))

    def _refresh_settings(self, now: float) -> None:
        if now - self._settings_at < SETTINGS_EVERY_S:
            return
        self._settings_at = now
        try:
            self._settings = self._load_settings()
        except BadInput as error:
            self._log.warning("settings", f"the settings do not fit this worker's environment: {error.message}")

    def _say(self, step: Step) -> None:
        reports = {claim.job.seq: (claim, report) for claim, report in self._ended}
        for job in step.settled:
            claim, report = reports[job.seq]
            self._log.info(job.state, _ended_text(job, claim, report, step.now), job=job.id, run=job.run)
        for claim in step.lost:
            self._log.warning("lost", "claim was lost; nothing was written", job=claim.job.id, run=claim.job.run)


def _ended_text(job: "Job", claim: "Claim", report: "Report", now: int) -> str:
    took = rough_duration_text(max(0, now - (claim.job.started_at or now)))
    if job.state is State.COMPLETED:
        return f"completed in {took}"
    reason = f"{report.outcome.error}, took {took}"
    if job.state is State.FAILED and job.run_at is not None:
        return f"failed ({reason}); attempt {job.attempts}/{job.max_retries}, again in {(job.run_at - now) / 1000:g} s"
    if job.state is State.DEAD:
        return f"dead ({reason}); attempts {job.attempts}/{job.max_retries}"
    return f"{job.state} ({reason})"


def _base_env(target: Target) -> dict[bytes, bytes]:
    """Return what commands inherit: this process's environment, less what is private, and the way to this queue."""
    env = point_at(target, os.environ)
    return {os.fsencode(name): os.fsencode(env[name]) for name in env if name not in _PRIVATE_VARIABLES}


def _slots_that_fit(wanted: int, log: Log) -> int:
    """Return how many commands can run at once with the files this process may open; without one, it would die."""
    files = allow_open_files(OWN_FILES + wanted * FILES_PER_RUN)
    slots = max(1, min(wanted, (files - OWN_FILES) // FILES_PER_RUN))
    if slots < wanted:
        log.warning(
            "slots", f"only {slots} of {wanted} commands at once: the limit of open files (ulimit -n) is {files}"
        )
    return slots


def main() -> None:
    """Run a worker as its supervisor asked, in the last argument."""
    fields = json.loads(sys.argv[-1])
    fields["queues"] = None if fields["queues"] is None else tuple(fields["queues"])
    options = WorkerOptions(**fields)
    leave_signals_to_supervisor()
    close_inherited_on_exec()
    keep_freed_memory()
    target = locate(None, os.environ)
    file = LogFile(target.home.worker_log) if options.log_to_file else None
    log = Log(f"worker {options.worker_id[:6]}", form=options.log_form, file=file)
    try:
        with log.crashes():
            Worker(target, options.replace(slots=_slots_that_fit(options.slots, log)), log).run()
    except QueuectlError as error:
        log.warning("gave_up", f"cannot go on: {error.message}")
        sys.exit(error.exit_code)
