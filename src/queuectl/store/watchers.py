"""Watchers: who wants to be told of changes on PostgreSQL. A row expires, so nobody who left is told for ever.

What tells of writes on SQLite is here, too.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queuectl.store.database import Tx

LEASE_MS = 60_000


def renew(tx: "Tx", watcher_id: str) -> None:
    """Have workers tell of changes for another while; forget those who did not renew."""
    tx.changed("DELETE FROM watchers WHERE expires_at < :now AND id <> :id", {"now": tx.now, "id": watcher_id})
    tx.changed(
        """
        INSERT INTO watchers (id, expires_at)
        VALUES (:id, :until)
        ON CONFLICT (id) DO UPDATE SET expires_at = excluded.expires_at
        """,
        {"id": watcher_id, "until": tx.now + LEASE_MS},
    )


def drop(tx: "Tx", watcher_id: str) -> None:
    """Stop being told."""
    tx.changed("DELETE FROM watchers WHERE id = :id", {"id": watcher_id})


def prune(tx: "Tx") -> int:
    """Forget those who did not renew; return how many."""
    return tx.changed("DELETE FROM watchers WHERE expires_at < :now", {"now": tx.now})


def writes_seen(tx: "Tx") -> int | None:
    """Return a number that is another one after each write by somebody else; None where the database has none.

    It means something beside others of the same connection alone.
    """
    row = tx.row("PRAGMA data_version") if tx.dialect.name == "sqlite" else None
    return None if row is None else int(row[0] or 0)
