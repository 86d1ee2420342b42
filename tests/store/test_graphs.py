"""Six clients at once do whatever may be done to a graph of jobs; whoever looks, at any time, finds it in order.

Races held still at one statement are in test_dependency_races.py, test_revival_races.py and test_key_races.py.
"""

import itertools
import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from queuectl.actions.connect import Target, connect
from queuectl.actions.control import purge_dead, release
from queuectl.actions.settle import settle_and_claim
from queuectl.actions.submit import Fate, enter
from queuectl.actions.upkeep import Rule, prune
from queuectl.errors import BadInput, NotFound, Refused
from queuectl.model.after import Kind, OnDead, Parent
from queuectl.model.attempt import Report
from queuectl.model.job import Claim, JobSpec
from queuectl.model.states import FINAL, WAITING_FOR_TIME, State
from queuectl.model.unique import OnConflict
from queuectl.model.verdict import Outcome
from queuectl.store import edges, jobs
from queuectl.store.database import Database, Tx
from tests.store.graphs import (
    ALL,
    cancels,
    deletes,
    drain,
    edits,
    faults,
    holder,
    holds,
    retries,
    retries_with_dependents,
)
from tests.store.rows import add_worker

CLIENTS = 6
ACTS = 70
SEEDS = (1, 2, 3)
NEAR = 25
UNFINISHED = (State.PENDING, State.BLOCKED, State.FAILED, State.PROCESSING)
HOOK = "echo all have ended"
ENDS = (Outcome.exited(0),) * 6 + (Outcome.exited(1),) * 2 + (Outcome.lost(), Outcome.cancelled())
WEIGHTS = {
    "add": 26, "work": 40, "cancel": 5, "retry": 8, "retry with dependents": 5, "hold": 3, "release": 4, "rewire": 5,
    "policy": 2, "delete": 4, "prune": 2, "purge": 1,
}  # fmt: skip


class Crowd:
    """Clients with a connection and a thread each, and one that looks."""

    def __init__(self, target: Target, seed: int) -> None:
        self._target = target
        self._seed = seed
        self._numbers = iter(range(ALL))
        self._lock = threading.Lock()
        self._is_over = threading.Event()
        self.names = ["n0"]
        self.wrong: list[str] = []
        self.looks = 0
        self.done: Counter[str] = Counter()

    def run(self) -> None:
        """Let all act, and look all the while."""
        with ThreadPoolExecutor(CLIENTS + 1) as threads:
            looking = threads.submit(self._look)
            try:
                for client in [threads.submit(self._act, number) for number in range(CLIENTS)]:
                    client.result()
            finally:
                self._is_over.set()
            looking.result()

    def _look(self) -> None:
        with closing(connect(self._target)) as database:
            while not self._is_over.is_set() and not self.wrong:
                self.wrong += database.read(faults)
                self.looks += 1
                time.sleep(0.005)

    def _act(self, number: int) -> None:
        dice = random.Random(self._seed * 100 + number)
        with closing(connect(self._target, is_durable=False)) as database:
            add_worker(database, f"w{number}")
            client = Client(database, dice, f"w{number}", self)
            for _ in range(ACTS):
                if self.wrong:
                    return
                what = dice.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
                try:
                    client.verbs[what]()
                    self.done[what] += 1
                except (Refused, NotFound, BadInput):
                    self.done[f"{what}, refused"] += 1
            client.settle_all()

    def new_name(self) -> str:
        """Return a name no job has had."""
        with self._lock:
            return f"n{next(self._numbers) + 1}"


