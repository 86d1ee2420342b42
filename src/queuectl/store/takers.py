"""Takers: the workers as those who claim: which lanes each could ever take from."""

from queuectl.model.needs import Supply
from queuectl.model.value import Value
from queuectl.model.weights import Turns
from queuectl.store import workers
from queuectl.store.lanes import Lane, all_lanes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queuectl.store.database import Tx
    from queuectl.store.workers import Worker


class Taker(Value):
    """The worker that claims: which queues it serves (None: all), what it has, and with whom it shares that."""

    worker_id: str
    queues: tuple[str, ...] | None = None
    supply: Supply = Supply()
    group: str = ""
    """The supervisor whose workers share the resources; empty means it has them for itself."""
    turns: Turns | None = None
    """Whose turn it is among queues that share its time by weight; None means that priority alone decides."""

    @classmethod
    def of_worker(cls, worker: "Worker") -> "Taker":
        """Build from the row of a worker; whose turn it is that worker alone knows."""
        queues = worker.queue_list
        return cls(
            worker_id=worker.id,
            queues=None if queues is None else tuple(queues),
            supply=worker.supply,
            group=worker.supervisor_id or "",
        )

    def serves(self, lane: Lane) -> bool:
        """Whether it could ever take jobs of a lane."""
        if self.queues is not None and lane.queue not in self.queues:
            return False
        return not lane.needs or self.supply.could_take(lane.asks)


def served_lanes(tx: "Tx") -> set[int]:
    """Return the lanes of open queues that some worker, as far as the store knows it living, could take from."""
    takers = [Taker.of_worker(worker) for worker in workers.taking(tx)]
    return {lane.id for lane in all_lanes(tx) if lane.paused_at is None and any(one.serves(lane) for one in takers)}
