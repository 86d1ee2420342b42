"""Tokens: who may do what over the network. How they are kept is in store/tokens.py."""

from enum import StrEnum
from hashlib import sha256

from queuectl.model.shapes import time_shape
from queuectl.model.value import Value

SECRET_PREFIX = "qctl_"
"""What every secret begins with, so that one that leaked into a log or a repository is recognised as such."""


class Role(StrEnum):
    """What a token lets its bearer do; each may do all that those before it may."""

    READ = "read"
    """See everything (secrets stay masked)."""
    SUBMIT = "submit"
    """Add jobs."""
    OPERATE = "operate"
    """Act on jobs, queues, workers and schedules."""
    ADMIN = "admin"
    """Change settings and tokens, delete history."""

    def covers(self, other: "Role") -> bool:
        """Whether whoever has this role may do what `other` may."""
        ranks = list(Role)
        return ranks.index(self) >= ranks.index(other)


class Token(Value):
    """A token as the store knows it; the fields are its columns. Neither the secret nor its hash is here."""

    id: str
    name: str
    role: Role
    created_at: int
    created_by: str
    expires_at: int | None
    last_used_at: int | None
    last_used_from: str | None

    def is_over(self, now: int) -> bool:
        """Whether its time has passed."""
        return self.expires_at is not None and self.expires_at <= now


def hash_of(secret: str) -> str:
    """Return what is stored of a secret.

    One round of SHA-256 is enough, and no salt: a secret is 256 random bits, which nobody can guess, no password.
    """
    return sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()


def token_shape(token: Token, now: int) -> "dict[str, object]":
    """Return a token as JSON shows it."""
    return {
        "name": token.name,
        "role": token.role.value,
        "created_at": time_shape(token.created_at),
        "created_by": token.created_by,
        "expires_at": time_shape(token.expires_at),
        "expired": token.is_over(now),
        "last_used_at": time_shape(token.last_used_at),
        "last_used_from": token.last_used_from,
    }
