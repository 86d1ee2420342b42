"""Turns: measuring several sides in the same run, in rounds, so that a noisy minute hits them all."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

T = TypeVar("T")


def take_turns(rounds: int, sides: Mapping[str, Callable[[], T]]) -> dict[str, list[T]]:
    """Call every side once a round, each round beginning with the next one; return what each gave, round by round."""
    given: dict[str, list[T]] = {name: [] for name in sides}
    for turn in range(rounds):
        for name in rotated(list(sides), turn):
            given[name].append(sides[name]())
    return given


def rotated(names: Sequence[str], by: int) -> list[str]:
    """Return the names beginning with another one."""
    by %= len(names)
    return [*names[by:], *names[:by]]


def ratios(own: Sequence[float], unit: Sequence[float]) -> list[float]:
    """Divide round by round."""
    return [one / other for one, other in zip(own, unit, strict=True)]


def seconds(act: Callable[[], object]) -> float:
    """Return how long something takes."""
    begun = time.perf_counter()
    act()
    return time.perf_counter() - begun
