"""Dependents: 10,000 jobs that wait for one, let go by its end, against as many plain ones."""

import statistics
from collections.abc import Iterator
from contextlib import closing
from functools import partial

from benchmarks.bareworker import SPEC, BareWorker
from benchmarks.bench import KINDS, POSTGRES, Bench
from benchmarks.budgets import BUDGETS
from benchmarks.figures import Figure, number
from benchmarks.turns import ratios, seconds, take_turns
from queuectl.model.after import LATEST, Kind, Parent
from queuectl.model.job import JobSpec

FirstAndRest = tuple[float, float]
DEPENDENT = SPEC.replace(after=(Parent(kind=Kind.OK, id=LATEST),))


def measure(bench: Bench) -> Iterator[Figure]:
    """Let all of them go at once, then work them off."""
    jobs = bench.pick(quick=1000, full=10_000)
    for kind in KINDS:
        sides = {
            "plain": partial(_first_and_rest_s, bench, kind, SPEC, jobs),
            "linked": partial(_first_and_rest_s, bench, kind, DEPENDENT, jobs),
        }
        taken = take_turns(bench.pick(quick=2, full=1 if kind == POSTGRES else 3), sides)
        yield from _figures(kind, jobs, taken["linked"], taken["plain"])


def _first_and_rest_s(bench: Bench, kind: str, spec: JobSpec, jobs: int) -> FirstAndRest:
    """Work off one job and then all that came after it; return how long the settle of the first took, and the rest."""
    with bench.store(kind) as target, closing(BareWorker(target)) as worker:
        worker.submit(1)
        worker.submit(jobs, spec)
        worker.step()
        first_s = seconds(worker.step)
        return first_s, worker.work_off(jobs - 1)


def _figures(
    kind: str, jobs: int, linked: list[tuple[float, float]], plain: list[tuple[float, float]]
) -> Iterator[Figure]:
    release = [first_s for first_s, _ in linked]
    yield Figure(
        what=f"the one settle that lets {jobs:,} jobs go, {kind}",
        unit="x of a plain settle",
        ratios=ratios(release, [first_s for first_s, _ in plain]),
        absolute=[each * 1000 for each in release],
        absolute_unit="ms",
        note=f"{number(statistics.median(release) / jobs * 1e6)} us for each of them",
        values={"jobs": jobs},
    )
    own = [sum(both) for both in linked]
    yield Figure(
        what=f"claim + settle of {jobs:,} jobs that waited for one, {kind}",
        unit="x of plain jobs",
        ratios=ratios(own, [sum(both) for both in plain]),
        absolute=[each / jobs * 1e6 for each in own],
        absolute_unit="us",
        budget=BUDGETS["dependents"],
        note="the end that lets them go included",
    )
