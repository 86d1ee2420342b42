"""Problems: errors as RFC 9457 documents for programs and as a page for people. One of the two edges that do so."""

import json
from http import HTTPStatus

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException
from starlette.routing import Match

from queuectl.errors import BadInput, NotFound, QueuectlError, Refused, StoreBusy, StoreError, WaitTimedOut
from queuectl.model.checks import shown_value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

PROBLEM = "application/problem+json"
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
RETRY_AFTER_S = 5
RETRY_BUSY_AFTER_S = 1


class Forbidden(QueuectlError):
    """Something this visitor may not do."""


class BadRequest(QueuectlError):
    """A request that cannot be read: broken JSON, an address no text can be."""


class TooLarge(QueuectlError):
    """A body of more bytes than are taken."""


class TooSlow(QueuectlError):
    """A body that does not come in time."""


class WrongMedia(QueuectlError):
    """A body of another kind than the one that is read here."""


class BadRange(QueuectlError):
    """A part was asked for that is not there."""

    def __init__(self, message: str, *, size: int) -> None:
        super().__init__(message, hint="ask without a Range for all of it")
        self.size = size


class Crowded(QueuectlError):
    """Too many of these are under way already."""


_STATUSES = (
    (Forbidden, HTTPStatus.FORBIDDEN),
    (BadRequest, HTTPStatus.BAD_REQUEST),
    (TooLarge, HTTPStatus.REQUEST_ENTITY_TOO_LARGE),
    (TooSlow, HTTPStatus.REQUEST_TIMEOUT),
    (WrongMedia, HTTPStatus.UNSUPPORTED_MEDIA_TYPE),
    (BadRange, HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE),
    (Crowded, HTTPStatus.SERVICE_UNAVAILABLE),
    (BadInput, HTTPStatus.UNPROCESSABLE_ENTITY),
    (NotFound, HTTPStatus.NOT_FOUND),
    (Refused, HTTPStatus.CONFLICT),
    (WaitTimedOut, HTTPStatus.REQUEST_TIMEOUT),
    (StoreError, HTTPStatus.SERVICE_UNAVAILABLE),
)
# As the registry has them by now; Python learns of them one version after the other.
_TITLES = {
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "Content Too Large",
    HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE: "Range Not Satisfiable",
    HTTPStatus.UNPROCESSABLE_ENTITY: "Unprocessable Content",
}


def add_problems(app: FastAPI) -> None:
    """Have every error that is expected answered as a problem; those that are not are the edge's."""
    app.add_exception_handler(QueuectlError, _told)
    app.add_exception_handler(HTTPException, _refused)
    app.add_exception_handler(RequestValidationError, _invalid)


def problem(status: HTTPStatus, detail: str, *, hint: str = "", headers: "Mapping[str, str] | None" = None) -> Response:
    """Return a problem document."""
    shape = {"type": "about:blank", "title": title_of(status), "status": status.value, "detail": detail}
    text = json.dumps(shape | ({"hint": hint} if hint else {}))  # in ASCII: what was sent may be no text at all
    return Response(text, status.value, None if headers is None else dict(headers), media_type=PROBLEM)


def answer_problem(
    request: Request, status: HTTPStatus, detail: str, *, hint: str = "", headers: "Mapping[str, str] | None" = None
) -> Response:
    """Return a problem as whoever asks can read it: a page for a browser that asks for one, else a document."""
    if not wants_page(request):
        return problem(status, detail, hint=hint, headers=headers)
    from queuectl.web.errorpage import draw_error

    return draw_error(request, status, title_of(status), detail, hint=hint, headers=headers)


def wants_page(request: Request) -> bool:
    """Whether a person asks with a browser, and not a program."""
    path = request.url.path.removeprefix(str(request.scope.get("root_path", "")))
    return "text/html" in request.headers.get("accept", "") and path != "/api" and not path.startswith("/api/")


def title_of(status: HTTPStatus) -> str:
    """Return what a status is called."""
    return _TITLES.get(status, status.phrase)


def status_of(error: QueuectlError) -> HTTPStatus:
    """Return the HTTP status of an error."""
    return next((status for kind, status in _STATUSES if isinstance(error, kind)), HTTPStatus.INTERNAL_SERVER_ERROR)


def answer_error(request: Request, error: QueuectlError) -> Response:
    """Return the answer to a request that met an error; what the store is and where, strangers are not told."""
    told, hint = error.message, error.hint
    if isinstance(error, StoreError) and _is_stranger(request):
        told, hint = "the store cannot be used just now", "on the host of the server, see: queuectl doctor"
    return answer_problem(request, status_of(error), told, hint=hint, headers=_headers_of(error))


def _is_stranger(request: Request) -> bool:
    """Whether nothing is known of who asks, from elsewhere: before a login, or on what is open to all."""
    from queuectl.web.guard import is_local

    return getattr(request.state, "visitor", None) is None and not is_local(request, request.app.state.reach)


def _headers_of(error: QueuectlError) -> "dict[str, str] | None":
    if isinstance(error, BadRange):
        return {"Content-Range": f"bytes */{error.size}"}
    if isinstance(error, StoreBusy):
        return {"Retry-After": str(RETRY_BUSY_AFTER_S)}
    if isinstance(error, StoreError | Crowded):
        return {"Retry-After": str(RETRY_AFTER_S)}
    return None


async def _told(request: Request, error: Exception) -> Response:
    assert isinstance(error, QueuectlError)
    return answer_error(request, error)


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    status, headers = HTTPStatus(error.status_code), dict(error.headers or {})
    path = request.url.path
    if status is HTTPStatus.METHOD_NOT_ALLOWED:
        allowed = ", ".join(_allowed(request))
        return answer_problem(
            request, status, f"{request.method} is not for {path}", hint=f"try: {allowed}", headers={"Allow": allowed}
        )
    if status is HTTPStatus.NOT_FOUND and error.detail == status.phrase:
        hint = "what there is: /openapi.json" if path.startswith("/api") else ""
        return answer_problem(request, status, f"there is nothing at {path}", hint=hint, headers=headers)
    return answer_problem(request, status, str(error.detail), headers=headers)


def _allowed(request: Request) -> list[str]:
    """Return the methods of a path: of all that is served there, not of the first part alone."""
    found = []
    for method in METHODS:
        scope = {**request.scope, "method": method}
        scope.pop("route", None)
        if any(route.matches(scope)[0] is Match.FULL for route in request.app.router.routes):
            found.append(method)
    return [*found, "HEAD"] if "GET" in found else found


async def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    return answer_problem(request, HTTPStatus.UNPROCESSABLE_ENTITY, "; ".join(map(_said, error.errors())))


def _said(wrong: "Mapping[str, Any]") -> str:
    """Return what is wrong with a parameter, and with which value, in the words of all other errors."""
    name = ".".join(str(part) for part in wrong["loc"][1:])
    _, should, rest = str(wrong["msg"]).partition(" should ")
    if not should:
        return f"{name}: {wrong['msg']}"
    return f"{name} must {rest.partition(',')[0]}, not {shown_value(wrong['input'])}"
