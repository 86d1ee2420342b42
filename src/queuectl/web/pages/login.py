"""Logging in with a token and out again. The page works without scripts, and shows nothing of the store."""

from http import HTTPStatus
from urllib.parse import parse_qs

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response
from starlette.concurrency import run_in_threadpool

from queuectl.web.given import logins_of, reach_of
from queuectl.web.guard import address_of, dead_cookie, is_local, live_cookie, too_many
from queuectl.web.logins import TooMany
from queuectl.web.problems import BadRequest, TooLarge, WrongMedia
from queuectl.web.templating import render_alone

FORM = "application/x-www-form-urlencoded"
MOST_BYTES = 16_384
MOST_FIELDS = 10

router = APIRouter()


@router.get("/login")
def show(request: Request) -> Response:
    """Show the form."""
    return _page(request, safe_next(request.query_params.get("next", "")), "")


@router.post("/login")
async def log_in(request: Request) -> Response:
    """Begin a session and go where one wanted to go; a token that is not good shows the form again."""
    form = await _form(request)
    wanted = safe_next(form.get("next", ""))
    address = address_of(request, reach_of(request))
    try:
        known = await run_in_threadpool(logins_of(request).log_in, form.get("token", "").strip(), address)
    except TooMany as many:
        denied = too_many(many)
        trouble = f"Too many tokens were tried: {denied.hint}."
        return await run_in_threadpool(_page, request, wanted, trouble, denied.status, denied.headers)
    if known is None or known.session is None:
        trouble = "This token is not known, or was revoked, or has expired."
        return await run_in_threadpool(_page, request, wanted, trouble, HTTPStatus.UNAUTHORIZED)
    cookie = live_cookie(request, reach_of(request), known.session.id)
    base = str(request.scope.get("root_path", ""))
    return RedirectResponse(base + wanted, HTTPStatus.SEE_OTHER, headers={"Set-Cookie": cookie})


@router.post("/logout")
def log_out(request: Request) -> Response:
    """End the session; for whoever has none there is nothing to end."""
    known = request.state.known
    if known is not None:
        logins_of(request).log_out(known, address_of(request, reach_of(request)))
    return Response(status_code=HTTPStatus.NO_CONTENT, headers={"Set-Cookie": dead_cookie(request, reach_of(request))})


def safe_next(wanted: str) -> str:
    """Return where to go after the login: a path of ours, never another site."""
    is_ours = wanted.startswith("/") and not wanted.startswith(("//", "/\\"))
    return wanted if is_ours and wanted.isprintable() and "\\" not in wanted else "/"


async def _form(request: Request) -> dict[str, str]:
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != FORM:
        raise WrongMedia("the login is a form", hint=f"send it as {FORM}; a program needs no login: it sends its token")
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > MOST_BYTES:
            raise TooLarge("no token is that long")
    try:
        fields = parse_qs(body.decode("utf-8", "replace"), max_num_fields=MOST_FIELDS)
    except ValueError:
        raise BadRequest("the login has two fields, token and next", hint="send no others") from None
    return {name: values[0] for name, values in fields.items()}


def _page(
    request: Request,
    wanted: str,
    trouble: str,
    status: HTTPStatus = HTTPStatus.OK,
    headers: dict[str, str] | None = None,
) -> Response:
    is_needless = is_local(request, reach_of(request))
    return render_alone(
        request, "login.html", status=status, headers=headers, wanted=wanted, trouble=trouble, is_needless=is_needless
    )
