"""Doors: the addresses of the lists that hold exactly what a figure counts."""

from urllib.parse import urlencode

from queuectl.model.states import State
from queuectl.model.units import iso_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queuectl.model.stats import Span

FAILED = "failed"
"""What the address of a list of runs calls those that failed, in whatever way."""
OTHER = "other"
"""And those that neither did well nor failed."""


def runs_path(span: "Span", result: str = "", *, queue: str | None = None, error: str | None = None) -> str:
    """Return where the runs stand that ended within a span."""
    asked = {"result": result, "since": iso_text(span.since), "until": iso_text(span.until)}
    return _path("/runs", {**asked, "queue": queue, "error": error})


def ended_path(state: State, since: int) -> str:
    """Return where the jobs stand that came to such an end since a time."""
    return _path("/jobs", {"state": state.value, "ended_since": iso_text(since), "sort": "finished"})


def _path(page: str, asked: "dict[str, str | None]") -> str:
    return f"{page}?{urlencode({name: value for name, value in asked.items() if value})}"
