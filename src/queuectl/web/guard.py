"""Guard: what every request passes before a handler sees it: who asks, from where, and whether they may write.

The rules and their reasons are in docs/adr/0020-who-may-do-what.md.
"""

import secrets
from http import HTTPStatus
from urllib.parse import quote, urlsplit

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from queuectl.model.token import Role
from queuectl.model.value import Value
from queuectl.system.host import user_at_host
from queuectl.web.logins import Known, Logins, TooMany, who_of
from queuectl.web.problems import answer_problem, wants_page
from queuectl.web.reach import host_of, is_local_name, is_loopback
from queuectl.web.templating import LIVE_HEADER
from queuectl.web.visitor import Visitor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from queuectl.web.reach import Reach

READS = ("GET", "HEAD", "OPTIONS")
OPEN_PATHS = ("/healthz", "/readyz", "/login")
OPEN_FOLDER = "/static/"
FOREIGN_SITES = ("cross-site", "same-site")
FORWARDED = ("forwarded", "via", "x-real-ip", "x-client-ip", "cf-connecting-ip", "true-client-ip")
FORWARDED_PREFIX = "x-forwarded-"
CHALLENGE = {"WWW-Authenticate": 'Bearer realm="queuectl"'}
BAD_TOKEN = {"WWW-Authenticate": 'Bearer realm="queuectl", error="invalid_token"'}
TOKEN_HINT = (
    "send Authorization: Bearer TOKEN, or log in with a browser; make one with: queuectl token add NAME --role read"
)

AGAIN = '<!doctype html><html lang="en"><meta http-equiv="refresh" content="0"><title>queuectl</title></html>'


