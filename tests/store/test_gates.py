"""Eight claimers at once never exceed a limit, a mutex, a queue's concurrency or rate, or a resource; nothing leaks.

Races held still at one point are in test_gate_races.py.
"""

import random
from collections.abc import Sequence
from itertools import pairwise

import pytest

from queuectl.actions.connect import Target
from queuectl.actions.submit import submit
from queuectl.model.job import Job, JobSpec
from queuectl.model.states import FINAL
from queuectl.store import jobs, limits, queues
from queuectl.store.database import Database, Tx
from queuectl.store.postgres import PostgresDialect
from tests.store.crowd import Crowd
from tests.store.rows import get_runs

JOBS = 80
INTERVAL_MS = 20
BOUNDS = {"queue:narrow": 3, "limit:api": 3, "limit:disk": 2}
SEEDS = (1, 2)
RETRY_AT_ONCE: dict[str, str | float | int] = {"strategy": "fixed", "fixed_ms": 5}


@pytest.mark.parametrize("seed", SEEDS)
def test_eight_claimers_that_die_at_random_exceed_nothing_and_leave_nothing_behind(
    db: Database, target: Target, seed: int
) -> None:
    add_gates(db)
    submit(db, some_jobs(seed), who="me", environ={})
    crowd = Crowd(target, seed, BOUNDS)

    crowd.run()

    assert not crowd.faults
    assert not crowd.overlaps()
    assert [job.as_dict() for job in all_jobs(db) if job.state not in FINAL] == []
    assert {job.units for job in all_jobs(db)} == {None}
    starts = sorted(run.started_at for job in all_jobs(db) if job.queue == "slow" for run in get_runs(db, job.seq))
    assert min(later - one for one, later in pairwise(starts)) >= INTERVAL_MS


@pytest.mark.parametrize("target", ["postgres"], indirect=True)
@pytest.mark.parametrize(
    "spec, bounds",
    [
        pytest.param(JobSpec(command="true", queue="narrow"), {"queue:narrow": 3}, id="concurrency"),
        pytest.param(JobSpec(command="true", limits=("api",)), {"limit:api": 3}, id="limit"),
        pytest.param(JobSpec(command="true", use={"gpu": 1}), {}, id="units"),
    ],
)
def test_without_the_guard_of_the_locks_eight_claimers_take_too_much(
    db: Database, target: Target, spec: JobSpec, bounds: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PostgresDialect, "lock_names", lambda self, names, wait: names)
    add_gates(db)
    # In several queues: of each, only as many as the limit lets run stand in the line.
    submit(db, [spec.replace(queue=queue) for queue in queues_for(spec) for _ in range(JOBS)], who="me", environ={})
    crowd = Crowd(target, 1, bounds)

    crowd.run()

    assert crowd.faults or crowd.overlaps()


def queues_for(spec: JobSpec) -> Sequence[str]:
    """Return queues whose jobs share the one gate that is tried."""
    return ["narrow"] if spec.queue == "narrow" else ["one", "two", "three", "four"]


def add_gates(db: Database) -> None:
    """Make what the jobs must stay within."""

    def work(tx: Tx) -> None:
        limits.put(tx, "api", 3)
        limits.put(tx, "disk", 2)
        for name in ("narrow", "slow"):
            queues.create(tx, name)
        queues.change(tx, "narrow", {"concurrency": 3})
        queues.change(tx, "slow", {"rate_count": 1000 // INTERVAL_MS, "rate_period_ms": 1000})

    db.write(work)


def some_jobs(seed: int) -> list[JobSpec]:
    """Return jobs that name some of everything, by chance; a few need what only an idle group has."""
    dice = random.Random(seed)
    return [
        JobSpec(
            command="true",
            queue=dice.choices(["default", "other", "narrow", "slow"], [3, 3, 3, 2])[0],
            priority=dice.randint(0, 2),
            mutexes=tuple(dice.sample(["m", "n", "o"], dice.choices([0, 1, 2], [5, 3, 1])[0])),
            limits=tuple(dice.sample(["api", "disk"], dice.choices([0, 1, 2], [5, 3, 1])[0])),
            needs=("here",) if dice.random() < 0.1 else (),
            use={"gpu": dice.randint(1, 2)} if dice.random() < 0.3 else None,
            backoff=RETRY_AT_ONCE,
        )
        for _ in range(JOBS)
    ]


def all_jobs(db: Database) -> Sequence[Job]:
    """Return every job."""
    return db.read(lambda tx: jobs.by_seqs(tx, range(1, JOBS + 1)))
