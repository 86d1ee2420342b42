"""Sleeps: 200 commands at once in one worker, the memory of it, and that they really run at once."""

from collections.abc import Callable, Iterator
from functools import partial

from benchmarks.bench import KINDS, SQLITE, Bench
from benchmarks.budgets import BUDGETS
from benchmarks.figures import Figure
from benchmarks.processes import bare_interpreter_mb, children, pss_mb
from benchmarks.program import check_count, counts, enqueue_lines, running_workers, spend, wait_for, worker_pids
from benchmarks.stores import plain_environ
from benchmarks.turns import ratios, seconds, take_turns

SLEEPS = 200
COMMAND = "sleep 2\n"


def measure(bench: Bench) -> Iterator[Figure]:
    """Run the sleeps in one worker and by xargs."""
    memory_mb: dict[str, list[float]] = {kind: [] for kind in KINDS}
    sides: dict[str, Callable[[], float]] = {kind: partial(_own_s, bench, kind, memory_mb[kind]) for kind in KINDS}
    taken = take_turns(bench.pick(quick=1, full=3), {**sides, "xargs": _xargs_s, "python": bare_interpreter_mb})
    for kind in KINDS:
        yield Figure(
            what=f"memory (PSS) of one worker with {SLEEPS} sleeping commands, {kind}",
            unit="x of a bare Python",
            ratios=ratios(memory_mb[kind], taken["python"]),
            absolute=memory_mb[kind],
            absolute_unit="MB",
            budget=BUDGETS["memory of sleeps"],
            is_headline=kind == SQLITE,
            note=f"seen with {SLEEPS} children at once",
        )
        yield Figure(
            what=f"{SLEEPS} commands that sleep 2 s, -j {SLEEPS}, {kind}",
            unit=f"x of xargs -P {SLEEPS}",
            ratios=ratios(taken[kind], taken["xargs"]),
            absolute=taken[kind],
            absolute_unit="s",
        )


def _own_s(bench: Bench, kind: str, memory_mb: list[float]) -> float:
    """Add the jobs to an idle worker; return when they were all done, having noted its memory at its fullest."""
    with bench.store(kind) as target, running_workers(target, "-j", str(SLEEPS)):
        (pid,) = worker_pids(target)

        def run_all() -> None:
            enqueue_lines(target, COMMAND * SLEEPS)
            wait_for(lambda: len(children(pid)) == SLEEPS)
            memory_mb.append(pss_mb([pid]))
            wait_for(lambda: not children(pid) and not counts(target)["processing"])

        took = seconds(run_all)
        check_count(target, "completed", SLEEPS)
    return took


def _xargs_s() -> float:
    words = ["xargs", "-P", str(SLEEPS), "-I{}", "sh", "-c", "{}"]
    return spend(words, plain_environ(), (COMMAND * SLEEPS).encode()).wall_s
