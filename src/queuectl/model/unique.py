"""Unique: what becomes of a job whose key another holds."""

from enum import StrEnum


class OnConflict(StrEnum):
    """What becomes of the second job with a key; the first is meant where nothing is said."""

    ATTACH = "attach"
    SKIP = "skip"
    REPLACE = "replace"
    ERROR = "error"
