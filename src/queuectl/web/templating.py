"""Templating: how a page is drawn: its template, in the frame of all pages."""

import os

from fastapi import Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from queuectl.model.token import Role
from queuectl.web.frame import frame_of
from queuectl.web.visitor import visitor_of
from queuectl.web.words import FILTERS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

LIVE_HEADER = "x-live"
"""Sent by a page that asks for itself again (live.js)."""

_ENVIRONMENT = Environment(
    loader=FileSystemLoader(os.path.join(os.path.dirname(__file__), "templates")),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_ENVIRONMENT.filters.update(FILTERS)
_ENVIRONMENT.globals["Role"] = Role


def prepare(*templates: str) -> None:
    """Compile templates now, so that the first who asks for such a page need not wait for that."""
    for template in templates:
        _ENVIRONMENT.get_template(template)


def render(
    request: Request, template: str, *, title: str, command: str, status: int = 200, **context: object
) -> HTMLResponse:
    """Draw a page; `command` is the queuectl command line that shows the same, empty where the page says it itself."""
    visitor = visitor_of(request)
    if LIVE_HEADER in request.headers:
        visitor = visitor.replace(name="", csrf="")  # this answer is shared by all of a role (livepages.py)
    page = _ENVIRONMENT.get_template(template).render(
        base=str(request.scope.get("root_path", "")),
        path=request.url.path,
        title=title,
        command=command,
        visitor=visitor,
        frame=frame_of(request),
        **context,
    )
    return HTMLResponse(page, status, {"Cache-Control": "no-store"})


def render_alone(
    request: Request, template: str, *, status: int, headers: "Mapping[str, str] | None" = None, **context: object
) -> HTMLResponse:
    """Draw a page without the frame, for those of whom nothing is known: it says nothing of the store."""
    base = str(request.scope.get("root_path", ""))
    return HTMLResponse(_ENVIRONMENT.get_template(template).render(base=base, **context), status, headers)
