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


def begun_at(tx: "Tx", after: int = 0) -> tuple[int, int | None]:
    """Return when what is in a store began, by its first act and by every restore, and the number of the last act.

    Acts up to number `after` are passed by, so that whoever asks again looks at new ones alone; None: none of these.
    """
    row = tx.row(
        """
        SELECT (SELECT max(id) FROM audit), max(at)
          FROM audit
         WHERE id > :after AND (action = 'restore' OR id = (SELECT min(id) FROM audit))
        """,
        {"after": after},
    )
    last, at = row or (0, None)
    return int(last or 0), None if at is None else int(at)


def newest(
    tx: "Tx", limit: int, *, who: str | None = None, action: str | None = None, since: int | None = None
) -> list[Act]:
    """Return the newest acts, newest first: by part of a name, by the action or its first words."""
    parts: list[str] = []
    if who is not None:
        parts.append("replace(who, :who, '') <> who")
    if action is not None:
        parts.append("(action = :action OR substr(action, 1, length(:action) + 1) = :action || ' ')")
    if since is not None:
        parts.append("at >= :since")
    rows = tx.rows(
        f"SELECT {columns_of(Act)} FROM audit WHERE {' AND '.join(parts) or '1 = 1'} ORDER BY id DESC LIMIT :limit",
        {"limit": limit, "who": who, "action": action, "since": since},
    )
    return [Act.of_row(row) for row in rows]
