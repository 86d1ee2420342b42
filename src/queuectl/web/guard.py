"""Guard: what every request passes before a handler sees it: who asks, from where, and whether they may write."""

from starlette.requests import Request

from queuectl.model.token import Role
from queuectl.system.host import user_at_host
from queuectl.web.visitor import Visitor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from queuectl.web.reach import Reach


class Guard:
    """Finds out who asks and refuses what may not be asked."""

    def __init__(self, app: "ASGIApp", *, reach: "Reach") -> None:
        self._app = app
        self._reach = reach
        self._local = Visitor(name=user_at_host(), role=Role.ADMIN)

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        if scope["type"] == "http":
            Request(scope).state.visitor = self._local
        await self._app(scope, receive, send)
