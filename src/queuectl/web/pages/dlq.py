"""The page of the dead letter queue: dead jobs grouped by what they died of, and what can be done about each group."""

import re
import shlex
from urllib.parse import urlencode

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from queuectl.model.errorgroup import ErrorGroup
from queuectl.model.states import State
from queuectl.model.value import Value
from queuectl.model.visible import safe
from queuectl.store import attempts, error_groups, jobs
from queuectl.web.given import Given, SharedBoard, SharedFigures
from queuectl.web.templating import render
from queuectl.web.views.address import check_names
from queuectl.web.visitor import Reader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from queuectl.model.job import Job
    from queuectl.store.database import Tx
    from queuectl.web.snapshot import View

SHOWN_GROUPS = 30
NEWEST = 20
TAIL_LINES = 8
TAIL_CHARACTERS = 2000
_SEQUENCES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")

router = APIRouter()


class Entry(Value):
    """A group as the page shows it, with one of its jobs and how the output of that ended."""

    group: ErrorGroup
    sample: "Job | None"
    tail: str
    query: str
    """What leads to the list of its jobs."""
    body: dict[str, object]
    """What says over REST that these jobs are meant."""
    retry: str
    purge: str
    """The commands that do the same."""


class Canary(Value):
    """The job that was tried, and how its output ended."""

    job: "Job"
    tail: str


@router.get("/dlq")
def show(
    request: Request,
    stores: Given,
    board: SharedBoard,
    figures: SharedFigures,
    _visitor: Reader,
    queue: str = "",
    canary: str = "",
    error: str = "",
) -> HTMLResponse:
    """Show the dead jobs, of one queue or of all."""
    check_names(request.query_params, ("queue", "canary", "error"))
    wanted = jobs.Filter(states=(State.DEAD,), queue=queue or None)
    figure = figures.get(f"dlq {queue}", lambda tx: error_groups.groups(tx, wanted))
    groups: list[ErrorGroup] = [] if figure is None else figure.value  # type: ignore[assignment]

    def look(tx: "Tx") -> "tuple[list[Entry], list[Job], Canary | None]":
        shown = [_entry(tx, group, queue) for group in groups[:SHOWN_GROUPS]]
        return shown, jobs.latest_dead(tx, wanted, NEWEST), _canary(tx, canary)

    entries, newest, tried = stores.read(look)
    dead = _dead_by_queue(board.current())
    total = dead.get(queue, 0) if queue else sum(dead.values())
    return render(
        request,
        "dlq.html",
        title="DLQ",
        command=" ".join(["queuectl dlq groups", *_flags(queue)]),
        entries=entries,
        is_counted=figure is not None,
        more_groups=max(0, len(groups) - SHOWN_GROUPS),
        newest=newest,
        total=total,
        everywhere=sum(dead.values()),
        queues=sorted((name, count) for name, count in dead.items() if count),
        queue=queue,
        of_queue=f" of queue {queue}" if queue else "",
        queue_flags=" ".join(["", *_flags(queue)]),
        whole={"queue": queue} if queue else {"all": True},
        all_query=urlencode({"state": "dead", **({"queue": queue} if queue else {})}),
        canary=tried,
        canary_left=next((entry.group.count for entry in entries if entry.group.name == error), 0) if error else 0,
        canary_name=error,
    )


def tail_of(tx: "Tx", job: "Job") -> str:
    """Return the last lines of the output of a job's last run, with nothing in them that would steer a terminal."""
    runs = attempts.runs_of(tx, job, max(1, job.run))
    if not runs:
        return ""
    output = runs[-1].stderr_tail or runs[-1].output_tail
    text = _SEQUENCES.sub("", output.decode(errors="replace")).replace("\r\n", "\n").rstrip()
    lines = safe(text, kept="\n\t").splitlines()[-TAIL_LINES:]
    return "\n".join(lines)[-TAIL_CHARACTERS:]


def _entry(tx: "Tx", group: ErrorGroup, queue: str) -> Entry:
    sample = next((job for each in group.samples if (job := jobs.find(tx, each)) is not None), None)
    flags = ["--error", shlex.quote(group.name), *_flags(queue)]
    body: dict[str, object] = {"error": group.name, **({"queue": queue} if queue else {})}
    return Entry(
        group=group,
        sample=sample,
        tail="" if sample is None else tail_of(tx, sample),
        query=urlencode({"state": "dead", **body}),
        body=body,
        retry=" ".join(["queuectl dlq retry", *flags]),
        purge=" ".join(["queuectl dlq purge", *flags]),
    )


def _canary(tx: "Tx", name: str) -> Canary | None:
    job = jobs.find(tx, name) if name else None
    if job is None:
        return None
    is_known = job.state in (State.COMPLETED, State.FAILED, State.DEAD)
    return Canary(job=job, tail=tail_of(tx, job) if is_known else "")


def _dead_by_queue(view: "View") -> dict[str, int]:
    counts = {} if view.found is None else view.found.counts
    return {name: found.get(State.DEAD, 0) for name, found in counts.items()}


def _flags(queue: str) -> "Sequence[str]":
    return ["--queue", shlex.quote(queue)] if queue else []
