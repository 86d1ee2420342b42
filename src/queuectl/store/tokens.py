"""Tokens: who may come in over the network. Of a secret only its hash is here."""

from queuectl.model.token import Role, Token
from queuectl.model.value import columns_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queuectl.store.database import Tx
    from queuectl.store.dialect import Row

COLUMNS = columns_of(Token)


def add(tx: "Tx", token: Token, secret_hash: str) -> bool:
    """Put a token down; False means one of this name is there already."""
    values = ", ".join(f":{name}" for name in Token.FIELDS)
    return bool(
        tx.changed(
            f"INSERT INTO tokens ({COLUMNS}, hash) VALUES ({values}, :hash) ON CONFLICT (name) DO NOTHING",
            {**token.as_dict(), "role": token.role.value, "hash": secret_hash},  # type: ignore[dict-item]
        )
    )


def all_tokens(tx: "Tx") -> list[Token]:
    """Return every token, by name."""
    return sorted(map(_read, tx.rows(f"SELECT {COLUMNS} FROM tokens")), key=lambda token: token.name)


def with_hash(tx: "Tx", secret_hash: str) -> Token | None:
    """Return the token whose secret has a hash, also one whose time has passed."""
    row = tx.row(f"SELECT {COLUMNS} FROM tokens WHERE hash = :hash", {"hash": secret_hash})
    return None if row is None else _read(row)


def with_id(tx: "Tx", token_id: str) -> Token | None:
    """Return a token by the id that no other ever has: a new one may bear the name of one that was revoked."""
    row = tx.row(f"SELECT {COLUMNS} FROM tokens WHERE id = :id", {"id": token_id})
    return None if row is None else _read(row)


def has_usable(tx: "Tx") -> bool:
    """Whether anybody could log in."""
    sql = "SELECT 1 FROM tokens WHERE expires_at IS NULL OR expires_at > :now LIMIT 1"
    return tx.row(sql, {"now": tx.now}) is not None


def note_use(tx: "Tx", token_id: str, address: str, every_ms: int) -> bool:
    """Note when and from where a token was used, unless that was noted not long ago."""
    return bool(
        tx.changed(
            """
            UPDATE tokens
               SET last_used_at = :now, last_used_from = :address
             WHERE id = :id AND (last_used_at IS NULL OR last_used_at <= :before OR last_used_at > :now)
            """,
            {"id": token_id, "now": tx.now, "before": tx.now - every_ms, "address": address},
        )
    )


def drop(tx: "Tx", name: str) -> bool:
    """Remove a token; False means there was none."""
    return bool(tx.changed("DELETE FROM tokens WHERE name = :name", {"name": name}))


def _read(row: "Row") -> Token:
    token = Token.of_row(row)
    return token.replace(role=Role(token.role))
