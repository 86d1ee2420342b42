"""Drain: lines of `:` worked off by workers, or slots of one, against `xargs -P N -I{} sh -c {}`; starts included."""

import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from benchmarks.bench import KINDS, Bench
from benchmarks.budgets import BUDGETS
from benchmarks.figures import Figure
from benchmarks.program import Spent, check_count, drain, enqueue_lines, spend
from benchmarks.stores import plain_environ
from benchmarks.turns import ratios, take_turns

NO_OP = ":\n"
WIDTHS = (1, 2, 4, 8)
SLOTS = (2, 4, 8)
JOBS = 5000
QUICK_JOBS = 2000
ROUNDS = 3


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
        """How its line begins, and its budget is called."""
        return f"drain, {self.way}, {self.kind}"

    @property
    def way(self) -> str:
        """How many there are of what."""
        if not self.is_judged:
            return f"1 worker with {self.flags}"
        return f"{self.width} worker{'s' * (self.width > 1)}"

    @property
    def is_judged(self) -> bool:
        """Whether it has a budget: as processes, not as slots."""
        return self.flags.startswith("-n")

    @property
    def unit(self) -> str:
        """The tool it is held against."""
        return f"xargs -P {self.width}"


def measure(bench: Bench) -> Iterator[Figure]:
    """Drain the same lines in every way, start-up included on both sides."""
    if bench.is_quick:
        yield from _measure_cases(bench, _cases("-n 2"), QUICK_JOBS, rounds=2)
        return
    for width in WIDTHS:
        yield from _measure_cases(bench, _cases(f"-n {width}"), JOBS, rounds=ROUNDS)
    for slots in SLOTS:
        yield from _measure_cases(bench, _cases(f"-j {slots}"), JOBS, rounds=ROUNDS)


def _cases(flags: str) -> list[Case]:
    return [Case(kind=kind, flags=flags) for kind in KINDS]


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
            budget=BUDGETS[case.name] if case.is_judged else None,
            note=f"{case.unit}: {jobs / statistics.median(unit):,.0f} jobs/s",
            is_headline=case.is_judged,
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
        enqueue_lines(target, NO_OP * jobs)  # sets the store up where there are none
        spent = drain(target, *flags)
        check_count(target, "completed", jobs)
    return spent


def xargs_once(width: int, jobs: int) -> Spent:
    """Have xargs run the same lines."""
    return spend(["xargs", "-P", str(width), "-I{}", "sh", "-c", "{}"], plain_environ(), (NO_OP * jobs).encode())
