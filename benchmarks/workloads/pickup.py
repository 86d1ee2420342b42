"""Pick-up: how soon an idle worker begins a job, counted from the call that adds it. After long idleness: idle.py."""

import time
from collections.abc import Iterator, Sequence
from contextlib import closing

from benchmarks.bench import KINDS, Bench
from benchmarks.budgets import BUDGETS
from benchmarks.figures import Figure, number, percentile
from benchmarks.pickups import make_fifo, pick_up_s, spawn_s
from benchmarks.program import running_workers
from benchmarks.turns import ratios, take_turns
from queuectl.actions.connect import Target, connect

PAUSE_S = 0.05
"""Between two jobs: the worker has long fallen idle again."""
LEAST_FOR_P95 = 21
"""Of fewer samples it would be the slowest."""


def measure(bench: Bench) -> Iterator[Figure]:
    """Add jobs one by one to an idle worker."""
    for kind in KINDS:
        with bench.store(kind) as target, running_workers(target):
            own, unit = _samples(target, bench.pick(quick=30, full=60))
        yield from figures_of(f"pick-up by an idle worker, {kind}", own, unit, is_headline=True)


def figures_of(
    what: str, own: Sequence[float], unit: Sequence[float], *, is_headline: bool = False
) -> Iterator[Figure]:
    """Give the median of some latencies, and what 95 of 100 are below or the slowest of few, each with its budget."""
    samples_ms = [each * 1000 for each in own]
    yield Figure(
        what=f"{what}, p50",
        unit="x of a bare spawn",
        ratios=ratios(own, unit),
        absolute=samples_ms,
        absolute_unit="ms",
        budget=BUDGETS["pick-up p50"],
        note=f"a bare spawn takes {number(percentile(unit, 50) * 1000)} ms; {len(own)} samples, each commit included",
        values={"samples_ms": samples_ms, "bare_ms": [each * 1000 for each in unit]},
    )
    yield Figure(
        what=f"{what}, {'p95' if len(own) >= LEAST_FOR_P95 else f'slowest of {len(own)}'}",
        unit="x of a bare spawn",
        ratios=[percentile(own, 95) / percentile(unit, 95)],
        is_headline=is_headline,
        absolute=[percentile(samples_ms, 95)],
        absolute_unit="ms",
        budget=BUDGETS["pick-up p95"],
    )


def _samples(target: Target, count: int) -> tuple[list[float], list[float]]:
    fifo = make_fifo(target.home.root)
    with closing(connect(target)) as database:

        def pick_up() -> float:
            time.sleep(PAUSE_S)
            return pick_up_s(database, fifo)

        taken = take_turns(count, {"own": pick_up, "unit": lambda: spawn_s(fifo)})
    return taken["own"], taken["unit"]
