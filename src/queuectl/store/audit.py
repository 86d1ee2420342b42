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


def record(tx: "Tx", who: str, action: str, target: str | None, count: int) -> None:
    """Put an act on record."""
    tx.changed(
        "INSERT INTO audit (at, who, action, target, count) VALUES (:now, :who, :action, :target, :count)",
        {"now": tx.now, "who": who, "action": action, "target": target, "count": count},
    )


def newest(tx: "Tx", limit: int) -> list[Act]:
    """Return the newest acts, newest first."""
    rows = tx.rows(f"SELECT {columns_of(Act)} FROM audit ORDER BY id DESC LIMIT :limit", {"limit": limit})
    return [Act.of_row(row) for row in rows]
