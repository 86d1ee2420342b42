"""Pace: resting between the portions of long work, so that whoever else wants to write has a turn."""

import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

# Whoever waits for SQLite's write lock looks every 10 ms (store/sqlite.py); in a shorter rest all might miss it.
LEAST_S = 0.02
LONGEST_S = 1.0


def rest(began: float, sleep: "Callable[[float], object]") -> None:
    """Rest for as long as a portion took that began at a monotonic time, within bounds."""
    sleep(min(max(time.monotonic() - began, LEAST_S), LONGEST_S))
