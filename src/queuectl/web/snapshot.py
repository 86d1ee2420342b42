"""Snapshot: the one view of the store that all dashboards share, taken by one thread and only while somebody looks."""

import os
import sys
import threading
import time
import traceback
from contextlib import closing

from queuectl import clock
from queuectl.actions.connect import connect
from queuectl.actions.snapshot import Snapshot, look
from queuectl.errors import QueuectlError
from queuectl.model.value import Value
from queuectl.runtime.watch import Watch
from queuectl.store import schedules, watchers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Self

    from queuectl.actions.connect import Target
    from queuectl.store.database import Database, Tx

FRESH_S = 1.0
"""How old a view may be that a request is answered with."""
LOOK_EVERY_S = 0.8
"""While somebody watches: what changes without a word (a queue is paused, a worker beats) shows this soon."""
LEAST_S = 0.25
LOOK_SHARE = 4
MOST_S = 0.8
"""Between two looks: so many times what one takes, but never so long that news is old."""
SLIDES_S = 15.0
"""Pages tell of the last hour: so often they are to be drawn anew though nothing was written."""
LINGER_S = 10.0
"""How long the connection is kept after the last who asked."""
PATIENCE_S = 3.0
"""How long a request waits for a view; then it is answered with the last one, and its age."""
CLOSE_S = 2.0
"""How long the end waits for a look that is under way."""
TROUBLE_PAUSE_S = 1.0
TROUBLE_FRESH_S = 5.0
"""So long nobody is made to wait for a store that could not be reached."""


class View(Value):
    """What everybody is shown: where things stood at one moment, or nothing yet."""

    version: int
    """Grows with everything that a page may show in another way."""
    changes: int = 0
    """Grows with each change of the store."""
    found: Snapshot | None = None
    schedules: int = 0
    taken: float = 0.0
    """When, on the monotonic clock."""
    trouble: str = ""
    """Why there is no newer one."""

    @property
    def at(self) -> int:
        """When, on the clock of the store; 0 where there is none yet."""
        return 0 if self.found is None else self.found.now


