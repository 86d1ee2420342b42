"""Stores: the store as the threads of the server share it, each with a connection of its own."""

import threading

from queuectl.actions.connect import connect

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from queuectl.actions.connect import Target
    from queuectl.store.database import Database, Tx

    Result = TypeVar("Result")


class Stores:
    """Opens the store once per thread, when that thread first asks, and closes them all at the end."""

    def __init__(self, target: "Target") -> None:
        self.target = target
        self._own = threading.local()
        self._lock = threading.Lock()
        self._opened: list[Database] = []

    @property
    def database(self) -> "Database":
        """The store, open for this thread alone."""
        found: Database | None = getattr(self._own, "database", None)
        if found is None:
            found = self._own.database = connect(self.target)
            with self._lock:
                self._opened.append(found)
        return found

    def read(self, work: "Callable[[Tx], Result]") -> "Result":
        """Run `work` on one consistent view of the store."""
        return self.database.read(work)

    def close(self) -> None:
        """Close what was opened; called when no thread uses it any more."""
        with self._lock:
            for database in self._opened:
                database.close()
            self._opened.clear()
