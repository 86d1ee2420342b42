"""Supervisor: has workers started, replaces one that dies by a fresh process, and stops them in order."""

import json
import os
import sys
import time
from functools import cached_property

from queuectl.actions.connect import Target, connect, locate, use_for_work, whole_files, working_settings
from queuectl.errors import INTERRUPTED_CODE, QueuectlError, StoreBusy, StoreError, StoreFull, StoreUnreachable
from queuectl.model.duty import Duty
from queuectl.model.units import counted
from queuectl.model.value import Value
from queuectl.runtime.bell import make_bell
from queuectl.runtime.checkpoint import keep_log_small
from queuectl.runtime.heartbeat import Heartbeat
from queuectl.runtime.identity import Identity, new_id
from queuectl.runtime.log import Log
from queuectl.runtime.loop import Loop
from queuectl.runtime.options import DRAIN_BYTE, NOW_BYTE, WorkerOptions
from queuectl.runtime.reserve import fork_workers, wake
from queuectl.runtime.spawn import Started, end_of, start_worker
from queuectl.runtime.ticker import Ticker
from queuectl.runtime.warden import Ward, Warden
from queuectl.store import workers
from queuectl.store.takers import Taker
from queuectl.system import process
from queuectl.system.limits import close_inherited_on_exec
from queuectl.system.liveness import lock_path
from queuectl.system.logfile import LogFile
from queuectl.system.names import RESTARTED_VARIABLE
from queuectl.system.signals import STOP_SIGNALS, SignalPipe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeVar

    from queuectl.actions.rescue import Rescuer
    from queuectl.actions.upkeep import Upkeep
    from queuectl.store.database import Tx
    from queuectl.system.forking import Forked

    Result = TypeVar("Result")

UPKEEP_EVERY_S = 1.0
RESCUE_EVERY_S = 1.0
QUICK_DEATH_S = 5.0
MAX_PAUSE_S = 30.0


class Plan(Value):
    """What a person asked for with `worker start`."""

    count: int
    slots: int
    duty: Duty
    until_idle: bool
    log_form: str
    log_to_file: bool


