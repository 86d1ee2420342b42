"""Limit: what it takes to start, read and wait for a no-op command alone; own share is what a job takes beyond that."""

import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from benchmarks.bench import SQLITE, Bench
from benchmarks.budgets import BUDGETS
from benchmarks.figures import Figure, number
from benchmarks.program import Spent, spend_together
from benchmarks.stores import plain_environ
from benchmarks.turns import ratios, take_turns
from benchmarks.workloads.drain import drain_once, xargs_once

HERE = Path(__file__).parent
WIDTHS = (1, 2)
XARGS, PYTHON, C, OWN = "xargs", "Python", "C", "queuectl"
CPU, WALL = "CPU", "clock"

PerJob = Mapping[str, Sequence[float]]
"""Microseconds per job of each side, round by round, and those of its start alone under its name with START before."""
START = "start of "


def measure(bench: Bench) -> Iterator[Figure]:
    """Start as many commands from C, from Python, by xargs and by queuectl, one and two at a time."""
    jobs = bench.pick(quick=600, full=1500)
    compiled = _compile(bench.folder)
    if compiled is None:
        yield Figure.missing("the limit from C", "no C compiler (cc)")
    for width in WIDTHS:
        taken = take_turns(bench.pick(quick=2, full=3), _sides(bench, compiled, width, jobs))
        cpu = {side: [spent.cpu_s / jobs * 1e6 for spent in found] for side, found in taken.items()}
        wall = {side: [spent.wall_s / jobs * 1e6 for spent in found] for side, found in taken.items()}
        core = {side: [us * width for us in found] for side, found in wall.items()}
        for language in [each for each in (C, PYTHON) if each in taken]:
            yield _limit_figure(language, width, cpu, wall)
            yield _share_figure(language, width, CPU, cpu)
            yield _share_figure(language, width, WALL, core)


def _compile(folder: Path) -> str | None:
    if shutil.which("cc") is None:
        return None
    program = str(folder / "spawn")
    subprocess.run(["cc", "-O2", "-o", program, str(HERE / "spawn.c")], check=True)
    return program


def _sides(bench: Bench, compiled: str | None, width: int, jobs: int) -> dict[str, Callable[[], Spent]]:
    loops = {PYTHON: [sys.executable, "-S", str(HERE / "spawn.py")]}
    if compiled is not None:
        loops[C] = [compiled]
    sides: dict[str, Callable[[], Spent]] = {XARGS: partial(xargs_once, width, jobs)}
    for start, count in (("", jobs), (START, 0)):
        sides[start + OWN] = partial(drain_once, bench, SQLITE, ["-n", str(width)], count)
        for language, argv in loops.items():
            sides[start + language] = partial(spend_together, [*argv, str(count // width)], width, plain_environ())
    return sides


def _limit_figure(language: str, width: int, cpu: PerJob, wall: PerJob) -> Figure:
    cpu_us = statistics.median(cpu[language])
    return Figure(
        what=f"start + pipe + wait of sh -c : from {language}, {width} at a time",
        unit=f"x of xargs -P {width}",
        ratios=ratios(wall[XARGS], wall[language]),
        absolute=[1e6 / each for each in wall[language]],
        absolute_unit="commands/s",
        note=f"{number(cpu_us)} us of CPU each",
        values={"language": language, "width": width, "cpu_us": cpu_us, "xargs_cpu_us": statistics.median(cpu[XARGS])},
    )


def _share_figure(language: str, width: int, by: str, per_job: PerJob) -> Figure:
    """Say what a job costs beyond the limit, the start of the processes left out on both sides."""
    steady, limits = _steady(OWN, per_job), _steady(language, per_job)
    share = [own - limit for own, limit in zip(steady, limits, strict=True)]
    limit_us = statistics.median(limits)
    return Figure(
        what=f"own share of a job beyond {language}, by {by}, {width} worker{'s' * (width > 1)}, SQLite",
        unit="x of the limit",
        ratios=ratios(share, limits),
        absolute=share,
        absolute_unit="us",
        budget=BUDGETS["own share"],
        note=f"limit {number(limit_us)} us, a job {number(statistics.median(steady))} us",
        values={
            "language": language,
            "width": width,
            "by": by,
            "limit_us": limit_us,
            "job_us": statistics.median(steady),
            "start_us": statistics.median(per_job[START + OWN]),
            "xargs_us": statistics.median(per_job[XARGS]),
        },
    )


def _steady(side: str, per_job: PerJob) -> list[float]:
    return [all_in - start for all_in, start in zip(per_job[side], per_job[START + side], strict=True)]
