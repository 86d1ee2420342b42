"""Liveness of workers: what their rows say, held against what this host can see."""

from queuectl.store import workers
from queuectl.system import host
from queuectl.system.liveness import Pulse, pulse_of


def pulse(worker: workers.Worker) -> Pulse:
    """Tell whether a worker lives, as far as this host can know."""
    is_same_space = (worker.boot_id, worker.pid_namespace) == (host.boot_id(), host.pid_namespace())
    return pulse_of(worker.lock_path, worker.host, host.host_name(), pid=worker.pid if is_same_space else None)
