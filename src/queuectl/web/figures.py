"""Figures: what takes long to count, counted by one thread for all who look, a tenth of the time at most."""

import queue
import sys
import threading
import time
import traceback

from queuectl.actions.connect import connect
from queuectl.errors import QueuectlError
from queuectl.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from queuectl.store.database import Database, Tx
    from queuectl.web.snapshot import Board

DUTY = 10
"""What took t to count is counted again after ten t at the earliest."""
LEAST_S = 1.0
SLIDES_S = 30.0
"""Also where nothing changed, a range of time moves on."""
PATIENCE_S = 0.08
"""How long a page waits for a figure that was never counted; it is told when there is one."""
FORGET_S = 600.0
MOST_KEPT = 256
MOST_WAITING = 32
"""Who asks for more than can be counted is told so: everybody makes up names, by what they search for."""
CLOSE_S = 2.0
"""How long the end waits for what is being counted."""
TROUBLE_PAUSE_S = 2.0


class Figure(Value):
    """Something that was counted, and when."""

    value: object
    at: int
    """On the clock of the store."""
    changes: int
    """How often the store had changed, as far as was known."""
    began: float
    took: float


class Figures:
    """Holds the newest figure of each name."""

    def __init__(self, board: "Board") -> None:
        self._board = board
        self._kept: dict[str, Figure] = {}
        self._asked: dict[str, float] = {}
        self._counting: set[str] = set()
        self._gave_up: dict[str, float] = {}
        self._changed = threading.Condition()
        self._orders: queue.SimpleQueue[tuple[str, Callable[[Tx], object]] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._is_closed = False

    def get(self, name: str, work: "Callable[[Tx], object]") -> Figure | None:
        """Return one figure, as `get_all` does; None: it was not counted yet."""
        return self.get_all({name: work}).get(name)

    def get_all(self, wanted: "Mapping[str, Callable[[Tx], object]]") -> "dict[str, Figure]":
        """Return figures as they were last counted, and have those counted again for which it is time.

        What was never counted is waited for a little; then it is left out, and pages are told when it is there.
        """
        with self._changed:
            for name, work in wanted.items():
                self._asked[name] = time.monotonic()
                kept = self._kept.get(name)
                if self._is_free(name) and (kept is None or self._is_due(kept)):
                    self._counting.add(name)
                    self._order(name, work)
            self._forget()
            self._changed.wait_for(lambda: all(self._is_there(name) for name in wanted), PATIENCE_S)
            return {name: self._kept[name] for name in wanted if name in self._kept}

    def close(self) -> None:
        """End the thread, whatever was ordered; what is being counted just now holds up nothing for long."""
        self._is_closed = True
        self._orders.put(None)
        if self._thread is not None:
            self._thread.join(CLOSE_S)

    def _is_free(self, name: str) -> bool:
        is_broken = time.monotonic() - self._gave_up.get(name, float("-inf")) < TROUBLE_PAUSE_S
        is_crowded = len(self._counting) >= MOST_WAITING or self._is_closed
        return not (name in self._counting or is_broken or is_crowded)

    def _is_there(self, name: str) -> bool:
        return name in self._kept or name not in self._counting

    def _is_due(self, kept: Figure) -> bool:
        age = time.monotonic() - kept.began
        if age < max(LEAST_S, DUTY * kept.took):
            return False
        return kept.changes != self._board.latest.changes or age >= SLIDES_S

    def _order(self, name: str, work: "Callable[[Tx], object]") -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="figures", daemon=True)
            self._thread.start()
        self._orders.put((name, work))

    def _run(self) -> None:
        database: Database | None = None
        while (order := self._orders.get()) is not None and not self._is_closed:
            name, work = order
            try:
                database = database or connect(self._board.target, is_patient=False)
                self._keep(name, _count(database, work, self._board.latest.changes))
            except Exception as error:  # noqa: BLE001 - one figure that cannot be counted must not end all others
                if not isinstance(error, QueuectlError):  # of those the board tells
                    print(f"queuectl: the figure {name!r} cannot be counted", file=sys.stderr)
                    traceback.print_exception(error, file=sys.stderr)
                if database is not None:
                    database.close()
                    database = None
                self._give_up(name)
        if database is not None:
            database.close()

    def _give_up(self, name: str) -> None:
        """Leave a figure as it was; whoever asks next has it tried again."""
        with self._changed:
            self._counting.discard(name)
            self._gave_up[name] = time.monotonic()
            self._asked.setdefault(name, time.monotonic())
            self._changed.notify_all()

    def _keep(self, name: str, figure: Figure) -> None:
        with self._changed:
            before = self._kept.get(name)
            self._kept[name] = figure
            self._asked.setdefault(name, time.monotonic())
            self._counting.discard(name)
            self._forget()
            self._changed.notify_all()
        if before is None or before.value != figure.value:
            self._board.renew()

    def _forget(self) -> None:
        """Forget what nobody asked for lately, and of too many those asked for longest ago."""
        now = time.monotonic()
        by_age = sorted(self._asked, key=self._asked.__getitem__)
        surplus = len(by_age) - MOST_KEPT
        for place, name in enumerate(by_age):
            if place >= surplus and now - self._asked[name] <= FORGET_S:
                break
            self._asked.pop(name)
            self._kept.pop(name, None)
            self._gave_up.pop(name, None)


def _count(database: "Database", work: "Callable[[Tx], object]", changes: int) -> Figure:
    began = time.monotonic()
    value, at = database.read(lambda tx: (work(tx), tx.now))
    return Figure(value=value, at=at, changes=changes, began=began, took=time.monotonic() - began)
