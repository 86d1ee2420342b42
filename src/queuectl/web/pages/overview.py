"""The overview: whether things are fine, how much is done, what fails, and who works. All from the shared view."""

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from queuectl.actions.alerts import alerts
from queuectl.actions.checks.home import judge_space
from queuectl.model.job import Job
from queuectl.model.states import State
from queuectl.model.stats import Bucket, QueueFigures, Range, Span, Stats
from queuectl.model.units import HOUR_MS, MINUTE_MS
from queuectl.model.value import Value
from queuectl.model.verdict import Result
from queuectl.store import jobs
from queuectl.store.depths import Depths, depths
from queuectl.store.error_groups import failing
from queuectl.store.stats import queue_figures, stats
from queuectl.system.disk import space_of
from queuectl.web.given import SharedBoard, SharedFigures
from queuectl.web.templating import render
from queuectl.web.views.doors import FAILED, OTHER, ended_path, runs_path
from queuectl.web.visitor import Reader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeVar

    from queuectl.actions.alerts import Alert
    from queuectl.actions.connect import Target
    from queuectl.model.finding import Finding
    from queuectl.model.queue import Queue
    from queuectl.store.database import Tx
    from queuectl.store.workers import Worker
    from queuectl.web.figures import Figures
    from queuectl.web.snapshot import Board, View

    Kind = TypeVar("Kind")

TEMPLATE = "overview.html"
MOST_RUNNING = 200
MOST_FAILING = 8

router = APIRouter()


class Card(Value):
    """A number that is a door, with its last hour."""

    state: str
    name: str
    count: int | None
    path: str
    line: tuple[int, ...]
    label: str


class Line(Value):
    """A queue and how it fares."""

    queue: "Queue"
    waiting: int
    running: int
    oldest: "Job | None"
    """The job that has been ready for longest."""
    done: int | None
    """How many runs did well within the last hour; None: not counted yet."""
    done_path: str
    """Where they stand."""


class Crew(Value):
    """The workers of a host."""

    host: str
    workers: "tuple[Worker, ...]"
    used: int
    commands: "tuple[Job, ...]"

    @property
    def slots(self) -> int:
        """How many commands they may run at once."""
        return sum(worker.slots for worker in self.workers)


@router.get("/")
def show(
    request: Request,
    _visitor: Reader,
    board: SharedBoard,
    counted: SharedFigures,
    range: str = "1h",  # noqa: A002
) -> HTMLResponse:
    """Show where everything stands."""
    chosen = Range.read(range)
    view = board.current()
    known = {name: figure.value for name, figure in counted.get_all(_wanted(chosen)).items()}
    deep, hour = _one(known, "depths", Depths), _one(known, f"stats {Range.HOUR}", Stats)
    return render(
        request,
        TEMPLATE,
        title="Overview",
        command="queuectl status",
        view=view,
        found=view.found,
        alerts=_alerts(view, deep, board.target),
        cards=_cards(view, deep, hour),
        range=chosen,
        ranges=list(Range),
        stats=known.get(f"stats {chosen}"),
        runs_path=runs_path,
        failed=FAILED,
        other=OTHER,
        depths=deep,
        queues=_lines(view, _listed(known, "queues", QueueFigures)),
        failing=known.get(f"failing {chosen}"),
        crews=_crews(view, _listed(known, "running", Job)),
    )


def prepare(board: "Board", counted: "Figures") -> None:
    """Look and count as for the first who comes; what takes long to count is left to be counted."""
    board.current()
    counted.get_all(_wanted(Range.HOUR))


