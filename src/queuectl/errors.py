"""Every error a person can meet, with its exit code. Text for people is made in cli/main.py.

QueuectlError                    1
├── BadInput                     2   a flag, field, value or line that cannot be used
│   └── UnknownName              2   an unknown setting, state, field or command; names the nearest
├── JobFailed                    1   a job that was waited for is dead or was cancelled
├── NotFound                     3   no such job, queue or worker
├── WaitTimedOut                 4   what was waited for did not happen in time
├── StoreError                   5   the database cannot be used
│   ├── StoreUnreachable         5   no connection, no such file, no permission
│   │   └── CommitInDoubt        5   the connection broke before the answer to a COMMIT: written or not, nobody knows
│   ├── StoreBusy                5   locked by another process for too long
│   ├── StoreFull                5   no space left
│   ├── StoreNewer               5   written by a newer queuectl
│   ├── StoreOlder               5   waits for `queuectl migrate`
│   └── NotAStore                5   not a database, or not one of queuectl
└── Refused                      6   a duplicate, a job in the wrong state, a running job
"""

INTERRUPTED_CODE = 130
"""What no error says: somebody ended it before it was done."""
MAX_MESSAGE = 600
MAX_NAME = 200
LIKENESS = 0.7


class QueuectlError(Exception):
    """What went wrong and with which value; `hint` says what to do next. A value of megabytes is cut out of it."""

    exit_code = 1

    def __init__(self, message: str, *, hint: str = "") -> None:
        if len(message) > MAX_MESSAGE:
            message = f"{message[: MAX_MESSAGE * 2 // 3]}...{message[-MAX_MESSAGE // 3 :]}"
        super().__init__(message)
        self.message = message
        self.hint = hint


class BadInput(QueuectlError):
    """A flag, field, value or line that cannot be used."""

    exit_code = 2


class UnknownName(BadInput):
    """A name that is not one of a closed set."""

    @classmethod
    def among(cls, what: str, name: str, known: "list[str] | tuple[str, ...]", *, hint: str = "") -> "UnknownName":
        """Build the error for `name`, pointing at the nearest of the names that exist."""
        meant = did_you_mean(name, known)
        shown = repr(name) if len(name) <= MAX_NAME else f"{name[:MAX_NAME]!r}..."
        return cls(f"unknown {what} {shown}{meant}", hint=hint if meant or hint else f"known: {', '.join(known)}")


class JobFailed(QueuectlError):
    """A job that was waited for is dead or was cancelled."""


class NotFound(QueuectlError):
    """No such job, queue or worker."""

    exit_code = 3


class WaitTimedOut(QueuectlError):
    """What was waited for did not happen in time."""

    exit_code = 4


class StoreError(QueuectlError):
    """The database cannot be used."""

    exit_code = 5


class StoreUnreachable(StoreError):
    """No connection, no such file, no permission."""


class CommitInDoubt(StoreUnreachable):
    """The connection broke before the answer to a COMMIT came: the change may have been made."""


class StoreBusy(StoreError):
    """Another process held the database locked for too long."""


class StoreFull(StoreError):
    """No space is left for the database."""


class StoreNewer(StoreError):
    """The database was written by a newer queuectl."""


class StoreOlder(StoreError):
    """The database waits for `queuectl migrate`."""


class NotAStore(StoreError):
    """Not a database, or not one of queuectl."""


class Refused(QueuectlError):
    """A duplicate, a job in the wrong state, or a job that is running."""

    exit_code = 6


def did_you_mean(name: str, known: "list[str] | tuple[str, ...]") -> str:
    """Return the end of a sentence about a name that does not exist: the nearest that does, if one is near."""
    import difflib  # only ever needed on the way out

    bare = {str(each).lstrip("-"): each for each in reversed(known)}  # dashes alike say nothing
    word = name[:MAX_MESSAGE].lstrip("-")
    near = difflib.get_close_matches(word, bare, n=1, cutoff=LIKENESS)
    return f"; did you mean {str(bare[near[0]])!r}?" if near else ""
