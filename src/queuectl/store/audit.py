"""Audit: who did what, when, to how many. Written in the same transaction as the act."""

from queuectl.model.value import Value, columns_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queuectl.store.database import Tx


class Act(Value):
    """One act of a person; the fields are its columns."""

    id: int
    at: int
    who: str
    action: str
    target: str | None
    count: int


def record(tx: "Tx", who: str, action: str, target: str | None, count: int) -> int:
    """Put an act on record and return the number of its row."""
    row = tx.row(
        "INSERT INTO audit (at, who, action, target, count) VALUES (:now, :who, :action, :target, :count) RETURNING id",
        {"now": tx.now, "who": who, "action": action, "target": target, "count": count},
    )
    return int(row[0] or 0) if row else 0


def add_to(tx: "Tx", act_id: int, count: int) -> None:
    """Count more of an act that takes several transactions."""
    tx.changed("UPDATE audit SET count = count + :count WHERE id = :id", {"count": count, "id": act_id})


def newest(tx: "Tx", limit: int) -> list[Act]:
    """Return the newest acts, newest first."""
    rows = tx.rows(f"SELECT {columns_of(Act)} FROM audit ORDER BY id DESC LIMIT :limit", {"limit": limit})
    return [Act.of_row(row) for row in rows]
