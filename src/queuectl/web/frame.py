"""Frame: what stands around every page: where one can go, how much is there, and whether the store can be reached."""

import asyncio

from queuectl.model.states import State
from queuectl.model.value import Value
from queuectl.web.given import board_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fastapi import Request

    from queuectl.web.snapshot import View


class Entry(Value):
    """One line of the navigation."""

    path: str
    name: str
    is_here: bool
    count: int | None = None
    unit: str = ""
    is_alarm: bool = False


class Frame(Value):
    """What the frame shows."""

    entries: tuple[Entry, ...]
    version: int
    at: int
    trouble: str

    @property
    def is_reachable(self) -> bool:
        """Whether the store could be read."""
        return not self.trouble

    @property
    def workers(self) -> int | None:
        """How many workers live; None where that is not known."""
        return next((each.count for each in self.entries if each.path == "/workers"), None)


def frame_of(request: "Request") -> Frame:
    """Return the frame of a page that is asked for."""
    view = _view_of(request)
    path = request.url.path.removeprefix(str(request.scope.get("root_path", ""))) or "/"
    return Frame(entries=_entries(view, path), version=view.version, at=view.at, trouble=view.trouble)


def _view_of(request: "Request") -> "View":
    """Return what was so before the page read anything (livepages.py); else what is so now."""
    found: View | None = getattr(request.state, "view", None)
    if found is not None:
        return found
    board = board_of(request)
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return board.current()
    return board.latest  # drawn in the thread of the server itself, which must not wait


def _entries(view: "View", path: str) -> tuple[Entry, ...]:
    counts = _counts(view)
    first = next((each for each in _PLACES[1:] if path == each[0] or path.startswith(f"{each[0]}/")), _PLACES[0])
    here = first[0] if first[0] != "/" or path == "/" else ""
    return tuple(
        Entry(
            path=place,
            name=name,
            is_here=place == here,
            count=counts.get(place),
            unit=unit,
            is_alarm=place == "/dlq" and bool(counts.get(place)),
        )
        for place, name, unit in _PLACES
    )


def _counts(view: "View") -> dict[str, int]:
    found = view.found
    if found is None:
        return {}
    total = found.total
    return {
        "/jobs": sum(total.values()),
        "/dlq": total[State.DEAD],
        "/queues": len(found.queues),
        "/schedules": view.schedules,
        "/workers": len(found.workers),
    }


_PLACES = (
    ("/", "Overview", ""),
    ("/jobs", "Jobs", "jobs"),
    ("/dlq", "DLQ", "dead"),
    ("/queues", "Queues", "queues"),
    ("/schedules", "Schedules", "schedules"),
    ("/workers", "Workers", "living workers"),
    ("/audit", "Audit", ""),
    ("/settings", "Settings", ""),
    ("/health", "Health", ""),
)
