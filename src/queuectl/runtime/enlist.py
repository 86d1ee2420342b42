"""Enlist: how a worker process begins: what its supervisor told it, its row in the store, and then its loop."""

import os
import select
import sys

from queuectl.actions.connect import Target, connect, locate, settings_of
from queuectl.errors import QueuectlError, StoreBusy, StoreFull, StoreUnreachable
from queuectl.runtime.identity import Identity
from queuectl.runtime.log import Log
from queuectl.runtime.options import WorkerOptions
from queuectl.runtime.worker import TROUBLE_PAUSE_S, Worker
from queuectl.store import workers
from queuectl.system.leaving import leave
from queuectl.system.limits import FILES_PER_RUN, OWN_FILES, allow_open_files, close_inherited_on_exec, slots_that_fit
from queuectl.system.logfile import LogFile
from queuectl.system.memory import keep_freed_memory
from queuectl.system.signals import leave_signals_to_supervisor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queuectl.store.database import Database


def _slots_that_fit(wanted: int, log: Log) -> int:
    """Return how many commands can run at once with the files this process may open; without one, it would die."""
    files = allow_open_files(OWN_FILES + wanted * FILES_PER_RUN)
    slots = slots_that_fit(wanted, files)
    if slots < wanted:
        log.warning(
            "slots", f"only {slots} of {wanted} commands at once: the limit of open files (ulimit -n) is {files}"
        )
    return slots


def _begin(target: Target, options: WorkerOptions, log: Log) -> Worker | None:
    """Return a worker that is registered, as soon as the store can be used; None means it was told to stop before."""
    while True:
        try:
            database, identity = register(target, options)
        except (StoreUnreachable, StoreBusy, StoreFull) as error:
            log.trouble(error.message)
        else:
            log.trouble_over()
            return Worker(target, options, log, database, identity)
        told, _, _ = select.select([0], [], [], TROUBLE_PAUSE_S)
        if told:
            return None


def register(target: Target, options: WorkerOptions) -> "tuple[Database, Identity]":
    """Open the store and register as a worker; leaves nothing open when that fails."""
    database = connect(target, is_durable=False, is_patient=False)
    try:
        settings = database.read(lambda tx: settings_of(tx, os.environ))
        return database, Identity(
            database,
            target.home,
            options.worker_id,
            kind=workers.WORKER,
            supervisor_id=options.supervisor_id,
            duty=options.duty,
            slots=options.slots,
            lease_s=settings.lock_lease_seconds,
        )
    except BaseException:
        database.close()
        raise


def main() -> None:
    """Run a worker as its supervisor asked, in the last argument."""
    work(WorkerOptions.of_text(sys.argv[-1]))


def work(options: WorkerOptions) -> None:
    """Work as this process, and leave."""
    leave_signals_to_supervisor()
    close_inherited_on_exec()
    keep_freed_memory()
    target = locate(None, os.environ)
    os.chdir("/")  # the folder it was started in may lie on a disk that somebody wants to take away
    file = LogFile(target.home.worker_log) if options.log_to_file else None
    log = Log(f"worker {options.worker_id[:6]}", form=options.log_form, file=file)
    try:
        with log.crashes():
            worker = _begin(target, options.replace(slots=_slots_that_fit(options.slots, log)), log)
            if worker is not None:
                worker.run()
    except QueuectlError as error:
        log.warning("gave_up", f"cannot go on: {error.message}")
        sys.exit(error.exit_code)
    finally:
        log.close()
    leave()
