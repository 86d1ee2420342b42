"""Output: commands that print 100 MB each, against the same commands writing into a pipe to a file."""

import os
import shlex
from collections.abc import Iterator
from functools import partial

from benchmarks.bench import SQLITE, Bench
from benchmarks.figures import Figure
from benchmarks.program import check_count, drain, enqueue_lines, queuectl, spend
from benchmarks.turns import ratios, take_turns

MEGABYTES = 100
COMMAND = f"head -c {MEGABYTES}000000 /dev/zero | tr '\\0' x"
WAYS = {"kept in full": f"{MEGABYTES}MB", "10 MiB of each kept": "10MiB"}


def measure(bench: Bench) -> Iterator[Figure]:
    """Run loud commands one after the other, with all their output kept and with as much as is kept by default."""
    jobs = 5
    sides = {way: partial(_own_s, bench, kept, jobs) for way, kept in WAYS.items()}
    taken = take_turns(2, sides | {"cat": partial(_cat_s, bench, jobs)})
    for way in WAYS:
        yield Figure(
            what=f"output of {jobs} commands with {MEGABYTES} MB each, {way}, SQLite",
            unit="x of sh -c | cat >file",
            ratios=ratios(taken["cat"], taken[way]),
            absolute=[jobs * MEGABYTES / each for each in taken[way]],
            absolute_unit="MB/s",
            note="start-up included",
        )


def _own_s(bench: Bench, kept: str, jobs: int) -> float:
    with bench.store(SQLITE) as target:
        queuectl(target, "config", "set", "max_output_bytes", kept)
        enqueue_lines(target, f"{COMMAND}\n" * jobs)
        spent = drain(target)
        check_count(target, "completed", jobs)
    return spent.wall_s


def _cat_s(bench: Bench, jobs: int) -> float:
    path = bench.folder / "output"
    line = f"sh -c {shlex.quote(COMMAND)} | cat >{path}"
    took = sum(spend(["sh", "-c", line], os.environ).wall_s for _ in range(jobs))
    path.unlink()
    return took
