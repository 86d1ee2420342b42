"""Named limits and mutexes over REST: how many of the jobs that name one run at once, who holds it, who waits."""

from typing import Annotated

from fastapi import APIRouter, Path, Query

from queuectl.actions import gatekeeping
from queuectl.actions.shapes import full_limit_shape, limit_set_shape, limit_shape
from queuectl.errors import BadInput
from queuectl.model.checks import check_name, check_own_name
from queuectl.model.limits import LIMIT, MAX_SLOTS, MUTEX
from queuectl.store import overview
from queuectl.web.given import Given
from queuectl.web.rest.asking import Fields, only
from queuectl.web.rest.documenting import documented, listed
from queuectl.web.visitor import Operator, Reader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queuectl.store.database import Tx

    Shape = dict[str, object]

_LIMIT = {
    "name": "api",
    "kind": "limit",
    "slots": 4,
    "held": 1,
    "waiting": 2,
    "created_at": "2026-11-16T10:00:00.000Z",
}
_HOLDER = {
    "id": "7",
    "queue": "default",
    "worker": "5f0c2f1a9b3d4e6f",
    "started_at": "2026-11-16T10:00:00.000Z",
}
_SET_BODY = {
    "type": "object",
    "additionalProperties": False,
    "required": ["slots"],
    "properties": {"slots": {"type": "integer", "minimum": 0, "maximum": MAX_SLOTS}},
}

Name = Annotated[str, Path(description="the limit")]
router = APIRouter(prefix="/limits", tags=["limits"])


@router.get("", **documented(answer=listed("limits", "limit-list"), example={"limits": [_LIMIT]}))
def list_limits(stores: Given, _visitor: Reader) -> "Shape":
    """List the limits, and the mutexes in use."""
    return {"limits": [limit_shape(view) for view in stores.read(overview.all_limits)]}


@router.get("/{name}", **documented(answer="limit-show", example={**_LIMIT, "holders": [_HOLDER], "next": ["8", "9"]}))
def show_limit(
    name: Name,
    stores: Given,
    _visitor: Reader,
    mutex: Annotated[bool, Query(description="the mutex of this name, not the limit")] = False,
) -> "Shape":
    """Show who holds a limit and who waits for it."""
    check_name("mutex" if mutex else "limit", name)

    def look(tx: "Tx") -> "Shape":
        view = overview.limit(tx, (MUTEX if mutex else LIMIT) + name)
        if view is None:
            raise gatekeeping.unknown_limit(tx, name)
        return full_limit_shape(view)

    return stores.read(look)


@router.put(
    "/{name}",
    **documented(
        answer="limit-set",
        example={"limit": "api", "slots": 4, "before": None, "released": 0},
        body=_SET_BODY,
        body_example={"slots": 4},
    ),
)
def set_limit(name: Name, fields: Fields, stores: Given, visitor: Operator) -> "Shape":
    """Make a limit, or give it another number; with 0, no job that names it starts.

    In force at once: a higher number lets waiting jobs go; a lower one stops nobody who runs.
    """
    check_own_name("limit", name)
    if "slots" not in only(fields, ["slots"]):
        raise BadInput("how many? slots is missing", hint='send {"slots": 4}')
    return limit_set_shape(gatekeeping.set_limit(stores.database, name, fields["slots"], who=visitor.name))


@router.delete(
    "/{name}", **documented(answer="limit-delete", example={"limit": "api", "deleted": True}, problems=[409])
)
def delete_limit(name: Name, stores: Given, visitor: Operator) -> "Shape":
    """Remove a limit that no job needs any more."""
    gatekeeping.delete_limit(stores.database, check_name("limit", name), who=visitor.name)
    return {"limit": name, "deleted": True}