class Client:
    """One that adds, runs and changes jobs by chance."""

    def __init__(self, database: Database, dice: random.Random, worker_id: str, crowd: Crowd) -> None:
        self._db = database
        self._dice = dice
        self._worker_id = worker_id
        self._crowd = crowd
        self._held: list[Claim] = []
        self.verbs: dict[str, Callable[[], object]] = {
            "add": self._add,
            "work": self._work,
            "cancel": lambda: cancels(self._one(*UNFINISHED))(database),
            "retry": lambda: retries(self._one(*FINAL))(database),
            "retry with dependents": lambda: retries_with_dependents(self._one(*FINAL))(database),
            "hold": lambda: holds(self._one(State.PENDING, State.BLOCKED))(database),
            "release": lambda: release(database, [self._one(State.BLOCKED)], who="me"),
            "rewire": self._rewire,
            "policy": lambda: edits(self._one(State.BLOCKED), on_dead_dependency=dice.choice(list(OnDead)).value)(
                database
            ),
            "delete": lambda: deletes(self._any())(database),
            "prune": lambda: prune(database, _at_once(dice), who="me", sleep=lambda _: None),
            "purge": lambda: purge_dead(database, jobs.Filter(text="true"), who="me"),
        }

    def settle_all(self) -> None:
        """End what it still runs."""
        while self._held:
            self._work(free=0)

    def _any(self) -> str:
        return self._dice.choice(self._crowd.names[-NEAR:])

    def _one(self, *states: State) -> str:
        """Return one of the newest jobs that are in some states, whatever becomes of it meanwhile."""
        found = self._db.read(lambda tx: jobs.newest(tx, jobs.Filter(states=states), NEAR))
        return self._dice.choice(found).id if found else self._any()

    def _add(self) -> None:
        dice, near = self._dice, self._crowd.names[-NEAR:]
        specs: list[JobSpec] = []
        for _ in range(dice.randint(1, 4)):
            mine = [str(spec.given_id) for spec in specs]
            parents = {dice.choice([*near, *mine]) for _ in range(dice.choice((0, 1, 1, 2, 3)))}
            is_unique = dice.random() < 0.2
            specs.append(
                JobSpec(
                    given_id=self._crowd.new_name(),
                    command="true",
                    max_retries=0,
                    after=tuple(Parent(kind=dice.choice(list(Kind)), id=parent) for parent in sorted(parents)),
                    on_dead=dice.choice([None, *(policy.value for policy in OnDead)]),
                    hold=dice.random() < 0.05,
                    mutexes=("m",) if dice.random() < 0.1 else (),
                    unique_key=f"k{dice.randint(1, 4)}" if is_unique else None,
                    unique_for_ms=dice.choice((None, 50)) if is_unique else None,
                    on_conflict=dice.choice(list(OnConflict)).value if is_unique else None,
                    group=(group := f"g{dice.randint(1, 4)}" if dice.random() < 0.3 else None),
                    on_group_done=HOOK if group else None,
                    max_failures=dice.choice((None, None, None, "5")) if group else None,
                )
            )
        dice.shuffle(specs)
        entries = enter(self._db, specs, who="me", environ={})
        self._crowd.names += [entry.id for entry in entries if entry.fate is Fate.ADDED]

    def _work(self, free: int | None = None) -> None:
        self._dice.shuffle(self._held)
        ended = [(claim, Report(outcome=self._dice.choice(ENDS))) for claim in self._held[:2]]
        self._held = self._held[2:]
        wanted = self._dice.randint(0, 3) if free is None else free
        step = settle_and_claim(self._db, holder(self._worker_id), ended, wanted, {})
        assert not step.lost
        self._held += step.claimed

    def _change_policy(self) -> None:
        edits(self._one(State.BLOCKED), on_dead_dependency=self._dice.choice(list(OnDead)).value)(self._db)

    def _rewire(self) -> None:
        parents = [f"{self._dice.choice(list(Kind))}:{self._any()}" for _ in range(self._dice.randint(0, 2))]
        edits(self._one(*UNFINISHED), after=",".join(dict.fromkeys(parents)) or "none")(self._db)


def _at_once(dice: random.Random) -> list[Rule]:
    return [Rule(state=dice.choice(sorted(FINAL)), older_than_ms=dice.choice((1, 200)))]


@pytest.mark.parametrize("seed", SEEDS)
def test_whatever_six_clients_do_at_once_to_a_graph_it_is_in_order_and_runs_to_its_end(
    db: Database, target: Target, seed: int
) -> None:
    enter(db, [JobSpec(given_id="n0", command="true")], who="me", environ={})
    turns = itertools.count()
    crowd = Crowd(target, seed)

    crowd.run()

    assert crowd.wrong == []
    assert crowd.looks > 10
    assert min(crowd.done[what] for what in ("add", "work")) > CLIENTS, crowd.done
    assert db.read(faults) == []
    while let_all_go(db) + len(drain(db, f"d{next(turns)}")):
        continue
    assert db.read(faults) == []
    assert db.read(stuck) == []


def let_all_go(db: Database) -> int:
    """Let everybody go whom a person holds, or who waits for a time after a loss; return how many."""
    found = db.read(lambda tx: jobs.page(tx, jobs.Filter(), 0, ALL))
    held = [job.id for job in found if job.held_at is not None]
    later = [job.id for job in found if job.state in WAITING_FOR_TIME]
    for job_id in held:
        release(db, [job_id], who="me")
    for job_id in later:
        retries(job_id)(db)
    return len(held) + len(later)


def stuck(tx: Tx) -> list[str]:
    """Return who has not ended, but for those that asked to wait for one that failed, and those after them."""
    found = {job.seq: job for job in jobs.page(tx, jobs.Filter(), 0, ALL)}
    waits: dict[int, set[int]] = {}
    for edge in edges.between(tx, sorted(found)):
        if edge.state == "waiting" and found[edge.child_seq].state not in FINAL:
            waits.setdefault(edge.child_seq, set()).add(edge.parent_seq)
    patient = {job.seq for job in found.values() if any(found[seq].state in FINAL for seq in waits.get(job.seq, ()))}
    while grown := {seq for seq, parents in waits.items() if parents & patient} - patient:
        patient |= grown
    return [f"{job.id} is {job.state}" for job in found.values() if job.state not in FINAL and job.seq not in patient]
