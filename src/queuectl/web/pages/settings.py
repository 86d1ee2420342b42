"""The page of the settings, and of the tokens that let others in."""

import os

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from queuectl import settings
from queuectl.model.token import Role
from queuectl.model.value import Value
from queuectl.store import config, tokens
from queuectl.web.given import Given
from queuectl.web.templating import render
from queuectl.web.visitor import Reader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from queuectl.model.token import Token
    from queuectl.store.database import Tx

router = APIRouter()


class Entry(Value):
    """A setting as a row of the page."""

    key: str
    value: str
    source: str
    default: str
    meaning: str


@router.get("/settings")
def show(request: Request, stores: Given, visitor: Reader) -> HTMLResponse:
    """Show every setting; tokens to those alone who may make and revoke them."""
    is_admin = visitor.may(Role.ADMIN)

    def look(tx: "Tx") -> "tuple[dict[str, str], list[Token] | None, int]":
        return config.stored(tx), tokens.all_tokens(tx) if is_admin else None, tx.now

    stored, known, now = stores.read(look)
    entries, problems = entries_of(stored)
    return render(
        request,
        "settings.html",
        title="Settings",
        command="queuectl config list",
        entries=entries,
        problems=problems,
        tokens=known,
        now=now,
    )


def entries_of(stored: "Mapping[str, str]") -> tuple[list[Entry], list[str]]:
    """Return every setting as this server sees it, and what is wrong with those that are stored."""
    now, sources, problems = settings.survey(stored, os.environ)
    entries = [
        Entry(
            key=key,
            value=settings.shown(key, now.value_of(key)),
            source=sources[key],
            default=settings.shown(key, one.default),
            meaning=one.meaning,
        )
        for key, one in settings.SETTINGS.items()
    ]
    return entries, [f"{problem.message}; {problem.hint}" for problem in problems]
