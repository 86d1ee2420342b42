"""Dependents: 10,000 jobs that wait for one, let go by its end, against as many plain ones."""

import statistics
from collections.abc import Iterator
from contextlib import closing
from functools import partial

from benchmarks.bareworker import SPEC, BareWorker
from benchmarks.bench import KINDS, POSTGRES, SQLITE, Bench
from benchmarks.budgets import BUDGETS
from benchmarks.figures import Figure, number
from benchmarks.turns import ratios, seconds, take_turns
from queuectl.model.after import LATEST, Kind, Parent
from queuectl.model.job import JobSpec

FirstAndRest = tuple[float, float]
"""Microseconds of the settle of the first job, and of claim + settle of each that came after it."""
WORKED_OFF = {SQLITE: 3000, POSTGRES: 1000}
DEPENDENT = SPEC.replace(after=(Parent(kind=Kind.OK, id=LATEST),))


def measure(bench: Bench) -> Iterator[Figure]:
    """Let all of them go at once, then work them off."""
    jobs = bench.pick(quick=1000, full=10_000)
    for kind in KINDS:
        specs = {"plain": SPEC, "linked": DEPENDENT}
        sides = {side: partial(_first_and_rest_us, bench, kind, spec, jobs) for side, spec in specs.items()}
        taken = take_turns(bench.pick(quick=2, full=3), sides)
        yield from _figures(kind, jobs, taken["linked"], taken["plain"])


def _first_and_rest_us(bench: Bench, kind: str, spec: JobSpec, jobs: int) -> FirstAndRest:
    """Settle one job that others came after, then work some of those off."""
    some = min(WORKED_OFF[kind], jobs - 1)
    with bench.store(kind) as target, closing(BareWorker(target)) as worker:
        worker.submit(1)
        worker.submit(jobs, spec)
        worker.step()
        first_us = seconds(worker.step) * 1e6
        return first_us, worker.work_off(some) / some * 1e6


def _figures(kind: str, jobs: int, linked: list[FirstAndRest], plain: list[FirstAndRest]) -> Iterator[Figure]:
    release = [first_us for first_us, _ in linked]
    yield Figure(
        what=f"the one settle that lets {jobs:,} jobs go, {kind}",
        unit="x of a plain settle",
        ratios=ratios(release, [first_us for first_us, _ in plain]),
        absolute=[each / 1000 for each in release],
        absolute_unit="ms",
        note=f"{number(statistics.median(release) / jobs)} us for each of them",
        values={"jobs": jobs},
    )
    own, unit = ([first_us / jobs + each_us for first_us, each_us in side] for side in (linked, plain))
    yield Figure(
        what=f"claim + settle of jobs that waited for one, {kind}",
        unit="x of plain jobs",
        ratios=ratios(own, unit),
        absolute=own,
        absolute_unit="us",
        budget=BUDGETS["dependents"],
        note="its part of the end that let it go included",
    )
