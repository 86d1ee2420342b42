"""Tokens: who may do what over the network. How they are kept is in store/tokens.py."""

from enum import StrEnum


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
