"""Pick-up: how soon an idle worker begins a job, counted from the call that adds it. After long rest: under Idle."""

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

MOST_PARTS = 3
PAUSE_S = 0.05
"""Between two jobs: the worker has long fallen idle again."""
LEAST_FOR_P95 = 21
"""Of fewer samples it would be the slowest."""


def measure(bench: Bench) -> Iterator[Figure]:
    """Add jobs one by one to an idle worker."""
    for kind in KINDS:
        with bench.store(kind) as target, running_workers(target):
            own, unit = _samples(target, bench.pick(quick=63, full=120))
        yield from figures_of(f"pick-up by an idle worker, {kind}", own, unit, is_headline=True)


def figures_of(
    what: str, own: Sequence[float], unit: Sequence[float], *, is_headline: bool = False, is_judged: bool = True
) -> Iterator[Figure]:
    """Give the median of some latencies, and what 95 of 100 are below or the slowest of few, each with its budget.

    Of many samples each is found in several parts, in the order they were taken, so that there is a spread of both.
    """
    samples_ms, unit_ms = ([each * 1000 for each in samples] for samples in (own, unit))
    parts = list(zip(in_parts(samples_ms), in_parts(unit_ms), strict=True))
    if len(parts) == 1:  # then the samples themselves are the spread of the median
        medians, unit_medians = samples_ms, unit_ms
    else:
        medians, unit_medians = ([percentile(each, 50) for each in side] for side in zip(*parts, strict=True))
    highs, unit_highs = ([percentile(each, 95) for each in side] for side in zip(*parts, strict=True))
    yield Figure(
        what=f"{what}, p50",
        unit="x of a bare spawn",
        ratios=ratios(medians, unit_medians),
        absolute=medians,
        absolute_unit="ms",
        budget=BUDGETS["pick-up p50"] if is_judged else None,
        note=f"a bare spawn takes {number(percentile(unit_ms, 50))} ms; {len(own)} samples, each commit included",
        values={"samples_ms": samples_ms, "bare_ms": unit_ms},
    )
    yield Figure(
        what=f"{what}, {'p95' if len(own) >= LEAST_FOR_P95 else f'slowest of {len(own)}'}",
        unit="x of a bare spawn",
        ratios=ratios(highs, unit_highs),
        is_headline=is_headline,
        absolute=highs,
        absolute_unit="ms",
        budget=BUDGETS["pick-up p95"] if is_judged else None,
    )


def in_parts(samples: Sequence[float]) -> list[Sequence[float]]:
    """Split samples into at most three parts, each with enough of them for its own p95."""
    parts = max(1, min(MOST_PARTS, len(samples) // LEAST_FOR_P95))
    size = -(-len(samples) // parts)
    return [samples[begin : begin + size] for begin in range(0, len(samples), size)]


def _samples(target: Target, count: int) -> tuple[list[float], list[float]]:
    fifo = make_fifo(target.home.root)
    with closing(connect(target)) as database:

        def pick_up() -> float:
            time.sleep(PAUSE_S)
            return pick_up_s(database, fifo)

        taken = take_turns(count, {"own": pick_up, "unit": lambda: spawn_s(fifo)})
    return taken["own"], taken["unit"]
