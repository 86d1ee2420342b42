"""Config: the settings a person stored, as text. What they mean is in settings.py."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queuectl.store.database import Tx


def stored(tx: "Tx") -> dict[str, str]:
    """Return every stored setting."""
    return {str(key): str(value) for key, value in tx.rows("SELECT key, value FROM config")}


def put(tx: "Tx", key: str, value: str) -> None:
    """Store a setting."""
    tx.changed(
        """
        INSERT INTO config (key, value, updated_at)
        VALUES (:key, :value, :now)
        ON CONFLICT (key) DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at
        """,
        {"key": key, "value": value, "now": tx.now},
    )


def drop(tx: "Tx", key: str) -> bool:
    """Forget a setting, so that its default holds; False means it was not stored."""
    return bool(tx.changed("DELETE FROM config WHERE key = :key", {"key": key}))
