"""Heartbeat: a thread with a connection of its own that says that this process lives, while its main loop turns."""

import threading
import time
from functools import partial

from queuectl import clock
from queuectl.actions.connect import connect
from queuectl.errors import QueuectlError
from queuectl.store import workers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queuectl.actions.connect import Target
    from queuectl.runtime.identity import Identity
    from queuectl.runtime.loop import Loop
    from queuectl.store.database import Database, Tx

HUNG_AFTER_S = 30.0
RETRY_S = 1.0


class Heartbeat:
    """Counts beats until `stop`; `is_given_up` turns True when the database no longer knows us as living.

    It rings the loop then, so that nobody waits for anything else and no further command begins.
    `renewed_at` is when the last beat that arrived was begun, on the boot-time clock; `lease_s` is the lease it stated,
    so that others count to the same figure. On PostgreSQL a process that finds its lease over (it was stopped, or
    asleep) does not beat again before `resume`: whoever runs commands must stop them first, since another may have been
    given their jobs.
    """

    def __init__(self, target: "Target", identity: "Identity", interval_s: float, lease_s: float, loop: "Loop") -> None:
        self.is_given_up = False
        self.has_lapsed = False
        self.trouble: str | None = None
        self.renewed_at = identity.registered_at
        self.is_renewed = True
        self.lease_s = lease_s
        self._wanted_lease_s = lease_s
        self._is_leased = target.sqlite_path is None
        self._target = target
        self._identity = identity
        self._interval_s = interval_s
        self._loop = loop
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)

    def start(self) -> None:
        """Begin to beat, at once."""
        self._thread.start()

    def follow(self, interval_s: float, lease_s: float) -> None:
        """Beat so often, and state such a lease, from the next beat on."""
        self._interval_s, self._wanted_lease_s = interval_s, lease_s

    def resume(self) -> None:
        """Beat again after a lapse, now that no command runs any more; `is_renewed` tells when one has arrived."""
        self.is_renewed = False
        self.renewed_at = clock.boot_s()
        self.has_lapsed = False

    def stop(self) -> None:
        """Beat no more; returns when the thread has let go of its connection."""
        self._stopped.set()
        self._thread.join(timeout=5)

    def _run(self) -> None:
        database = None
        while True:
            pause_s = self._interval_s
            try:
                database = database or connect(self._target, is_patient=False)
                begun = clock.boot_s()
                if self._is_leased and begun - self.renewed_at >= self.lease_s:
                    self.has_lapsed = True
                if not self.has_lapsed and time.monotonic() - self._loop.turned_at < HUNG_AFTER_S:
                    self._renew(database, begun)
                self.trouble = None
            except QueuectlError as error:
                self.trouble = error.message
                pause_s = min(pause_s, RETRY_S)
            except Exception as error:  # noqa: BLE001 - without this thread nobody would know that we live
                self.trouble = repr(error)
                pause_s = min(pause_s, RETRY_S)
            if self.is_given_up or self._stopped.wait(pause_s):
                break
        if database is not None:
            database.close()

    def _renew(self, database: "Database", begun: float) -> None:
        lease_s = self._wanted_lease_s
        # A shorter lease counts before it is written: it may be, though the answer is lost.
        self.lease_s = min(self.lease_s, lease_s)
        self._identity.lock.note_life(self.renewed_at, self.lease_s)
        if not database.write(partial(self._beat, lease_s)):
            self.is_given_up = True
            self._loop.ring()
            return
        self.renewed_at, self.is_renewed, self.lease_s = begun, True, lease_s
        self._identity.lock.note_life(begun, lease_s)

    def _beat(self, lease_s: float, tx: "Tx") -> bool:
        return workers.beat(tx, self._identity.id, round(lease_s * 1000))
