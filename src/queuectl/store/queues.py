"""Queues and what holds for all of their jobs. A queue exists from the first job or command that names it."""

from queuectl.errors import BadInput
from queuectl.model.queue import Queue
from queuectl.model.value import columns_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from queuectl.store.database import Tx


COLUMNS = columns_of(Queue)
_QUEUE = ", ".join(f"q.{name}" for name in Queue.FIELDS)
MAX_NEEDS = 1000
SETTABLE = ("concurrency", "rate_count", "rate_period_ms", "timeout_ms", "max_retries", "priority")


def lane_of(tx: "Tx", queue: str, needs: str = "") -> int:
    """Return the lane of a queue and a need, made on first use, with its queue."""
    return lane_and_queue(tx, queue, needs)[0]


def lane_and_queue(tx: "Tx", queue: str, needs: str = "") -> tuple[int, Queue]:
    """Return the lane of a queue and a need, and the queue; made on first use."""
    found = _find_lane(tx, queue, needs)
    if found is None:
        create(tx, queue)
        if needs:
            _refuse_too_many(tx)
            _create_lane(tx, queue, needs)
        found = _find_lane(tx, queue, needs)
    assert found is not None
    return found


def _find_lane(tx: "Tx", queue: str, needs: str) -> tuple[int, Queue] | None:
    row = tx.row(
        f"SELECT l.id, {_QUEUE} FROM lanes l JOIN queues q ON q.name = l.queue "
        "WHERE l.queue = :queue AND l.needs = :needs",
        {"queue": queue, "needs": needs},
    )
    return None if row is None else (int(row[0] or 0), Queue.of_row(row[1:]))


def _refuse_too_many(tx: "Tx") -> None:
    row = tx.row("SELECT count(*) FROM lanes WHERE needs <> ''")
    if row is not None and int(row[0] or 0) >= MAX_NEEDS:
        raise BadInput(
            f"there are {MAX_NEEDS} different needs already, and a claim looks at each",
            hint="round the amounts in --use, so that more ask for the same; those no job has are forgotten in time",
        )


def create(tx: "Tx", name: str) -> None:
    """Make a queue and its plain lane, unless they are there."""
    tx.changed(
        "INSERT INTO queues (name, created_at) VALUES (:name, :now) ON CONFLICT (name) DO NOTHING",
        {"name": name, "now": tx.now},
    )
    _create_lane(tx, name, "")


def _create_lane(tx: "Tx", queue: str, needs: str) -> None:
    tx.changed(
        "INSERT INTO lanes (queue, needs) VALUES (:queue, :needs) ON CONFLICT (queue, needs) DO NOTHING",
        {"queue": queue, "needs": needs},
    )


def create_as_it_was(tx: "Tx", queue: Queue) -> bool:
    """Make a queue of another store and its lane; False means one of this name is here already, and stays as it is."""
    values = ", ".join(f":{name}" for name in Queue.FIELDS)
    made = tx.changed(
        f"INSERT INTO queues ({COLUMNS}) VALUES ({values}) ON CONFLICT (name) DO NOTHING",
        queue.as_dict(),  # type: ignore[arg-type]
    )
    create(tx, queue.name)
    return bool(made)


def all_queues(tx: "Tx") -> list[Queue]:
    """Return every queue, by name."""
    rows = tx.rows(f"SELECT {COLUMNS} FROM queues")
    return sorted(map(Queue.of_row, rows), key=lambda queue: queue.name)


def get(tx: "Tx", name: str) -> Queue | None:
    """Return a queue."""
    row = tx.row(f"SELECT {COLUMNS} FROM queues WHERE name = :name", {"name": name})
    return None if row is None else Queue.of_row(row)


def change(tx: "Tx", name: str, values: "Mapping[str, int | None]") -> bool:
    """Write some of SETTABLE; None takes a value back. False means that all was so already."""
    before = get(tx, name)
    columns = ", ".join(f"{column} = :{column}" for column in SETTABLE if column in values)
    if before is None or not columns or before == before.replace(**values):
        return False
    # A rate that was changed holds from now on: what the old one forbade is over.
    forget = ", next_start_at = NULL" if before.rate != before.replace(**values).rate else ""
    return bool(tx.changed(f"UPDATE queues SET {columns}{forget} WHERE name = :name", {**values, "name": name}))


def set_next_start(tx: "Tx", name: str, next_start_at: int) -> None:
    """Say when the rate of a queue lets the next job start. The caller has locked the queue."""
    tx.changed("UPDATE queues SET next_start_at = :at WHERE name = :name", {"at": next_start_at, "name": name})


def set_paused(tx: "Tx", name: str, paused_at: int | None) -> bool:
    """Pause (a time) or resume (None) a queue; False means it was so already."""
    return bool(
        tx.changed(
            """
            UPDATE queues
               SET paused_at = :paused_at
             WHERE name = :name AND (paused_at IS NULL) <> (CAST(:paused_at AS BIGINT) IS NULL)
            """,
            {"name": name, "paused_at": paused_at},
        )
    )


def delete(tx: "Tx", name: str) -> bool:
    """Remove a queue and its lanes; False means there was none.

    The caller knows that it holds no job and has `keep_out` of lanes: else a job that is just being added could come to
    stand in a lane that is gone.
    """
    tx.changed("DELETE FROM lanes WHERE queue = :name", {"name": name})
    return bool(tx.changed("DELETE FROM queues WHERE name = :name", {"name": name}))
