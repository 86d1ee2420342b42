"""Events over REST: a stream that says when something changed, for dashboards and for whoever else waits."""

import asyncio
import json
from typing import Annotated

from fastapi import APIRouter, Header, Request
from fastapi.responses import StreamingResponse

from queuectl.model.shapes import counts_shape
from queuectl.web.crowd import Crowd
from queuectl.web.given import board_of, closing_of
from queuectl.web.rest.following import Stream
from queuectl.web.visitor import Reader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from queuectl.web.snapshot import Board, View

BEAT_S = 15.0
RETRY_MS = 2000
MOST = 1000
MOST_EACH = 250
"""Each is an open connection, and there are only so many."""

EXAMPLE = 'id: 7\nevent: change\ndata: {"version": 7, "store": "ok", "jobs": {"pending": 3}}\n\n'
router = APIRouter(prefix="/events", tags=["events"])
watchers = Crowd()


@router.get(
    "",
    response_class=StreamingResponse,
    responses={
        200: {
            "description": "The stream",
            "content": {"text/event-stream": {"schema": {"type": "string"}, "example": EXAMPLE}},
        }
    },
)
async def stream(
    request: Request,
    visitor: Reader,
    last_event_id: Annotated[str, Header(description="The last event that was seen")] = "",
) -> StreamingResponse:
    """Tell when something in the store changed: an event `change` with the new version and the counts by state.

    The first one comes at once, unless it was seen already. A `beat` every 15 seconds says that the stream is alive.
    """
    watchers.refuse_more(visitor.name, "streams of events are open", most=MOST, each=MOST_EACH)
    told = _events(board_of(request), closing_of(request), last_event_id, visitor.name)
    return Stream(told, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})


async def _events(board: "Board", closing: asyncio.Event, seen: str, who: str) -> "AsyncIterator[str]":
    loop = asyncio.get_running_loop()
    news = asyncio.Event()

    def tell(_view: "View") -> None:
        loop.call_soon_threadsafe(news.set)

    async def end() -> None:
        await closing.wait()
        news.set()

    ending = loop.create_task(end())
    try:
        with watchers.place(who), board.watch(tell):  # counted when it begins: a client may leave before that
            yield f"retry: {RETRY_MS}\n\n"
            while not closing.is_set():
                news.clear()
                view = board.latest
                if view.taken and seen != str(view.version):
                    seen = str(view.version)
                    yield change_text(view)
                try:
                    async with asyncio.timeout(BEAT_S):
                        await news.wait()
                except TimeoutError:
                    yield ": beat\nevent: beat\ndata: {}\n\n"
    finally:
        ending.cancel()


def change_text(view: "View") -> str:
    """Write an event that says what is so now."""
    shape = {
        "version": view.version,
        "store": "unreachable" if view.trouble else "ok",
        "jobs": None if view.found is None else counts_shape(view.found.total),
    }
    return f"id: {view.version}\nevent: change\ndata: {json.dumps(shape)}\n\n"