class Supervisor:
    """The main loop of the process that `worker start` stays in."""

    def __init__(
        self,
        target: Target,
        plan: Plan,
        log: Log,
        on_ready: "Callable[[list[Started]], None]",
        reserve: "Sequence[Forked]",
    ) -> None:
        os.environ.update(whole_files(target, os.environ))  # for workers that are started when our folder is gone
        self._target = target
        self._plan = plan
        self._log = log
        self._on_ready: Callable[[list[Started]], None] | None = on_ready
        self._reserve = [*reserve]
        self._loop = Loop()
        self._database = connect(target, is_patient=False)
        try:
            use_for_work(target, self._database)
            self._identity, self._heartbeat = self._register()
        except BaseException:
            self._database.close()
            raise
        self._ticker = Ticker(self._database, log)
        self._warden = Warden(self._wards, log)
        self._bell = make_bell(target, self._database, self._loop, self._on_bell)
        self._workers: list[Started] = []
        self._owed: list[float] = []
        self._quick_deaths = 0
        self._stop = ""
        self._is_restarting = False
        self._was_signalled = False
        self._must_mark = False
        self._next_upkeep = 0.0
        self._next_rescue = 0.0
        self._has_failed = self._is_cut_short = False

    @property
    def exit_code(self) -> int:
        """What it leaves with: 1 where workers ended badly, and another than 0 where it was to do more than it did."""
        if self._has_failed:
            return 1
        return INTERRUPTED_CODE if self._is_cut_short and not self._is_restarting else 0

    # What only looks after workers is imported and made when it is first asked for: while they start by themselves.

    @cached_property
    def _rescuer(self) -> "Rescuer":
        from queuectl.actions.rescue import Rescuer

        return Rescuer(self._database, self._target.home, os.environ)

    @cached_property
    def _chores(self) -> "Upkeep":
        from queuectl.actions.upkeep import Upkeep

        return Upkeep(self._database, self._target.home, os.environ)

    def run(self) -> None:
        """Keep the workers until told to stop or until they have nothing left to do."""
        close_inherited_on_exec()
        signals = SignalPipe(STOP_SIGNALS)
        self._loop.watch(signals.fd, lambda: self._on_signals(signals.read()))
        self._heartbeat.start()
        if self._target.sqlite_path is None:
            self._warden.start()
        if self._plan.duty.resources:
            self._give_up_the_dead()
        for _ in range(self._plan.count):
            self._start_worker()
        while self._workers or self._owed:
            self._turn()
        self._say_ready()
        self._end()
        self._on_signals(signals.read())  # one that came meanwhile means to end
        if self._is_restarting:
            self._log.info("restart", "starting over")
            process.start_over()

    def _end(self) -> None:
        """Leave in order; with a store that cannot be reached, the next supervisor does the rest."""
        self._warden.stop()
        self._heartbeat.stop()
        self._is_cut_short = self._plan.until_idle and bool(self._stop)  # unless the store can tell otherwise
        try:
            self._upkeep(time.monotonic())
            if self._plan.until_idle:
                self._say_what_is_left()
                self._chores.finish()
            self._identity.end()
            self._rescuer.finish()
        except StoreError as error:
            self._log.warning("store", f"{error.message}; another supervisor will close this one's row")
        self._database.close()

    def _say_what_is_left(self) -> None:
        """Say what is left: whoever asked to run everything should know that it did not happen."""
        duty = self._plan.duty
        if not self._stop:
            from queuectl.actions.unservable import left_waiting

            waiting = self._database.read(lambda tx: left_waiting(tx, duty.queues))
            if waiting is not None:
                self._log.info("waiting", waiting)
            return
        from queuectl.actions.settle import Holder, is_drained

        taker = Taker(worker_id=self._identity.id, queues=duty.queues, supply=duty.supply)
        self._is_cut_short = not is_drained(self._database, Holder(taker=taker, host=self._identity.host))
        if self._is_cut_short and not self._is_restarting:
            self._log.warning("cut_short", "told to stop before all was done; what is left: queuectl status")

    def _register(self) -> tuple[Identity, Heartbeat]:
        settings = self._database.read(lambda tx: working_settings(tx, os.environ))
        identity = Identity(
            self._database,
            self._target.home,
            new_id(),
            kind=workers.SUPERVISOR,
            supervisor_id=None,
            duty=self._plan.duty,
            slots=self._plan.count * self._plan.slots,
            lease_s=settings.lock_lease_seconds,
        )
        interval_s, lease_s = settings.worker_heartbeat_interval, settings.lock_lease_seconds
        return identity, Heartbeat(self._target, identity, interval_s, lease_s, self._loop)

    def _turn(self) -> None:
        now = time.monotonic()
        try:
            if now >= self._ticker.due:
                self._ticker.step()
            if now >= self._next_upkeep:
                self._upkeep(now)
                self._log.trouble_over()
            elif now >= self._chores.due:
                self._chores.step()
            self._bell.attend()
        except QueuectlError as error:
            self._log.trouble(error.message)
            self._next_upkeep = now + UPKEEP_EVERY_S
        except OSError as error:
            self._log.trouble(f"cannot look after the workers: {error}")
            self._next_upkeep = now + UPKEEP_EVERY_S
        for due in [due for due in self._owed if due <= now]:
            self._owed.remove(due)
            self._start_worker()
        self._loop.turn(min([self._next_upkeep, self._chores.due, self._ticker.due, *self._owed]))

    def _upkeep(self, now: float) -> None:
        """See to orders, to workers that died, and to the size of SQLite's log."""
        self._next_upkeep = now + (UPKEEP_EVERY_S if self._on_ready is None else 0.02)
        if self._heartbeat.is_given_up:
            self._come_back()
        if self._heartbeat.has_lapsed:
            self._heartbeat.resume()  # it runs no commands itself; its workers see to their own
        if self._must_mark:
            self._mark_stop()
        orders = self._database.read(self._look)
        if orders is not None and orders.stop:
            self._is_restarting = bool(orders.restart) and not self._was_signalled
            self._tell(orders.stop)
        self._report_ready()
        if now >= self._next_rescue:
            self._next_rescue = now + RESCUE_EVERY_S
            self._rescue()
        if self._target.sqlite_path is not None:
            keep_log_small(self._database.dialect, self._target.sqlite_path)  # type: ignore[arg-type]

    def _look(self, tx: "Tx") -> "workers.Worker | None":
        """Return our own row with its orders, and learn when the next schedule is due."""
        self._ticker.plan(tx)
        return workers.get(tx, self._identity.id)

    def _mark_stop(self) -> None:
        """Write a stop that came by a signal into the rows, so that others see who is about to leave."""
        ids = [self._identity.id, *(worker.worker_id for worker in self._workers)]
        self._database.write(lambda tx: workers.tell(tx, ids, self._stop))
        self._must_mark = False

    def _come_back(self) -> None:
        """Given up for dead by another host: a row once given up is never renewed, so take a new one."""
        identity, heartbeat = self._register()
        self._log.warning("given_up", "was given up for dead; going on under a new id")
        self._heartbeat.stop()
        self._identity.lock.release()
        self._identity, self._heartbeat = identity, heartbeat
        self._heartbeat.start()

    def _wards(self) -> list[Ward]:
        return [
            Ward(worker_id=one.worker_id, pid=one.pid, lock_path=lock_path(self._target.home, one.worker_id))
            for one in [*self._workers]
        ]

    def _start_worker(self) -> None:
        worker_id = new_id()
        options = WorkerOptions(
            worker_id=worker_id,
            supervisor_id=self._identity.id,
            duty=self._plan.duty,
            slots=self._plan.slots,
            until_idle=self._plan.until_idle,
            log_form=self._plan.log_form,
            log_to_file=self._plan.log_to_file,
        )
        try:
            # Later ones start afresh: with threads and connections, this process must not be forked.
            started = wake(self._reserve.pop(0), options) if self._reserve else start_worker(self._target, options)
        except OSError as error:
            self._log.warning("starved", f"cannot start a worker: {error}; trying again")
            self._owed.append(time.monotonic() + MAX_PAUSE_S / 10)
            return
        self._workers.append(started)
        self._loop.watch(started.pidfd, lambda: self._on_death(started))
        if self._stop:
            self._send(started, self._stop)

    def _on_death(self, worker: Started) -> None:
        self._loop.unwatch(worker.pidfd)
        ended = end_of(worker)
        self._workers.remove(worker)
        if ended is not None and ended.exit_code == 0:
            return  # it was told to stop, or had nothing left to do
        lived = time.monotonic() - worker.since
        how = process.signal_name(ended.signal) if ended and ended.signal else f"exit code {ended and ended.exit_code}"
        self._log.warning("worker_died", f"worker {worker.worker_id[:6]} (pid {worker.pid}) died: {how}")
        self._next_upkeep = self._next_rescue = 0.0  # at once
        if self._stop:
            self._has_failed = True
            return
        self._quick_deaths = self._quick_deaths + 1 if lived < QUICK_DEATH_S else 0
        pause = min(MAX_PAUSE_S, 0.1 * 2**self._quick_deaths) if self._quick_deaths > 1 else 0.0
        self._owed.append(time.monotonic() + pause)

    def _give_up_the_dead(self) -> None:
        """Look for the dead before the workers claim.

        A supervisor that was killed a moment ago counts as living until then, with units of its own; what the commands
        of its workers still hold would be given a second time.
        """
        try:
            self._rescue()
        except (QueuectlError, OSError) as error:
            self._log.trouble(str(error))

    def _rescue(self) -> None:
        for note in self._rescuer.look(self._warden.ended):
            self._log.warning("rescue", note)

    def _report_ready(self) -> None:
        """Say once that every worker has had its first heartbeat."""
        if self._on_ready is None:
            return
        live = {row.id for row in self._database.read(workers.live) if row.beats}
        if self._workers and all(worker.worker_id in live for worker in self._workers):
            self._say_ready()

    def _say_ready(self) -> None:
        if self._on_ready is not None:
            self._on_ready(self._workers)
            self._on_ready = None

    def _on_bell(self) -> None:
        self._next_upkeep = 0.0

    def _on_signals(self, numbers: list[int]) -> None:
        for _ in numbers:
            self._is_restarting, self._was_signalled = False, True
            if self._stop:
                self._log.info("stop", "stopping at once; running jobs are handed back")
            else:
                self._log.info("stop", "stopping when the running jobs end; once more to stop at once")
            self._tell(workers.NOW if self._stop else workers.DRAIN)
            self._must_mark = True
            self._next_upkeep = 0.0

    def _tell(self, stop: str) -> None:
        if self._stop in (stop, workers.NOW):
            return
        self._stop = stop
        self._owed = []
        self._ticker.stop()
        for worker in self._workers:
            self._send(worker, stop)

    def _send(self, worker: Started, stop: str) -> None:
        try:
            os.write(worker.control, NOW_BYTE if stop == workers.NOW else DRAIN_BYTE)
        except BrokenPipeError:
            pass  # it just ended


