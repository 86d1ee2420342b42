"""The page of one job: where it stands and why, its life, its log, what there is to know of it, what hangs on it."""

import shlex

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse

from queuectl.actions.explain import SHELL_SAYS, mending_edit
from queuectl.actions.graphs import graph_around
from queuectl.actions.selection import no_such_job
from queuectl.actions.standing import Standing, standing
from queuectl.errors import NotFound
from queuectl.model.exitwords import exit_words
from queuectl.model.states import FINAL, WAITING_FOR_TIME, State
from queuectl.model.token import Role
from queuectl.model.value import Value
from queuectl.runtime.known import Known, look_at
from queuectl.runtime.outputs import OUTPUT, STDERR, STDOUT
from queuectl.store import audit, jobs
from queuectl.web.given import Given
from queuectl.web.templating import render
from queuectl.web.views.editing import edit_fields
from queuectl.web.views.facts import facts, variables
from queuectl.web.views.picture import picture
from queuectl.web.views.timeline import end_words, kind_of, timeline
from queuectl.web.visitor import Reader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from queuectl.actions.connect import Target
    from queuectl.model.attempt import Attempt
    from queuectl.model.graph import Graph
    from queuectl.model.job import Job
    from queuectl.store.audit import Act
    from queuectl.store.database import Tx

router = APIRouter()

DRAWN = 60
"""How many jobs a picture of dependencies shows at most."""
RECENT_ACTS = 500
"""Among so many of the newest acts those on this job are looked for: the trail has no index by job."""
SHOWN_ACTS = 20
TAIL_CHARACTERS = 4_000


class View(Value):
    """All that the page shows of a job."""

    known: Known
    standing: Standing
    graph: "Graph | None"
    acts: "list[Act]"


class Button(Value):
    """What a person may do to the job now, and how it is done."""

    verb: str
    name: str
    question: str | None = None
    done: str = ""


@router.get("/jobs/{job_id}")
def show(
    request: Request,
    job_id: str,
    stores: Given,
    visitor: Reader,
    run: int | None = Query(default=None),
    stream: str | None = Query(default=None),
) -> HTMLResponse:
    """Show all that is known of a job."""
    try:
        view = stores.read(lambda tx: _look(stores.target, tx, job_id))
    except NotFound as error:
        return _missing(request, job_id, error)
    known, job = view.known, view.known.job
    chosen = _chosen(known.runs, run)
    return render(
        request,
        "job.html",
        title=f"Job {job.id}",
        command=f"queuectl show {job.id}",
        known=known,
        standing=view.standing,
        acts=view.acts,
        job=job,
        buttons=_buttons(job),
        edits=edit_fields(job, known.after) if visitor.may(Role.OPERATE) else [],
        spans=timeline(job, known.runs, known.now),
        runs=[(each, end_words(each), kind_of(each)) for each in known.runs],
        facts=facts(job, known.runs, known.after),
        variables=variables(job),
        picture=None if view.graph is None else picture(view.graph),
        chosen=chosen,
        is_run_asked=run is not None,
        streams=_streams(chosen),
        stream=stream if chosen is not None and stream in _streams(chosen) else None,
        tail=_tail(chosen),
        logs_command=_logs_command(job, chosen if run is not None else None, stream),
        is_over=job.state in FINAL,
        mending=_mending(known),
        means=_means(known),
    )


def _missing(request: Request, job_id: str, error: NotFound) -> HTMLResponse:
    command = f"queuectl show {shlex.quote(job_id)}"
    return render(request, "nojob.html", title="No such job", command=command, status=404, error=error)


def _look(target: "Target", tx: "Tx", job_id: str) -> View:
    job = jobs.find(tx, job_id)
    if job is None:
        raise no_such_job(tx, job_id)
    known = look_at(target, tx, job)
    return View(
        known=known,
        standing=standing(tx, job),
        graph=graph_around(tx, job, limit=DRAWN) if known.after or job.has_dependents else None,
        acts=_acts_on(tx, job),
    )


def _acts_on(tx: "Tx", job: "Job") -> "list[Act]":
    """Return the newest acts that named this job."""
    names = {job.id, str(job.seq)}
    recent = audit.newest(tx, RECENT_ACTS, since=job.created_at)
    return [act for act in recent if names & set((act.target or "").partition(" ")[0].split(","))][:SHOWN_ACTS]


def _chosen(runs: "Sequence[Attempt]", number: int | None) -> "Attempt | None":
    """Return the run whose output is shown: the one asked for, or the newest."""
    asked = [run for run in runs if run.run == number]
    return asked[0] if asked else runs[-1] if runs else None


def _streams(run: "Attempt | None") -> tuple[str, ...]:
    return (STDOUT, STDERR) if run is not None and run.is_split else (OUTPUT,)


def _tail(run: "Attempt | None") -> str:
    """Return the end of an output for who looks without scripts."""
    if run is None:
        return ""
    data = run.output_tail + (run.stderr_tail or b"")
    return data.decode(errors="replace")[-TAIL_CHARACTERS:]


def _logs_command(job: "Job", run: "Attempt | None", stream: str | None) -> str:
    parts = ["queuectl logs", job.id]
    if run is not None:
        parts.append(f"--run {run.run}")
    elif job.state not in FINAL:
        parts.append("-f")
    if stream in (STDOUT, STDERR):
        parts.append(f"--{stream}")
    return " ".join(parts)


def _mending(known: Known) -> str | None:
    """Return the command that would help a dead job, where its end tells."""
    if known.job.state is not State.DEAD:
        return None
    edit = mending_edit(known.job, known.runs)
    return None if edit is None else f"queuectl edit {known.job.id} {edit}"


def _means(known: Known) -> str:
    """Say what its end means, unless the cause says so itself."""
    is_said = any(said in (known.cause or "") for said in SHELL_SAYS.values())
    return "" if is_said else exit_words(known.job.error)


def _buttons(job: "Job") -> list[Button]:
    """Return what may be done to a job where it stands, by those who may."""
    found: list[Button] = []
    if job.state in FINAL | WAITING_FOR_TIME:
        again = "Run it now" if job.state in WAITING_FOR_TIME else "Retry"
        sure = f"Run job {job.id} again? It completed." if job.state is State.COMPLETED else None
        found.append(Button(verb="retry", name=again, question=sure, done=f"Job {job.id} is retried"))
    if job.state not in FINAL and not job.cancel_requested:
        sure = f"Cancel job {job.id}? It is running." if job.state is State.PROCESSING else f"Cancel job {job.id}?"
        found.append(Button(verb="cancel", name="Cancel", question=sure, done=f"Job {job.id} is cancelled"))
    if job.held_at is not None:
        found.append(Button(verb="release", name="Release", done=f"Job {job.id} is released"))
    elif job.state not in FINAL and job.state is not State.PROCESSING:
        found.append(Button(verb="hold", name="Hold", done=f"Job {job.id} is held"))
    return found
