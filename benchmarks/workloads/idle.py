"""Idle: the CPU and memory of workers with nothing to do, and how soon they begin after a long time of that."""

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing

from benchmarks.bench import KINDS, SQLITE, Bench
from benchmarks.budgets import BUDGETS
from benchmarks.figures import Figure
from benchmarks.pickups import make_fifo, pick_up_s, spawn_s
from benchmarks.processes import bare_interpreter_mb, cpu_s, pss_mb
from benchmarks.program import running_workers, worker_pids
from benchmarks.workloads.pickup import figures_of
from queuectl.actions.connect import Target, connect

WORKERS = 4
SAMPLES = 5


def measure(bench: Bench) -> Iterator[Figure]:
    """Let workers idle: first each kind alone, for its memory, then many at once for a while."""
    for kind in KINDS:
        yield _memory(bench, kind)
    with ExitStack() as stack:
        crews = {kind: _start_workers(stack, bench, kind, WORKERS) for kind in KINDS}
        lone = {kind: [_start_workers(stack, bench, kind, 1)[0] for _ in range(SAMPLES)] for kind in KINDS}
        begun = {kind: cpu_s(pids) for kind, (_, pids) in crews.items()}
        idle_s = bench.pick(quick=20, full=30)
        time.sleep(idle_s)
        spent = {kind: cpu_s(pids) - begun[kind] for kind, (_, pids) in crews.items()}
        for kind, (target, pids) in crews.items():
            _check_same(pids[1:], worker_pids(target))
            yield _idle_cpu(kind, spent[kind] / idle_s, idle_s)
        for kind, targets in lone.items():
            taken = [_wake(target) for target in targets]
            own, unit = [pick_up for pick_up, _ in taken], [spawn for _, spawn in taken]
            yield from figures_of(f"pick-up after {idle_s} s of idleness, {kind}", own, unit)


def _start_workers(stack: ExitStack, bench: Bench, kind: str, count: int) -> tuple[Target, list[int]]:
    """Start workers on a store of their own; return it and their processes, the supervisor's included."""
    target = stack.enter_context(bench.store(kind))
    supervisor = stack.enter_context(running_workers(target, count=count))
    pids = worker_pids(target)
    if len(pids) != count:
        raise AssertionError(f"{count} workers should live: {pids}")
    return target, [supervisor.pid, *pids]


def _check_same(before: Sequence[int], after: Sequence[int]) -> None:
    """Fail where workers have come or gone: their CPU time is not in the figure, or only a part of it."""
    if set(before) != set(after):
        raise AssertionError(f"the workers were {before} and are {after} after idling")


def _memory(bench: Bench, kind: str) -> Figure:
    unit = bare_interpreter_mb()
    with ExitStack() as stack:
        _, pids = _start_workers(stack, bench, kind, WORKERS)
        own = pss_mb(pids)
    return Figure(
        what=f"memory (PSS) of {WORKERS} idle workers and their supervisor, {kind}",
        unit="x of a bare Python",
        ratios=[own / unit],
        absolute=[own],
        absolute_unit="MB",
        budget=BUDGETS["idle memory"] if kind == SQLITE else None,
        is_headline=kind == SQLITE,
    )


def _idle_cpu(kind: str, share: float, idle_s: int) -> Figure:
    return Figure(
        what=f"CPU of {WORKERS} idle workers and their supervisor, {kind}",
        unit="x of a busy core",
        ratios=[share],
        absolute=[share * 100],
        absolute_unit="% of a core",
        budget=BUDGETS["idle CPU"] if kind == SQLITE else None,
        is_headline=kind == SQLITE,
        note=f"over {idle_s} s",
    )


def _wake(target: Target) -> tuple[float, float]:
    fifo = make_fifo(target.home.root)
    with closing(connect(target)) as database:
        return pick_up_s(database, fifo), spawn_s(fifo)
