"""Shield: the outermost part: what a browser may do with an answer, and paths put below the root path."""

from starlette.datastructures import MutableHeaders

TYPE_CHECKING = False
if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from queuectl.web.reach import Reach

POLICY = "; ".join(
    (
        "default-src 'self'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "object-src 'none'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    )
)
ALWAYS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
TRANSPORT = "max-age=31536000"
STATIC = "/static/"


class Shield:
    """Puts the root path before every path, and what keeps browsers safe on every answer."""

    def __init__(self, app: "ASGIApp", *, reach: "Reach") -> None:
        self._app = app
        self._root = reach.root_path
        self._always = ALWAYS | ({"Strict-Transport-Security": TRANSPORT} if reach.is_tls else {})

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        rest = _rest(scope["path"], self._root)
        raw = scope.get("raw_path") or scope["path"].encode()
        inner = {
            **scope,
            "path": self._root + rest,
            "raw_path": self._root.encode() + _rest(raw.decode("latin-1"), self._root).encode("latin-1"),
            "root_path": self._root,
        }
        # An upgrade must not leave old scripts behind, so a browser asks whether what it has is still so.
        caching = "no-cache" if rest.startswith(STATIC) else "no-store"

        async def sending(message: "Message") -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(self._always)
                headers["Cache-Control"] = caching
            await send(message)

        await self._app(inner, receive, sending)


def _rest(path: str, root: str) -> str:
    """Return a path without the root path, which some proxies take off and others leave on."""
    if root and (path == root or path.startswith(f"{root}/")):
        return path[len(root) :] or "/"
    return path
