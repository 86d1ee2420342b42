"""Upkeep: what supervisors do bit by bit beside their workers: burying jobs whose deadline has passed, removing those
that were kept long enough, giving space back. The latter two can be asked for by hand."""

import random
import time

from queuectl.actions import pace
from queuectl.actions.connect import working_settings
from queuectl.actions.deadlines import expire_overdue
from queuectl.actions.disuse import forget_fires, forget_needs
from queuectl.actions.liveness import pulse
from queuectl.actions.parking import let_go
from queuectl.actions.sweep import Sweeper
from queuectl.errors import BadInput, Refused
from queuectl.model.states import State
from queuectl.model.units import DAY_MS, DURATION_HELP, WEEK_MS, duration_text
from queuectl.model.value import Value
from queuectl.store import audit, edges, removing, requests, unique_keys, watchers, workers
from queuectl.system.liveness import Pulse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from queuectl.settings import Settings
    from queuectl.store.database import Database, Tx
    from queuectl.system.home import Home

BATCH = 500
KEPT_STATES = (State.COMPLETED, State.CANCELLED, State.DEAD)
KEEP_WORKERS_MS = WEEK_MS
# Every enqueue is an act: without an end the trail would outgrow the jobs. A year answers who did what last season.
KEEP_ACTS_MS = 365 * DAY_MS
AUTOMATIC = "queuectl"
ONE_ACT_MS = 3_600_000

# A chore rests for so many times as long as it took: whoever wants to write has most of the time.
REST = 9
FIRST_S = 2.0
PRUNE_EVERY_S = 60.0
SHRINK_EVERY_S = 10.0
SHRINK_PAGES = 200
SWEEP_EVERY_S = 10.0
EXPIRE_EVERY_S = 1.0
LET_GO_EVERY_S = 5.0
FORGET_EVERY_S = 600.0
SOON_S = 0.1
LAST_S = 0.5


class Rule(Value):
    """Jobs of a final state go when they have been in it for longer than this."""

    state: State
    older_than_ms: int

    def __str__(self) -> str:
        return f"{self.state} for {duration_text(self.older_than_ms)}"


class Pruned(Value):
    """How many jobs of each state went, or would go, and how many rows of workers and acts of long ago."""

    completed: int = 0
    cancelled: int = 0
    dead: int = 0
    workers: int = 0
    acts: int = 0

    @property
    def jobs(self) -> int:
        """How many jobs in all."""
        return self.completed + self.cancelled + self.dead

    def plus(self, other: "Pruned") -> "Pruned":
        """Return the sum of two."""
        return Pruned.of_row([mine + its for mine, its in zip(self._numbers(), other._numbers(), strict=True)])

    def _numbers(self) -> "tuple[int, ...]":
        return (self.completed, self.cancelled, self.dead, self.workers, self.acts)


def retention(settings: "Settings") -> tuple[Rule, ...]:
    """Return the rules of the settings; a retention of 0 keeps for ever."""
    kept_s = {
        State.COMPLETED: settings.retention_completed,
        State.CANCELLED: settings.retention_cancelled,
        State.DEAD: settings.retention_dead,
    }
    return tuple(Rule(state=state, older_than_ms=round(kept * 1000)) for state, kept in kept_s.items() if kept > 0)


def chosen_rules(settings: "Settings", states: "Sequence[State]", older_than_ms: int | None) -> tuple[Rule, ...]:
    """Return the rules a person asks for: those of the settings, of some states alone, or with another age."""
    for state in states:
        if state not in KEPT_STATES:
            raise BadInput(
                f"{state} jobs are not over, so they are never pruned",
                hint=f"give {', '.join(KEPT_STATES)}; to remove others: queuectl delete",
            )
    if older_than_ms is not None:
        if not states:
            raise BadInput("an age alone does not say which jobs", hint="give the states, too: --state completed")
        if older_than_ms == 0:
            raise BadInput("0 is no age: it would be all there are", hint=f"write {DURATION_HELP}")
        return tuple(Rule(state=state, older_than_ms=older_than_ms) for state in dict.fromkeys(states))
    rules = [rule for rule in retention(settings) if not states or rule.state in states]
    kept = [state for state in states if state not in {rule.state for rule in rules}]
    if kept:
        raise BadInput(
            f"{kept[0]} jobs are kept for ever (retention_{kept[0]} is 0)",
            hint="say how old: --older-than 30d, or set that setting",
        )
    return tuple(rules)


