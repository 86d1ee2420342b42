"""Enqueue: adding one job from a shell, again and again, against starting Python for nothing."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial

from benchmarks.bench import KINDS, SQLITE, Bench
from benchmarks.budgets import BUDGETS
from benchmarks.figures import Figure
from benchmarks.program import BARE_PYTHON, Spent, queuectl, spend
from benchmarks.stores import plain_environ
from benchmarks.turns import ratios, take_turns


def measure(bench: Bench) -> Iterator[Figure]:
    """Add jobs one by one."""
    with ExitStack() as stack:
        targets = {kind: stack.enter_context(bench.store(kind)) for kind in KINDS}
        sides: dict[str, Callable[[], Spent]] = {
            kind: partial(queuectl, target, "enqueue", "true") for kind, target in targets.items()
        }
        for side in sides.values():
            side()  # sets the store up
        sides["python"] = partial(spend, BARE_PYTHON, plain_environ())
        taken = take_turns(bench.pick(quick=10, full=30), sides)
    unit = [spent.wall_s for spent in taken["python"]]
    for kind in KINDS:
        own = [spent.wall_s for spent in taken[kind]]
        yield Figure(
            what=f"enqueue one job from a shell, {kind}",
            unit="x of python3 -c pass",
            ratios=ratios(own, unit),
            absolute=[each * 1000 for each in own],
            absolute_unit="ms",
            budget=BUDGETS.get(f"enqueue, {kind}"),
            is_headline=kind == SQLITE,
        )