class Board:
    """Holds the newest view. A request asks for `current`; a stream `watch`es and is called at each new version."""

    def __init__(self, target: "Target") -> None:
        self.target = target
        self._changed = threading.Condition()
        self._view = View(version=clock.wall_ms())  # beyond any version of a server before this one
        self._watching: set[Watching] = set()
        self._is_wanted = False
        self._closed = threading.Event()
        self._asked = float("-inf")
        self._moved = float("-inf")
        self._writes: int | None = None
        """What tells writes apart (store/watchers.py), as it was when pages were last told of a change."""
        self._thread: threading.Thread | None = None
        self._nudged, self._nudge = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._has_pipe = True

    @property
    def latest(self) -> View:
        """The newest view, however old."""
        return self._view

    @property
    def viewers(self) -> int:
        """How many watch, each an open page."""
        return len(self._watching)

    def current(self) -> View:
        """Return a view that is fresh; where none is to be had in time, the last one, which says why."""
        deadline = time.monotonic() + PATIENCE_S
        with self._changed:
            self._asked = asked = time.monotonic()
            while not self._is_fresh(asked) and not self._closed.is_set():
                self._want()
                if not self._changed.wait(deadline - time.monotonic()):
                    break
            return self._view

    def watch(self, call: "Callable[[View], None]") -> "Watching":
        """Call back, in the thread of the board, at each new version until the watching ends."""
        return Watching(self, call)

    def renew(self) -> None:
        """Say that pages would show something else, though the store did not change: a figure was counted."""
        self._show(lambda last: last.replace(version=last.version + 1))

    def close(self) -> None:
        """End the thread, and whoever waits for it; a store that does not answer holds up nothing for long."""
        with self._changed:
            self._closed.set()
            self._changed.notify_all()
            thread = self._thread
            self._ring()
        if thread is not None:
            thread.join(CLOSE_S)
        with self._changed:
            self._has_pipe = False
            if thread is None or not thread.is_alive():  # else it may still read from there
                os.close(self._nudge)
                os.close(self._nudged)

    def begin(self, watching: "Watching") -> None:
        """Count one who watches."""
        with self._changed:
            self._watching.add(watching)
            self._want()

    def end(self, watching: "Watching") -> None:
        """Forget one who watched."""
        with self._changed:
            self._watching.discard(watching)

    def _is_fresh(self, asked: float) -> bool:
        """Whether the view will do: young enough, or tried for in vain a moment ago."""
        return self._view.taken >= asked - (TROUBLE_FRESH_S if self._view.trouble else FRESH_S)

    def _want(self) -> None:
        self._is_wanted = True
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="board", daemon=True)
            self._thread.start()
        self._changed.notify_all()
        self._ring()

    def _ring(self) -> None:
        if not self._has_pipe:
            return  # its number may be another file's by now
        try:
            os.write(self._nudge, b"!")
        except BlockingIOError:
            pass  # it was nudged often enough

    def _unring(self) -> None:
        try:
            os.read(self._nudged, 4096)
        except BlockingIOError:
            pass

    def _run(self) -> None:
        while self._sleep():
            try:
                with (
                    closing(connect(self.target, is_patient=False)) as database,
                    Watch(self.target, database) as watch,
                ):
                    watch.nudge_on(self._nudged, self._unring)
                    self._writes = None
                    for is_changed in self._looks(watch):
                        self._take(database, is_changed=is_changed)
            except Exception as error:  # noqa: BLE001 - without this thread no page would ever change again
                if not isinstance(error, QueuectlError | OSError):
                    print("queuectl: the store cannot be looked at", file=sys.stderr)
                    traceback.print_exception(error, file=sys.stderr)
                self._fail(error)

    def _sleep(self) -> bool:
        """Wait until somebody wants something; False at the end."""
        with self._changed:
            while not (self._is_wanted or self._watching or self._closed.is_set()):
                self._changed.wait()
            return not self._closed.is_set()

    def _looks(self, watch: Watch) -> "Iterator[bool]":
        """Yield when it is time to look, with whether a change was told of, until nobody wants it any more."""
        is_changed = True
        while not self._closed.is_set():
            began = time.monotonic()
            yield is_changed
            took = time.monotonic() - began
            not_before = began + min(max(LEAST_S, LOOK_SHARE * took), MOST_S)
            is_changed = False
            while True:
                until = began + LOOK_EVERY_S if self._watching else self._asked + LINGER_S
                is_changed |= watch.wait(until, not_before=not_before if self._watching else 0.0)
                if self._closed.is_set() or self._is_wanted or self._watching:
                    break
                if time.monotonic() >= self._asked + LINGER_S:
                    return

    def _take(self, database: "Database", *, is_changed: bool) -> None:
        self._is_wanted = False
        taken = time.monotonic()
        found, number, writes = database.read(_read)
        before = self._view
        is_written = writes is None or writes != self._writes
        is_other = (
            (is_changed and is_written)
            or before.trouble
            or number != before.schedules
            or _told(found) != _told(before.found)
        )
        if is_other:  # no sooner: a look may fall between a commit and the word of it
            self._writes = writes
        is_old = taken - self._moved >= SLIDES_S
        self._moved = taken if is_other or is_old else self._moved
        self._show(
            lambda last: View(
                version=last.version + bool(is_other or is_old),
                changes=last.changes + bool(is_other),
                found=found,
                schedules=number,
                taken=taken,
            )
        )

    def _fail(self, error: Exception) -> None:
        """Say that the store cannot be reached, and wait a little."""
        self._is_wanted = False
        trouble = error.message if isinstance(error, QueuectlError) else str(error) or type(error).__name__
        self._show(
            lambda last: last.replace(
                version=last.version + (not last.trouble), trouble=trouble, taken=time.monotonic()
            )
        )
        with self._changed:
            self._changed.wait_for(self._closed.is_set, TROUBLE_PAUSE_S)

    def _show(self, make: "Callable[[View], View]") -> None:
        with self._changed:
            view = make(self._view)
            is_new = view.version != self._view.version
            self._view = view
            self._changed.notify_all()
            watching = list(self._watching) if is_new else []
        for each in watching:
            each.call(view)


class Watching:
    """One who watches the board. Use it in a `with` statement."""

    def __init__(self, board: Board, call: "Callable[[View], None]") -> None:
        self.call = call
        self._board = board

    def __enter__(self) -> "Self":
        self._board.begin(self)
        return self

    def __exit__(self, *_: object) -> None:
        self._board.end(self)


def _read(tx: "Tx") -> tuple[Snapshot, int, int | None]:
    return look(tx), len(schedules.names(tx)), watchers.writes_seen(tx)


def _told(found: Snapshot | None) -> object:
    """Return what is compared: all but the time."""
    return None if found is None else found.replace(now=0)
