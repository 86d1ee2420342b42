"""Templating: how a page is drawn: the frame around it, and the words for numbers, times and states."""

import os

from fastapi import Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from queuectl.web.visitor import visitor_of

_ENVIRONMENT = Environment(
    loader=FileSystemLoader(os.path.join(os.path.dirname(__file__), "templates")),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


def render(
    request: Request, template: str, *, title: str, command: str, status: int = 200, **context: object
) -> HTMLResponse:
    """Draw a page; `command` is the queuectl command line that shows the same."""
    base = str(request.scope.get("root_path", ""))
    page = _ENVIRONMENT.get_template(template).render(
        base=base,
        path=request.url.path,
        title=title,
        command=command,
        visitor=visitor_of(request),
        **context,
    )
    return HTMLResponse(page, status)
