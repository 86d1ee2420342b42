"""Problems: errors as RFC 9457 documents for programs and as a page for people. One of the two edges that do so."""

from http import HTTPStatus

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException

from queuectl.errors import BadInput, NotFound, QueuectlError, Refused, StoreError, WaitTimedOut

PROBLEM = "application/problem+json"
_STATUSES = (
    (BadInput, HTTPStatus.UNPROCESSABLE_ENTITY),
    (NotFound, HTTPStatus.NOT_FOUND),
    (Refused, HTTPStatus.CONFLICT),
    (WaitTimedOut, HTTPStatus.REQUEST_TIMEOUT),
    (StoreError, HTTPStatus.SERVICE_UNAVAILABLE),
)


class Forbidden(QueuectlError):
    """Something this visitor may not do."""


def add_problems(app: FastAPI) -> None:
    """Have every error answered as a problem document."""
    app.add_exception_handler(QueuectlError, _told)
    app.add_exception_handler(HTTPException, _refused)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(Exception, _broken)


def problem(status: HTTPStatus, detail: str, *, hint: str = "", headers: dict[str, str] | None = None) -> Response:
    """Return a problem document."""
    shape = {"type": "about:blank", "title": status.phrase, "status": status.value, "detail": detail}
    return JSONResponse(shape | ({"hint": hint} if hint else {}), status.value, headers, media_type=PROBLEM)


def status_of(error: QueuectlError) -> HTTPStatus:
    """Return the HTTP status of an error."""
    if isinstance(error, Forbidden):
        return HTTPStatus.FORBIDDEN
    return next((status for kind, status in _STATUSES if isinstance(error, kind)), HTTPStatus.INTERNAL_SERVER_ERROR)


async def _told(_request: Request, error: Exception) -> Response:
    assert isinstance(error, QueuectlError)
    return problem(status_of(error), error.message, hint=error.hint)


async def _refused(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return problem(HTTPStatus(error.status_code), str(error.detail), headers=dict(error.headers or {}))


async def _invalid(_request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    told = "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors())
    return problem(HTTPStatus.UNPROCESSABLE_ENTITY, told)


async def _broken(_request: Request, error: Exception) -> Response:
    return problem(HTTPStatus.INTERNAL_SERVER_ERROR, f"internal error: {type(error).__name__}")
