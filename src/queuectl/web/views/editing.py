"""Editing: what of a job a person may change in a form, each with the words of the command line for what it has now."""

from queuectl.model.after import parent_text
from queuectl.model.states import FINAL, State
from queuectl.model.units import TIME_HELP, duration_text
from queuectl.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from queuectl.model.job import Job
    from queuectl.store.edges import Link

MOST_NAMED = 50


class Field(Value):
    """One thing of a job in a form: its name in JSON, its flag on the command line, and what it says now."""

    name: str
    label: str
    value: str = ""
    hint: str = ""
    is_long: bool = False
    is_list: bool = False
    """Whether several stand in it, with commas between."""
    none: str = ""
    """What is sent when it is emptied; nothing where that is a mistake."""

    @property
    def flag(self) -> str:
        """The flag of `queuectl edit`."""
        return "--tag" if self.name == "tags" else f"--{self.name.replace('_', '-')}"


def edit_fields(job: "Job", after: "Sequence[Link]") -> list[Field]:
    """Return what may change of a job where it stands: all while it waits, not its time once it is over, else tags."""
    tags = Field(name="tags", label="Tags", value=", ".join(job.tag_list), hint="commas between", is_list=True)
    if job.state is State.PROCESSING:
        return [tags]
    command = [] if job.command is None else [Field(name="command", label="Command", value=job.command, is_long=True)]
    time = [] if job.state in FINAL else [Field(name="run_at", label="Run at", hint=TIME_HELP)]
    ids = "ids, commas between"
    ties = [Field(name="after", label="Run after", value=after_text(after), hint=ids, is_list=True, none="none")]
    return [
        *command,
        Field(name="queue", label="Queue", value=job.queue),
        Field(name="priority", label="Priority", value=str(job.priority), hint="higher runs first"),
        *time,
        Field(name="max_retries", label="Retries", value=str(job.max_retries), hint="runs after the first"),
        Field(
            name="timeout",
            label="Timeout",
            value="" if job.timeout_ms is None else duration_text(job.timeout_ms),
            hint="such as 90s, 1h30m; 0 is none; empty: the setting",
            none="default",
        ),
        Field(
            name="deadline",
            label="Deadline",
            value="" if job.deadline_ms is None else duration_text(job.deadline_ms),
            hint="longest time in all",
            none="none",
        ),
        Field(name="cwd", label="Folder", value=job.cwd or ""),
        tags,
        *(ties if len(after) <= MOST_NAMED else []),
    ]


def after_text(after: "Sequence[Link]") -> str:
    """Write what a job runs after as a form takes it: `12, any:13`."""
    return ", ".join(parent_text(link.kind, link.id) for link in after)
