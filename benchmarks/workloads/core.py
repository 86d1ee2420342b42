"""Core: claim + settle without starting anything, against the smallest write the same connection can do."""

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial

from benchmarks.bareworker import BareWorker
from benchmarks.bench import KINDS, POSTGRES, Bench
from benchmarks.figures import Figure, number
from benchmarks.turns import ratios, take_turns
from queuectl.store.database import Tx

ONE_BY_ONE, BY_THE_HANDFUL = "without a command", "by the handful, without a command"


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
    begun = time.process_time()
    wall_s = work_off(jobs)
    return wall_s, time.process_time() - begun


def _write_s(worker: BareWorker, writes: int) -> tuple[float, float]:
    begun, cpu_begun = time.perf_counter(), time.process_time()
    for _ in range(writes):
        worker.database.write(_change_one_row)
    return time.perf_counter() - begun, time.process_time() - cpu_begun


def _change_one_row(tx: Tx) -> None:
    tx.changed("UPDATE workers SET beats = beats + 1")
