"""Pruning: a day of history removed while a worker drains, against the same drain with the history kept."""

import signal
import subprocess
from collections.abc import Iterator
from contextlib import closing
from functools import partial

from benchmarks import stores
from benchmarks.bench import KINDS, POSTGRES, SQLITE, Bench
from benchmarks.figures import Figure
from benchmarks.program import QUEUECTL, check_count, counts, drain, enqueue_lines
from benchmarks.turns import ratios, take_turns
from benchmarks.workloads.drain import NO_OP
from queuectl.actions.connect import Target, connect

A_JOB_A_SECOND = 86_400
JOBS = {SQLITE: 2000, POSTGRES: 1000}
LONG_AGO_MS = 30 * stores.DAY_MS
"""Past the retention that a store has by default."""


def measure(bench: Bench) -> Iterator[Figure]:
    """Drain beside `queuectl prune`, with one worker: the machine may have no more than two cores."""
    history = bench.pick(quick=20_000, full=A_JOB_A_SECOND)
    for kind in KINDS[:1] if bench.is_quick else KINDS:
        jobs = bench.pick(quick=1000, full=JOBS[kind])
        removed: list[int] = []
        sides = {
            "kept": partial(_kept_s, bench, kind, history, jobs),
            "pruned": partial(_pruned_s, bench, kind, history, jobs, removed),
        }
        taken = take_turns(bench.pick(quick=1, full=3), sides)
        yield Figure(
            what=f"drain of {jobs:,} no-ops beside the pruning of {history:,} jobs, {kind}",
            unit="x of the rate without pruning",
            ratios=ratios(taken["kept"], taken["pruned"]),
            absolute=[jobs / each for each in taken["pruned"]],
            absolute_unit="jobs/s",
            note=f"{min(removed):,} were removed by the end of the drain",
            values={"removed": [float(each) for each in removed]},
        )


def _kept_s(bench: Bench, kind: str, history: int, jobs: int) -> float:
    with bench.store(kind) as target:
        _fill(target, history, jobs, age_ms=0)
        spent = drain(target)
        check_count(target, "completed", history + jobs)
    return spent.wall_s


def _pruned_s(bench: Bench, kind: str, history: int, jobs: int, removed: list[int]) -> float:
    with bench.store(kind) as target:
        _fill(target, history, jobs, age_ms=LONG_AGO_MS)
        pruner = subprocess.Popen(
            [QUEUECTL, "prune"],
            env=stores.environ_of(target),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            spent = drain(target)
            removed.append(_removed(target, history, jobs))
        finally:
            pruner.terminate()
            code = pruner.wait()
        if code not in (0, -signal.SIGTERM):
            raise subprocess.CalledProcessError(code, pruner.args)
    return spent.wall_s


def _removed(target: Target, history: int, jobs: int) -> int:
    """Return how many jobs are gone; fail where none is, or where not all that were to run have."""
    found = counts(target)
    completed = found["completed"]
    if sum(found.values()) != completed or not jobs <= completed < history + jobs:
        raise AssertionError(f"{jobs} jobs should be completed, and some of {history} others removed: {found}")
    return history + jobs - completed


def _fill(target: Target, history: int, jobs: int, *, age_ms: int) -> None:
    with closing(connect(target)) as database:
        database.write(partial(stores.add_finished, state=stores.COMPLETED, rows=history, age_ms=age_ms))
    stores.settle_down(target)
    enqueue_lines(target, NO_OP * jobs)
