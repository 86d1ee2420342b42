"""The page of the settings, and of the tokens that let others in."""

import os

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from queuectl import settings
from queuectl.model.value import Value
from queuectl.store import config
from queuectl.web.given import Given
from queuectl.web.templating import render
from queuectl.web.visitor import Reader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

router = APIRouter()


class Entry(Value):
    """A setting as a row of the page."""

    key: str
    value: str
    source: str
    default: str
    meaning: str


@router.get("/settings")
def show(request: Request, stores: Given, _visitor: Reader) -> HTMLResponse:
    """Show every setting."""
    entries, problems = entries_of(stores.read(config.stored))
    return render(
        request,
        "settings.html",
        title="Settings",
        command="queuectl config list",
        entries=entries,
        problems=problems,
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
