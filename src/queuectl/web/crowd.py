"""Crowd: how many have a stream open, in all and each, so that nobody takes every place."""

import threading
from contextlib import contextmanager

from queuectl.web.problems import Crowded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


class Crowd:
    """Counts who is there by name; any thread may ask."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._places: dict[str, int] = {}

    @property
    def count(self) -> int:
        """How many are there."""
        with self._lock:
            return sum(self._places.values())

    def refuse_more(self, who: str, what: str, *, most: int, each: int) -> None:
        """Refuse one more where there are `most` already, or `each` of this one alone."""
        with self._lock:
            mine, all_of_them = self._places.get(who, 0), sum(self._places.values())
        if all_of_them >= most:
            raise Crowded(f"{all_of_them} {what} already", hint="close one of them, or come back later")
        if mine >= each:
            raise Crowded(f"{mine} {what} already by {who}", hint="close one of them")

    @contextmanager
    def place(self, who: str) -> "Iterator[None]":
        """Take a place, and leave it at the end of the block."""
        with self._lock:
            self._places[who] = self._places.get(who, 0) + 1
        try:
            yield
        finally:
            with self._lock:
                self._places[who] -= 1
                if not self._places[who]:
                    del self._places[who]
