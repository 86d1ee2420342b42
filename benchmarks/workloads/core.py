"""Core: claim + settle without starting anything, against the smallest write the same connection can do."""

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial

from benchmarks import contenders
from benchmarks.bareworker import BareWorker
from benchmarks.bench import KINDS, POSTGRES, SQLITE, Bench
from benchmarks.figures import Figure, number
from benchmarks.turns import ratios, take_turns
from queuectl.store.database import Tx

ONE_BY_ONE, BY_THE_HANDFUL = "without a command", "by the handful, without a command"
AT_ONCE = (1, 2, 4)
"""Processes that claim and settle from one file at the same time."""
TOGETHER = {contenders.ONE_BY_ONE: 6000, contenders.BY_THE_HANDFUL: 30_000}
"""Jobs they work off in each way."""


def measure(bench: Bench) -> Iterator[Figure]:
    """Claim and settle jobs as one worker does between its commands: one at a time, and short ones by the handful."""
    for kind in KINDS:
        jobs = bench.pick(quick=500, full=1000 if kind == POSTGRES else 3000)
        with bench.store(kind) as target, closing(BareWorker(target)) as worker:
            sides: dict[str, Callable[[], tuple[float, float]]] = {
                ONE_BY_ONE: partial(_settle_s, worker, jobs, worker.work_off),
                BY_THE_HANDFUL: partial(_settle_s, worker, jobs, worker.work_off_by_the_handful),
                "write": partial(_write_s, worker, jobs),
            }
            taken = take_turns(3, sides)
        for way in (ONE_BY_ONE, BY_THE_HANDFUL):
            yield _figure(f"claim + settle {way}, {kind}", jobs, taken[way], taken["write"])
    for way, jobs in TOGETHER.items():
        yield from _together(bench, way, jobs // bench.pick(quick=5, full=1))


def _together(bench: Bench, way: str, jobs: int) -> Iterator[Figure]:
    """Let several processes work off one file at the same time: how much it takes, whoever asks."""
    taken = take_turns(3, {str(count): partial(_together_s, bench, way, count, jobs) for count in AT_ONCE})
    for count in AT_ONCE[1:]:
        own, unit = taken[str(count)], taken[str(AT_ONCE[0])]
        yield Figure(
            what=f"claim + settle {way} without a command, {count} processes at once, {SQLITE}",
            unit="x of the rate of one",
            ratios=ratios(unit, own),
            absolute=[jobs / each for each in own],
            absolute_unit="jobs/s",
            note=f"one: {number(jobs / statistics.median(unit))} jobs/s",
            values={"jobs": jobs, "way": way, "processes": count, "one_rate": jobs / statistics.median(unit)},
        )


def _together_s(bench: Bench, way: str, count: int, jobs: int) -> float:
    with bench.store(SQLITE) as target, closing(BareWorker(target)) as filler:
        filler.submit(jobs)
        filler.empty_log()
        with contenders.contenders(target, count, way) as started:
            took_s, done = contenders.work_off_s(started)
    if done != jobs:
        raise AssertionError(f"{jobs} jobs should be settled: {done}")
    return took_s


def _figure(
    what: str, jobs: int, taken: Sequence[tuple[float, float]], written: Sequence[tuple[float, float]]
) -> Figure:
    own, unit = ([wall for wall, _ in side] for side in (taken, written))
    cpu_us = statistics.median([cpu for _, cpu in taken]) / jobs * 1e6
    wall_us = statistics.median(own) / jobs * 1e6
    return Figure(
        what=what,
        unit="x of a bare write",
        ratios=ratios(own, unit),
        absolute=[jobs / each for each in own],
        absolute_unit="jobs/s",
        note=f"{number(wall_us)} us each, {number(cpu_us)} us of them CPU of the worker",
        values={"jobs": jobs, "wall_us": wall_us, "cpu_us": cpu_us},
    )


def _settle_s(worker: BareWorker, jobs: int, work_off: Callable[[int], float]) -> tuple[float, float]:
    worker.submit(jobs)
    worker.empty_log()
    begun = time.process_time()
    wall_s = work_off(jobs)
    return wall_s, time.process_time() - begun


def _write_s(worker: BareWorker, writes: int) -> tuple[float, float]:
    worker.empty_log()
    begun, cpu_begun = time.perf_counter(), time.process_time()
    for _ in range(writes):
        worker.database.write(_change_one_row)
    return time.perf_counter() - begun, time.process_time() - cpu_begun


def _change_one_row(tx: Tx) -> None:
    tx.changed("UPDATE workers SET beats = beats + 1")