def count_expired(database: "Database", rules: "Sequence[Rule]") -> Pruned:
    """Count what `prune` would remove now; changes nothing."""

    def look(tx: "Tx") -> Pruned:
        counts = {
            rule.state: removing.count_finished_before(tx, rule.state, tx.now - rule.older_than_ms) for rule in rules
        }
        ended = workers.count_prunable(tx, tx.now - KEEP_WORKERS_MS)
        return _pruned(counts, ended, audit.count_prunable(tx, tx.now - KEEP_ACTS_MS))

    return database.read(look)


def prune(
    database: "Database", rules: "Sequence[Rule]", *, who: str, sleep: "Callable[[float], object]" = time.sleep
) -> Pruned:
    """Remove the jobs the rules let go of, with their runs and output, a batch per transaction and rests between."""
    pruner = _Pruner(database, who)
    total = Pruned()
    while True:
        began = time.monotonic()
        gone, is_more = pruner.batch(lambda _: rules)
        total = total.plus(gone)
        if not is_more:
            return total
        pace.rest(began, sleep)


def refuse_rewrite(database: "Database") -> None:
    """Refuse to rewrite what cannot be rewritten now, with the reason."""
    dialect = database.dialect
    if not dialect.is_local:
        raise BadInput(
            "PostgreSQL uses freed space again by itself (autovacuum)",
            hint="to give it back to the disk, have the server's owner run VACUUM FULL while no worker runs",
        )
    living = [worker for worker in database.read(workers.live) if pulse(worker, dialect) is not Pulse.DEAD]
    if living:
        pids = ", ".join(str(worker.pid) for worker in living)
        raise Refused(
            f"the file cannot be rewritten while queuectl runs on it (pid {pids})",
            hint="stop the workers first: queuectl worker stop; while they run, they give space back by themselves",
        )


def rewrite(database: "Database") -> tuple[int, int]:
    """Rewrite a SQLite file without its free space, while nothing runs; return its size before and after.

    From then on workers can give its free space back bit by bit, which those of a file from before schema 2 cannot.
    """
    refuse_rewrite(database)
    return database.dialect.rewrite()


