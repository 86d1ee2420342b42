"""Live pages: a page that asks for itself again is drawn once per version of the store, however many have it open."""

import asyncio

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from queuectl.web.given import board_of
from queuectl.web.templating import LIVE_HEADER
from queuectl.web.visitor import visitor_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    Key = tuple[str, bytes, str]
    Drawn = list[Message]

FRESH = "fresh"
"""What a page says that has just done something itself: it is not answered with what others have seen."""
MOST_PAGES = 256
MOST_BYTES = 32 << 20
NO_PAGES = ("/api/", "/static/", "/metrics")
"""What may be a stream, or is large."""


class LivePages:
    """Shares the pages drawn of one version among those of a role that have them open. Stands behind the guard."""

    def __init__(self, app: "ASGIApp") -> None:
        self._app = app
        self._version = 0
        self._bytes = 0
        self._pages: dict[Key, asyncio.Future[Drawn | None]] = {}

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        if scope["type"] != "http" or not _is_page(request := Request(scope)):
            await self._app(scope, receive, send)
            return
        # Looked at before the page reads anything: what changes while it is drawn has a later version than it tells.
        request.state.view = view = await run_in_threadpool(board_of(request).current)
        if request.headers.get(LIVE_HEADER, FRESH) == FRESH:
            await self._app(scope, receive, send)
            return
        key = (scope["path"], scope["query_string"], str(visitor_of(request).role))
        waiting = self._page_of(view.version, key)
        drawn = await self._draw(scope, receive, key) if waiting is None else await asyncio.shield(waiting)
        if drawn is None:  # it broke for whoever drew it; here it may not
            await self._app(scope, receive, send)
            return
        for message in drawn:
            await send(message)

    def _page_of(self, version: int, key: "Key") -> "asyncio.Future[Drawn | None] | None":
        if version > self._version or len(self._pages) >= MOST_PAGES or self._bytes > MOST_BYTES:
            self._version = max(version, self._version)
            self._bytes = 0
            self._pages = {}
        return self._pages.get(key)

    async def _draw(self, scope: "Scope", receive: "Receive", key: "Key") -> "Drawn":
        """Draw a page for all who ask for it."""
        shared: asyncio.Future[Drawn | None] = asyncio.get_running_loop().create_future()
        self._pages[key] = shared
        messages: Drawn = []

        async def keep(message: "Message") -> None:
            messages.append(message)

        is_whole = False
        try:
            await self._app(scope, receive, keep)
            is_whole = True
            self._bytes += sum(len(message.get("body", b"")) for message in messages)
            return messages
        finally:
            shared.set_result(messages if is_whole else None)


def _is_page(request: Request) -> bool:
    path = request.scope["path"].removeprefix(str(request.scope.get("root_path", "")))
    if getattr(request.state, "visitor", None) is None:
        return False  # nobody is known on the pages that are open to all
    is_asked = "text/html" in request.headers.get("accept", "") and not path.startswith(NO_PAGES)
    return request.method == "GET" and is_asked
