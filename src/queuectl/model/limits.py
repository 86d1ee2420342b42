"""Limits: how many jobs that name the same limit may run at once. A mutex is a limit of one that nobody has to make.

In the store each goes by a key, so that a mutex and a limit of the same name are two things.
"""

from queuectl.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

MUTEX = "mutex:"
LIMIT = "limit:"
MAX_SLOTS = 1_000_000


class Limit(Value):
    """A limit somebody made; the fields are its columns."""

    name: str
    slots: int
    created_at: int


def limit_keys(mutexes: "Iterable[str]", limits: "Iterable[str]") -> list[str]:
    """Return the keys of what a job names, each once, in the one order all lock them in."""
    return sorted({*(MUTEX + name for name in mutexes), *(LIMIT + name for name in limits)})


def key_words(key: str) -> str:
    """Name a limit as people do: `mutex db`, `limit api`."""
    return key.replace(":", " ", 1)


def names_in(keys: "Sequence[str]", kind: str) -> list[str]:
    """Return the names of one kind among keys."""
    return [key.removeprefix(kind) for key in keys if key.startswith(kind)]
