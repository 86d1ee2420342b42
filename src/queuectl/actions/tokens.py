"""Tokens: making, using and revoking what lets people and programs in over the network. Each act is on record."""

from queuectl.errors import BadInput, NotFound, Refused, UnknownName, did_you_mean
from queuectl.model.checks import check_name
from queuectl.model.token import SECRET_PREFIX, Role, Token, hash_of
from queuectl.model.units import duration_text
from queuectl.store import audit, tokens

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queuectl.store.database import Database, Tx

SECRET_BYTES = 32
ID_BYTES = 8
NOTED_EVERY_MS = 60_000
"""A use is written down at most once a minute: a program that asks ten times a second costs no write each time."""


def add_token(
    database: "Database", name: str, role: str, *, lasts_ms: int | None = None, who: str
) -> tuple[Token, str]:
    """Make a token; return it and its secret, which is kept nowhere and cannot be told again."""
    import secrets

    check_name("token", name)
    if role not in list(Role):
        raise UnknownName.among("role", role, [each.value for each in Role])
    if lasts_ms is not None and lasts_ms <= 0:
        raise BadInput("a token that lasts for no time is of no use", hint="--expires 30d, or leave it out")
    secret = SECRET_PREFIX + secrets.token_urlsafe(SECRET_BYTES)
    token_id = secrets.token_hex(ID_BYTES)

    def work(tx: "Tx") -> Token:
        token = Token(
            id=token_id,
            name=name,
            role=Role(role),
            created_at=tx.now,
            created_by=who,
            expires_at=None if lasts_ms is None else tx.now + lasts_ms,
            last_used_at=None,
            last_used_from=None,
        )
        if not tokens.add(tx, token, hash_of(secret)):
            raise Refused(
                f"there is a token {name!r} already", hint=f"choose another name, or: queuectl token revoke {name}"
            )
        lasts = "" if lasts_ms is None else f" for {duration_text(lasts_ms)}"
        audit.record(tx, who, "token add", f"{name} {role}{lasts}", 1)
        return token

    return database.write(work), secret


def revoke_token(database: "Database", name: str, *, who: str) -> None:
    """Remove a token: whoever uses it, or is logged in with it, is refused from now on (a server: within seconds)."""

    def work(tx: "Tx") -> None:
        if not tokens.drop(tx, name):
            meant = did_you_mean(name, [token.name for token in tokens.all_tokens(tx)])
            raise NotFound(f"no token {name!r}{meant}", hint="list them with: queuectl token list")
        audit.record(tx, who, "token revoke", name, 1)

    database.write(work)


def note_use(database: "Database", token: Token, address: str) -> bool:
    """Note that a token was used, at most once a minute; no act, so nothing is on record."""
    return database.write(lambda tx: tokens.note_use(tx, token.id, address, NOTED_EVERY_MS))


def record_visit(database: "Database", what: str, *, who: str, address: str, count: int = 1) -> None:
    """Put on record that somebody logged in or out, or was refused so often."""
    database.write(lambda tx: audit.record(tx, who, what, f"from {address}", count))
