"""Errand: a worker for one job alone, kept until that job has ended. For `queuectl run` where no worker is."""

import os
import select
import threading

from queuectl.actions.connect import connect
from queuectl.actions.rescue import Rescuer
from queuectl.errors import QueuectlError
from queuectl.runtime.identity import new_id
from queuectl.runtime.log import TEXT, Log
from queuectl.runtime.spawn import Started, end_of, start_worker
from queuectl.runtime.warden import Ward, Warden
from queuectl.runtime.worker import DRAIN_BYTE, WorkerOptions
from queuectl.system.liveness import lock_path
from queuectl.system.logfile import LogFile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self

    from queuectl.actions.connect import Target

PAUSE_S = 1.0


class Errand:
    """A worker process for one job, replaced when it dies. Use it in a `with` statement.

    When the statement is left, the worker finishes what it runs and leaves; when this process dies, too.
    """

    def __init__(self, target: "Target", seq: int) -> None:
        self._target = target
        self._seq = seq
        self._is_over = threading.Event()
        self._lock = threading.Lock()  # the pipe to a worker is not to be written to once it is closed
        self._worker: Started | None = self._start()
        self._thread = threading.Thread(target=self._keep, name="errand", daemon=True)
        self._log_file = LogFile(target.home.worker_log)
        self._warden = Warden(self._wards, Log("run", form=TEXT, file=self._log_file))

    def __enter__(self) -> "Self":
        self._thread.start()
        if self._target.sqlite_path is None:
            self._warden.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        while self._thread.is_alive():
            with self._lock:
                if self._worker is not None:
                    self._tell(self._worker)
            self._thread.join(PAUSE_S)
        self._warden.stop()
        self._log_file.close()

    def _wards(self) -> list[Ward]:
        worker = self._worker
        if worker is None:
            return []
        path = lock_path(self._target.home, worker.worker_id)
        return [Ward(worker_id=worker.worker_id, pid=worker.pid, lock_path=path)]

    def _start(self) -> Started:
        options = WorkerOptions(
            worker_id=new_id(),
            supervisor_id="",
            queues=(),
            slots=1,
            until_idle=True,
            log_form=TEXT,
            log_to_file=True,
            only=self._seq,
        )
        return start_worker(self._target, options)

    def _keep(self) -> None:
        """Wait for the worker; when it died, start another, and free the job from the dead one."""
        has_died = False
        while self._worker is not None:
            is_dead, _, _ = select.select([self._worker.pidfd], [], [], PAUSE_S if has_died else None)
            if not is_dead:
                self._rescue()  # again and again: its lock may outlive it for a moment, in a command just starting
                continue
            with self._lock:
                ended = end_of(self._worker)
                self._worker = None
            if not self._is_over.is_set() and (ended is None or ended.exit_code != 0):
                has_died = True
                self._worker = None if self._is_over.wait(PAUSE_S) else self._start()

    def _tell(self, worker: Started) -> None:
        try:
            os.write(worker.control, DRAIN_BYTE)
        except BrokenPipeError:
            pass  # it has just ended

    def _rescue(self) -> None:
        try:
            database = connect(self._target, is_patient=False)
        except QueuectlError:
            return  # the store is away; the next worker start finds the job
        try:
            Rescuer(database, self._target.home, os.environ).look(self._warden.ended)
        except QueuectlError:
            pass
        finally:
            database.close()
