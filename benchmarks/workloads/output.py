"""Output: commands that print 100 MB each, against the same commands writing into a pipe to a file."""

import shlex
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from benchmarks.bench import SQLITE, Bench
from benchmarks.figures import Figure
from benchmarks.program import check_count, drain, enqueue_lines, queuectl, spend
from benchmarks.stores import plain_environ
from benchmarks.turns import ratios, take_turns
from queuectl.actions.connect import Target

MEGABYTES = 100
COMMAND = f"head -c {MEGABYTES}000000 /dev/zero | tr '\\0' x"
WHOLE = MEGABYTES * 1_000_000
WAYS = {"kept in full": WHOLE + 10_000_000, "at most 10 MiB of each kept": 10 * 2**20}
"""The limit of each way, in bytes: more than is kept in full, as it also holds the line about what is left out."""
LEAST_KEPT = 0.7
"""Of the limit: half is the head, and of two segments for the tail the older one goes when the newer one is full."""


def measure(bench: Bench) -> Iterator[Figure]:
    """Run loud commands one after the other, with all their output kept and with as much as is kept by default."""
    jobs = 5
    sides = {way: partial(_own_s, bench, kept, jobs) for way, kept in WAYS.items()}
    taken = take_turns(3, sides | {"cat": partial(_cat_s, bench, jobs)})
    for way in WAYS:
        yield Figure(
            what=f"output of {jobs} commands with {MEGABYTES} MB each, {way}, SQLite",
            unit="x of sh -c | cat >file",
            ratios=ratios(taken["cat"], taken[way]),
            absolute=[jobs * MEGABYTES / each for each in taken[way]],
            absolute_unit="MB/s",
            note="start-up included",
        )


def _own_s(bench: Bench, limit: int, jobs: int) -> float:
    with bench.store(SQLITE) as target:
        queuectl(target, "config", "set", "max_output_bytes", str(limit))
        enqueue_lines(target, f"{COMMAND}\n" * jobs)
        spent = drain(target)
        check_count(target, "completed", jobs)
        _check_kept(target, limit, jobs)
    return spent.wall_s


def _check_kept(target: Target, limit: int, jobs: int) -> None:
    """Fail where the files do not hold what the row says."""
    sizes = [file.stat().st_size for file in Path(target.home.logs).rglob("*.log")]
    least, most = (WHOLE, WHOLE) if limit >= WHOLE else (int(limit * LEAST_KEPT), limit)
    if len(sizes) != jobs or not all(least <= size <= most for size in sizes):
        raise AssertionError(f"{jobs} files of {least:,} to {most:,} bytes should be there: {sizes}")


def _cat_s(bench: Bench, jobs: int) -> float:
    """Write as many files of the same size as there are logs on the other side."""
    paths = [bench.folder / f"output-{job}" for job in range(jobs)]
    lines = [f"sh -c {shlex.quote(COMMAND)} | cat >{path}" for path in paths]
    took = sum(spend(["sh", "-c", line], plain_environ()).wall_s for line in lines)
    for path in paths:
        path.unlink()
    return took
