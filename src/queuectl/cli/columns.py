"""Columns: what a table of jobs can show of each."""

from queuectl.cli.text import moment, safe, short
from queuectl.model.fields import SCHEDULE_VARIABLE
from queuectl.model.limits import LIMIT, MUTEX, key_words, names_in
from queuectl.model.needs import read_needs
from queuectl.model.units import duration_text, rough_duration_text
from queuectl.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from queuectl.model.job import Job

WIDTH = 200
AFTER = "after"


class Seen(Value):
    """What a cell is made of beside the job itself."""

    now: int
    after: "Mapping[int, str]"
    """By number: what a job runs after. Read only for the column that shows it."""


def _took(job: "Job", seen: Seen) -> str:
    if job.started_at is None or (job.worker_id is None and job.finished_at is None):
        return "-"
    return rough_duration_text(max(0, (job.finished_at or seen.now) - job.started_at))


def _timeout(job: "Job") -> str:
    if job.timeout_ms is None:
        return "default"
    return duration_text(job.timeout_ms) if job.timeout_ms else "none"


COLUMNS: "dict[str, Callable[[Job, Seen], str]]" = {
    "id": lambda job, _: job.id,
    "number": lambda job, _: str(job.seq),
    "state": lambda job, _: job.state.value,
    "queue": lambda job, _: job.queue,
    "priority": lambda job, _: str(job.priority),
    "attempts": lambda job, _: f"{job.attempts}/{job.max_retries}",
    "losses": lambda job, _: str(job.losses),
    "runs": lambda job, _: str(job.run),
    "added": lambda job, seen: moment(job.created_at, seen.now),
    "run_at": lambda job, seen: moment(job.run_at, seen.now),
    "started": lambda job, seen: moment(job.started_at, seen.now),
    "finished": lambda job, seen: moment(job.finished_at, seen.now),
    "took": _took,
    "held": lambda job, seen: moment(job.held_at, seen.now),
    "exit": lambda job, _: "-" if job.exit_code is None else str(job.exit_code),
    "error": lambda job, _: short(job.error or "-", WIDTH),
    "timeout": lambda job, _: _timeout(job),
    "tags": lambda job, _: ",".join(job.tag_list) or "-",
    "needs": lambda job, _: read_needs(job.needs or "").words or "-",
    "mutex": lambda job, _: ",".join(names_in(job.limit_list, MUTEX)) or "-",
    "limits": lambda job, _: ",".join(names_in(job.limit_list, LIMIT)) or "-",
    "parked_for": lambda job, _: "-" if job.parked_for is None else key_words(job.parked_for),
    "group": lambda job, _: job.group_name or "-",
    "unique": lambda job, _: safe(job.unique_key or "-"),
    "schedule": lambda job, _: safe(job.env_map.get(SCHEDULE_VARIABLE, "-")),
    AFTER: lambda job, seen: seen.after.get(job.seq, "-"),
    "waits_for": lambda job, _: str(job.waits_for) if job.waits_for else "-",
    "deadline": lambda job, seen: moment(job.deadline_at, seen.now),
    "folder": lambda job, _: safe(job.cwd or "/"),
    "worker": lambda job, _: (job.worker_id or "-")[:6],
    "command": lambda job, _: short(job.line, WIDTH),
}
DEFAULT_COLUMNS = ("id", "state", "queue", "priority", "attempts", "added", "command")
RIGHT = frozenset({"number", "priority", "attempts", "losses", "runs", "took", "exit", "waits_for"})
