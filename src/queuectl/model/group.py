"""Groups: jobs that are waited for, cancelled and retried together, and how many of them may fail."""

import re

from queuectl.errors import BadInput
from queuectl.model.checks import as_text, shown_value
from queuectl.model.states import State
from queuectl.model.value import Value

GROUP_VARIABLE = "QUEUECTL_GROUP"
ENDED_VARIABLES = {
    State.COMPLETED: "QUEUECTL_GROUP_COMPLETED",
    State.DEAD: "QUEUECTL_GROUP_DEAD",
    State.CANCELLED: "QUEUECTL_GROUP_CANCELLED",
}
"""What the job that is added when all of a group have ended is told: how many ended how."""
_FAILURES = r"(\d{1,9})(%?)"


class Group(Value):
    """A group as it stands in the store; the fields are its columns. Its jobs are all that have its name."""

    name: str
    jobs: int
    """How many were ever added."""
    max_failures: str | None
    on_done: str | None
    """The job that is added when all have ended, as checked fields."""
    stopped_at: int | None
    """When the rest was cancelled because too many had failed."""
    done_at: int | None
    """When that job was added; None while some have not ended."""
    created_at: int

    @property
    def most_failures(self) -> int | None:
        """How many of its jobs may fail; None: all."""
        return None if self.max_failures is None else most_failures(self.max_failures, self.jobs)


def check_max_failures(name: str, value: object) -> str:
    """Read how many jobs of a group may fail: `5`, or `10%` of them."""
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    text = as_text(name, value).strip()
    match = re.fullmatch(_FAILURES, text, re.ASCII)
    if match is None or (match[2] and int(match[1]) > 100):
        raise BadInput(f"bad {name} {shown_value(text)}", hint="write how many may fail: 5, or 10%")
    return f"{int(match[1])}{match[2]}"


def most_failures(text: str, jobs: int) -> int:
    """Return how many of so many jobs may fail."""
    return jobs * int(text[:-1]) // 100 if text.endswith("%") else int(text)
