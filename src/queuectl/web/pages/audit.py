"""The page of the audit trail: who did what, when, to how many."""

import re
from urllib.parse import quote, urlencode

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from queuectl.clock import wall_ms
from queuectl.errors import BadInput
from queuectl.model.checks import as_whole
from queuectl.model.units import past_ms
from queuectl.model.value import Value
from queuectl.store import audit
from queuectl.web.given import Given
from queuectl.web.templating import render
from queuectl.web.visitor import Reader

PAGE = 100
ACTIONS = (
    "enqueue", "cancel", "retry", "edit", "delete", "hold", "release", "dlq", "queue", "limit", "schedule",
    "worker", "config", "token", "import", "prune", "backup", "restore",
)  # fmt: skip
_NUMBER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")

router = APIRouter()


class Link(Value):
    """A part of what an act was done to, and where it leads; an empty address leads nowhere."""

    text: str
    href: str = ""


@router.get("/audit")
def show(
    request: Request,
    stores: Given,
    _visitor: Reader,
    who: str = "",
    action: str = "",
    since: str = "",
    before: str = "",
) -> HTMLResponse:
    """Show the acts, newest first."""
    wrong = ""
    try:
        since_ms = past_ms(since, wall_ms()) if since.strip() else None
        before_id = as_whole("before", before, 1, audit.MAX_ID) if before else None
    except BadInput as error:
        since_ms, before_id, wrong = None, None, f"{error.message}: {error.hint}"
    found = stores.read(
        lambda tx: audit.newest(
            tx, PAGE + 1, who=who or None, action=action.strip() or None, since=since_ms, before=before_id
        )
    )
    acts, more = found[:PAGE], len(found) > PAGE
    asked = {name: value for name, value in (("who", who), ("action", action), ("since", since)) if value}
    return render(
        request,
        "audit.html",
        title="Audit",
        command=_command(asked),
        acts=[(act, links_of(act)) for act in acts],
        actions=ACTIONS,
        who=who,
        action=action,
        since=since,
        wrong=wrong,
        is_first=before_id is None,
        is_asked=bool(asked),
        first=f"?{urlencode(asked)}" if asked else "",
        next=f"?{urlencode({**asked, 'before': acts[-1].id})}" if more else "",
    )


def links_of(act: audit.Act) -> list[Link]:
    """Return what an act was done to, with links to what of it has a page."""
    target, kind = act.target or "", act.action.partition(" ")[0]
    if kind in ("queue", "schedule", "limit"):
        return _named(target, kind)
    if kind == "config":
        key = target.partition("=")[0]
        return [Link(text=target, href=f"/settings#{quote(key)}")]
    if kind in ("worker", "token"):
        return [Link(text=target, href="/workers" if kind == "worker" else "/settings#tokens")]
    if kind in ("dlq", "enqueue", "cancel", "retry", "edit", "hold", "release"):
        return _jobs(target)
    return [Link(text=target)] if target else []


def _named(target: str, kind: str) -> list[Link]:
    """Link the names at the beginning; what follows them says what was done."""
    match = re.match(r"([A-Za-z0-9._,-]+)(.*)", target, re.DOTALL)
    if match is None or kind == "limit":
        return [Link(text=target, href="/queues#limits" if kind == "limit" else "")]
    names = match[1].split(",")
    links = [Link(text=name, href=f"/{kind}s/{quote(name)}") for name in names if name]
    return [*links, Link(text=match[2].strip())] if match[2].strip() else links


def _jobs(target: str) -> list[Link]:
    """Link ids; spans, filters and words stay text."""
    ids, blank, rest = target.partition(" ")
    words = ids.split(",")
    if not all(_NUMBER.fullmatch(word) for word in words) or ids == "all":
        return [Link(text=target)] if target else []
    links = [Link(text=word, href="" if _is_span(word) else f"/jobs/{quote(word)}") for word in words]
    return [*links, Link(text=rest)] if blank else links


def _is_span(word: str) -> bool:
    return re.fullmatch(r"\d+-\d+", word) is not None


def _command(asked: "dict[str, str]") -> str:
    import shlex

    return " ".join(["queuectl audit", *(f"--{name} {shlex.quote(value)}" for name, value in asked.items())])
