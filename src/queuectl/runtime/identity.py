"""Identity: a process of ours takes a random id, a lock for life and a row; and gives them back at the end."""

import json
import os

from queuectl import __version__, clock
from queuectl.actions.liveness import store_mark
from queuectl.model.duty import Duty
from queuectl.store import workers
from queuectl.system import host
from queuectl.system.liveness import LifeLock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queuectl.store.database import Database
    from queuectl.system.home import Home


def new_id() -> str:
    """Return an id that no process has had or will have."""
    return os.urandom(8).hex()  # as the module secrets does, which brings much else


class Identity:
    """One registered process."""

    def __init__(
        self,
        database: "Database",
        home: "Home",
        worker_id: str,
        *,
        kind: str,
        supervisor_id: str | None,
        duty: Duty,
        slots: int,
        lease_s: float,
    ) -> None:
        self.id = worker_id
        self.host = host.host_name()
        self._database = database
        self.lock = LifeLock(home, worker_id, store_mark(database.dialect))
        self.registered_at = clock.boot_s()
        self.lock.note_life(self.registered_at, lease_s)
        row = workers.Worker(
            id=worker_id,
            kind=kind,
            state=workers.LIVE,
            supervisor_id=supervisor_id,
            pid=os.getpid(),
            host=self.host,
            boot_id=host.boot_id(),
            pid_namespace=host.pid_namespace(),
            lock_path=self.lock.path,
            version=__version__,
            queues=None if duty.queues is None else json.dumps(list(duty.queues)),
            labels=json.dumps(duty.labels) if duty.labels else None,
            resources=json.dumps(duty.resources) if duty.resources else None,
            weights=json.dumps(duty.weights) if duty.weights else None,
            slots=slots,
            stop=None,
            beats=0,
            beat_at=0,
            started_at=0,
            ended_at=None,
            lease_ms=round(lease_s * 1000),
        )
        try:
            database.write(lambda tx: workers.insert(tx, row))
        except BaseException:
            self.lock.release()
            raise

    def end(self) -> None:
        """Close the row, then let go of the lock."""
        self._database.write(lambda tx: workers.end(tx, self.id))
        self.lock.release()
