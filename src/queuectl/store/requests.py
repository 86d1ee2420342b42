"""Requests: answers to what was asked under a key and must take effect once, kept for a while."""

from queuectl.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queuectl.store.database import Tx


class Request(Value):
    """What was asked under a key, told apart by its fingerprint, and what was answered."""

    fingerprint: str
    answer: str


def take(tx: "Tx", key: str, fingerprint: str, expires_at: int) -> bool:
    """Take a key for this transaction; False means that another has it, and what it was answered can be read.

    Whoever asks for a key that another transaction is just taking waits for its end.
    """
    tx.changed("DELETE FROM requests WHERE key = :key AND expires_at <= :now", {"key": key, "now": tx.now})
    taken = tx.changed(
        """
        INSERT INTO requests (key, fingerprint, answer, expires_at)
        VALUES (:key, :fingerprint, '', :expires_at)
            ON CONFLICT (key) DO NOTHING
        """,
        {"key": key, "fingerprint": fingerprint, "expires_at": expires_at},
    )
    return bool(taken)


def answer(tx: "Tx", key: str, text: str) -> None:
    """Keep what was answered under a key that this transaction took."""
    tx.changed("UPDATE requests SET answer = :answer WHERE key = :key", {"key": key, "answer": text})


def get(tx: "Tx", key: str) -> Request | None:
    """Return what was asked and answered under a key, if that is still kept."""
    row = tx.row(
        "SELECT fingerprint, answer FROM requests WHERE key = :key AND expires_at > :now", {"key": key, "now": tx.now}
    )
    return None if row is None else Request(fingerprint=str(row[0]), answer=str(row[1]))


def forget_expired(tx: "Tx", most: int) -> int:
    """Drop answers that were kept long enough, so many at most; return how many went."""
    return tx.changed(
        """
        DELETE FROM requests
         WHERE key IN (SELECT key FROM requests WHERE expires_at <= :now ORDER BY expires_at LIMIT :most)
        """,
        {"now": tx.now, "most": most},
    )
