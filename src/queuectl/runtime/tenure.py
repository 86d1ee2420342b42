"""Tenure: how long a worker may go on holding its jobs. On SQLite for life; on PostgreSQL while its lease lasts."""

from queuectl import clock
from queuectl.model.lease import Lease

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queuectl.runtime.heartbeat import Heartbeat
    from queuectl.store.dialect import Dialect

FROZEN_AFTER_S = 5.5  # longer than any turn of the loop takes
THAW_S = 2.0


class Tenure:
    """Watches the lease of one worker; asked at every turn of its loop, so it knows when that was frozen.

    The grace is what a command gets between the first signal and the last, by the setting as it is now: with a longer
    one, commands must be stopped earlier.
    """

    def __init__(self, dialect: "Dialect", heartbeat: "Heartbeat") -> None:
        self._dialect = dialect
        self._heartbeat = heartbeat
        self._turned_at = clock.boot_s()
        self._thawed_at = 0.0
        self._known: Lease | None = None

    def is_lapsing(self, grace_s: float) -> bool:
        """Whether the lease is so near its end that commands must be stopped; never on SQLite.

        After a freeze (a closed lid, SIGSTOP) the heartbeat gets a moment to renew it, where the lease allows.
        """
        lease = self._lease(grace_s)
        if lease is None:
            return False
        now = clock.boot_s()
        if now - self._turned_at > min(FROZEN_AFTER_S, lease.stop_after_s / 2):
            self._thawed_at = now
        self._turned_at = now
        if self._heartbeat.has_lapsed:
            return True
        silence = now - self._heartbeat.renewed_at
        is_late = silence >= lease.stop_after_s and now - self._thawed_at >= THAW_S
        return is_late or silence >= lease.kill_after_s

    def left_to_kill_s(self, grace_s: float) -> float:
        """Return how long commands may still take to end by themselves; less than 0 means not at all."""
        lease = self._lease(grace_s)
        assert lease is not None
        return self._heartbeat.renewed_at + lease.kill_after_s - clock.boot_s()

    def has_time_for_store(self, grace_s: float) -> bool:
        """Whether the store could fail to answer and commands still be stopped in time."""
        lease = self._lease(grace_s)
        if lease is None:
            return True
        left_s = self._heartbeat.renewed_at + lease.stop_after_s - clock.boot_s()
        return left_s > self._dialect.longest_begin_s

    def _lease(self, grace_s: float) -> Lease | None:
        """Return the lease others count on; None on SQLite, where only the death of this process frees its jobs."""
        if self._dialect.is_local:
            return None
        lease_s = self._heartbeat.lease_s
        lease = self._known
        if lease is None or (lease.lease_s, lease.grace_s) != (lease_s, grace_s):
            lease = self._known = Lease(lease_s=lease_s, grace_s=grace_s)
            self._dialect.limit_answers(lease.answer_within_s)
        return lease
