"""Growth: what claims, enqueues, `status` and `list` cost beside millions of jobs: over, not to run now, or ready."""

import statistics
from collections.abc import Iterator
from contextlib import closing
from functools import partial

from benchmarks import stores
from benchmarks.bareworker import BareWorker
from benchmarks.bench import KINDS, POSTGRES, SQLITE, Bench
from benchmarks.budgets import BUDGETS
from benchmarks.figures import Figure, Value
from benchmarks.program import BARE_PYTHON, queuectl, spend
from benchmarks.stores import plain_environ
from benchmarks.turns import ratios, seconds, take_turns
from queuectl.actions.connect import Target, connect

MILLION = 1_000_000
ALL = len(stores.CROWDS) * MILLION
QUICK_STEPS = (0, 60_000)
EACH = (0, 10_000, 100_000, MILLION)
STEPS = sorted({*(len(stores.CROWDS) * each for each in EACH), MILLION})
"""How many jobs there are beside those that run: so many of each crowd, and once a million in all."""
QUICK_DEPTHS = (100_000,)
DEPTHS = EACH[1:]
DEPTH_SERIES = "claim + settle, of jobs that are ready"
JOBS = {SQLITE: 1000, POSTGRES: 300}
SINGLE_JOBS = 100
WARM_UP_JOBS = 60
"""Worked off on both sides before the first round: one has just been filled, the other was just made."""
ROUNDS = 5
CLAIM, ENQUEUE, EMPTY_LOG = "claim + settle", "enqueue", "emptying of the log"
SERIES = {CLAIM: 0, ENQUEUE: 1, EMPTY_LOG: 2}
"""What is measured in a cycle, by its place in what that returns."""
SAME = "two empty queues: how far apart the same is measured twice"
NOTES = {
    ENQUEUE: f"in one process, start-up left out; the median of {SINGLE_JOBS} in each round",
    EMPTY_LOG: "for each job of a round; the supervisor does it beside the workers",
}
COMMANDS = ("status", "list")
COMMAND_ROUNDS = 5
CONNECTING = "psycopg.connect in python3"
Cycle = tuple[float, float, float]
"""Microseconds of claim + settle, of an enqueue, and of emptying the log, of one job each."""
_CONNECT = "import psycopg, sys; psycopg.connect(sys.argv[1]).close()"


def measure(bench: Bench) -> Iterator[Figure]:
    """Fill one store step by step and measure at each, with a fresh empty one beside it."""
    for kind in KINDS:
        with bench.store(kind) as crowded:
            before = 0
            for rows in QUICK_STEPS if bench.is_quick else STEPS:
                _fill(crowded, before, rows)
                before = rows
                with bench.store(kind) as plain:
                    _fill(plain, 0, 0)  # looked over as the other one is
                    yield from _claim_figures(kind, plain, crowded, rows)
                yield from _command_figures(kind, crowded, rows)
        yield from _depth_figures(bench, kind)


def _depth_figures(bench: Bench, kind: str) -> Iterator[Figure]:
    """Claim from a queue that stays as deep as it is: each round adds as many jobs as it works off."""
    with bench.store(kind) as deep:
        before = 0
        for rows in QUICK_DEPTHS if bench.is_quick else DEPTHS:
            with closing(connect(deep)) as database:
                database.write(partial(stores.add_crowd, crowd=stores.READY, rows=rows - before))
            stores.settle_down(deep)
            before = rows
            with bench.store(kind) as plain:
                _fill(plain, 0, 0)
                taken = _cycles(kind, plain, deep)
            own, unit = ([each[SERIES[CLAIM]] for each in taken[side]] for side in ("own", "unit"))
            yield Figure(
                what=f"claim + settle with {rows:,} jobs ready, {kind}",
                unit="x of an empty queue",
                ratios=ratios(own, unit),
                absolute=own,
                absolute_unit="us",
                values={"series": DEPTH_SERIES, "kind": kind, "rows": rows},
            )


def _fill(target: Target, before: int, rows: int) -> None:
    """Add to each crowd until there are so many rows in all."""
    old, new = crowd_sizes(before), crowd_sizes(rows)
    with closing(connect(target)) as database:
        for crowd in [crowd for crowd in stores.CROWDS if new[crowd] > old[crowd]]:
            database.write(partial(stores.add_crowd, crowd=crowd, rows=new[crowd] - old[crowd]))
    stores.settle_down(target)


