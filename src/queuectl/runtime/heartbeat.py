"""Heartbeat: a thread with a connection of its own that says that this process lives, while its main loop turns."""

import threading
import time

from queuectl.actions.connect import connect
from queuectl.errors import QueuectlError
from queuectl.store import workers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queuectl.actions.connect import Target
    from queuectl.runtime.loop import Loop
    from queuectl.store.database import Tx

HUNG_AFTER_S = 30.0


class Heartbeat:
    """Counts beats until `stop`; `is_given_up` turns True when the database no longer knows us as living."""

    def __init__(self, target: "Target", worker_id: str, interval_s: float, loop: "Loop") -> None:
        self.is_given_up = False
        self.trouble: str | None = None
        self._target = target
        self._worker_id = worker_id
        self._interval_s = interval_s
        self._loop = loop
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)

    def start(self) -> None:
        """Begin to beat, at once."""
        self._thread.start()

    def stop(self) -> None:
        """Beat no more; returns when the thread has let go of its connection."""
        self._stopped.set()
        self._thread.join(timeout=5)

    def _run(self) -> None:
        database = None
        while True:
            try:
                database = database or connect(self._target)
                if time.monotonic() - self._loop.turned_at < HUNG_AFTER_S:
                    self.is_given_up = not database.write(self._beat)
                self.trouble = None
            except QueuectlError as error:
                self.trouble = error.message
            if self.is_given_up or self._stopped.wait(self._interval_s):
                break
        if database is not None:
            database.close()

    def _beat(self, tx: "Tx") -> bool:
        return workers.beat(tx, self._worker_id)
