"""Errand: has one job taken, by a worker of its own where nobody else takes its queue. For `queuectl run`."""

import os
import select
import threading

from queuectl import clock
from queuectl.actions.connect import connect
from queuectl.actions.deadlines import expire_overdue
from queuectl.actions.liveness import serving
from queuectl.actions.rescue import Rescuer
from queuectl.errors import QueuectlError
from queuectl.model.duty import Duty
from queuectl.model.lease import Silence, Watched
from queuectl.model.states import FINAL
from queuectl.runtime.identity import new_id
from queuectl.runtime.log import TEXT, Log
from queuectl.runtime.options import DRAIN_BYTE, WorkerOptions
from queuectl.runtime.spawn import Started, end_of, start_worker
from queuectl.runtime.warden import Ward, Warden
from queuectl.store import jobs
from queuectl.system.liveness import lock_path
from queuectl.system.logfile import LogFile
from queuectl.system.names import CLAIM_VARIABLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self

    from queuectl.actions.connect import Target
    from queuectl.model.job import Job
    from queuectl.store.database import Database, Tx

LOOK_EVERY_S = 1.0


class Errand:
    """Keeps a job from waiting for nobody, until it has ended. Use it in a `with` statement.

    Whether others would take the job is asked again and again: workers come, and are stopped. A second taker does no
    harm, for one alone can claim it. When the statement is left in order, its worker has left; on an error it is told
    to leave after what it runs, and nobody waits for that. When this process dies, its worker does the same.
    """

    def __init__(self, target: "Target", job: "Job") -> None:
        self._target = target
        self._seq = job.seq
        self._queue = job.queue
        # Inside a job, the worker that serves the queue may be the very one that waits for us.
        self._is_alone = CLAIM_VARIABLE in os.environ
        self._worker: Started | None = None
        self._has_died = False
        self._others = Silence()
        self._over, self._end = os.pipe2(os.O_CLOEXEC)
        self._log_file = LogFile(target.home.worker_log)
        self._log = Log("run", form=TEXT, file=self._log_file)
        self._warden = Warden(self._wards, self._log)
        self._thread = threading.Thread(target=self._keep, name="errand", daemon=True)

    def __enter__(self) -> "Self":
        self._thread.start()
        return self

    def __exit__(self, error: object, *_: object) -> None:
        os.close(self._end)
        if error is None:
            self._thread.join()

    def _keep(self) -> None:
        """Look after the job until it has ended or nobody waits for it any more; then let the worker go."""
        if self._target.sqlite_path is None:
            self._warden.start()
        database: Database | None = None
        is_over = False
        while not is_over:
            try:
                database = database or connect(self._target, is_patient=False)
                is_over = self._look(database)
            except QueuectlError as error:
                self._log.trouble(error.message)
            except OSError as error:
                self._log.trouble(f"cannot start a worker: {error}")
            is_over = self._wait() or is_over
        self._dismiss()
        self._warden.stop()
        if database is not None:
            database.close()
        self._log_file.close()
        os.close(self._over)

    def _look(self, database: "Database") -> bool:
        """See to the job once; True means it has ended."""
        job = database.read(lambda tx: jobs.get(tx, self._seq))
        if job is None or job.state in FINAL:
            return True
        if job.deadline_at is not None:
            expire_overdue(database)  # where nobody else is running, nobody else would
        # Its own worker has neither labels nor resources: a job that needs them waits for one that has.
        if self._worker is None and not job.needs and (self._is_alone or not database.read(self._is_served)):
            self._worker = self._start()
        if self._has_died:
            # Again and again: its lock may outlive a worker for a moment, in a command that is just starting.
            Rescuer(database, self._target.home, os.environ).look(self._warden.ended)
        return False

    def _is_served(self, tx: "Tx") -> bool:
        """Whether somebody else takes jobs of its queue; a worker that is silent beyond its lease is nobody."""
        began = clock.boot_s()
        found = serving(tx, {self._queue})
        watched = [Watched(key=one.id, token=one.beats, lease_s=one.lease_ms / 1000) for one in found]
        silent = self._others.look(began, clock.boot_s(), watched)
        return any(worker.id not in silent for worker in found)

    def _wait(self) -> bool:
        """Wait until it is time to look again; True means that nobody waits for the job any more."""
        watched = [self._over] if self._worker is None else [self._over, self._worker.pidfd]
        ready, _, _ = select.select(watched, [], [], LOOK_EVERY_S)
        if self._worker is not None and self._worker.pidfd in ready:
            ended = end_of(self._worker)
            self._worker = None
            if ended is None or ended.exit_code != 0:
                self._has_died = True
                ready += select.select([self._over], [], [], LOOK_EVERY_S)[0]  # one that cannot live is no hot loop
        return self._over in ready

    def _dismiss(self) -> None:
        if self._worker is not None:
            try:
                os.write(self._worker.control, DRAIN_BYTE)
            except BrokenPipeError:
                pass  # it has just ended
            select.select([self._worker.pidfd], [], [])
            end_of(self._worker)
            self._worker = None

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
            duty=Duty(queues=()),
            slots=1,
            until_idle=True,
            log_form=TEXT,
            log_to_file=True,
            only=self._seq,
        )
        return start_worker(self._target, options)
