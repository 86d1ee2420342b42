"""Worker: one process that claims jobs, runs up to `slots` commands at once, and settles them."""

import os
import sys
import time

from queuectl import clock
from queuectl.actions import settle as settling
from queuectl.actions.connect import Target, settings_of
from queuectl.actions.endings import has_ties
from queuectl.actions.parking import let_go
from queuectl.actions.settle import Holder, Step, is_free, settle_and_claim
from queuectl.errors import BadInput, StoreBusy, StoreError, StoreFull, StoreUnreachable
from queuectl.model.attempt import Report
from queuectl.model.units import counted
from queuectl.model.verdict import Outcome
from queuectl.runtime.bell import make_bell
from queuectl.runtime.environment import shared_variables
from queuectl.runtime.hand import HOLD_S, NEVER, Hand
from queuectl.runtime.heartbeat import Heartbeat
from queuectl.runtime.identity import Identity
from queuectl.runtime.launchpad import Launchpad
from queuectl.runtime.log import Log, one_line
from queuectl.runtime.loop import Loop
from queuectl.runtime.options import NOW_BYTE, WorkerOptions
from queuectl.runtime.runner import Runner
from queuectl.runtime.streak import run_through
from queuectl.runtime.telling import say_ends
from queuectl.runtime.tenure import Tenure
from queuectl.runtime.wording import CANCEL, HAND_BACK, LAPSE
from queuectl.settings import resolve
from queuectl.store import claims, config, inputs, workers
from queuectl.store.takers import Taker
from queuectl.system import process
from queuectl.system.liveness import Parting, note_parting

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from queuectl.model.job import Claim, Job
    from queuectl.store.database import Database, Tx

ORDERS_EVERY_S = 1.0
SETTINGS_EVERY_S = 0.1
UNTIL_IDLE_POLL_S = 0.01
UNTIL_IDLE_LONGEST_S = 0.5
TROUBLE_PAUSE_S = 0.5
STARVED_PAUSE_S = 1.0
CUT_SHORT_PAUSE_S = 0.01
FAREWELLS = 2
FAREWELL_S = 10.0
"""How long a worker that is to stop at once tries to settle what it ran, where the store is away."""


