"""Watch: waiting for jobs to change, woken by whoever changes them. What to look for is the caller's affair."""

import time

from queuectl.errors import StoreError
from queuectl.runtime.bell import make_change_bell
from queuectl.runtime.identity import new_id
from queuectl.runtime.loop import Loop
from queuectl.store import watchers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    from queuectl.actions.connect import Target
    from queuectl.store.database import Database

RENEW_EVERY_S = 20.0
# A change that was under way when the watch began does not know of it; soon after, all do.
FIRST_LOOKS_S = (0.05, 0.2, 1.0)


class Watch:
    """Wakes its owner when a job changes: look, `wait`, look again. Use it in a `with` statement.

    On PostgreSQL `database` is used to listen as well, so nobody else may read from it meanwhile.
    """

    def __init__(self, target: "Target", database: "Database") -> None:
        self._database = database
        self._is_registered = target.sqlite_path is None
        self._id = new_id()
        self._loop = Loop()
        self._is_rung = False
        self._renew_at = 0.0
        self._looks = iter(FIRST_LOOKS_S)
        self._renew()
        self._bell = make_change_bell(target, database, self._loop, self._ring)
        self._look_at = self._next_look()

    def __enter__(self) -> "Self":
        return self

    def __exit__(self, *_: object) -> None:
        self._bell.close()
        self._loop.close()
        if self._is_registered:
            try:
                self._database.write(lambda tx: watchers.drop(tx, self._id))
            except StoreError:
                pass  # it expires by itself

    def wake_on(self, fd: int, callback: "Callable[[], None]") -> None:
        """Also wake when a descriptor is readable, after calling back."""

        def woken() -> None:
            callback()
            self._is_rung = True

        self._loop.watch(fd, woken)

    def nudge_on(self, fd: int, callback: "Callable[[], None]") -> None:
        """Also end a wait when a descriptor is readable, after calling back; it does not count as a change."""
        self._loop.watch(fd, callback)

    def wait(self, until: float = float("inf"), *, not_before: float = 0.0) -> bool:
        """Sleep until a job may have changed, or until a monotonic time; may return early for no reason.

        False means that the time has come, or that it was nudged, and nothing else: there is no need to look at the
        store. It does not return before `not_before` for a change: who looks at much must not do nothing else.
        """
        self._renew()
        self._bell.attend()
        if not self._is_rung:
            self._loop.turn(min(until, self._look_at))
            self._bell.attend()
        time.sleep(max(0.0, min(until, not_before) - time.monotonic()))
        is_changed = self._is_rung or time.monotonic() >= self._look_at
        if is_changed:
            self._look_at = self._next_look()
        self._is_rung = False
        return is_changed

    def _next_look(self) -> float:
        return time.monotonic() + next(self._looks, self._bell.poll_s)

    def _ring(self) -> None:
        self._is_rung = True

    def _renew(self) -> None:
        now = time.monotonic()
        if self._is_registered and now >= self._renew_at:
            self._database.write(lambda tx: watchers.renew(tx, self._id))
            self._renew_at = now + RENEW_EVERY_S
