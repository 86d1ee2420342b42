"""Findings: what `queuectl doctor` has to say of one thing it looked at, and how to mend it."""

from enum import StrEnum

from queuectl.model.value import Value


class Level(StrEnum):
    """How bad it is: an error keeps jobs from being run or kept, a warning may come to that."""

    OK = "ok"
    WARNING = "warning"
    ERROR = "error"


class Finding(Value):
    """One thing that was looked at; `check` is named by whoever ran it."""

    check: str = ""
    level: Level
    what: str
    mend: str = ""

    @property
    def shape(self) -> dict[str, object]:
        """It as JSON."""
        return {"check": self.check, "level": self.level.value, "what": self.what, "mend": self.mend or None}


def ok(what: str, mend: str = "") -> Finding:
    """Say that something is as it should be."""
    return Finding(level=Level.OK, what=what, mend=mend)


def warning(what: str, mend: str) -> Finding:
    """Say that something may come to harm."""
    return Finding(level=Level.WARNING, what=what, mend=mend)


def error(what: str, mend: str) -> Finding:
    """Say that something keeps jobs from being run or kept."""
    return Finding(level=Level.ERROR, what=what, mend=mend)
