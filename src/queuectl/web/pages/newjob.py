"""The page that adds a job: a form, empty or filled with what another job was given."""

import json

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse

from queuectl.actions.selection import no_such_job
from queuectl.errors import BadInput, NotFound
from queuectl.model.fields import FIELDS, PARTS
from queuectl.model.job import Job
from queuectl.model.shapes import job_shape
from queuectl.model.units import DURATION_HELP, TIME_HELP, duration_text
from queuectl.model.value import Value
from queuectl.model.visible import is_secret_name
from queuectl.store import edges, jobs, overview
from queuectl.web.given import Given
from queuectl.web.templating import render
from queuectl.web.views.editing import after_text
from queuectl.web.visitor import Submitter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queuectl.store.database import Tx

router = APIRouter()

_OWN = frozenset(
    {
        "id", "command", "queue", "priority", "run_at", "delay", "max_retries", "timeout", "deadline", "cwd", "env",
        "tags", "after", "group", "unique", "split_output", "hold", "input",
    }
)  # fmt: skip
"""What the form has a place for; the rest of what a job was given stands in its last field, as JSON."""


class Draft(Value):
    """What stands in the form at first."""

    texts: "dict[str, str]"
    is_split: bool = False
    notes: tuple[str, ...] = ()
    """What could not be taken over, in words."""


@router.get("/jobs/new")
def show(request: Request, stores: Given, _visitor: Submitter, clone: str | None = Query(default=None)) -> HTMLResponse:
    """Show the form."""

    def look(tx: "Tx") -> tuple[list[str], Draft]:
        queues = [view.queue.name for view in overview.all_queues(tx)]
        return queues, Draft(texts={}) if clone is None else _draft(tx, clone)

    problem: NotFound | BadInput | None = None
    try:
        queues, draft = stores.read(look)
    except (NotFound, BadInput) as error:
        problem, queues, draft = error, [], Draft(texts={})
    return render(
        request,
        "newjob.html",
        title="New job" if clone is None else f"Clone of job {clone}",
        command="queuectl enqueue 'echo hello'",
        status=200 if problem is None else 404,
        clone=clone,
        problem=problem,
        queues=queues,
        draft=draft,
        duration_help=DURATION_HELP,
        time_help=TIME_HELP,
    )


def _draft(tx: "Tx", name: str) -> Draft:
    """Return a form filled as a job was; its id and its time are its own, and what is secret stays where it is."""
    job = jobs.find(tx, name)
    if job is None:
        raise no_such_job(tx, name)
    env, hidden = _env_lines(job)
    notes = [f"the value of {each} is not shown; give it again" for each in hidden]
    launch = job.launch_options
    if launch is not None and launch.has_input:
        notes.append("what it read on standard input is not taken over")
    if job.unique_key is not None:
        notes.append(f"it had the unique key {job.unique_key!r}, which is left out: no two jobs hold one at a time")
    texts = {
        "command": job.command or "",
        "queue": job.queue,
        "priority": str(job.priority),
        "max_retries": str(job.max_retries),
        "timeout": "" if job.timeout_ms is None else duration_text(job.timeout_ms),
        "deadline": "" if job.deadline_ms is None else duration_text(job.deadline_ms),
        "cwd": job.cwd or "",
        "env": env,
        "tags": ", ".join(job.tag_list),
        "after": after_text(edges.parents_of(tx, job.seq)),
        "group": job.group_name or "",
        "more": _more(job),
    }
    return Draft(texts=texts, is_split=bool(job.split_output), notes=tuple(notes))


def _env_lines(job: Job) -> tuple[str, list[str]]:
    """Return the variables a line each, without the values that sound secret, and the names of those."""
    own = {name: value for name, value in job.env_map.items() if not name.startswith("QUEUECTL_")}
    hidden = [name for name in own if is_secret_name(name)]
    lines = [f"{name}=" if name in hidden else f"{name}={value}" for name, value in own.items() if "\n" not in value]
    return "\n".join(lines), hidden


def _more(job: Job) -> str:
    """Return as JSON what a job was given that the form has no place for."""
    shape = job_shape(job)
    many_lines = {name: value for name, value in job.env_map.items() if "\n" in value and not is_secret_name(name)}
    parts = {name: value for part in PARTS if isinstance(whole := shape[part], dict) for name, value in whole.items()}
    given = {name: value for name, value in {**shape, **parts}.items() if name in FIELDS and name not in _OWN}
    given.pop("unique_for", None)
    kept = {name: value for name, value in given.items() if value not in (None, [], {}, False)}
    kept |= {"env": many_lines} if many_lines else {}
    return json.dumps(kept, ensure_ascii=False, indent=2) if kept else ""