class Denied(Exception):
    """A request that goes no further."""

    def __init__(
        self, status: HTTPStatus, detail: str, *, hint: str = "", headers: "Mapping[str, str] | None" = None
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.hint = hint
        self.headers = dict(headers or {})


class Arrival(Value):
    """Whoever asks, and how they were let in; nothing known means that no token was needed."""

    visitor: Visitor
    known: Known | None = None


class _Gone(Exception):
    """Whoever is being answered may not have more."""


class Guard:
    """Finds out who asks and refuses what may not be asked."""

    def __init__(self, app: "ASGIApp", *, reach: "Reach", logins: Logins) -> None:
        self._app = app
        self._reach = reach
        self._logins = logins
        self._local = Arrival(visitor=Visitor(name=user_at_host(), role=Role.ADMIN))

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        try:
            arrival = await self._admit(request)
        except Denied as denied:
            await _answer(request, denied)(scope, receive, send)
            return
        request.state.visitor = None if arrival is None else arrival.visitor
        request.state.known = known = None if arrival is None else arrival.known
        try:
            await self._app(scope, receive, send if known is None else self._while_it_stands(known, send))
        except _Gone:
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _admit(self, request: Request) -> Arrival | None:
        """Return who asks, or raise Denied; None on paths that are open to all."""
        _check_host(request, self._reach)
        _check_origin(request, self._reach)
        path = path_of(request)
        if path in OPEN_PATHS or path.startswith(OPEN_FOLDER):
            return None
        arrival = await self._arrival(request)
        session = arrival.known.session if arrival.known else None
        if session is not None and request.method not in READS:
            given = request.headers.get("x-csrf-token", "")
            if not secrets.compare_digest(given.encode(), session.csrf.encode()):
                raise Denied(
                    HTTPStatus.FORBIDDEN,
                    "the header X-CSRF-Token is missing or is not that of your session",
                    hint="load the page again; a program sends Authorization: Bearer TOKEN instead of a cookie",
                )
        return arrival

    async def _arrival(self, request: Request) -> Arrival:
        if given := request.headers.getlist("authorization"):
            return _arrived(await self._by_token(request, given))
        if session_id := request.cookies.get(cookie_of(request, self._reach)):
            address = address_of(request, self._reach)
            known = await run_in_threadpool(self._logins.by_session, session_id, address)
            if known is None:
                gone = {"Set-Cookie": dead_cookie(request, self._reach), **CHALLENGE}
                raise Denied(HTTPStatus.UNAUTHORIZED, "your session has ended", hint="log in again", headers=gone)
            return _arrived(known)
        if is_local(request, self._reach):
            return self._local
        raise Denied(HTTPStatus.UNAUTHORIZED, "this needs a token", hint=TOKEN_HINT, headers=CHALLENGE)

    async def _by_token(self, request: Request, given: list[str]) -> Known:
        scheme, _, secret = given[0].partition(" ")
        if len(given) > 1 or scheme.lower() != "bearer" or not secret.strip():
            raise Denied(
                HTTPStatus.UNAUTHORIZED, "the header Authorization has no token", hint=TOKEN_HINT, headers=CHALLENGE
            )
        try:
            known = await run_in_threadpool(self._logins.by_secret, secret.strip(), address_of(request, self._reach))
        except TooMany as many:
            raise too_many(many) from None
        if known is None:
            raise Denied(
                HTTPStatus.UNAUTHORIZED,
                "this token is not known, or was revoked, or has expired",
                hint="see: queuectl token list",
                headers=BAD_TOKEN,
            )
        return known

    def _while_it_stands(self, known: Known, send: "Send") -> "Send":
        """Return what sends an answer only while its reader is let in: a stream may outlive the token."""
        is_first = True

        async def sending(message: "Message") -> None:
            nonlocal is_first
            if message["type"] == "http.response.body" and message.get("more_body"):
                if not is_first and not await run_in_threadpool(self._logins.still_stands, known):
                    raise _Gone
                is_first = False
            await send(message)

        return sending


def path_of(request: Request) -> str:
    """Return the path that was asked for, below the root path."""
    return str(request.scope["path"]).removeprefix(str(request.scope.get("root_path", "")))


def address_of(request: Request, reach: "Reach") -> str:
    """Return where a request comes from, to be shown and counted; it gives no right to anything.

    What a proxy on this machine adds last to X-Forwarded-For is the address it was asked from.
    """
    peer = request.client.host if request.client else ""
    if reach.is_proxied and is_loopback(peer):
        told = request.headers.getlist("x-forwarded-for")
        return (told[-1].rpartition(",")[2].strip() if told else "")[:64] or peer
    return peer


def is_local(request: Request, reach: "Reach") -> bool:
    """Whether somebody on this machine asks, without anything between: then no login is needed.

    A proxy on this machine makes everybody local, so whatever looks like one counts as one.
    """
    if reach.needs_token or request.client is None or not is_loopback(request.client.host):
        return False
    names = {name.lower() for name in request.headers}
    if any(name in FORWARDED or name.startswith(FORWARDED_PREFIX) for name in names):
        return False
    host = host_of(request.headers.get("host", ""))
    return host is not None and is_local_name(host)


def is_secure(request: Request, reach: "Reach") -> bool:
    """Whether the browser sees https; a proxy says so, and who lies about it only keeps a cookie from themselves."""
    return reach.is_tls or request.headers.get("x-forwarded-proto", "").strip().lower() == "https"


def cookie_of(request: Request, reach: "Reach") -> str:
    """Return the name of the session's cookie: browsers hand cookies to every port of a host, so it has the port.

    Under https the name keeps others of the domain, and whoever answers in its place by http, from setting one for us.
    """
    server = request.scope.get("server") or ("", 0)
    prefix = ("__Secure-" if reach.root_path else "__Host-") if is_secure(request, reach) else ""
    return f"{prefix}queuectl_session_{server[1]}"


def live_cookie(request: Request, reach: "Reach", session_id: str) -> str:
    """Return the cookie of a session: no script can read it, and no other site has it sent."""
    secure = "; Secure" if is_secure(request, reach) else ""
    path = reach.root_path or "/"
    return f"{cookie_of(request, reach)}={session_id}; Path={path}; HttpOnly; SameSite=Strict{secure}"


def dead_cookie(request: Request, reach: "Reach") -> str:
    """Return what makes a browser forget the session."""
    return f"{live_cookie(request, reach, '')}; Max-Age=0"


def too_many(error: TooMany) -> Denied:
    """Return the refusal of whoever tried too often."""
    wait_s = int(error.wait_s) + 1
    return Denied(
        HTTPStatus.TOO_MANY_REQUESTS,
        "too many tokens were tried",
        hint=f"wait {wait_s} s",
        headers={"Retry-After": str(wait_s)},
    )


def _arrived(known: Known) -> Arrival:
    csrf = known.session.csrf if known.session else ""
    return Arrival(visitor=Visitor(name=who_of(known.token), role=known.token.role, csrf=csrf), known=known)


def _check_host(request: Request, reach: "Reach") -> None:
    given = request.headers.getlist("host")
    host = host_of(given[0]) if len(given) == 1 else None
    own_address = str((request.scope.get("server") or ("", 0))[0])
    if host is None or not reach.answers_to(host, own_address):
        raise Denied(
            HTTPStatus.MISDIRECTED_REQUEST,
            f"this server is not called {given[0][:100]!r}" if given else "the header Host is missing",
            hint="start it with --allow-host NAME for each name people reach it by",
        )


def _check_origin(request: Request, reach: "Reach") -> None:
    """Refuse what a page of another site makes a browser send: any write, and any read that is no visit."""
    site = request.headers.get("sec-fetch-site", "")
    is_read = request.method in READS
    is_visit = is_read and request.headers.get("sec-fetch-mode", "") == "navigate"
    if site in FOREIGN_SITES and not is_visit:
        raise Denied(HTTPStatus.FORBIDDEN, f"a page of another site asks for this ({site})")
    if is_read:
        return
    origins = request.headers.getlist("origin")
    if origins and not (len(origins) == 1 and _is_own(origins[0], request, reach)):
        raise Denied(HTTPStatus.FORBIDDEN, f"a page of {origins[0][:100]!r} may not change anything here")


def _is_own(origin: str, request: Request, reach: "Reach") -> bool:
    try:
        parts = urlsplit(origin)
        port = parts.port
    except ValueError:
        return False
    if parts.scheme not in ("http", "https") or parts.hostname is None or parts.path or parts.query or parts.username:
        return False
    if is_secure(request, reach) and parts.scheme != "https":
        return False
    default = 443 if parts.scheme == "https" else 80
    host = request.headers["host"].strip()
    told = ascii_port(host)
    return host_of(host) == parts.hostname.removesuffix(".") and (told or default) == (port or default)


def ascii_port(host: str) -> int | None:
    """Return the port of a Host header, if it has one."""
    _, colon, port = host.rpartition(":")
    return int(port) if colon and port.isascii() and port.isdigit() else None


def _answer(request: Request, denied: Denied) -> Response:
    is_page = request.method == "GET" and wants_page(request) and LIVE_HEADER not in request.headers
    if denied.status is not HTTPStatus.UNAUTHORIZED or not is_page:
        return answer_problem(request, denied.status, denied.detail, hint=denied.hint, headers=denied.headers)
    cookie = {name: value for name, value in denied.headers.items() if name == "Set-Cookie"}
    if request.headers.get("sec-fetch-site") == "cross-site":
        # Somebody followed a link from elsewhere: the cookie of the session comes with the next request alone.
        return HTMLResponse(AGAIN, headers=cookie)
    query = request.url.query
    wanted = path_of(request) + (f"?{query}" if query else "")
    base = str(request.scope.get("root_path", ""))
    return RedirectResponse(f"{base}/login?next={quote(wanted, safe='/')}", HTTPStatus.SEE_OTHER, headers=cookie)
