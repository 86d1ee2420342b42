"""Examining: what `queuectl doctor` finds, looked for once for all who ask at the same time. It reads much."""

import os
import threading
from concurrent.futures import Future

from queuectl import clock
from queuectl.actions.doctor import examine
from queuectl.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queuectl.actions.connect import Target
    from queuectl.model.finding import Finding


class Examined(Value):
    """What was found, and when."""

    findings: "tuple[Finding, ...]"
    at_ms: int
    at_s: float
    """The same on the clock that counts since the boot."""


class Examinations:
    """Examines a store; any thread may ask, and whoever asks while somebody examines it gets what that finds."""

    def __init__(self, target: "Target") -> None:
        self._target = target
        self._lock = threading.Lock()
        self._under_way: dict[bool, Future[Examined]] = {}
        self._latest: Examined | None = None

    def look(self, *, within_s: float = 0.0, is_deep: bool = False) -> Examined:
        """Return what is found now, or was within this time; a deep look is done for those who ask for one alone."""
        with self._lock:
            if not is_deep and self._latest is not None and clock.boot_s() - self._latest.at_s < within_s:
                return self._latest
            shared = self._under_way.get(is_deep)
            is_mine = shared is None
            if shared is None:
                shared = self._under_way[is_deep] = Future()
        if is_mine:
            self._examine(shared, is_deep=is_deep)
        return shared.result()

    def _examine(self, shared: "Future[Examined]", *, is_deep: bool) -> None:
        try:
            found = tuple(examine(self._target, os.environ, is_deep=is_deep))
            done = Examined(findings=found, at_ms=clock.wall_ms(), at_s=clock.boot_s())
        except BaseException as error:  # whoever waits must not wait for ever
            with self._lock:
                del self._under_way[is_deep]
            shared.set_exception(error)
            raise
        with self._lock:
            del self._under_way[is_deep]
            self._latest = done
        shared.set_result(done)
