"""Ticker: when a supervisor looks at the schedules. It sleeps until the next one is due, and needs no free slot."""

import time

from queuectl.store import schedules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queuectl.runtime.log import Log
    from queuectl.store.database import Database, Tx

NEVER = float("inf")
TROUBLE_PAUSE_S = 2.0
"""Longer than a supervisor's own look, so that trouble with schedules does not keep it from its workers."""
TAKEN_PAUSE_S = 0.05
"""Somebody else is firing what is due: look again soon, in case they are killed at it."""


class Ticker:
    """Fires schedules when they are due. Any number may do so at once, on any number of hosts."""

    def __init__(self, database: "Database", log: "Log") -> None:
        self._database = database
        self._log = log
        self._is_over = False
        self.due = NEVER
        """When to look next, as a monotonic time."""

    def plan(self, tx: "Tx") -> None:
        """Learn when the next schedule is due: it may have come, changed or gone since."""
        next_at = schedules.next_at(tx)
        # A millisecond more: the database counts whole ones, and who looks early looks twice.
        wait_s = NEVER if next_at is None or self._is_over else (next_at - tx.now + 1) / 1000
        self.due = time.monotonic() + max(0.0, wait_s)

    def step(self) -> None:
        """Fire what is due."""
        from queuectl.actions.schedule import tick  # reading zones costs memory, and many stores have no schedule

        self.due = time.monotonic() + TROUBLE_PAUSE_S  # should it fail
        done = tick(self._database)
        for note in done.notes:
            self._log.warning("schedule", note)
        self._database.read(self.plan)
        if not done.fired:
            self.due = max(self.due, time.monotonic() + TAKEN_PAUSE_S)

    def stop(self) -> None:
        """Look no more: whoever leaves begins nothing new."""
        self._is_over = True
        self.due = NEVER
