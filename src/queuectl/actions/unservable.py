"""Unservable: ready jobs that no living worker could ever take, though their queue is served. What starts one, too."""

from queuectl.model.duty import Duty
from queuectl.model.needs import Needs
from queuectl.model.value import Value
from queuectl.store.gates import Taker
from queuectl.store.lanes import all_lanes
from queuectl.store.lines import ready_counts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from queuectl.store.database import Tx
    from queuectl.store.workers import Worker


class Unservable(Value):
    """Ready jobs of one lane that nobody could ever take."""

    queue: str
    needs: Needs
    jobs: int

    @property
    def words(self) -> str:
        """What is wrong, in a line."""
        waiting = "a job" if self.jobs == 1 else f"{self.jobs} jobs"
        verb = "waits" if self.jobs == 1 else "wait"
        return f"{waiting} of queue {self.queue} {verb} for what no worker has: {self.needs.words}"

    @property
    def remedy(self) -> str:
        """The command that starts a worker for them."""
        return start_command(self.queue, self.needs)

    @property
    def shape(self) -> "dict[str, object]":
        """As JSON."""
        return {"queue": self.queue, "needs": list(self.needs.labels), "use": self.needs.use, "jobs": self.jobs}


def unservable(tx: "Tx", living: "Sequence[Worker]") -> list[Unservable]:
    """Return what none of the living workers could ever take, by queue; those told to stop take nothing more.

    A queue that nobody serves at all is another matter, and told elsewhere.
    """
    takers = [Taker.of_worker(worker) for worker in living if not worker.stop]
    lanes = {lane.id: lane for lane in all_lanes(tx) if lane.needs} if takers else {}
    left_out = [
        lane.id
        for lane in lanes.values()
        if any(taker.queues is None or lane.queue in taker.queues for taker in takers)
        and not any(taker.serves(lane) for taker in takers)
    ]
    counts = ready_counts(tx, left_out)
    found = [Unservable(queue=lanes[one].queue, needs=lanes[one].asks, jobs=count) for one, count in counts.items()]
    return sorted(found, key=lambda one: (one.queue, one.needs.words))


def start_command(queue: str, needs: Needs) -> str:
    """Return what a person types to start a worker that takes jobs of a queue with some needs."""
    duty = Duty(queues=(queue,), labels=needs.labels, resources=needs.use)
    return " ".join(["queuectl worker start -d", *duty.words])