def crowd_sizes(rows: int) -> dict[str, int]:
    """Share rows out among the crowds; what is over are completed jobs."""
    share, over = divmod(rows, len(stores.CROWDS))
    return {crowd: share + (over if crowd == stores.COMPLETED else 0) for crowd in stores.CROWDS}


def _claim_figures(kind: str, plain: Target, crowded: Target, rows: int) -> Iterator[Figure]:
    taken = _cycles(kind, plain, crowded)
    for series, place in SERIES.items():
        own, unit = ([each[place] for each in taken[side]] for side in ("own", "unit"))
        if not all(unit):
            continue  # PostgreSQL sees to its log by itself
        yield Figure(
            what=f"{series} {_beside(rows)}, {kind}",
            unit="x of an empty queue",
            ratios=ratios(own, unit),
            absolute=own,
            absolute_unit="us",
            budget=BUDGETS["growth"] if rows and series != EMPTY_LOG else None,
            is_headline=series == CLAIM and rows == ALL,
            note=crowds_text(rows) if series == CLAIM else NOTES[series] + (f"; {SAME}" if not rows else ""),
            values=_values(series, kind, rows),
        )


def _cycles(kind: str, plain: Target, crowded: Target) -> dict[str, list[Cycle]]:
    """Return what a job costs in a store, and in turns in one that is empty."""
    with closing(BareWorker(plain)) as beside_nothing, closing(BareWorker(crowded)) as beside_crowds:
        workers = {"unit": beside_nothing, "own": beside_crowds}
        for worker in workers.values():
            _cycle_us(worker, WARM_UP_JOBS)
        return take_turns(ROUNDS, {side: partial(_cycle_us, worker, JOBS[kind]) for side, worker in workers.items()})


def _cycle_us(worker: BareWorker, jobs: int) -> Cycle:
    """Add some jobs one by one and the rest at once, claim and settle them all, and empty the log.

    Were it not emptied, it would be full in every other round of one side, and in the others of the other.
    """
    enqueue_s = statistics.median([seconds(partial(worker.submit, 1)) for _ in range(SINGLE_JOBS)])
    worker.submit(jobs)
    settle_s = worker.work_off(jobs + SINGLE_JOBS) / (jobs + SINGLE_JOBS)
    empty_s = seconds(worker.empty_log) / (jobs + SINGLE_JOBS) if worker.has_log else 0.0
    return settle_s * 1e6, enqueue_s * 1e6, empty_s * 1e6


def _command_figures(kind: str, target: Target, rows: int) -> Iterator[Figure]:
    sides = {command: partial(queuectl, target, command, "--json") for command in COMMANDS}
    sides["python"] = partial(spend, BARE_PYTHON, plain_environ())
    if kind == POSTGRES:
        sides[CONNECTING] = partial(spend, [BARE_PYTHON[0], "-c", _CONNECT, target.url], plain_environ())
    taken = {name: [spent.wall_s for spent in found] for name, found in take_turns(COMMAND_ROUNDS, sides).items()}
    for command in COMMANDS:
        yield Figure(
            what=f"{command} --json {_beside(rows)}, {kind}",
            unit="x of python3 -c pass",
            ratios=ratios(taken[command], taken["python"]),
            absolute=[each * 1000 for each in taken[command]],
            absolute_unit="ms",
            budget=BUDGETS[command] if rows <= MILLION else None,
            is_headline=rows == MILLION and kind == SQLITE,
            values=_values(f"{command} --json", kind, rows),
        )
    if kind == POSTGRES:
        yield Figure(
            what=f"{CONNECTING} {_beside(rows)}, {kind}",
            unit="x of python3 -c pass",
            ratios=ratios(taken[CONNECTING], taken["python"]),
            absolute=[each * 1000 for each in taken[CONNECTING]],
            absolute_unit="ms",
            note="what every command on PostgreSQL begins with: to import psycopg and connect",
        )


def _beside(rows: int) -> str:
    return f"beside {rows:,} jobs" if rows else "on an empty queue"


def crowds_text(rows: int) -> str:
    """Say how many there are of what."""
    sizes = crowd_sizes(rows)
    if not rows:
        return SAME
    same = min(sizes.values())
    over = "" if max(sizes.values()) == same else f", {max(sizes.values()) - same:,} more {stores.COMPLETED}"
    return f"{same:,} each: {', '.join(stores.CROWDS)}{over}"


def _values(series: str, kind: str, rows: int) -> dict[str, Value]:
    crowds = [f"{count:,} {crowd}" for crowd, count in crowd_sizes(rows).items()]
    return {"series": series, "kind": kind, "rows": rows, "crowds": crowds}
