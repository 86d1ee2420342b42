"""Fleet: the workers as people see them: who lives, what each is busy with, and how that looks as JSON."""

from queuectl.model.needs import used
from queuectl.model.value import Value
from queuectl.store import workers
from queuectl.store.takers import Taker

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from queuectl.store.database import Tx
    from queuectl.store.dialect import Dialect
    from queuectl.store.workers import Worker


class Load(Value):
    """What workers are busy with, by their ids."""

    held: "dict[str, list[str]]"
    """The jobs that each runs."""
    used: "dict[str, dict[str, int]]"
    """How much is taken of the resources it shares with the workers of its start."""


def is_living(worker: "Worker", dialect: "Dialect") -> bool:
    """Whether a worker lives, as far as this host can tell; one on another host is believed."""
    from queuectl.actions.liveness import pulse  # starting workers asks for no other, and start-up time counts
    from queuectl.system.liveness import Pulse

    return pulse(worker, dialect) is not Pulse.DEAD


def living(tx: "Tx") -> "list[Worker]":
    """Return the living workers, oldest first; no supervisors."""
    return [row for row in workers.live(tx) if row.kind == workers.WORKER and is_living(row, tx.dialect)]


def load_of(tx: "Tx", rows: "Sequence[Worker]") -> Load:
    """Read what workers are busy with."""
    from queuectl.store.gates import units_taken

    taken = {row.id: row.supply.left(units_taken(tx, Taker.of_worker(row))) for row in rows if row.resources}
    return Load(
        held=workers.jobs_held(tx), used={row.id: used(row.supply, taken[row.id]) for row in rows if row.id in taken}
    )


def worker_shape(worker: "Worker", load: Load, dialect: "Dialect") -> dict[str, object]:
    """Return a worker as JSON."""
    from queuectl.model.shapes import time_shape

    taken, supply = load.used.get(worker.id, {}), worker.supply
    return {
        "id": worker.id,
        "kind": worker.kind,
        "state": state_of(worker, dialect),
        "pid": worker.pid,
        "host": worker.host,
        "queues": worker.queue_list,
        "weights": worker.weight_map,
        "labels": list(supply.labels),
        "resources": {name: {"total": total, "used": taken.get(name, 0)} for name, total in supply.resources.items()},
        "slots": worker.slots,
        "jobs": load.held.get(worker.id, []),
        "heartbeat_at": time_shape(worker.beat_at),
        "started_at": time_shape(worker.started_at),
        "stopping": worker.stop,
        "version": worker.version,
    }


def state_of(worker: "Worker", dialect: "Dialect") -> str:
    """Say what a worker is: one whose row says that it lives, but whose process is gone, is lost."""
    if worker.state == workers.LIVE and not is_living(worker, dialect):
        return workers.LOST
    return worker.state
