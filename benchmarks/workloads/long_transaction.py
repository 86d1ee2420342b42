"""Long transaction: claims on PostgreSQL while somebody else holds a snapshot open, so that dead rows must stay."""

import statistics
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager

import psycopg

from benchmarks.bareworker import BareWorker
from benchmarks.bench import POSTGRES, Bench
from benchmarks.figures import Figure, number
from benchmarks.turns import ratios
from queuectl.actions.connect import Target

STRIDE = 500
FREE_EVERY = 8
AT_MOST_S = 25
"""Where claims decay badly, the rest is not waited for; the figure says how many there were."""


def measure(bench: Bench) -> Iterator[Figure]:
    """Claim and settle thousands of jobs beside a held snapshot, and in turns some on a database without one."""
    jobs = bench.pick(quick=2000, full=20_000)
    with (
        bench.store(POSTGRES) as free_target,
        bench.store(POSTGRES) as held_target,
        closing(BareWorker(free_target)) as free,
        closing(BareWorker(held_target)) as held,
    ):
        held.submit(jobs)
        free.submit(jobs // FREE_EVERY + STRIDE)
        with _snapshot_held(held_target):
            free_us, held_us = _strides(free, held, jobs)
    done = len(held_us) * STRIDE
    without_us = statistics.median(free_us)
    last = held_us[-max(1, len(held_us) // 10) :]
    yield Figure(
        what=f"claim + settle after {done:,} beside a held transaction, PostgreSQL",
        unit="x of the time without one",
        ratios=ratios(last, [without_us] * len(last)),
        absolute=last,
        absolute_unit="us",
        note=f"the first {STRIDE} took {number(held_us[0])} us each, without a held one {number(without_us)} us; "
        f"in brackets the last {len(last)} times {STRIDE}, one after the other",
        values={
            "jobs": [float((place + 1) * STRIDE) for place in range(len(held_us))],
            "held_us": held_us,
            "free_us": free_us,
            "free_jobs": [float(1 + place * FREE_EVERY) * STRIDE for place in range(len(free_us))],
        },
    )


def _strides(free: BareWorker, held: BareWorker, jobs: int) -> tuple[list[float], list[float]]:
    """Return the microseconds per job of each stride, without and with the held snapshot."""
    until = time.monotonic() + AT_MOST_S
    free_us: list[float] = []
    held_us: list[float] = []
    for place in range(jobs // STRIDE):
        if place % FREE_EVERY == 0:
            free_us.append(_stride_us(free))
        held_us.append(_stride_us(held))
        if time.monotonic() > until:
            break
    return free_us, held_us


def _stride_us(worker: BareWorker) -> float:
    begun = time.perf_counter()
    for _ in range(STRIDE):
        if not worker.step():
            raise AssertionError("the queue ran dry")
    return (time.perf_counter() - begun) / STRIDE * 1e6


@contextmanager
def _snapshot_held(target: Target) -> Iterator[None]:
    with psycopg.connect(target.url) as connection:
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        connection.execute("SELECT 1")  # takes the snapshot
        yield
