"""Edge: what every request passes first and every answer last: bounds on what is sent, HEAD, and errors unforeseen."""

import asyncio
import sys
import time
import traceback
from http import HTTPStatus

from starlette.requests import ClientDisconnect, Request

from queuectl.errors import QueuectlError
from queuectl.web.problems import BadRequest, TooLarge, TooSlow, answer_error, answer_problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

MAX_BODY_BYTES = 2_000_000
MAX_BULK_BYTES = 32_000_000
SILENCE_SECONDS = 20.0
"""How long nothing of a body may come."""
BODY_SECONDS = 600.0
"""How long all of it may take: 32 MB at 55 kB a second."""
BULK_PATH = "/api/v1/jobs/bulk"


class _Answered(Exception):
    """The head of an answer was sent, and nobody wants its body."""


class Edge:
    """Refuses what cannot be read, answers HEAD as GET without a body, and tells of errors that nobody foresaw."""

    def __init__(self, app: "ASGIApp") -> None:
        self._app = app

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        has_begun = False

        async def noting(message: "Message") -> None:
            nonlocal has_begun
            has_begun = True
            await send(message)

        out = _without_body(noting) if scope["method"] == "HEAD" else noting
        request = Request(scope)
        try:
            limit = _limit_of(request)
            _refuse_unreadable(scope)
            _refuse_large(request, limit)
            inner = {**scope, "method": "GET"} if scope["method"] == "HEAD" else scope
            await self._app(inner, _counted(receive, limit), out)
        except (_Answered, ClientDisconnect):
            pass  # nobody is there to be answered; whoever hangs up amid a body fills no log with it
        except QueuectlError as error:  # met outside of any handler
            if has_begun:
                raise
            await answer_error(request, error)(scope, receive, out)
        except Exception as error:  # this is the last place that can tell of it
            print(f"queuectl: {scope['method']} {scope['path']!r} failed", file=sys.stderr)
            traceback.print_exception(error, file=sys.stderr)
            if has_begun:
                raise
            detail = "an error inside queuectl; the log of the server says more"
            status = HTTPStatus.INTERNAL_SERVER_ERROR
            await answer_problem(request, status, detail)(scope, receive, out)


def _limit_of(request: Request) -> int:
    path = request.url.path.removeprefix(str(request.scope.get("root_path", "")))
    return MAX_BULK_BYTES if path == BULK_PATH else MAX_BODY_BYTES


def _refuse_unreadable(scope: "Scope") -> None:
    """Refuse an address that holds what no text can: no database and no file name has a NUL."""
    if "\0" in scope["path"] or b"%00" in scope.get("query_string", b""):
        raise BadRequest("the address holds a NUL character", hint="no name has one")


def _refuse_large(request: Request, limit: int) -> None:
    told = request.headers.get("content-length", "0")
    if told.isascii() and told.isdigit() and int(told[:18]) > limit:
        raise _too_large(limit)


def _too_large(limit: int) -> TooLarge:
    hint = "hand in less at a time" if limit == MAX_BULK_BYTES else "hand in many jobs by POST /api/v1/jobs/bulk"
    return TooLarge(f"the body has more than {limit:,} bytes", hint=hint)


def _counted(receive: "Receive", limit: int) -> "Receive":
    """Return what receives a body and refuses it beyond a limit, also where nobody said how long it would be.

    It has to come in time, too: else whoever sends a byte now and then would be waited for without end.
    """
    taken, is_whole = 0, False
    last = time.monotonic() + BODY_SECONDS

    async def counting() -> "Message":
        nonlocal taken, is_whole
        if is_whole:  # what comes now is that the client has gone, however late
            return await receive()
        try:
            async with asyncio.timeout(min(SILENCE_SECONDS, last - time.monotonic())):
                message = await receive()
        except TimeoutError:
            raise TooSlow("the body did not come in time", hint="send it again, at once") from None
        taken += len(message.get("body", b""))
        if taken > limit:
            raise _too_large(limit)
        is_whole = not message.get("more_body", False)
        return message

    return counting


def _without_body(send: "Send") -> "Send":
    """Return what sends the head of an answer alone; who would go on sending is stopped."""

    async def sending(message: "Message") -> None:
        if message["type"] != "http.response.body":
            await send(message)
            return
        await send({"type": "http.response.body", "body": b"", "more_body": False})
        if message.get("more_body", False):
            raise _Answered

    return sending
