"""The audit trail over REST: who did what, newest first."""

from typing import Annotated

from fastapi import APIRouter, Query

from queuectl.actions.shapes import act_shape
from queuectl.clock import wall_ms
from queuectl.errors import BadInput
from queuectl.model.units import PAST_HELP, past_ms
from queuectl.store import audit
from queuectl.web.given import Given
from queuectl.web.rest.documenting import documented, listed
from queuectl.web.visitor import Reader

TYPE_CHECKING = False
if TYPE_CHECKING:
    Shape = dict[str, object]

DEFAULT_LIMIT = 50
MAX_LIMIT = 1000
_ACT = {
    "id": 17,
    "at": "2026-11-16T10:00:00.000Z",
    "who": "alice@build1",
    "action": "queue pause",
    "target": "mail",
    "count": 1,
}

router = APIRouter(prefix="/audit", tags=["audit"])


@router.get("", **documented(answer=listed("acts", "audit", is_paged=True), example={"acts": [_ACT], "next": "17"}))
def list_acts(
    stores: Given,
    _visitor: Reader,
    who: Annotated[str | None, Query(description="only acts of people whose name holds this text")] = None,
    action: Annotated[str | None, Query(description="only these acts: cancel, `dlq retry`, or the first word")] = None,
    since: Annotated[str | None, Query(description=f"only acts since: {PAST_HELP}")] = None,
    limit: Annotated[int, Query(ge=1, le=MAX_LIMIT, description="at most so many")] = DEFAULT_LIMIT,
    cursor: Annotated[str | None, Query(description="`next` of the page before")] = None,
) -> "Shape":
    """List who did what, newest first."""
    after = None if since is None else past_ms(since, wall_ms())
    before = None if cursor is None else _number(cursor)
    found = stores.read(lambda tx: audit.newest(tx, limit + 1, who=who, action=action, since=after, before=before))
    acts = [act_shape(act) for act in found[:limit]]
    return {"acts": acts, "next": str(found[limit - 1].id) if len(found) > limit else None}


def _number(cursor: str) -> int:
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) < 19):
        raise BadInput(f"bad cursor {cursor[:40]!r}", hint="hand back `next` of the page before, as it is")
    return int(cursor)
