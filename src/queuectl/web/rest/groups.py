"""Groups over REST: where each of the newest stands, and where one does."""

from typing import Annotated

from fastapi import APIRouter, Path, Query
from fastapi.responses import JSONResponse

from queuectl.actions.regroup import refuse_unknown_group
from queuectl.actions.shapes import group_shape
from queuectl.errors import NotFound
from queuectl.store import group_views, groups
from queuectl.web.given import Given
from queuectl.web.rest.documenting import documented, listed
from queuectl.web.rest.jobexamples import GROUP
from queuectl.web.visitor import Reader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queuectl.store.database import Tx

    Shape = dict[str, object]

DEFAULT_LIMIT = 50
MAX_LIMIT = 500

router = APIRouter(prefix="/groups", tags=["groups"])


@router.get("", **documented(answer=listed("groups", "group"), example={"groups": [GROUP]}))
def list_groups(
    stores: Given,
    _visitor: Reader,
    limit: Annotated[int, Query(ge=1, le=MAX_LIMIT, description="at most so many")] = DEFAULT_LIMIT,
) -> JSONResponse:
    """List the newest groups with where each stands, as `queuectl status --groups` does."""

    def look(tx: "Tx") -> "list[Shape]":
        views = [group_views.view(tx, name) for name in groups.names(tx, limit)]
        return [group_shape(view) for view in views if view is not None]

    return JSONResponse({"groups": stores.read(look)})


@router.get("/{name}", **documented(answer="group", example=GROUP))
def get_group(
    name: Annotated[str, Path(description="the group", max_length=128, examples=["nightly"])],
    stores: Given,
    _visitor: Reader,
) -> JSONResponse:
    """Show where a group stands: how many of its jobs ended how, and what failed."""

    def look(tx: "Tx") -> "Shape":
        refuse_unknown_group(tx, name)
        view = group_views.view(tx, name)
        if view is None:
            raise NotFound(f"no group {name!r}", hint="it was removed just now")
        return group_shape(view)

    return JSONResponse(stores.read(look))
