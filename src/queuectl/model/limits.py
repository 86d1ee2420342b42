"""Limits: how many jobs that name the same limit may run at once.

A mutex is a limit of one that nobody has to make; `at most` is one whose number stands in its name: `thumbs:5`.

In the store each goes by a key, so that a mutex and a limit of the same name are two things.
"""

from queuectl.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

MUTEX = "mutex:"
LIMIT = "limit:"
AT_MOST = "at-most:"
MAX_SLOTS = 1_000_000


class Limit(Value):
    """A limit somebody made; the fields are its columns."""

    name: str
    slots: int
    created_at: int


def limit_keys(mutexes: "Iterable[str]", limits: "Iterable[str]", at_most: "Iterable[str]" = ()) -> list[str]:
    """Return the keys of what a job names, each once, in the one order all lock them in."""
    return sorted(
        {
            *(MUTEX + name for name in mutexes),
            *(LIMIT + name for name in limits),
            *(AT_MOST + name for name in at_most),
        }
    )


def slots_in(key: str) -> int | None:
    """Return how many a key itself lets run at once; None where somebody made the limit."""
    if key.startswith(MUTEX):
        return 1
    return int(key.rpartition(":")[2]) if key.startswith(AT_MOST) else None


def key_words(key: str) -> str:
    """Name a limit as people do: `mutex db`, `limit api`, `at most 5 of thumbs`."""
    if key.startswith(AT_MOST):
        name, _, slots = key.removeprefix(AT_MOST).rpartition(":")
        return f"at most {slots} of {name}"
    return key.replace(":", " ", 1)


def names_in(keys: "Sequence[str]", kind: str) -> list[str]:
    """Return the names of one kind among keys."""
    return [key.removeprefix(kind) for key in keys if key.startswith(kind)]