class Worker:
    """The main loop of one worker process."""

    def __init__(
        self, target: Target, options: WorkerOptions, log: Log, database: "Database", identity: Identity
    ) -> None:
        self._target = target
        self._options = options
        self._log = log
        self._environ = dict(os.environ)
        self._loop = Loop()
        self._database = database
        self._settings = database.read(lambda tx: settings_of(tx, self._environ))
        self._settings_at = self._compared_at = time.monotonic()
        self._identity = identity
        duty = options.duty
        taker = Taker(
            worker_id=self._identity.id,
            queues=duty.queues,
            supply=duty.supply,
            group=options.supervisor_id,
            turns=duty.turns,
        )
        self._holder = Holder(taker=taker, host=self._identity.host, only=options.only)
        self._bell = make_bell(target, self._database, self._loop, self._on_bell)
        self._heartbeat = Heartbeat(
            target,
            self._identity,
            self._settings.worker_heartbeat_interval,
            self._settings.lock_lease_seconds,
            self._loop,
        )
        self._tenure = Tenure(self._database.dialect, self._heartbeat)
        self._is_leased = not self._database.dialect.is_local
        self._is_leaving_off = False
        self._variables = shared_variables(target)
        self._pad = Launchpad(identity.id, identity.lock)
        self._running: list[Runner] = []
        self._hand = Hand()
        self._ended: list[tuple[Claim, Report]] = []
        self._settle_by = NEVER
        """When what has ended must be settled: at once, but for what is noted while others are in hand."""
        self._is_looking = True
        self._order = ""
        self._drain_began: float | None = None
        self._now_since = NEVER
        self._has_doubt = False
        self._next_look = self._next_orders = self._retry_at = 0.0
        self._failed_farewells = self._idle_looks = 0
        self._is_rehearsed = options.until_idle or options.only is not None
        """Whether the first job that comes is claimed as quickly as others; who leaves when idle need not."""
        self._trouble: str | None = None
        self._is_over = False

    def run(self) -> None:
        """Work until told to stop, or until idle where that was asked for."""
        self._loop.watch(0, self._on_supervisor)
        self._heartbeat.start()
        self._log.info("started", f"started, {self._options.slots} at once")
        self._let_go()
        while not self._is_over:
            self._turn()
        self._leave()

    def _leave(self) -> None:
        """Let go of everything, of the row and the lock only where nothing is owed: rescue goes by their notes."""
        self._heartbeat.stop()
        self._pad.close()
        if self._has_work() or self._has_doubt:
            self._leave_in_debt()
        else:
            try:
                self._identity.end()
            except StoreError as error:
                self._log.warning("store", f"{error.message}; a supervisor will close this worker's row")
        self._database.close()
        self._log.info("ended", "ended")

    def _leave_in_debt(self) -> None:
        """Leave what it may hold to whoever rescues it, by the notes of how runs ended; the rest is handed back."""
        lock = self._identity.lock
        for claim, report in self._ended if lock.expect_ends() else ():
            if report.can_be_noted:
                lock.note_outcome(claim.job.seq, claim.job.run, report.as_note())
        note_parting(lock.path, Parting.LEFT)
        owed = len(self._ended) + len(self._hand.claims) + len(self._hand.returned)
        what = counted(owed, "job") if owed else "what it may have been given meanwhile"
        self._log.warning("left", f"the store is away; leaving {what} to whoever rescues what dead workers held")

    def _let_go(self) -> None:
        """Let jobs go that waited for a limit in a lane nobody served before."""
        try:
            let_go(self._database)
        except StoreError as error:
            self._log.trouble(error.message)

    def _turn(self) -> None:
        """See to what is due and wait for more; where the store fails, nothing of it is given up but the time."""
        try:
            self._see_to_all()
        except StoreError as error:
            self._log.trouble(error.message)
            self._identity.lock.drop_stale()
            self._has_doubt = self._is_looking = True
            self._hand.prompt.clear()  # how long they ran has nothing to do with how long it stays away
            self._failed_farewells += bool(self._order)
            self._retry_at = time.monotonic() + TROUBLE_PAUSE_S

    def _see_to_all(self) -> None:
        now = time.monotonic()
        self._watch_heartbeat()
        if self._is_lapsing():
            self._leave_off()
            return
        self._is_leaving_off = False
        if self._order and (self._is_free_to_leave() or self._leaves_in_debt(now)):
            self._is_over = True
            return
        if now >= self._hand.until or (self._hand.claims and (self._order or not self._heartbeat.is_renewed)):
            self._hand.give_back()
        if now >= self._drain_until():
            self._log.warning("stop", f"still running after {self._settings.stop_timeout:g} s; handing back")
            self._obey(workers.NOW)
        if now < self._retry_at or not self._has_time_for_store():
            self._poll(self._retry_at if now < self._retry_at else now + TROUBLE_PAUSE_S)
            return
        if self._is_time_to_settle(now) or self._is_looking or now >= self._next_look:
            self._settle_and_claim(now)
        elif self._running and now >= self._next_orders:
            self._take_orders(now)
        self._log.trouble_over()
        self._failed_farewells = 0
        self._bell.attend()
        # With something to do at once, the loop still turns: commands, output and orders do not wait for it.
        is_leaving = bool(self._order) and not self._running
        is_busy = self._is_looking or is_leaving or self._is_time_to_settle(now)
        self._poll(now if is_busy else min(self._wake_at(), self._settle_by, self._hand.until))
        self._work_off_hand()

    def _work_off_hand(self) -> None:
        """Begin one job in hand after the other, and look at nothing else meanwhile: it is not for long (HOLD_S)."""
        hand = self._hand
        while hand.claims and not (hand.returned or self._order or self._is_looking or self._heartbeat.is_given_up):
            until = min(self._settle_by, hand.until, self._next_orders)
            if time.monotonic() >= until:
                return
            self._poll(until)

    def _has_work(self) -> bool:
        """Whether this worker holds anything."""
        return bool(self._running or self._ended or self._hand.claims or self._hand.returned)

    def _is_time_to_settle(self, now: float) -> bool:
        """Whether what has ended, or goes back, waits no longer: while short jobs are in hand, it is written later."""
        return bool(self._hand.returned or (self._ended and (now >= self._settle_by or not self._hand.claims)))

    def _poll(self, until: float) -> None:
        until = min(until, self._drain_until())
        for runner in self._running:
            until = min(until, runner.next_tick())
        self._loop.turn(until)
        now = self._loop.turned_at
        processes = process.Processes()
        for runner in self._running:
            runner.tick(now, processes)
        self._collect(now)  # notes ends before the next command begins: should we be killed then, they stand
        if self._hand.claims:
            self._begin(now, is_patient=True)

    def _collect(self, now: float) -> None:
        """Set the runs that are over aside for the next settle; say of the others that they run."""
        for runner in [*self._running]:
            if runner.report is not None:
                self._running.remove(runner)
                self._end(runner, runner.report, now)
            elif not runner.is_announced and runner.is_long(now):
                runner.is_announced = True
                job = runner.claim.job
                self._log.info("running", f"running: {one_line(job.line)}", job=job.id, run=job.run)

    def _end(self, runner: Runner, report: Report, now: float) -> None:
        """Set a run that is over aside: with a note of how it ended where it may wait, else to be settled at once."""
        claim = runner.claim
        job = claim.job
        self._hand.note_pace(now - runner.started)
        may_wait = self._hand.claims and report.can_be_noted and is_free(job)
        if may_wait and self._identity.lock.note_outcome(job.seq, job.run, report.as_note()):
            self._settle_by = min(self._settle_by, now + HOLD_S)
        else:
            self._settle_by = now
            if has_ties(job) and not report.outcome.is_success:
                self._hand.give_back()  # what follows from a failure may be that the others are not to run
            if job.seq not in self._hand.late:
                self._hand.prompt.add(job.seq)
        self._hand.late.discard(job.seq)
        self._ended.append((claim, report))

    def _begin(self, now: float, *, is_patient: bool = False) -> None:
        """Begin what is in hand, as far as there are slots whose command is over.

        With one slot and some patience, the next begins as soon as a short one is over, until there is something else
        to do; then one runs that nobody waits for.
        """
        hand = self._hand
        busy = len([runner for runner in self._running if not runner.is_over])
        is_patient = is_patient and self._options.slots == 1 and not self._running
        while hand.claims and busy < self._options.slots and not (self._order or self._heartbeat.is_given_up):
            until = min(self._settle_by, hand.until, self._next_orders)
            if is_patient and now < until and self._run_through(now, until):
                now = time.monotonic()
                if self._running:
                    busy += 1
            elif self._start(hand.begin(now), is_patient=is_patient and now < until):
                now = time.monotonic()
            else:
                busy += 1

    def _run_through(self, now: float, until: float) -> bool:
        """Begin what is in hand, one plain short job after the other; False means that nothing could be begun so."""
        until_s = clock.boot_s() + until - time.monotonic()  # should we be frozen from here on, none begins after that
        if self._is_lapsing() or not self._heartbeat.is_renewed:
            return False
        hand = self._hand
        row = hand.next_in_a_row
        noted, last = run_through(
            row, self._target.home, self._settings, self._variables, self._pad, self._loop, until_s
        )
        hand.note_row(is_whole=len(noted) == len(row))
        begun = len(noted) + (last is not None)
        if not begun:
            return False
        ended = time.monotonic()
        for _ in range(begun):
            hand.begin(now)
        for claim, _ in noted:
            hand.note_pace((ended - now) / begun)
            hand.late.discard(claim.job.seq)
        if noted:
            self._ended += noted
            self._settle_by = min(self._settle_by, now + HOLD_S)
        if last is not None and last.report is not None:
            self._end(last, last.report, ended)
        elif last is not None:
            self._running.append(last)
        return True

    def _settle_and_claim(self, now: float) -> None:
        if self._has_doubt or now - self._compared_at >= self._settings.worker_heartbeat_interval:
            self._compare(now)
        free = self._free_slots()
        is_idle = not self._running
        ahead = self._room_ahead()
        ended = self._reports()
        step = settle_and_claim(
            self._database,
            self._holder,
            ended,
            free,
            self._environ,
            is_idle=is_idle,
            with_settings=self._is_time_for_settings(now),
            returned=self._hand.returned,
            ahead=ahead,
        )
        self._is_looking = False
        self._ended = []
        self._hand.prompt.clear()
        self._hand.returned = []
        if not step.is_alive:
            say_ends(self._log, step, ended)
            self._start_over()
            return
        self._strike_out(ended)
        self._next_look = now + (self._bell.poll_s if self._heartbeat.is_renewed else ORDERS_EVERY_S)
        if is_idle:
            self._next_orders = now + ORDERS_EVERY_S  # there were none but the one this step has read
        if step.claimed:
            self._idle_looks = 0
            self._take_turns(step)
        try:
            self._follow_settings(step.stored, now)
            if step.claimed:
                self._hand.take(step.claimed, now)
            self._begin(now)
        finally:
            say_ends(self._log, step, ended)  # while the next ones run
        self._collect(now)
        if step.stop:
            self._obey(step.stop)
        elif len(step.claimed) < free:
            self._plan_next_look(step, now)

    def _reports(self) -> "Sequence[tuple[Claim, Report]]":
        """Return what has ended as it is to be settled."""
        if not self._hand.prompt:
            return self._ended
        return [
            (claim, report.replace(begun_s=None, ended_s=None) if claim.job.seq in self._hand.prompt else report)
            for claim, report in self._ended
        ]

    def _strike_out(self, ended: "Sequence[tuple[Claim, Report]]") -> None:
        """Take what is settled out of the notes: whoever finds a run there after our death would see to it."""
        self._settle_by = NEVER
        lock = self._identity.lock
        lock.forget_outcomes()
        lock.note_ends([claim.job.seq for claim, _ in ended])

    def _room_ahead(self) -> int:
        """Return how many jobs to take ahead of the slots: none unless all is well and this worker takes anything."""
        if self._order or self._options.only is not None or self._is_lapsing() or not self._heartbeat.is_renewed:
            return 0
        if any(claims.runs_alone(runner.claim) for runner in self._running):
            return 0
        room = self._hand.room(self._options.slots)
        return room if room and self._identity.lock.expect_ends() else 0

    def _take_turns(self, step: Step) -> None:
        """Remember whose turn it was, where queues share this worker's time."""
        taker = self._holder.taker
        if taker.turns is not None:
            turns = taker.turns.after([claim.job.queue for claim in step.claimed])
            self._holder = self._holder.replace(taker=taker.replace(turns=turns))

    def _plan_next_look(self, step: Step, now: float) -> None:
        """Nothing more is ready: sleep until somebody rings, a job is due, or the net poll."""
        if not (self._is_rehearsed or self._running or self._order):
            settling.rehearse(self._database, self._holder, self._options.slots)
            self._is_rehearsed = True
        if step.is_cut_short:
            self._next_look = min(self._next_look, now + CUT_SHORT_PAUSE_S)
        if step.next_run_at is not None:
            self._next_look = min(self._next_look, now + max(0.001, (step.next_run_at - step.now) / 1000))
        if self._options.until_idle and not self._running and not step.claimed:
            if settling.is_drained(self._database, self._holder):
                self._order = self._order or workers.DRAIN
            # Others still run something: their last settle rings no bell, so look again, ever more patiently.
            self._idle_looks += 1
            pause_s = min(UNTIL_IDLE_LONGEST_S, UNTIL_IDLE_POLL_S * 1.5 ** min(self._idle_looks, 10))
            self._next_look = min(self._next_look, now + pause_s)

    def _wake_at(self) -> float:
        if not self._running:
            return self._next_look
        if not self._free_slots():
            self._next_look = float("inf")  # no free slot: a command that ends brings the next look
            return self._next_orders
        return min(self._next_look, self._next_orders)

    def _take_orders(self, now: float) -> None:
        """See whether a job is to be cancelled or this worker to stop, and whether we hold what we run."""
        self._next_orders = now + ORDERS_EVERY_S
        self._pad.kills.look()
        if now - self._compared_at >= self._settings.worker_heartbeat_interval:
            self._compare(now)

        def read(tx: "Tx") -> "tuple[str | None, list[int], Mapping[str, str] | None]":
            stop, cancelled = workers.orders(tx, self._identity.id), claims.cancel_requests(tx, self._identity.id)
            return stop, cancelled, config.stored(tx) if self._is_time_for_settings(now) else None

        is_local = self._target.sqlite_path is not None
        stop, cancelled, stored = self._database.read(read) if is_local else self._database.write(read)
        self._follow_settings(stored, now)
        self._hand.drop(cancelled)
        for runner in self._running:
            if runner.claim.job.seq in cancelled:
                runner.stop(CANCEL)
            if runner.stuck and not runner.is_stuck_told:
                self._tell_stuck(runner)
        if stop is None:
            self._start_over()
        elif stop:
            self._obey(stop)

    def _tell_stuck(self, runner: Runner) -> None:
        """Name the processes that cannot be ended, in the log and in the job's row."""
        why = self._database.write(lambda tx: claims.note_stuck(tx, runner.claim, runner.stuck))
        runner.is_stuck_told = True
        self._log.warning("stuck", why, job=runner.claim.job.id, run=runner.claim.job.run)

    def _free_slots(self) -> int:
        """Return how many more jobs to take: none before the lease is renewed, none beside one that runs alone."""
        if self._order or self._is_lapsing() or not self._heartbeat.is_renewed:
            return 0
        if self._hand.claims:
            return 0
        if not self._running:
            return self._options.slots
        if any(claims.runs_alone(runner.claim) for runner in self._running):
            return 0
        return max(0, self._options.slots - len(self._running))

    def _start(self, claim: "Claim", *, is_patient: bool = False) -> bool:
        """Start a command; True means that its run is over already, and set aside.

        One whose input the store cannot give now is handed back, with all that is in hand.
        """
        if self._is_lapsing() or not self._heartbeat.is_renewed:  # frozen since the claim: it may be another's by now
            return self._begin_none(claim, Outcome.lapsed())
        try:
            kept_input = None if claim.job.launch is None else self._kept_input(claim.job)
        except (StoreUnreachable, StoreBusy, StoreFull):
            self._begin_none(claim, Outcome.handed_back("the store was away with its input"))
            self._hand.give_back()
            raise
        except StoreError as error:  # damaged: it would be so the next time, too
            return self._begin_none(claim, Outcome.not_started(126, f"its input cannot be read: {error.message}"))
        runner = Runner(claim, self._target.home, self._settings, self._pad, self._loop)
        runner.start(self._variables, kept_input, is_patient=is_patient)
        if runner.report is not None and not runner.is_starved:
            self._end(runner, runner.report, time.monotonic())
            return True
        self._running.append(runner)
        if self._order == workers.NOW:
            runner.stop(HAND_BACK)
        if runner.is_starved:
            self._log.warning("starved", "no memory, processes or files left to start a command; trying again shortly")
            self._retry_at = time.monotonic() + STARVED_PAUSE_S
        return False

    def _begin_none(self, claim: "Claim", outcome: Outcome) -> bool:
        """Have a run settled at once that was never begun."""
        self._hand.late.discard(claim.job.seq)
        self._ended.append((claim, Report(outcome=outcome)))
        self._settle_by = 0.0
        return False

    def _kept_input(self, job: "Job") -> bytes | None:
        """Fetch what a job reads on standard input, where the store holds it."""
        launch = job.launch_options
        if launch is None or not launch.has_input:
            return None
        return self._database.read(lambda tx: inputs.get(tx, job.seq))

    def _obey(self, stop: str) -> None:
        if not self._order:
            self._drain_began = time.monotonic()
        if stop == workers.NOW:
            self._drain_began = None
            self._now_since = min(self._now_since, time.monotonic())
            for runner in self._running:
                runner.stop(HAND_BACK)
        self._order = stop if self._order != workers.NOW else self._order

    def _drain_until(self) -> float:
        """Return when a stop has waited long enough for running jobs, by the setting as it is now."""
        if self._drain_began is None or not self._settings.stop_timeout:
            return float("inf")
        return self._drain_began + self._settings.stop_timeout

    def _leave_off(self) -> None:
        """Stop all commands before the lease ends; when nothing is left of them, try to renew it."""
        self._hand.give_back()
        left = self._tenure.left_to_kill_s(self._settings.kill_grace_seconds)
        if self._running and not self._is_leaving_off:
            self._is_leaving_off = True
            self._log.warning("lease", "the lease cannot be renewed; stopping the commands to hand their jobs back")
        for runner in self._running:
            runner.stop(LAPSE, grace_s=max(0.0, left))
        if self._running:
            self._poll(time.monotonic() + ORDERS_EVERY_S)
            return
        self._is_leaving_off = False
        self._has_doubt = self._is_looking = True
        self._heartbeat.resume()

    def _is_lapsing(self) -> bool:
        """Whether the lease is so near its end that commands must be stopped."""
        return self._is_leased and self._tenure.is_lapsing(self._settings.kill_grace_seconds)

    def _has_time_for_store(self) -> bool:
        """Whether the store could fail to answer and the commands still be stopped in time."""
        return not self._running or self._tenure.has_time_for_store(self._settings.kill_grace_seconds)

    def _is_free_to_leave(self) -> bool:
        """Whether nothing can be ours any more; a store that stays away does not hold up a stop for ever.

        Should a claim have been made without our knowing, its job is rescued and handed back.
        """
        return not self._has_work() and (not self._has_doubt or self._failed_farewells >= FAREWELLS)

    def _leaves_in_debt(self, now: float) -> bool:
        """Whether it leaves with its runs not settled: told to stop at once, and the store is away too long."""
        has_tried = self._failed_farewells >= FAREWELLS and now >= self._now_since + FAREWELL_S
        return self._order == workers.NOW and not self._running and has_tried

    def _compare(self, now: float) -> None:
        """Hold what the database says is ours against what we run, and mend both.

        A failed transaction may have been committed all the same. A run that ended and is not ours any more was
        settled; one that is ours and was never begun is begun now; one under way that is not ours any more is stopped.
        """
        held = {(claim.job.seq, claim.job.run): claim for claim in self._database.read(self._read_held)}
        over = [claim for claim, _ in self._ended if (claim.job.seq, claim.job.run) not in held]
        self._ended = [(claim, report) for claim, report in self._ended if claim not in over]
        self._identity.lock.note_ends([claim.job.seq for claim in over])
        self._hand.keep(held)
        known = {(runner.claim.job.seq, runner.claim.job.run) for runner in self._running}
        in_hand = [*self._hand.claims, *self._hand.returned, *(claim for claim, _ in self._ended)]
        known |= {(claim.job.seq, claim.job.run) for claim in in_hand}
        for key, claim in held.items():
            if key not in known:
                self._start(claim)
        for runner in self._running:
            job = runner.claim.job
            if (job.seq, job.run) not in held:
                self._log.warning("lost", "is not ours any more; stopping it", job=job.id, run=job.run)
                runner.stop(HAND_BACK)
        self._has_doubt = False
        self._compared_at = now

    def _read_held(self, tx: "Tx") -> "list[Claim]":
        return claims.held_by(tx, self._identity.id)

    def _start_over(self) -> None:
        """Given up for dead: another may run our jobs, so stop them and end; the supervisor starts a new worker."""
        self._log.warning("given_up", "was given up for dead; stopping its commands")
        self._hand.give_back()
        for runner in self._running:
            runner.stop(HAND_BACK, grace_s=0.0)
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
        self._is_looking = self._free_slots() > 0
        self._next_orders = 0.0
        if not self._running:
            self._is_looking = True

    def _on_supervisor(self) -> None:
        word = os.read(0, 64)
        if not word:
            self._loop.unwatch(0)
            self._log.warning("orphaned", "its supervisor is gone; finishing the running jobs and leaving")
        self._obey(workers.NOW if NOW_BYTE in word else workers.DRAIN)

    def _is_time_for_settings(self, now: float) -> bool:
        return now - self._settings_at >= SETTINGS_EVERY_S

    def _follow_settings(self, stored: "Mapping[str, str] | None", now: float) -> None:
        """Go by what the store says now, where it was asked."""
        if stored is None:
            return
        self._settings_at = now
        try:
            self._settings, _ = resolve(stored, self._environ)
        except BadInput as error:
            self._log.warning("settings", f"the settings do not fit this worker's environment: {error.message}")
        settings = self._settings
        self._heartbeat.follow(settings.worker_heartbeat_interval, settings.lock_lease_seconds)
