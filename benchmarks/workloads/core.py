"""Core: claim + settle without starting anything, against the smallest write the same connection can do."""

import statistics
import time
from collections.abc import Iterator
from contextlib import closing
from functools import partial

from benchmarks.bareworker import BareWorker
from benchmarks.bench import KINDS, POSTGRES, Bench
from benchmarks.figures import Figure, number
from benchmarks.turns import ratios, take_turns
from queuectl.store.database import Tx


def measure(bench: Bench) -> Iterator[Figure]:
    """Claim and settle one job at a time, as one worker does between its commands."""
    for kind in KINDS:
        jobs = bench.pick(quick=500, full=1000 if kind == POSTGRES else 3000)
        with bench.store(kind) as target, closing(BareWorker(target)) as worker:
            sides = {"claim and settle": partial(_settle_s, worker, jobs), "write": partial(_write_s, worker, jobs)}
            taken = take_turns(3, sides)
        own, unit = ([wall for wall, _ in taken[name]] for name in ("claim and settle", "write"))
        cpu_us = statistics.median([cpu for _, cpu in taken["claim and settle"]]) / jobs * 1e6
        wall_us = statistics.median(own) / jobs * 1e6
        yield Figure(
            what=f"claim + settle without a command, {kind}",
            unit="x of a bare write",
            ratios=ratios(own, unit),
            absolute=[jobs / each for each in own],
            absolute_unit="jobs/s",
            note=f"{number(wall_us)} us each, {number(cpu_us)} us of them CPU of the worker",
            values={"jobs": jobs, "wall_us": wall_us, "cpu_us": cpu_us},
        )


def _settle_s(worker: BareWorker, jobs: int) -> tuple[float, float]:
    worker.submit(jobs)
    begun = time.process_time()
    wall_s = worker.work_off(jobs)
    return wall_s, time.process_time() - begun


def _write_s(worker: BareWorker, writes: int) -> tuple[float, float]:
    begun, cpu_begun = time.perf_counter(), time.process_time()
    for _ in range(writes):
        worker.database.write(_change_one_row)
    return time.perf_counter() - begun, time.process_time() - cpu_begun


def _change_one_row(tx: Tx) -> None:
    tx.changed("UPDATE workers SET beats = beats + 1")