def _wanted(chosen: Range) -> "dict[str, Callable[[Tx], object]]":
    return {
        "running": lambda tx: jobs.newest(tx, jobs.Filter(states=(State.PROCESSING,)), MOST_RUNNING),
        "depths": lambda tx: depths(tx, (tx.now - HOUR_MS) // MINUTE_MS * MINUTE_MS, MINUTE_MS),
        f"stats {Range.HOUR}": lambda tx: stats(tx, Range.HOUR),
        f"stats {chosen}": lambda tx: stats(tx, chosen),
        "queues": queue_figures,
        f"failing {chosen}": lambda tx: failing(tx, chosen)[:MOST_FAILING],
    }


def _one(known: "dict[str, object]", name: str, kind: "type[Kind]") -> "Kind | None":
    found = known.get(name)
    assert found is None or isinstance(found, kind)
    return found


def _listed(known: "dict[str, object]", name: str, kind: "type[Kind]") -> "list[Kind]":
    found = known.get(name) or []
    assert isinstance(found, list)
    return [each for each in found if isinstance(each, kind)]


def _lines(view: "View", figures: "Sequence[QueueFigures]") -> list[Line]:
    """Return the queues: how much is in them as it is now, the rest as it was last counted."""
    found = view.found
    by_name = {each.queue: each for each in figures}
    return [
        Line(
            queue=queue,
            waiting=found.counts.get(queue.name, {}).get(State.PENDING, 0),
            running=found.counts.get(queue.name, {}).get(State.PROCESSING, 0),
            oldest=by_name[queue.name].oldest if queue.name in by_name else None,
            done=by_name[queue.name].last_hour.completed if queue.name in by_name else None,
            done_path=_done_path(by_name.get(queue.name)),
        )
        for queue in (() if found is None else found.queues)
        if found is not None
    ]


def _done_path(figures: QueueFigures | None) -> str:
    if figures is None:
        return ""
    span = Span(since=figures.last_hour.at, until=figures.last_hour.at + HOUR_MS + 1, bucket_ms=HOUR_MS)
    return runs_path(span, Result.COMPLETED.value, queue=figures.queue)


def _alerts(view: "View", deep: Depths | None, target: "Target") -> "list[Alert]":
    return [] if view.found is None else alerts(view.found, deep, _findings(target))


def _findings(target: "Target") -> "list[Finding]":
    """Judge the room on the disk that this host writes to."""
    try:
        return list(judge_space("the store", space_of(target.sqlite_path or target.home.root)))
    except OSError:
        return []  # then the store itself cannot be reached either, and that is told


def _cards(view: "View", deep: Depths | None, hour: Stats | None) -> list[Card]:
    total = {} if view.found is None else view.found.total
    ended = () if hour is None else hour.buckets
    lines: dict[State, tuple[tuple[int, ...], str]] = {
        State.PENDING: (() if deep is None else deep.all_waiting, "waiting in the last hour"),
        State.PROCESSING: (() if deep is None else deep.running, "running in the last hour"),
        State.FAILED: (_each(ended, lambda one: one.failures), "failed runs a minute in the last hour"),
        State.DEAD: (() if deep is None else deep.dead, "in the DLQ in the last hour"),
    }
    doors = [
        Card(
            state=state,
            name=state.value,
            count=total.get(state),
            path=f"/jobs?state={state}",
            line=line,
            label=f"{state}: {label}",
        )
        for state, (line, label) in lines.items()
    ]
    done = Card(
        state=State.COMPLETED,
        name="done today",
        count=None if hour is None else hour.completed_today,
        path="/jobs" if hour is None else ended_path(State.COMPLETED, hour.today_since),
        line=_each(ended, lambda one: one.completed),
        label="completed runs a minute in the last hour",
    )
    return [*doors, done]


def _each(buckets: "Sequence[Bucket]", number: "Callable[[Bucket], int]") -> tuple[int, ...]:
    return tuple(map(number, buckets))


def _crews(view: "View", running: "Sequence[Job]") -> list[Crew]:
    """Return the living workers by host, each host with its commands, the longest running first."""
    found = view.found
    by_host: dict[str, list[Worker]] = {}
    for worker in () if found is None else found.workers:
        by_host.setdefault(worker.host, []).append(worker)
    held = {} if found is None else found.load.held
    return [
        Crew(
            host=host,
            workers=tuple(workers),
            used=sum(len(held.get(worker.id, ())) for worker in workers),
            commands=tuple(
                sorted(
                    (job for job in running if job.worker_id in {worker.id for worker in workers}),
                    key=lambda job: job.started_at or 0,
                )
            ),
        )
        for host, workers in sorted(by_host.items())
    ]
