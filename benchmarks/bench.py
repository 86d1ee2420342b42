"""Bench: what a workload is given to measure on, and what a workload is."""

import itertools
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

from benchmarks import stores
from benchmarks.figures import Figure
from queuectl.actions.connect import Target

SQLITE, POSTGRES = "SQLite", "PostgreSQL"
KINDS = (SQLITE, POSTGRES)


class Bench:
    """A run: fresh stores on demand, and how much of everything there is to be."""

    def __init__(self, *, is_quick: bool, server_url: str, folder: Path) -> None:
        self.is_quick = is_quick
        self.server_url = server_url
        self.folder = folder
        """Where files of a workload may lie while it runs; removed after the run."""
        self._numbers = itertools.count(1)

    def store(self, kind: str) -> AbstractContextManager[Target]:
        """Give a fresh store of one of the KINDS, removed after the block."""
        if kind == SQLITE:
            return stores.sqlite_store()
        return stores.postgres_store(self.server_url, f"bench{next(self._numbers)}")

    def pick(self, *, quick: int, full: int) -> int:
        """Return the size that fits the run: of a round, or of how many rounds there are."""
        return quick if self.is_quick else full


Workload = Callable[[Bench], Iterator[Figure]]
"""Measures one thing and yields each figure as soon as it is known."""
