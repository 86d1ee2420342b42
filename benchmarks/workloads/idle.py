"""Idle: the CPU and memory of workers with nothing to do, and how soon they begin after a long time of that."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import partial

from benchmarks.bench import KINDS, SQLITE, Bench
from benchmarks.budgets import BUDGETS
from benchmarks.figures import Figure
from benchmarks.pickups import make_fifo, pick_up_s, spawn_s
from benchmarks.processes import bare_interpreter_mb, cpu_s, pss_mb
from benchmarks.program import running_workers, worker_pids
from benchmarks.turns import ratios, take_turns
from benchmarks.workloads.pickup import figures_of
from queuectl.actions.connect import Target, connect
from queuectl.store.database import Database

WORKERS = 4
WINDOWS = 3
SAMPLES = 5


def measure(bench: Bench) -> Iterator[Figure]:
    """Let workers idle: first each kind alone, for its memory, then many at once for a while."""
    yield from _memory(bench)
    with ExitStack() as stack:
        crews = {kind: _start_workers(stack, bench, kind, WORKERS) for kind in KINDS}
        lone = {kind: [_start_lone(stack, bench, kind) for _ in range(SAMPLES)] for kind in KINDS}
        for kind, sleepers in lone.items():
            first = [sleeper.give() for sleeper in sleepers]
            own, unit = [pick_up for pick_up, _ in first], [spawn for _, spawn in first]
            yield from figures_of(f"pick-up of the first job of a store, {kind}", own, unit, is_judged=False)
        window_s = bench.pick(quick=7, full=10)
        shares = _idle_shares({kind: pids for kind, (_, pids) in crews.items()}, window_s)
        for kind, (target, pids) in crews.items():
            _check_same(pids[1:], worker_pids(target))
            yield _idle_cpu(kind, shares[kind], window_s)
        woken = take_turns(SAMPLES, {kind: partial(_wake_next, sleepers) for kind, sleepers in lone.items()})
        for kind, taken in woken.items():
            own, unit = [pick_up for pick_up, _ in taken], [spawn for _, spawn in taken]
            yield from figures_of(f"pick-up after {WINDOWS * window_s} s of idleness, {kind}", own, unit)


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


def _memory(bench: Bench) -> Iterator[Figure]:
    sides: dict[str, Callable[[], float]] = {kind: partial(_memory_mb, bench, kind) for kind in KINDS}
    sides["bare"] = bare_interpreter_mb
    taken = take_turns(bench.pick(quick=1, full=3), sides)
    for kind in KINDS:
        yield Figure(
            what=f"memory (PSS) of {WORKERS} idle workers and their supervisor, {kind}",
            unit="x of a bare Python",
            ratios=ratios(taken[kind], taken["bare"]),
            absolute=taken[kind],
            absolute_unit="MB",
            budget=BUDGETS["idle memory"],
            is_headline=kind == SQLITE,
        )


def _memory_mb(bench: Bench, kind: str) -> float:
    with ExitStack() as stack:
        _, pids = _start_workers(stack, bench, kind, WORKERS)
        return pss_mb(pids)


def _idle_shares(crews: Mapping[str, Sequence[int]], window_s: int) -> dict[str, list[float]]:
    """Return the share of a core that each crew took in each of some windows, one after the other."""
    shares: dict[str, list[float]] = {kind: [] for kind in crews}
    for _ in range(WINDOWS):
        begun = {kind: (time.perf_counter(), cpu_s(pids)) for kind, pids in crews.items()}
        time.sleep(window_s)
        for kind, pids in crews.items():
            wall_begun, cpu_begun = begun[kind]
            shares[kind].append((cpu_s(pids) - cpu_begun) / (time.perf_counter() - wall_begun))
    return shares


def _idle_cpu(kind: str, shares: Sequence[float], window_s: int) -> Figure:
    return Figure(
        what=f"CPU of {WORKERS} idle workers and their supervisor, {kind}",
        unit="x of a busy core",
        ratios=shares,
        absolute=[share * 100 for share in shares],
        absolute_unit="% of a core",
        budget=BUDGETS["idle CPU"],
        is_headline=kind == SQLITE,
        note=f"{WINDOWS} windows of {window_s} s",
    )


@dataclass(frozen=True, kw_only=True)
class Lone:
    """A worker alone on its store, and who gives it jobs, connected all the time."""

    database: Database
    fifo: str

    def give(self) -> tuple[float, float]:
        """Return how long it took a job to begin, and a bare spawn."""
        return pick_up_s(self.database, self.fifo), spawn_s(self.fifo)


def _start_lone(stack: ExitStack, bench: Bench, kind: str) -> Lone:
    target, _ = _start_workers(stack, bench, kind, 1)
    return Lone(database=stack.enter_context(closing(connect(target))), fifo=make_fifo(target.home.root))


def _wake_next(sleepers: list[Lone]) -> tuple[float, float]:
    """Give a job to a worker that has rested since its first."""
    return sleepers.pop().give()
