"""Sleeps: 200 commands at once in one worker, the memory of it, and that they really run at once."""

from collections.abc import Iterator

from benchmarks.bench import SQLITE, Bench
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
    memory_mb: list[float] = []
    taken = take_turns(
        bench.pick(quick=1, full=3),
        {"own": lambda: _own_s(bench, memory_mb), "xargs": _xargs_s, "python": bare_interpreter_mb},
    )
    yield Figure(
        what=f"memory (PSS) of one worker with {SLEEPS} sleeping commands, SQLite",
        unit="x of a bare Python",
        ratios=ratios(memory_mb, taken["python"]),
        absolute=memory_mb,
        absolute_unit="MB",
        budget=BUDGETS["memory of sleeps"],
        is_headline=True,
        note=f"seen with {SLEEPS} children at once",
    )
    yield Figure(
        what=f"{SLEEPS} commands that sleep 2 s, -j {SLEEPS}, SQLite",
        unit=f"x of xargs -P {SLEEPS}",
        ratios=ratios(taken["own"], taken["xargs"]),
        absolute=taken["own"],
        absolute_unit="s",
    )


def _own_s(bench: Bench, memory_mb: list[float]) -> float:
    """Add the jobs to an idle worker; return when they were all done, having noted its memory at its fullest."""
    with bench.store(SQLITE) as target, running_workers(target, "-j", str(SLEEPS)):
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
