"""Audit: who did what, when, to how many. Written in the same transaction as the act."""

from itertools import takewhile

from queuectl.model.value import Value, columns_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queuectl.store.database import Tx

MAX_ID = 2**63 - 1


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


def prune(tx: "Tx", before: int, limit: int) -> int:
    """Forget the oldest acts, those from before a time and at most so many; return how many.

    Rows are in the order of time, so they are walked from the oldest on, and the first one to be kept ends it.
    """
    oldest = tx.row("SELECT at FROM audit ORDER BY id LIMIT 1")
    if oldest is None or int(oldest[0] or 0) >= before:
        return 0
    rows = tx.rows(f"SELECT id, at FROM audit ORDER BY id LIMIT :limit {tx.dialect.skip_locked}", {"limit": limit})
    old = [act_id for act_id, _ in takewhile(lambda row: int(row[1] or 0) < before, rows)]
    if not old:
        return 0
    return tx.changed("DELETE FROM audit WHERE id BETWEEN :first AND :last", {"first": old[0], "last": old[-1]})


def count_prunable(tx: "Tx", before: int) -> int:
    """Return how many acts `prune` would forget in all; walks those alone."""
    kept = tx.row("SELECT id FROM audit WHERE at >= :before ORDER BY id LIMIT 1", {"before": before})
    row = tx.row("SELECT count(*) FROM audit WHERE id < :first_kept", {"first_kept": kept[0] if kept else MAX_ID})
    return int(row[0] or 0) if row else 0


def newest(
    tx: "Tx",
    limit: int,
    *,
    who: str | None = None,
    action: str | None = None,
    since: int | None = None,
    before: int | None = None,
) -> list[Act]:
    """Return the newest acts, newest first: by part of a name, by the action or its first words.

    `before` is the number of an act, the last of a page: those behind it are the next page.
    """
    parts: list[str] = []
    if who is not None:
        parts.append("replace(who, :who, '') <> who")
    if action is not None:
        parts.append("(action = :action OR substr(action, 1, length(:action) + 1) = :action || ' ')")
    if since is not None:
        parts.append("at >= :since")
    if before is not None:
        parts.append("id < :before")
    rows = tx.rows(
        f"SELECT {columns_of(Act)} FROM audit WHERE {' AND '.join(parts) or '1 = 1'} ORDER BY id DESC LIMIT :limit",
        {"limit": limit, "who": who, "action": action, "since": since, "before": before},
    )
    return [Act.of_row(row) for row in rows]
