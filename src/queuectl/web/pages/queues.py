"""The pages of the queues: all of them, and one with all that is known of it."""

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from queuectl.actions import gatekeeping
from queuectl.actions.liveness import serving
from queuectl.actions.shapes import able, ready_since
from queuectl.model.queue import queue_settings_shape
from queuectl.model.states import State
from queuectl.model.units import duration_text
from queuectl.model.value import Value
from queuectl.store import overview
from queuectl.web.given import Given
from queuectl.web.templating import render
from queuectl.web.visitor import Reader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queuectl.store.database import Tx
    from queuectl.store.overview import LimitView, QueueView
    from queuectl.store.workers import Worker

SHOWN_STATES = (State.PENDING, State.PROCESSING, State.SCHEDULED, State.BLOCKED, State.FAILED, State.DEAD)

router = APIRouter()


class Entry(Value):
    """A queue as a row of the page."""

    view: "QueueView"
    since: int | None
    """Since when its oldest ready job could have run."""


@router.get("/queues")
def show(request: Request, stores: Given, _visitor: Reader) -> HTMLResponse:
    """Show every queue."""

    def look(tx: "Tx") -> "tuple[list[Entry], list[LimitView]]":
        return entries(tx), overview.all_limits(tx)

    found, limits = stores.read(look)
    return render(
        request,
        "queues.html",
        title="Queues",
        command="queuectl queue list",
        entries=found,
        limits=limits,
        states=SHOWN_STATES,
    )


@router.get("/queues/{name}")
def show_one(request: Request, name: str, stores: Given, _visitor: Reader) -> HTMLResponse:
    """Show all that is known of a queue."""

    def look(tx: "Tx") -> "tuple[QueueView, list[Worker], int]":
        view = overview.queue(tx, name)
        if view is None:
            raise gatekeeping.unknown_queue(tx, name)
        return view, serving(tx, [name]), tx.now

    view, serve, now = stores.read(look)
    return render(
        request,
        "queue.html",
        title=f"Queue {name}",
        command=f"queuectl queue show {name}",
        view=view,
        queue=view.queue,
        since=None if view.oldest is None else ready_since(view),
        serve=serve,
        lanes=[(lane, able(lane, serve)) for lane in view.lanes if lane.needs.words],
        settings=_settings(view),
        states=list(State),
        now=now,
    )


def entries(tx: "Tx") -> list[Entry]:
    """Read every queue with its oldest ready job."""
    views = overview.all_queues(tx)
    oldest = overview.oldest_by_queue(tx, [view.queue.name for view in views])
    whole = [view.replace(oldest=oldest.get(view.queue.name)) for view in views]
    return [Entry(view=view, since=None if view.oldest is None else ready_since(view)) for view in whole]


def _settings(view: "QueueView") -> dict[str, str]:
    """Return what is set for a queue as the form takes it; empty where nothing is."""
    values: dict[str, str] = {
        name: "" if value is None else str(value) for name, value in queue_settings_shape(view.queue).items()
    }
    if view.queue.timeout_ms is not None:
        values["timeout"] = duration_text(view.queue.timeout_ms) if view.queue.timeout_ms else "0"
    return values
