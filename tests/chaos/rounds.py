"""Rounds: some seconds of faults, then heal, drain, stop and check. A run is rounds on one store until time is up."""

import random
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.chaos import snapshot
from tests.chaos.calls import BAD_WORDS, DONE, Calls
from tests.chaos.checker import Evidence, Violation, check
from tests.chaos.crew import Crew
from tests.chaos.diagnosis import diagnosis
from tests.chaos.faults import LEASE_S, Driver
from tests.chaos.feeder import Feeder
from tests.chaos.figures import Figures
from tests.chaos.ledger import Ledger
from tests.chaos.leftovers import leftovers
from tests.chaos.notes import Notes
from tests.chaos.stores import Store
from tests.program import Cli

FAULT_S = (10.0, 15.0)
LAST_ROUND_S = 8.0  # with less time left, no other round begins
DRAIN_S = 120.0
STOP_S = 60.0
TURN_S = 0.05

# Short times, so that much happens in a minute; and a rule of the settings: the lease is at least 2 x heartbeat + 5.
SETTINGS = {
    "worker_heartbeat_interval": "1",
    "lock_lease_seconds": f"{LEASE_S:g}",
    "kill_grace_seconds": "1",
    "backoff_strategy": "fixed",
    "job_retry_delay": "0.3",
    "max_output_bytes": "64KiB",
    "output_tail_bytes": "4KiB",
}

Say = Callable[[str], None]


class Run:
    """One run on one store; `close` ends all its processes, wherever it stands."""

    def __init__(self, store: Store, folder: Path, seed: int, say: Say) -> None:
        self.figures = Figures(database=store.name, seed=seed)
        self._store = store
        self._say = say
        self._notes = Notes(journal=folder / "journal", is_handing_back_by_itself=store.name == "postgres")
        self._ledger = Ledger(folder)
        self._dice = random.Random(f"{seed} rounds")
        cli = Cli(store.target, folder)
        cli.is_fresh = True
        for name, value in SETTINGS.items():
            cli.ok("config", "set", name, value)
        self._calls = Calls(cli, self._notes)
        self._crew = Crew(cli, folder, self._notes, random.Random(f"{seed} crew"))
        # Several: one may stand before a silent connection for a while.
        self._feeders = [
            Feeder(name, self._calls, self._ledger, self._notes, random.Random(f"{seed} {name}"))
            for name in ("anna", "ben", "carl")
        ]
        self._driver = Driver(store, self._crew, self._calls, self._notes, random.Random(f"{seed} faults"))

    def rounds(self, seconds: float, *, go_on: bool = False) -> bool:
        """Go through rounds until the time is up or, unless told to go on, something is wrong; tell if all was well."""
        begun = time.monotonic()
        while not self.figures.rounds or begun + seconds - time.monotonic() >= LAST_ROUND_S:
            self._round(min(self._dice.uniform(*FAULT_S), max(LAST_ROUND_S, seconds)))
            self.figures.seconds = time.monotonic() - begun
            if self.figures.violations and not go_on:
                break
        return not self.figures.violations

    def close(self) -> None:
        """End every process of this run."""
        for feeder in self._feeders:
            feeder.stop()
        self._driver.heal()
        self._crew.end()
        self._calls.close()

    def _round(self, fault_seconds: float) -> None:
        begun = time.monotonic()
        self._notes.tell(f"round {self.figures.rounds + 1}")
        for feeder in self._feeders:
            feeder.start()
        self._driver.begin()
        self._go_on(lambda: time.monotonic() >= begun + fault_seconds, fault_seconds + 1, self._driver.turn)
        for feeder in self._feeders:
            feeder.stop()
        self._driver.heal()
        self._notes.tell("healed")
        healed = time.monotonic()
        has_drained = self._go_on(self._is_drained, DRAIN_S)
        drained = time.monotonic()
        violations = [] if has_drained else [Violation("the queue drains", "queue", f"not within {DRAIN_S:g} s")]
        self._diagnose(violations)
        violations += self._stop()
        evidence = self._evidence()
        violations = self._new([*violations, *self._check(evidence)])
        self.figures.add(evidence, self._notes, violations)
        self._say(
            f"{self._store.name} round {self.figures.rounds}: {fault_seconds:.0f} s of faults, drained in "
            f"{drained - healed:.1f} s, {len(evidence.jobs)} jobs, {len(evidence.runs)} runs, "
            f"{sum(self._notes.faults.values())} faults, {len(violations)} violations"
        )
        self._diagnose(violations)

    def _diagnose(self, violations: Sequence[Violation]) -> None:
        if violations:
            self._say(diagnosis(self._store, self._crew, self._evidence(), self._notes, violations))

    def _new(self, violations: Sequence[Violation]) -> list[Violation]:
        """Return those that no earlier round has reported."""
        return [violation for violation in violations if str(violation) not in self.figures.violations]

    def _go_on(self, until: Callable[[], bool], limit_s: float, turn: Callable[[], None] = lambda: None) -> bool:
        """Keep the crew running until something holds; False means that it never did."""
        deadline = time.monotonic() + limit_s
        while not until():
            if time.monotonic() > deadline:
                return False
            self._crew.keep()
            turn()
            time.sleep(TURN_S)
        return True

    def _is_drained(self) -> bool:
        """Whether nothing is left to do, and the dead are known to be dead."""
        is_busy = self._calls.is_busy or any(feeder.is_busy for feeder in self._feeders)
        if is_busy or snapshot.unfinished(self._store.database):
            return False
        alive = {process.pid for process in (*self._crew.supervisors(), *self._crew.workers())}
        return all(pid in alive for _, pid in snapshot.living_workers(self._store.database))

    def _stop(self) -> list[Violation]:
        """Stop the workers, and see that they are gone."""
        self._calls.run("worker", "stop", "--timeout", f"{STOP_S:g}s", may_end=(DONE,))
        until = time.monotonic() + STOP_S
        while not self._crew.is_gone:
            if time.monotonic() > until:
                return [Violation("workers stop", "supervisors", f"alive {STOP_S:g} s after worker stop")]
            time.sleep(TURN_S)
        return []

    def _evidence(self) -> Evidence:
        jobs, runs = snapshot.rows(self._store.database)
        return Evidence(lines=self._ledger.lines(), jobs=jobs, runs=runs, record=self._notes.record())

    def _check(self, evidence: Evidence) -> list[Violation]:
        violations = [*self._notes.violations, *check(evidence), *leftovers(self._store, self._ledger)]
        if damage := self._store.damage():
            violations.append(Violation("the store is whole", self._store.name, damage))
        violations += [
            Violation("supervisors outlive an outage", f"pid {pid}", f"it was up, and ended with exit code {code}")
            for pid, code in self._crew.failed.items()
            if snapshot.has_beaten(self._store.database, pid)
        ]
        violations += [
            Violation("nothing crashes", "workers", line)
            for line in self._crew.said().splitlines()
            if any(word in line for word in (*BAD_WORDS, "crashed: "))
        ]
        return violations