class Upkeep:
    """What a supervisor does beside its workers, in steps so small that nobody waits for them."""

    def __init__(self, database: "Database", home: "Home", environ: "Mapping[str, str]") -> None:
        self._database = database
        self._environ = environ
        self._pruner = _Pruner(database, AUTOMATIC)
        self._sweeper = Sweeper(database, home)
        # By chance, so that supervisors that were started together do not all do it at once.
        first = time.monotonic() + FIRST_S * random.uniform(0.5, 1.5)
        self._parked_from = ""
        chores = (self._prune, self._shrink, self._sweep, self._let_go, self._expire, self._forget)
        self._chores: dict[Callable[[], float], float] = dict.fromkeys(chores, first)

    @property
    def due(self) -> float:
        """When the next step is to be done, as a monotonic time."""
        return min(self._chores.values())

    def step(self) -> None:
        """Do the chore that has been due for longest, one step of it."""
        chore, _ = min(self._chores.items(), key=lambda item: item[1])
        began = time.monotonic()
        self._chores[chore] = began + (EXPIRE_EVERY_S if chore == self._expire else PRUNE_EVERY_S)  # should it fail
        pause_s = chore()
        ended = time.monotonic()
        self._chores[chore] = ended + max(pause_s, REST * (ended - began))

    def finish(self, sleep: "Callable[[float], object]" = time.sleep) -> None:
        """Prune for a moment before leaving: who only ever works off what is there would never come to it."""
        until = (began := time.monotonic()) + LAST_S
        while self._prune() < PRUNE_EVERY_S / 2 and time.monotonic() < until:
            pace.rest(began, sleep)
            began = time.monotonic()

    def _prune(self) -> float:
        gone, is_more = self._pruner.batch(lambda tx: retention(working_settings(tx, self._environ)))
        if gone.jobs and not is_more:
            self._chores[self._shrink] = 0.0  # there is room to give back now
        return SOON_S if is_more else PRUNE_EVERY_S * random.uniform(0.9, 1.1)

    def _shrink(self) -> float:
        return SOON_S if self._database.dialect.shrink(SHRINK_PAGES) else SHRINK_EVERY_S

    def _let_go(self) -> float:
        self._parked_from, moved = let_go(self._database, self._parked_from)
        return SOON_S if self._parked_from or moved else LET_GO_EVERY_S

    def _expire(self) -> float:
        return SOON_S if expire_overdue(self._database) else EXPIRE_EVERY_S

    def _forget(self) -> float:
        forget_needs(self._database)
        forget_fires(self._database)
        return FORGET_EVERY_S * random.uniform(0.9, 1.1)

    def _sweep(self) -> float:
        return SOON_S if self._sweeper.step() else SWEEP_EVERY_S


class _Pruner:
    """Removes batch after batch; those of one call, or of one hour, share a row of the audit trail."""

    def __init__(self, database: "Database", who: str) -> None:
        self._database = database
        self._who = who
        self._act: tuple[int, int] | None = None

    def batch(self, rules_of: "Callable[[Tx], Sequence[Rule]]") -> tuple[Pruned, bool]:
        """Remove one batch; return what went and whether there is more."""
        gone, is_more, self._act = self._database.write(lambda tx: self._work(tx, rules_of(tx)))
        return gone, is_more

    def _work(self, tx: "Tx", rules: "Sequence[Rule]") -> "tuple[Pruned, bool, tuple[int, int] | None]":
        counts: dict[State, int] = {}
        room = BATCH
        for rule in rules:
            if room:
                seqs = removing.finished_before(tx, rule.state, tx.now - rule.older_than_ms, room)
                needed = edges.needed(tx, seqs)  # looked at again, now that they are held
                counts[rule.state] = removing.delete(tx, [seq for seq in seqs if seq not in needed], frees_keys=False)
                room -= len(seqs)
        ended = workers.prune(tx, tx.now - KEEP_WORKERS_MS, BATCH)
        gone = _pruned(counts, ended, audit.prune(tx, tx.now - KEEP_ACTS_MS, BATCH))
        watchers.prune(tx)
        unique_keys.forget_expired(tx, BATCH)
        requests.forget_expired(tx, BATCH)
        if gone.jobs:
            tx.tell()
        return gone, room == 0 or gone.acts == BATCH, self._record(tx, rules, gone)

    def _record(self, tx: "Tx", rules: "Sequence[Rule]", gone: Pruned) -> "tuple[int, int] | None":
        """Put it on record; what nobody asked for and nothing came of is not."""
        if self._act is not None and (self._who != AUTOMATIC or tx.now - self._act[1] < ONE_ACT_MS):
            if gone.jobs:
                audit.add_to(tx, self._act[0], gone.jobs)
            return self._act
        if self._who == AUTOMATIC and not gone.jobs:
            return self._act
        return audit.record(tx, self._who, "prune", ", ".join(map(str, rules)) or None, gone.jobs), tx.now


def _pruned(counts: "Mapping[State, int]", ended: int, acts: int) -> Pruned:
    return Pruned(
        completed=counts.get(State.COMPLETED, 0),
        cancelled=counts.get(State.CANCELLED, 0),
        dead=counts.get(State.DEAD, 0),
        workers=ended,
        acts=acts,
    )
