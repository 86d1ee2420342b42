"""Weights: queues that share a worker's time, `a:3` and `b:1` taking turns three to one while both have work.

Stride scheduling: each job moves its queue on by 1/weight, and the queue that is furthest behind is next. A queue that
had nothing to do does not save its turns up: it joins in where the others are.
"""

from queuectl.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MAX_WEIGHT = 1000


class Turns(Value):
    """How far each queue has come, and its weight."""

    weights: "dict[str, int]"
    passed: "dict[str, float]" = {}  # noqa: RUF012 - never written to
    floor: float = 0.0
    """Where the last one that had its turn stood: nobody is behind that."""

    def after(self, queues: "Sequence[str]") -> "Turns":
        """Return how things stand when jobs of these queues were taken, one after the other."""
        turns = self
        for queue in queues:
            place = turns.place(queue)
            passed = {**turns.passed, queue: place + 1 / turns.weights.get(queue, 1)}
            turns = turns.replace(passed=passed, floor=place)
        return turns

    def place(self, queue: str) -> float:
        """Return where a queue stands; the one that stands furthest back is next."""
        return max(self.floor, self.passed.get(queue, 0.0))

    def order(self, lanes: "Sequence[int]", queues: "Mapping[int, str]", wanted: int) -> list[int]:
        """Return the first lanes, one for each ready job, by turns; those of one queue stay in the order given."""
        waiting: dict[str, list[int]] = {}
        for lane in lanes:
            waiting.setdefault(queues[lane], []).append(lane)
        turns = self
        ordered: list[int] = []
        while waiting and len(ordered) < wanted:
            queue = min(waiting, key=lambda name: (turns.place(name), -turns.weights.get(name, 1), name))
            ordered.append(waiting[queue].pop(0))
            if not waiting[queue]:
                del waiting[queue]
            turns = turns.after([queue])
        return ordered
