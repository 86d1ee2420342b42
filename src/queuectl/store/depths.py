"""Depths: how many jobs waited in each queue, ran, and lay in the DLQ at moments of the last while, from the records.

Told from what is on record now: a job that waited and was cancelled or deleted since is not counted.
"""

from queuectl.model.states import State
from queuectl.model.value import Value
from queuectl.model.verdict import Result

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from queuectl.store.database import Tx
    from queuectl.store.dialect import Row

_RESULTS = ", ".join(f"'{result}'" for result in Result)


class Depths(Value):
    """How deep everything was at each of some moments, the earliest first; the last one is now."""

    moments: tuple[int, ...]
    waiting: "dict[str, tuple[int, ...]]"
    """By queue; those in which nothing waited are left out."""
    running: tuple[int, ...]
    dead: tuple[int, ...]

    @property
    def all_waiting(self) -> tuple[int, ...]:
        """Over all queues."""
        return tuple(sum(each) for each in zip(*self.waiting.values(), strict=True)) or (0,) * len(self.moments)

    def waiting_in(self, queue: str) -> tuple[int, ...]:
        """In one queue."""
        return self.waiting.get(queue, (0,) * len(self.moments))


def depths(tx: "Tx", since: int, step_ms: int) -> Depths:
    """Return how deep everything was at `since` and after each step, until now."""
    tx.dialect.keep_to_indexes()
    moments = (*range(since, tx.now, step_ms), tx.now)
    size = len(moments)
    waiting: dict[str, list[int]] = {}
    running = [0] * (size + 1)
    for queue, ready, started, ended, count in _runs(tx, since, step_ms, size):
        _add(waiting.setdefault(queue, [0] * (size + 1)), ready, started, count)
        _add(running, started, ended, count)
    summed = {queue: _summed(steps) for queue, steps in waiting.items()}
    return Depths(
        moments=moments,
        waiting={queue: steps for queue, steps in summed.items() if any(steps)},
        running=_summed(running),
        dead=_dead(tx, since, step_ms, size),
    )


def _runs(tx: "Tx", since: int, step_ms: int, size: int) -> "Iterable[tuple[str, int, int, int, int]]":
    """Yield queues with the places of the first moments at which jobs were ready, ran and were over, and how many."""

    def place(time: str) -> str:
        """The first moment that is not before a time."""
        return f"CASE WHEN {time} <= :since THEN 0 ELSE ({time} - :since + :step - 1) / :step END"

    params = {"since": since, "step": step_ms}
    over = tx.rows(
        f"""
        SELECT queue, {place("started_at - COALESCE(waited_ms, 0)")}, {place("started_at")}, {place("finished_at")},
               count(*)
          FROM attempts
         WHERE result IN ({_RESULTS}) AND finished_at >= :since
         GROUP BY 1, 2, 3, 4
        """,
        params,
    )
    running = tx.rows(
        f"""
        SELECT queue, {place("started_at - COALESCE(waited_ms, 0)")}, {place("started_at")}, {size}, count(*)
          FROM jobs
         WHERE state = 'processing'
         GROUP BY 1, 2, 3
        """,
        params,
    )
    ready = tx.rows(  # since Job.ready_at
        f"""
        SELECT queue, {place("updated_at")}, {size}, {size}, count(*)
          FROM jobs
         WHERE state = 'pending'
         GROUP BY 1, 2
        """,
        params,
    )
    return [_numbers(row) for rows in (over, running, ready) for row in rows]


def _dead(tx: "Tx", since: int, step_ms: int, size: int) -> tuple[int, ...]:
    """Return how many of those that are dead now were so at each moment."""
    where = f"state = '{State.DEAD}'"
    row = tx.row(f"SELECT count(*) FROM jobs WHERE {where}")
    total = int(row[0] or 0) if row else 0
    rows = tx.rows(
        f"""
        SELECT (finished_at - :since + :step - 1) / :step, count(*)
          FROM jobs
         WHERE {where} AND finished_at > :since
         GROUP BY 1
        """,
        {"since": since, "step": step_ms},
    )
    steps = [0] * (size + 1)
    for place, count in rows:
        _add(steps, int(place or 0), size, int(count or 0))
    added = _summed(steps)
    return tuple(total - added[-1] + each for each in added)


def _numbers(row: "Row") -> tuple[str, int, int, int, int]:
    queue, *places = row
    ready, started, ended, count = (int(each or 0) for each in places)
    return str(queue), ready, started, ended, count


def _add(steps: list[int], first: int, beyond: int, count: int) -> None:
    """Count something at all moments from one to before another."""
    last = len(steps) - 1
    steps[min(first, last)] += count
    steps[min(beyond, last)] -= count


def _summed(steps: list[int]) -> tuple[int, ...]:
    summed, depth = [], 0
    for step in steps[:-1]:
        depth += step
        summed.append(depth)
    return tuple(summed)
