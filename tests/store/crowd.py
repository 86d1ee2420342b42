"""A crowd of claimers, each with a connection and a thread of its own, that claim and settle until nothing is left.

Nothing runs: a claim is held for a moment and settled by chance as done, failed, handed back or lost. What may run at
once is counted from the store after every claim, and from the times at which each run began and ended.
"""

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import NamedTuple, TypeVar

from queuectl.actions import rescue
from queuectl.actions.connect import Target, connect
from queuectl.actions.settle import Holder, settle_and_claim
from queuectl.model.attempt import Report
from queuectl.model.job import Claim, Job
from queuectl.model.needs import Supply
from queuectl.model.verdict import Outcome
from queuectl.store import claims, workers
from queuectl.store.claims import Orphan
from queuectl.store.database import Database, Tx
from queuectl.store.dialect import Question
from queuectl.store.takers import Taker
from tests.store.rows import HOST, add_worker

CLAIMERS = 8
GROUPS = 2
GPUS = 2
DEADLINE_S = 120.0
HELD_S = 0.003
Result = TypeVar("Result")
Bounds = dict[str, int]
ENDS = {"done": 70, "fail": 8, "hand back": 8, "lose": 6, "die": 8}


class Killed(Exception):
    """Ends a claimer in the middle of its transaction, as SIGKILL would; the database undoes it."""


class Held(NamedTuple):
    """One run, from when its claim was known to when its settle began: what it holds, it held all this time."""

    job: Job
    worker_id: str
    began: float
    ended: float


class Crowd:
    """Eight claimers on one store, in two groups that have two GPUs each."""

    def __init__(self, target: Target, seed: int, bounds: Bounds) -> None:
        self._target = target
        self._seed = seed
        self._bounds = bounds
        """How many may run at once, by what `uses` calls it."""
        self._lock = threading.Lock()
        self.held: list[Held] = []
        self.faults: list[str] = []
        self.did_stall = False
        """Whether the time was up before everything had ended."""

    def run(self) -> None:
        """Let all claim and settle until every job has ended, a fault is found, or the time is up."""
        with closing(connect(self._target)) as database:
            for number in range(CLAIMERS):
                add_worker(database, f"w{number}", supervisor_id=group_of(number))
            for number in range(GROUPS):
                add_worker(database, group_of(number), kind=workers.SUPERVISOR)
        with ThreadPoolExecutor(CLAIMERS) as threads:
            for future in [threads.submit(self._claimer, number) for number in range(CLAIMERS)]:
                future.result()

    def overlaps(self) -> list[str]:
        """Return what too many held at once, by the times the claimers noted themselves."""
        moments = sorted(
            [(held.began, 1, held) for held in self.held] + [(held.ended, -1, held) for held in self.held],
            key=lambda moment: moment[:2],
        )
        running: Counter[str] = Counter()
        found = []
        for _, step, held in moments:
            for use in uses(held.job, held.worker_id):
                running[use] += step
                if running[use] > self._bound(use):
                    found.append(f"{running[use]} at once have {use}")
        return found

    def _claimer(self, number: int) -> None:
        dice = random.Random(self._seed * CLAIMERS + number)
        taker = Taker(
            worker_id=f"w{number}",
            supply=Supply(labels=("here",), resources={"gpu": GPUS}),
            group=group_of(number),
        )
        until = time.monotonic() + DEADLINE_S
        with closing(connect(self._target, is_durable=False)) as database:
            ended: list[tuple[Claim, Report]] = []
            while not self.faults:
                claimed = self._step(database, Holder(taker=taker, host=HOST), ended, dice)
                ended = []
                if claimed is None:
                    continue
                self._look(database, claimed)
                if claimed:
                    ended = self._hold(database, claimed, dice)
                elif database.read(is_over):
                    return
                elif time.monotonic() > until:
                    self.did_stall = True
                    return
                else:
                    time.sleep(dice.uniform(0, 0.01))

    def _step(
        self, database: Database, holder: Holder, ended: Sequence[tuple[Claim, Report]], dice: random.Random
    ) -> Sequence[Claim] | None:
        """Settle and claim; None means that this claimer was killed before its commit."""
        wanted = dice.randint(1, 3)
        try:
            if not ended and dice.random() < 0.05:
                settle_and_claim(_Dying(database), holder, ended, wanted, {})  # type: ignore[arg-type]
            step = settle_and_claim(database, holder, ended, wanted, {})
            self.faults += [f"job {claim.job.seq} was taken from its claimer" for claim in step.lost]
            return step.claimed
        except Killed:
            return None

    def _hold(self, database: Database, claimed: Sequence[Claim], dice: random.Random) -> list[tuple[Claim, Report]]:
        """Hold claims for a moment; return what is left to settle, with how it ended."""
        began = time.monotonic()
        time.sleep(dice.uniform(0, HELD_S))
        ended = time.monotonic()
        with self._lock:
            self.held += [
                Held(job=claim.job, worker_id=str(claim.job.worker_id), began=began, ended=ended) for claim in claimed
            ]
        end = dice.choices(list(ENDS), list(ENDS.values()))[0]
        if end == "die":
            orphans = [(Orphan(claim=claim, worker=None), Report(outcome=Outcome.lost())) for claim in claimed]
            database.write(lambda tx: rescue._settle(orphans, {}, tx))
            return []
        outcomes = {"fail": Outcome.exited(1), "hand back": Outcome.handed_back(), "lose": Outcome.lost()}
        return [(claim, Report(outcome=outcomes.get(end, Outcome.exited(0)))) for claim in claimed]

    def _look(self, database: Database, claimed: Sequence[Claim]) -> None:
        """Count what runs now: whoever claimed too much has not settled it yet, so one of them sees it."""
        running = database.read(claims.running)
        marks = {claim.mark for claim in running}
        self.faults += [f"job {claim.job.seq} is claimed, not held" for claim in claimed if claim.mark not in marks]
        counts = Counter(use for claim in running for use in uses(claim.job, str(claim.job.worker_id)))
        self.faults += [f"{count} at once have {use}" for use, count in counts.items() if count > self._bound(use)]

    def _bound(self, use: str) -> int:
        return 1 if use.startswith(("mutex:", "unit:", "job:")) else self._bounds.get(use, 1 << 31)


class _Dying:
    """A database whose transaction never comes to its commit."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.dialect = database.dialect

    def write(self, work: Callable[[Tx], Result], question: Question | None = None) -> Result:
        def work_and_die(tx: Tx) -> Result:
            work(tx)
            raise Killed

        return self._database.write(work_and_die, question)


def group_of(number: int) -> str:
    """Return the supervisor of a claimer."""
    return f"s{number % GROUPS}"


def uses(job: Job, worker_id: str) -> Iterable[str]:
    """Name everything that a running job takes up and of which there is only so much."""
    yield f"job:{job.seq}"
    yield f"queue:{job.queue}"
    yield from job.limit_list
    for unit in job.unit_map.get("gpu", []) if job.units else []:  # type: ignore[union-attr]
        yield f"unit:{group_of(int(worker_id[1:]))}:{unit}"


def is_over(tx: Tx) -> bool:
    """Whether every job has ended."""
    waiting = "state IN ('pending', 'scheduled', 'blocked', 'failed', 'processing')"
    return tx.row(f"SELECT 1 FROM jobs WHERE {waiting} LIMIT 1") is None
