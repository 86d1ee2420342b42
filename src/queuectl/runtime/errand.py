"""Errand: a worker for one job alone, kept until that job has ended. For `queuectl run` where no worker is."""

import os
import select
import threading

from queuectl.actions.connect import connect
from queuectl.actions.rescue import Rescuer
from queuectl.errors import QueuectlError
from queuectl.runtime.identity import new_id
from queuectl.runtime.spawn import Started, end_of, start_worker
from queuectl.runtime.worker import DRAIN_BYTE, WorkerOptions

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
        self._worker = self._start()
        self._thread = threading.Thread(target=self._keep, name="errand", daemon=True)

    def __enter__(self) -> "Self":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        try:
            os.write(self._worker.control, DRAIN_BYTE)
        except OSError:
            pass  # it has ended already
        self._thread.join()

    def _start(self) -> Started:
        options = WorkerOptions(
            worker_id=new_id(),
            supervisor_id="",
            queues=(),
            slots=1,
            until_idle=True,
            log_form="text",
            log_to_file=True,
            only=self._seq,
        )
        return start_worker(self._target, options)

    def _keep(self) -> None:
        """Wait for the worker; when it died, free the job from it and start another."""
        while True:
            select.select([self._worker.pidfd], [], [])
            ended = end_of(self._worker)
            if self._is_over.is_set() or (ended is not None and ended.exit_code == 0):
                return
            self._rescue()
            if self._is_over.wait(PAUSE_S):
                return
            self._worker = self._start()

    def _rescue(self) -> None:
        try:
            database = connect(self._target, is_patient=False)
        except QueuectlError:
            return  # the store is away; the next worker start finds the job
        try:
            Rescuer(database, self._target.home, os.environ).look()
        except QueuectlError:
            pass
        finally:
            database.close()
