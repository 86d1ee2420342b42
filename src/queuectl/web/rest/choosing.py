"""Choosing: which jobs a request means, by query or by body, and the cursors that lead from page to page."""

import base64
import json
from typing import Annotated

from fastapi import Depends, Path, Query

from queuectl.actions.selection import Selection, read_filter, seq_of
from queuectl.clock import wall_ms
from queuectl.errors import BadInput, NotFound, UnknownName
from queuectl.store import jobs
from queuectl.store.listing import Key, Order, Sorting
from queuectl.web.rest.asking import only

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queuectl.model.job import Job
    from queuectl.store.database import Tx

MAX_IDS = 10_000
FILTER = ("state", "queue", "group", "tag", "text", "error", "since", "until", "ended_since")
Id = Annotated[str, Path(alias="id", description="a number, an id, or `last`", max_length=128, examples=["12"])]


def read_choice(
    id: Annotated[  # noqa: A002 - what people call it
        list[str], Query(description="only these: numbers, ids, `last`, ranges such as 3-9; repeat it for more")
    ] = [],  # noqa: B006 - never written to
    state: Annotated[
        str | None,
        Query(
            description="states, also held, parked, dependent, running; several with commas", examples=["failed,dead"]
        ),
    ] = None,
    queue: Annotated[str | None, Query(description="only this queue")] = None,
    group: Annotated[str | None, Query(description="only this group")] = None,
    tag: Annotated[list[str], Query(description="with this tag; repeated: with all of them")] = [],  # noqa: B006
    text: Annotated[str | None, Query(description="whose command holds this")] = None,
    error: Annotated[str | None, Query(description="whose error holds this")] = None,
    since: Annotated[str | None, Query(description="added since", examples=["2h"])] = None,
    until: Annotated[str | None, Query(description="added before", examples=["2026-01-31"])] = None,
    ended_since: Annotated[str | None, Query(description="came to an end since", examples=["2h"])] = None,
) -> Selection:
    """Return the jobs that a query means."""
    if len(id) > MAX_IDS:
        raise BadInput(f"{len(id)} ids; the limit is {MAX_IDS}", hint="use ranges such as 3-9, or a filter")
    wanted = read_filter(
        wall_ms(),
        state=state,
        queue=queue,
        group=group,
        tags=tag,
        text=text,
        error=error,
        since=since,
        until=until,
        ended_since=ended_since,
    )
    return Selection(names=tuple(id), wanted=wanted)


Choice = Annotated[Selection, Depends(read_choice)]


def choice_of(fields: "dict[str, object]") -> Selection:
    """Return the jobs that a body means: `ids`, or a `filter`."""
    ids, asked = fields.get("ids"), fields.get("filter")
    names = _texts("ids", [] if ids is None else ids)
    if len(names) > MAX_IDS:
        raise BadInput(f"{len(names)} ids; the limit is {MAX_IDS}", hint="use ranges such as 3-9, or a filter")
    if asked is not None and not isinstance(asked, dict):
        raise BadInput("filter is to be an object", hint='write e.g. {"filter": {"state": "dead"}}')
    given = only(asked or {}, FILTER)
    tag = given.get("tag")
    values = {name: _text(name, given[name]) for name in FILTER if name != "tag" and given.get(name) is not None}
    wanted = read_filter(
        wall_ms(),
        tags=_texts("tag", [tag] if isinstance(tag, str) else tag or []),
        state=values.get("state"),
        queue=values.get("queue"),
        group=values.get("group"),
        text=values.get("text"),
        error=values.get("error"),
        since=values.get("since"),
        until=values.get("until"),
        ended_since=values.get("ended_since"),
    )
    return Selection(names=tuple(names), wanted=wanted)


def _text(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise BadInput(f"{name} is to be text, not {json.dumps(value)[:80]}")
    return value


def _texts(name: str, value: object) -> list[str]:
    if not isinstance(value, list):
        raise BadInput(f"{name} is to be a list of texts, not {json.dumps(value)[:80]}")
    return [_text(name, each) for each in value]


def job_of(tx: "Tx", name: str) -> "Job":
    """Return the one job that is named, or raise."""
    job = jobs.get(tx, seq_of(tx, name))
    if job is None:
        raise NotFound(f"no job {name!r}", hint="it was removed just now")
    return job


def read_sorting(
    sort: Annotated[
        str, Query(description="what to list by: the newest or highest first", examples=list(Order))
    ] = "added",
    reverse: Annotated[bool, Query(description="the oldest or lowest first")] = False,
) -> Sorting:
    """Return the order that a query asks for."""
    if sort not in list(Order):
        raise UnknownName.among("order", sort, list(Order))
    return Sorting(order=Order(sort), is_reversed=reverse)


Sorted = Annotated[Sorting, Depends(read_sorting)]


def cursor_text(sorting: Sorting, key: Key) -> str:
    """Return the cursor of the page behind a job; it says which order it is of."""
    text = json.dumps([sorting.order.value, int(sorting.is_reversed), key.value, key.seq])
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def read_cursor(text: str | None, sorting: Sorting) -> Key | None:
    """Return where the page begins that a cursor leads to; one of another order is refused."""
    if text is None:
        return None
    hint = "take `next` of the page before, or leave it out for the first page"
    try:
        padded = text.encode("ascii") + b"=" * (-len(text) % 4)
        order, is_reversed, value, seq = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
    except (ValueError, TypeError, RecursionError):
        raise BadInput(f"bad cursor {text[:80]!r}", hint=hint) from None
    if not _is_number(seq) or not (value is None or _is_number(value)):
        raise BadInput(f"bad cursor {text[:80]!r}", hint=hint)
    if (order, is_reversed) != (sorting.order.value, int(sorting.is_reversed)):
        raise BadInput(f"this cursor is of a list in another order ({order!r})", hint=hint)
    return Key(value=value, seq=seq)


def _is_number(value: object) -> bool:
    return type(value) is int and abs(value) < 1 << 62
