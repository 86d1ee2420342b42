"""The runs behind a figure: which ended when, by what came of them, in which queue, of which error."""

import re
from urllib.parse import urlencode

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from queuectl.clock import wall_ms
from queuectl.errors import BadInput, UnknownName
from queuectl.model.checks import check_name
from queuectl.model.units import past_ms
from queuectl.model.value import Value
from queuectl.model.verdict import FAILURES, Result
from queuectl.store import runs
from queuectl.web.given import Given, SharedFigures
from queuectl.web.templating import render
from queuectl.web.views.address import check_names
from queuectl.web.views.doors import FAILED, OTHER
from queuectl.web.views.timeline import end_words, kind_of
from queuectl.web.visitor import Reader

PAGE = 100
DEFAULT_SINCE = "1h"
FAR = 1 << 62
NAMES: dict[str, tuple[Result, ...]] = {
    "": tuple(Result),
    FAILED: FAILURES,
    OTHER: tuple(each for each in Result if each is not Result.COMPLETED and each not in FAILURES),
    **{each.value: (each,) for each in Result if each is not Result.FAILED},
}
_PLACE = re.compile(r"(\d{1,18})\.(\d{1,18})\.(\d{1,18})", re.ASCII)

router = APIRouter()


class Asked(Value):
    """What the address says."""

    given: dict[str, str]
    wanted: runs.Ended
    after: tuple[int, int, int] | None

    @property
    def name(self) -> str:
        """What tells the runs that are meant from others."""
        return urlencode(self.given)


@router.get("/runs")
def show(
    request: Request,
    stores: Given,
    figures: SharedFigures,
    _visitor: Reader,
    result: str = "",
    since: str = "",
    until: str = "",
    queue: str = "",
    error: str = "",
    after: str = "",
) -> HTMLResponse:
    """Show the runs that ended, the latest first."""
    given = {"result": result, "since": since, "until": until, "queue": queue, "error": error}
    check_names(request.query_params, (*given, "after"))
    given = {name: value for name, value in given.items() if value.strip()}
    asked = read_asked(given, wall_ms(), after)
    found = stores.read(lambda tx: runs.page(tx, asked.wanted, PAGE + 1, asked.after))
    shown, has_more = found[:PAGE], len(found) > PAGE
    return render(
        request,
        "runs.html",
        title="Runs",
        command="",
        shown=[(each, end_words(each.attempt), kind_of(each.attempt)) for each in shown],
        total=len(shown) if asked.after is None and not has_more else _count(figures, asked),
        filters=list(given.items()),
        is_first=asked.after is None,
        first=f"?{urlencode(given)}",
        next=f"?{urlencode({**given, 'after': _text(shown[-1])})}" if has_more else "",
    )


def read_asked(given: dict[str, str], now: int, after: str) -> Asked:
    """Read an address, or raise."""
    result = given.get("result", "")
    if result not in NAMES:
        raise UnknownName.among("result", result, [name for name in NAMES if name])
    place = _PLACE.fullmatch(after)
    if after and place is None:
        raise BadInput(f"bad place {after[:80]!r} in the list", hint="begin again with the first page")
    wanted = runs.Ended(
        results=NAMES[result],
        since=past_ms(given.get("since", DEFAULT_SINCE), now),
        until=past_ms(given["until"], now) if "until" in given else FAR,
        queue=check_name("queue", given["queue"]) if "queue" in given else None,
        error=given.get("error"),
    )
    return Asked(given=given, wanted=wanted, after=None if place is None else _numbers(place))


def _numbers(place: "re.Match[str]") -> tuple[int, int, int]:
    return int(place[1]), int(place[2]), int(place[3])


def _text(run: runs.Run) -> str:
    return ".".join(map(str, run.place))


def _count(figures: SharedFigures, asked: Asked) -> int | None:
    """Return how many are meant, as it was last counted; None: not yet."""
    figure = figures.get(f"runs {asked.name}", lambda tx: runs.count(tx, read_asked(asked.given, tx.now, "").wanted))
    return figure.value if figure is not None and isinstance(figure.value, int) else None
