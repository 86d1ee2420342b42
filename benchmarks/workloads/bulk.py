"""Bulk: adding 100,000 jobs at once through `enqueue --from -`, against inserting the same lines by a bare script."""

import json
import statistics
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from benchmarks.bench import KINDS, SQLITE, Bench
from benchmarks.budgets import BUDGETS
from benchmarks.figures import Figure
from benchmarks.program import check_count, enqueue_lines, spend
from benchmarks.stores import plain_environ
from benchmarks.turns import ratios, take_turns

BARE_INSERT = """
import sys, apsw
db = apsw.Connection(sys.argv[1])
db.execute("PRAGMA journal_mode = WAL")
db.execute("PRAGMA synchronous = FULL")
db.execute("CREATE TABLE lines (id INTEGER PRIMARY KEY, line TEXT)")
with db:
    db.executemany("INSERT INTO lines (line) VALUES (?)", ((line,) for line in sys.stdin))
"""


def measure(bench: Bench) -> Iterator[Figure]:
    """Add shell lines, and the same as JSON objects with a few fields."""
    jobs = bench.pick(quick=20_000, full=100_000)
    texts = {
        "lines": "".join(f"echo {number}\n" for number in range(jobs)),
        "JSON": "".join(_json_job(number) for number in range(jobs)),
    }
    for form, text in texts.items():
        yield from _measure_form(bench, form, text, jobs)


def _json_job(number: int) -> str:
    return (
        json.dumps({"id": f"job-{number}", "command": f"echo {number}", "priority": number % 10, "timeout": 60}) + "\n"
    )


def _measure_form(bench: Bench, form: str, text: str, jobs: int) -> Iterator[Figure]:
    sides = {kind: partial(_enqueue_s, bench, kind, text, jobs) for kind in KINDS}
    taken = take_turns(bench.pick(quick=2, full=3), {**sides, "bare": partial(_bare_s, bench, text)})
    for kind in KINDS:
        yield Figure(
            what=f"enqueue {jobs:,} jobs at once ({form}), {kind}",
            unit="x of a bare insert",
            ratios=ratios(taken[kind], taken["bare"]),
            absolute=[jobs / each for each in taken[kind]],
            absolute_unit="jobs/s",
            budget=BUDGETS.get(f"bulk of {form}, {kind}"),
            note=f"bare insert into SQLite: {jobs / statistics.median(taken['bare']):,.0f} lines/s",
            is_headline=kind == SQLITE,
            values={"jobs": jobs},
        )


def _enqueue_s(bench: Bench, kind: str, text: str, jobs: int) -> float:
    with bench.store(kind) as target:
        enqueue_lines(target, "")  # sets the store up
        spent = enqueue_lines(target, text)
        check_count(target, "pending", jobs)
    return spent.wall_s


def _bare_s(bench: Bench, text: str) -> float:
    path = bench.folder / "bare.db"
    spent = spend([sys.executable, "-c", BARE_INSERT, str(path)], plain_environ(), text.encode())
    for suffix in ("", "-wal", "-shm"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)
    return spent.wall_s
