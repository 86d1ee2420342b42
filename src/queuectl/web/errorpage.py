"""The page of an error: what went wrong and what to do, in the frame of all pages where that can be drawn."""

from html import escape

from fastapi import Request
from fastapi.responses import HTMLResponse

from queuectl.web.templating import render

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from http import HTTPStatus

    from fastapi.responses import Response


def draw_error(
    request: Request,
    status: "HTTPStatus",
    title: str,
    detail: str,
    *,
    hint: str = "",
    headers: "Mapping[str, str] | None" = None,
) -> "Response":
    """Draw the page of an error; one that was met before it was known who asks has no frame."""
    if getattr(request.state, "visitor", None) is None:
        page: Response = HTMLResponse(_bare(title, detail, hint), status.value)
    else:
        page = render(
            request,
            "error.html",
            title=title,
            command="queuectl doctor" if status.value >= 500 else "queuectl help",
            status=status.value,
            code=status.value,
            detail=detail,
            hint=hint,
        )
    page.headers.update(headers or {})
    return page


def _bare(title: str, detail: str, hint: str) -> str:
    told = f"<p>{escape(hint)}</p>" if hint else ""
    head = f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(title)}</title>'
    return f"{head}<h1>{escape(title)}</h1><p>{escape(detail)}</p>{told}"
