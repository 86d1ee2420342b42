"""Warden: a thread of the supervisor that ends workers which are stopped or hang, before their lease does.

On PostgreSQL another host may be given a worker's jobs when its lease is over, so by then its commands must be gone. A
worker sees to that itself; one that cannot (SIGSTOP, a hang) has this. It needs no database: what a worker last renewed
and which commands it runs stand in its lock file.
"""

import threading

from queuectl import clock
from queuectl.model.lease import Lease
from queuectl.model.value import Value
from queuectl.system import process
from queuectl.system.liveness import Parting, note_parting, read_note

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from queuectl.runtime.log import Log

LOOK_EVERY_S = 1.0
LOOK_CLOSELY_S = 0.1


class Ward(Value):
    """A worker to watch."""

    worker_id: str
    pid: int
    lock_path: str


class Warden:
    """Watches over the workers that `wards` returns; `ended` holds the ids of those it had to end."""

    def __init__(self, wards: "Callable[[], Sequence[Ward]]", log: "Log") -> None:
        self.ended: set[str] = set()
        self._wards = wards
        self._log = log
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="warden", daemon=True)

    def start(self) -> None:
        """Begin to watch."""
        self._thread.start()

    def stop(self) -> None:
        """Watch no more."""
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join(timeout=5)

    def look(self) -> float:
        """Look at all wards once; return how long the next look can wait."""
        pause_s, due = LOOK_EVERY_S, []
        for ward in self._wards():
            note = read_note(ward.lock_path)
            if not note.seen_at or ward.worker_id in self.ended:
                continue
            lease = Lease(lease_s=note.lease_s, grace_s=0.0)
            left = note.seen_at + lease.end_after_s - clock.boot_s()
            if left > 0:
                pause_s = max(LOOK_CLOSELY_S, min(pause_s, left))
            elif note.leaders or process.is_stopped(ward.pid):
                due.append(ward)
        if due:
            self._end(due)
        return pause_s

    def _end(self, wards: "Sequence[Ward]") -> None:
        """End workers, and then their commands: only now can none of them start another."""
        self.ended.update(ward.worker_id for ward in wards)
        for ward in wards:
            note_parting(ward.lock_path, Parting.ENDED)
        process.kill([ward.pid for ward in wards])
        left = []
        for ward in wards:
            left += [process.Left(mark=f"{ward.worker_id}:"), *read_note(ward.lock_path).left(ward.worker_id)]
        process.end_left(left)
        for ward in wards:
            what = f"worker {ward.worker_id[:6]} (pid {ward.pid})"
            self._log.warning("hung", f"{what} did not renew its lease; it and its commands were ended")

    def _run(self) -> None:
        while not self._stopped.wait(self.look()):
            pass
