"""Drain: no-op commands worked off by several workers, or by one with several slots, against `xargs -P`."""

import os
import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from benchmarks.bench import KINDS, Bench
from benchmarks.budgets import BUDGETS
from benchmarks.figures import Figure
from benchmarks.program import Spent, check_count, drain, enqueue_lines, spend
from benchmarks.turns import ratios, take_turns

NO_OP = ":\n"
JUDGED = ("-n 2", "-n 4")
JUDGED_JOBS = 5000
SHOWN = (("-n 1",), ("-j 2",), ("-j 4",), ("-n 8", "-j 8"))
"""Measured in turns with the unit of the same width, and shown beside the others."""
SHOWN_JOBS = 1500
QUICK_JOBS = 2000


@dataclass(frozen=True, kw_only=True)
class Case:
    """One way to drain: so many at once, as processes (-n) or as slots of one process (-j)."""

    kind: str
    flags: str

    @property
    def width(self) -> int:
        """How many commands run at once."""
        return int(self.flags.split()[1])

    @property
    def name(self) -> str:
        """How its line begins."""
        return f"drain, {self.flags}, {self.kind}"

    @property
    def unit(self) -> str:
        """The tool it is held against."""
        return f"xargs -P {self.width}"


def measure(bench: Bench) -> Iterator[Figure]:
    """Drain the same lines in every way, start-up included on both sides."""
    if bench.is_quick:
        yield from _measure_cases(bench, _cases("-n 2"), QUICK_JOBS, rounds=2)
        return
    for judged in JUDGED:
        yield from _measure_cases(bench, _cases(judged), JUDGED_JOBS, rounds=3)
    for shown in SHOWN:
        yield from _measure_cases(bench, _cases(*shown), SHOWN_JOBS, rounds=2)


def _cases(*ways: str) -> list[Case]:
    return [Case(kind=kind, flags=way) for way in ways for kind in KINDS]


def _measure_cases(bench: Bench, cases: list[Case], jobs: int, rounds: int) -> Iterator[Figure]:
    sides = {case.name: partial(drain_once, bench, case.kind, case.flags.split(), jobs) for case in cases}
    sides |= {case.unit: partial(xargs_once, case.width, jobs) for case in cases}
    taken = take_turns(rounds, sides)
    for case in cases:
        own, unit = [[spent.wall_s for spent in taken[name]] for name in (case.name, case.unit)]
        yield Figure(
            what=f"{case.name}, {jobs:,} no-ops",
            unit=f"x of {case.unit}",
            ratios=ratios(unit, own),
            absolute=[jobs / each for each in own],
            absolute_unit="jobs/s",
            budget=BUDGETS[f"drain, {case.kind}"] if case.flags in JUDGED else None,
            note=f"{case.unit}: {jobs / statistics.median(unit):,.0f} jobs/s",
            is_headline=case.flags in JUDGED,
            values={
                "kind": case.kind,
                "flags": case.flags,
                "jobs": jobs,
                "unit_rates": [jobs / each for each in unit],
                "cpu_us": statistics.median([spent.cpu_s for spent in taken[case.name]]) / jobs * 1e6,
                "unit_cpu_us": statistics.median([spent.cpu_s for spent in taken[case.unit]]) / jobs * 1e6,
            },
        )


def drain_once(bench: Bench, kind: str, flags: list[str], jobs: int) -> Spent:
    """Fill a fresh store, drain it and see that all were done."""
    with bench.store(kind) as target:
        if jobs:
            enqueue_lines(target, NO_OP * jobs)
        spent = drain(target, *flags)
        check_count(target, "completed", jobs)
    return spent


def xargs_once(width: int, jobs: int) -> Spent:
    """Have xargs run the same lines."""
    return spend(["xargs", "-P", str(width), "-I{}", "sh", "-c", "{}"], os.environ, (NO_OP * jobs).encode())
