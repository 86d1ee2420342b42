"""Queues and their lanes. A queue exists from the first job or command that names it."""

from queuectl.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from queuectl.store.database import Tx


class Queue(Value):
    """A queue; the fields are its columns."""

    name: str
    paused_at: int | None
    created_at: int


def lane_of(tx: "Tx", queue: str) -> int:
    """Return the lane of a queue, made on first use."""
    sql = "SELECT id FROM lanes WHERE queue = :queue"
    row = tx.row(sql, {"queue": queue})
    if row is None:
        create(tx, queue)
        row = tx.row(sql, {"queue": queue})
    assert row is not None
    return int(row[0] or 0)


def create(tx: "Tx", name: str) -> None:
    """Make a queue and its lane, unless they are there."""
    tx.changed(
        "INSERT INTO queues (name, created_at) VALUES (:name, :now) ON CONFLICT (name) DO NOTHING",
        {"name": name, "now": tx.now},
    )
    tx.changed("INSERT INTO lanes (queue) VALUES (:name) ON CONFLICT (queue) DO NOTHING", {"name": name})


def create_as_it_was(tx: "Tx", queue: Queue) -> bool:
    """Make a queue of another store and its lane; False means one of this name is here already, and stays as it is."""
    made = tx.changed(
        """
        INSERT INTO queues (name, paused_at, created_at)
        VALUES (:name, :paused_at, :created_at)
        ON CONFLICT (name) DO NOTHING
        """,
        {"name": queue.name, "paused_at": queue.paused_at, "created_at": queue.created_at},
    )
    create(tx, queue.name)
    return bool(made)


def open_lanes(tx: "Tx", queues: "Sequence[str] | None") -> list[int]:
    """Return the lanes that are not paused, of these queues or (None) of all."""
    rows = tx.rows("SELECT l.id, l.queue FROM lanes l JOIN queues q ON q.name = l.queue WHERE q.paused_at IS NULL")
    return [int(lane or 0) for lane, queue in rows if queues is None or queue in queues]


def all_queues(tx: "Tx") -> list[Queue]:
    """Return every queue, by name."""
    rows = tx.rows("SELECT name, paused_at, created_at FROM queues")
    return sorted(map(Queue.of_row, rows), key=lambda queue: queue.name)


def get(tx: "Tx", name: str) -> Queue | None:
    """Return a queue."""
    row = tx.row("SELECT name, paused_at, created_at FROM queues WHERE name = :name", {"name": name})
    return None if row is None else Queue.of_row(row)


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
