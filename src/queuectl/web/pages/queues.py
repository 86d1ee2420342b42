"""The pages of the queues: all of them, and one with all that is known of it."""

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from queuectl.actions import gatekeeping
from queuectl.actions.liveness import serving
from queuectl.actions.shapes import able, ready_since
from queuectl.model.queue import queue_settings_shape
from queuectl.model.states import State
from queuectl.model.stats import Range, Spread, Stats
from queuectl.model.units import HOUR_MS, MINUTE_MS, duration_text
from queuectl.model.value import Value
from queuectl.store import limits, overview
from queuectl.store.depths import Depths, depths
from queuectl.store.stats import stats
from queuectl.web.given import Given, SharedFigures
from queuectl.web.templating import render
from queuectl.web.views.doors import FAILED, OTHER, runs_path
from queuectl.web.visitor import Reader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queuectl.store.database import Tx
    from queuectl.store.overview import LimitView, QueueView
    from queuectl.store.workers import Worker
    from queuectl.web.figures import Figures

MOST_MEASURED = 30
MOST_HOLDERS = 5
"""So many of the jobs that hold a limit are named."""
SHOWN_STATES = (State.PENDING, State.PROCESSING, State.SCHEDULED, State.BLOCKED, State.FAILED, State.DEAD)

router = APIRouter()


class Entry(Value):
    """A queue as a row of the page."""

    view: "QueueView"
    since: int | None
    """Since when its oldest ready job could have run."""
    depth: tuple[int, ...] = ()
    """How many waited, over the last hour; empty while nobody has counted."""
    wait: Spread | None = None
    per_minute: float | None = None
    """How many runs ended within the last hour, of whatever kind."""


@router.get("/queues")
def show(request: Request, stores: Given, figures: SharedFigures, _visitor: Reader) -> HTMLResponse:
    """Show every queue."""

    def look(tx: "Tx") -> "tuple[list[Entry], list[LimitView], dict[str, list[str]]]":
        return entries(tx), overview.all_limits(tx), limits.all_holders(tx)

    found, named, holders = stores.read(look)
    found = _with_figures(found, figures)
    return render(
        request,
        "queues.html",
        title="Queues",
        command="queuectl queue list",
        entries=found,
        limits=[(each, holders.get(f"{each.kind}:{each.name}", [])) for each in named],
        most_holders=MOST_HOLDERS,
        states=SHOWN_STATES,
        named_states=[(each.value.capitalize(), "num") for each in SHOWN_STATES if each is not State.PROCESSING],
    )


@router.get("/queues/{name}")
def show_one(
    request: Request,
    name: str,
    stores: Given,
    figures: SharedFigures,
    _visitor: Reader,
    range: str = "1h",  # noqa: A002
) -> HTMLResponse:
    """Show all that is known of a queue."""
    chosen = Range.read(range)

    def look(tx: "Tx") -> "tuple[QueueView, list[Worker], int]":
        view = overview.queue(tx, name)
        if view is None:
            raise gatekeeping.unknown_queue(tx, name)
        return view, serving(tx, [name]), tx.now

    view, serve, now = stores.read(look)
    known = figures.get_all({f"stats {chosen} {name}": lambda tx: stats(tx, chosen, name), "depths": _depths})
    figure, deep = known.get(f"stats {chosen} {name}"), known.get("depths")
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
        range=chosen,
        ranges=list(Range),
        stats=None if figure is None else figure.value,
        runs_path=runs_path,
        failed=FAILED,
        other=OTHER,
        depth=() if deep is None or not isinstance(deep.value, Depths) else deep.value.waiting_in(name),
    )


def entries(tx: "Tx") -> list[Entry]:
    """Read every queue with its oldest ready job."""
    views = overview.all_queues(tx)
    oldest = overview.oldest_by_queue(tx, [view.queue.name for view in views])
    whole = [view.replace(oldest=oldest.get(view.queue.name)) for view in views]
    return [Entry(view=view, since=None if view.oldest is None else ready_since(view)) for view in whole]


def _with_figures(found: list[Entry], figures: "Figures") -> list[Entry]:
    """Add what takes long to count, as far as that was done."""
    names = [entry.view.queue.name for entry in found]

    def measure(tx: "Tx") -> "dict[str, Stats]":
        return {name: stats(tx, Range.HOUR, name) for name in names[:MOST_MEASURED]}

    known = figures.get_all({"depths": _depths, f"queue stats {','.join(names)}": measure})
    deep, measured = (known.get(name) for name in ("depths", f"queue stats {','.join(names)}"))
    by_queue: dict[str, Stats] = {} if measured is None else measured.value  # type: ignore[assignment]
    full = []
    for entry in found:
        name = entry.view.queue.name
        depth = deep.value.waiting_in(name) if deep is not None and isinstance(deep.value, Depths) else ()
        own = by_queue.get(name)
        rate = None if own is None else sum(own.total.counts.values()) / own.range.buckets
        full.append(entry.replace(depth=depth, wait=None if own is None else own.wait, per_minute=rate))
    return full


def _depths(tx: "Tx") -> Depths:
    return depths(tx, (tx.now - HOUR_MS) // MINUTE_MS * MINUTE_MS, MINUTE_MS)


def _settings(view: "QueueView") -> dict[str, str]:
    """Return what is set for a queue as the form takes it; empty where nothing is."""
    values: dict[str, str] = {
        name: "" if value is None else str(value) for name, value in queue_settings_shape(view.queue).items()
    }
    if view.queue.timeout_ms is not None:
        values["timeout"] = duration_text(view.queue.timeout_ms) if view.queue.timeout_ms else "0"
    return values