def persistently(work: "Callable[[], Result]", log: Log) -> "Result":
    """Do what needs the store; one that started over waits for it as it would have while it ran."""
    while True:
        try:
            result = work()
        except (StoreUnreachable, StoreBusy, StoreFull) as error:
            if RESTARTED_VARIABLE not in os.environ:
                raise
            log.trouble(error.message)
            time.sleep(UPKEEP_EVERY_S)
        else:
            log.trouble_over()
            return result


def main() -> None:
    """Run a detached supervisor as `worker start -d` asked, in the last argument."""
    fields = json.loads(sys.argv[-1])
    plan = Plan(**{**fields, "duty": Duty.of_map(fields["duty"])})
    target = locate(None, os.environ)

    def ready(started: list[Started]) -> None:
        words = {
            "pid": os.getpid(),
            "workers": [{"id": worker.worker_id, "pid": worker.pid} for worker in started],
        }
        os.write(1, json.dumps(words).encode() + b"\n")
        devnull = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
        os.dup2(devnull, 1)
        os.dup2(devnull, 2)
        os.close(devnull)
        log.info("started", f"{counted(len(started), 'worker')} started, detached")

    try:
        reserve = fork_workers(target, plan.count, log_to_file=plan.log_to_file)
        log = Log("supervisor", form=plan.log_form, file=LogFile(target.home.worker_log))
        supervisor = persistently(lambda: Supervisor(target, plan, log, ready, reserve), log)
        with log.crashes():
            supervisor.run()
    except QueuectlError as error:
        os.write(2, f"{error.message}\n".encode())
        sys.exit(error.exit_code)
    sys.exit(supervisor.exit_code)
