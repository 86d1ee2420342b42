"""Columns: what a list of jobs can show of each, by the names `queuectl list --columns` has for them."""

from queuectl.model.fields import SCHEDULE_VARIABLE
from queuectl.model.limits import LIMIT, MUTEX, key_words, names_in
from queuectl.model.needs import read_needs
from queuectl.model.units import duration_text
from queuectl.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from queuectl.model.job import Job


class Column(Value):
    """One column: how its cells are drawn, and what stands in the cell of a job."""

    name: str
    label: str
    kind: str
    """How it is drawn: open (a link to the job), state, queue, tags, group, ago, took, num, code or text."""
    of: "Callable[[Job], object]"
    order: str | None = None
    """What clicking its head sorts by."""


def _timeout(job: "Job") -> str:
    if job.timeout_ms is None:
        return "default"
    return duration_text(job.timeout_ms) if job.timeout_ms else "none"


def _took(job: "Job") -> "int | None":
    """Return how long its last run took; of one that runs that is not known yet."""
    if job.started_at is None or job.finished_at is None or job.finished_at < job.started_at:
        return None
    return job.finished_at - job.started_at


_ALL = (
    Column(name="id", label="Id", kind="open", of=lambda job: job.id, order="added"),
    Column(name="number", label="Number", kind="num", of=lambda job: job.seq, order="added"),
    Column(name="state", label="State", kind="state", of=lambda job: job.state.value),
    Column(name="queue", label="Queue", kind="queue", of=lambda job: job.queue),
    Column(name="priority", label="Priority", kind="num", of=lambda job: job.priority, order="priority"),
    Column(name="attempts", label="Attempts", kind="num", of=lambda job: f"{job.attempts}/{job.max_retries}"),
    Column(name="losses", label="Losses", kind="num", of=lambda job: job.losses),
    Column(name="runs", label="Runs", kind="num", of=lambda job: job.run),
    Column(name="added", label="Added", kind="ago", of=lambda job: job.created_at, order="added"),
    Column(name="run_at", label="Run at", kind="ago", of=lambda job: job.run_at),
    Column(name="started", label="Started", kind="ago", of=lambda job: job.started_at, order="started"),
    Column(name="finished", label="Finished", kind="ago", of=lambda job: job.finished_at, order="finished"),
    Column(name="took", label="Took", kind="took", of=_took),
    Column(name="held", label="Held", kind="ago", of=lambda job: job.held_at),
    Column(name="exit", label="Exit", kind="num", of=lambda job: job.exit_code),
    Column(name="error", label="Error", kind="text", of=lambda job: job.error),
    Column(name="timeout", label="Timeout", kind="text", of=_timeout),
    Column(name="tags", label="Tags", kind="tags", of=lambda job: job.tag_list),
    Column(name="needs", label="Needs", kind="text", of=lambda job: read_needs(job.needs or "").words),
    Column(name="mutex", label="Mutex", kind="text", of=lambda job: ", ".join(names_in(job.limit_list, MUTEX))),
    Column(name="limits", label="Limits", kind="text", of=lambda job: ", ".join(names_in(job.limit_list, LIMIT))),
    Column(
        name="parked_for",
        label="Parked for",
        kind="text",
        of=lambda job: None if job.parked_for is None else key_words(job.parked_for),
    ),
    Column(name="group", label="Group", kind="group", of=lambda job: job.group_name),
    Column(name="unique", label="Unique key", kind="code", of=lambda job: job.unique_key),
    Column(name="schedule", label="Schedule", kind="text", of=lambda job: job.env_map.get(SCHEDULE_VARIABLE)),
    Column(name="waits_for", label="Waits for", kind="num", of=lambda job: job.waits_for or None),
    Column(name="deadline", label="Deadline", kind="ago", of=lambda job: job.deadline_at),
    Column(name="folder", label="Folder", kind="code", of=lambda job: job.cwd or "/"),
    Column(name="worker", label="Worker", kind="code", of=lambda job: (job.worker_id or "")[:6]),
    Column(name="command", label="Command", kind="command", of=lambda job: job.line),
)
COLUMNS = {column.name: column for column in _ALL}
DEFAULT_COLUMNS = ("id", "state", "queue", "priority", "attempts", "added", "took", "command")
