"""Dead jobs over REST: listing them, what they died of, giving them a fresh life, and removing them for good."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query

from queuectl.actions import control, error_groups
from queuectl.actions.acts import refuse_more
from queuectl.actions.selection import read_filter, seq_of
from queuectl.actions.shapes import canary_shape, done_shape
from queuectl.clock import wall_ms
from queuectl.errors import BadInput
from queuectl.model.shapes import job_shape
from queuectl.model.states import State
from queuectl.model.stats import Range
from queuectl.model.statshapes import error_group_shape
from queuectl.store import error_groups as grouping
from queuectl.store import jobs, listing
from queuectl.store.jobs import Filter
from queuectl.store.listing import Order, Sorting
from queuectl.web.given import Given
from queuectl.web.rest import jobexamples as examples
from queuectl.web.rest.asking import Fields, flag, only
from queuectl.web.rest.choosing import FILTER, choice_of, cursor_text, read_cursor
from queuectl.web.rest.documenting import documented, listed, ref
from queuectl.web.rest.jobacts import read_most
from queuectl.web.rest.masking import seen_by
from queuectl.web.visitor import Admin, Operator, Reader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from queuectl.store.database import Tx
    from queuectl.web.stores import Stores

    Shape = dict[str, object]

DEFAULT_LIMIT = 50
MAX_LIMIT = 1000
SORTING = Sorting(order=Order.FINISHED)
WANTED = tuple(name for name in FILTER if name != "state")
_GROUP = {
    "error": "exit code 127",
    "means": "the command was not found",
    "count": 12,
    "first_at": "2026-11-15T10:00:00.000Z",
    "last_at": "2026-11-16T10:00:00.000Z",
    "queues": {"mail": 12},
    "samples": ["812", "640"],
    "texts": 1,
    "text": "exit code 127",
    "since": "2026-11-15T10:30:00.000Z",
    "bucket_seconds": 1800,
    "deaths": [0, 3, 9],
}
_DEAD = {**examples.LISTED, "state": "dead"}
_ACTED = {"id": "812", "was": "dead", "result": "pending with a fresh life"}
_TEXT = {"type": "string"}
_BODY = {
    "type": ["object", "null"],
    "additionalProperties": False,
    "properties": {
        "ids": {"type": "array", "items": _TEXT, "minItems": 1, "description": "numbers or ids; all or none"},
        **{name: {"type": ["string", "null"]} for name in WANTED if name not in ("tag", "error")},
        "tag": {"type": ["string", "array", "null"], "items": _TEXT},
        "error": {"type": ["string", "null"], "description": "the `error` of a group, else a text that errors hold"},
        "all": {"type": ["boolean", "null"], "description": "every dead job"},
        "dry_run": {"type": ["boolean", "null"], "description": "count them, and do nothing"},
        "max": {"type": ["integer", "null"], "minimum": 0, "description": "refuse when more jobs than this are meant"},
    },
}
_RETRY_BODY = {
    **_BODY,
    "properties": {
        **_BODY["properties"],  # type: ignore[dict-item]
        "canary": {
            "type": ["boolean", "null"],
            "description": "only the one that died last, to see whether the cause is gone",
        },
    },
}
_COUNTED = {
    "type": "object",
    "properties": {"count": {"type": "integer", "minimum": 0}},
    "required": ["count"],
    "additionalProperties": False,
}
_EACH = listed("jobs", ref("acted"))
_TRIED = {
    "type": "object",
    "properties": {"canary": ref("acted"), "rest": {"type": "integer", "minimum": 0}},
    "required": ["canary", "rest"],
    "additionalProperties": False,
}

router = APIRouter(prefix="/dlq", tags=["dlq"])


def read_wanted(
    queue: Annotated[str | None, Query(description="only this queue")] = None,
    group: Annotated[str | None, Query(description="only this group")] = None,
    tag: Annotated[list[str], Query(description="with this tag; repeated: with all of them")] = [],  # noqa: B006
    text: Annotated[str | None, Query(description="whose command holds this")] = None,
    error: Annotated[
        str | None, Query(description="of this error, as a group is named, else whose error holds this")
    ] = None,
    since: Annotated[str | None, Query(description="added since", examples=["2h"])] = None,
    until: Annotated[str | None, Query(description="added before", examples=["2026-01-31"])] = None,
    ended_since: Annotated[str | None, Query(description="died since", examples=["2h"])] = None,
) -> Filter:
    """Return which dead jobs a query means."""
    return read_filter(
        wall_ms(),
        states=(State.DEAD,),
        queue=queue,
        group=group,
        tags=tag,
        text=text,
        error=error,
        since=since,
        until=until,
        ended_since=ended_since,
    )


Wanted = Annotated[Filter, Depends(read_wanted)]


@router.get("", **documented(answer=listed("jobs", "dlq-list", is_paged=True), example={"jobs": [_DEAD], "next": None}))
def list_dead(
    stores: Given,
    visitor: Reader,
    wanted: Wanted,
    limit: Annotated[int, Query(ge=1, le=MAX_LIMIT, description="at most so many")] = DEFAULT_LIMIT,
    cursor: Annotated[str | None, Query(description="`next` of the page before", max_length=500)] = None,
) -> "Shape":
    """List dead jobs, the latest death first."""
    after = read_cursor(cursor, SORTING)
    found = stores.read(
        lambda tx: listing.page(tx, grouping.meant(tx, wanted), SORTING, limit + 1, after),
    )
    is_more = len(found) > limit
    return {
        "jobs": [seen_by(visitor, job_shape(job)) for job in found[:limit]],
        "next": cursor_text(SORTING, SORTING.key_of(found[limit - 1])) if is_more else None,
    }


@router.get("/groups", **documented(answer=listed("groups", "dlq-groups"), example={"groups": [_GROUP]}))
def list_dead_groups(
    stores: Given,
    _visitor: Reader,
    wanted: Wanted,
    range_: Annotated[
        str, Query(alias="range", description="deaths over time: 1h, 24h or 7d", examples=["24h"])
    ] = Range.DAY.value,
) -> "Shape":
    """Say what dead jobs died of: those whose errors say the same, together, the largest group first."""
    over = Range.read(range_)

    found = stores.read(lambda tx: grouping.groups_meant(tx, wanted, over))
    return {"groups": [error_group_shape(each) for each in found]}


@router.post(
    "/retry",
    **documented(
        answer={"anyOf": [_EACH, _COUNTED, _TRIED]},
        example={"canary": _ACTED, "rest": 11},
        body=_RETRY_BODY,
        body_example={"error": "exit code 23", "canary": True},
        problems=[404, 409],
    ),
)
def retry_dead(fields: Fields, stores: Given, visitor: Operator) -> "Shape":
    """Give dead jobs a fresh life: by ids, all that match, or with `canary` the one of them that died last.

    Answers what became of each job named (`jobs`), how many got one (`count`), or the one that is tried and how many
    are left (`canary`, `rest`).
    """
    ids, wanted, is_trial = _read(only(fields, ["ids", *WANTED, "all", "dry_run", "max", "canary"]))
    is_canary = flag(fields, "canary")
    if ids and is_canary:
        raise BadInput("give either ids or canary, not both")
    if is_trial:
        return _counted(stores, ids, wanted)
    most = read_most(fields)
    if ids:
        refuse_more(len(ids), most)
        done = control.revive_dead(stores.database, ids, who=visitor.name)
        return {"jobs": [done_shape(each) for each in done]}
    if is_canary:
        return canary_shape(error_groups.canary(stores.database, wanted, who=visitor.name, most=most))
    return {"count": error_groups.retry(stores.database, wanted, who=visitor.name, most=most)}


@router.post(
    "/purge",
    **documented(
        answer={"anyOf": [_EACH, _COUNTED]},
        example={"count": 12},
        body=_BODY,
        body_example={"error": "exit code 23"},
        problems=[404, 409],
    ),
)
def purge_dead(fields: Fields, stores: Given, visitor: Admin) -> "Shape":
    """Remove dead jobs for good, with their history: by ids, or all that match."""
    ids, wanted, is_trial = _read(only(fields, ["ids", *WANTED, "all", "dry_run", "max"]))
    if is_trial:
        return _counted(stores, ids, wanted)
    most = read_most(fields)
    if ids:
        refuse_more(len(ids), most)
        done = control.purge_some_dead(stores.database, ids, who=visitor.name)
        return {"jobs": [done_shape(each) for each in done]}
    return {"count": error_groups.purge(stores.database, wanted, who=visitor.name, most=most)}


def _read(fields: "Shape") -> tuple[list[str], Filter, bool]:
    """Read which dead jobs a body means: those named, or those that match; who says neither must say `all`."""
    asked = {name: fields[name] for name in WANTED if fields.get(name) is not None}
    if "ids" in fields and fields["ids"] is None:
        raise BadInput("ids is to be a list of texts, not null", hint='leave it out; "all": true means every dead job')
    chosen = choice_of({"filter": asked, **({"ids": fields["ids"]} if "ids" in fields else {})})
    is_all, is_named, is_narrow = flag(fields, "all"), bool(chosen.names), bool(asked)
    if "ids" in fields and not chosen.names:
        raise BadInput("which jobs? ids is empty")
    if is_named and (is_narrow or is_all):
        raise BadInput("give either ids or a filter, not both")
    if not (is_named or is_narrow or is_all):
        raise BadInput("which jobs?", hint='give ids, a filter such as "error" or "queue", or "all": true')
    return list(chosen.names), chosen.wanted.replace(states=(State.DEAD,)), flag(fields, "dry_run")


def _counted(stores: "Stores", ids: "Sequence[str]", wanted: Filter) -> "Shape":
    """Say how many dead jobs are meant."""

    def look(tx: "Tx") -> int:
        if not ids:
            return error_groups.count(tx, wanted)
        found = jobs.by_seqs(tx, sorted({seq_of(tx, name) for name in ids}))
        return sum(job.state is State.DEAD for job in found)

    return {"count": stores.read(look)}
