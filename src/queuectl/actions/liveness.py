"""Liveness of workers: what their rows say, held against what this host can see."""

import os

from queuectl.model.urls import mark_of
from queuectl.store import workers
from queuectl.system import host
from queuectl.system.liveness import Pulse, pulse_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

    from queuectl.store.database import Tx
    from queuectl.store.dialect import Dialect


def pulse(worker: workers.Worker, dialect: "Dialect") -> Pulse:
    """Tell whether a worker lives, as far as this host can know.

    All who use a local store can reach each other's locks, whatever name their container gives the host.
    """
    if not dialect.is_local and worker.host != host.host_name():
        return Pulse.OUT_OF_SIGHT
    pid = worker.pid if can_see_tree(worker) else None
    return pulse_of(lock_of(worker, dialect), pid=pid, has_rebooted=dialect.is_local and has_rebooted(worker, dialect))


def serving(tx: "Tx", wanted: "Collection[str]") -> list[workers.Worker]:
    """Return the living workers that take jobs of any of these queues; one told to stop takes none."""
    return [
        worker
        for worker in workers.live(tx)
        if worker.kind == workers.WORKER and not worker.stop and _serves(worker, wanted)
        if pulse(worker, tx.dialect) is not Pulse.DEAD
    ]


def lock_of(worker: workers.Worker, dialect: "Dialect") -> str:
    """Return where the lock of a worker lies as seen from here: a home may be mounted at another path elsewhere."""
    if not dialect.is_local:
        return worker.lock_path
    return os.path.join(dialect.lock_folder, os.path.basename(worker.lock_path))


def _serves(worker: workers.Worker, wanted: "Collection[str]") -> bool:
    return worker.queue_list is None or any(queue in wanted for queue in worker.queue_list)


def store_mark(dialect: "Dialect") -> str:
    """Return a short word that tells the store of a process from others that share its home."""
    return mark_of(dialect.address)


def can_see_tree(worker: workers.Worker) -> bool:
    """Whether the processes of a worker's commands would show up here."""
    return (worker.boot_id, worker.pid_namespace) == (host.boot_id(), host.pid_namespace())


def has_rebooted(worker: workers.Worker, dialect: "Dialect") -> bool:
    """Whether the host of a worker has started anew since; on a local store there is but one host."""
    is_here = dialect.is_local or worker.host == host.host_name()
    return is_here and worker.boot_id not in ("", host.boot_id())
