"""Where everything stands, over REST, and what is wrong with the store or this host."""

from typing import Annotated

from fastapi import APIRouter, Query

from queuectl.actions.snapshot import look, status_shape
from queuectl.model.token import Role
from queuectl.web.given import Given, SharedExaminations
from queuectl.web.problems import Forbidden
from queuectl.web.rest.documenting import documented, listed
from queuectl.web.visitor import Reader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queuectl.store.database import Tx

    Shape = dict[str, object]

_COUNTS = {
    "pending": 3,
    "scheduled": 0,
    "blocked": 0,
    "processing": 1,
    "completed": 40,
    "failed": 0,
    "dead": 0,
    "cancelled": 0,
}
_STATUS = {
    "jobs": _COUNTS,
    "queues": [{"queue": "default", "paused": False, **_COUNTS}],
    "workers": [],
    "unservable": [],
    "groups": [],
}
_FINDING = {"check": "workers", "level": "warning", "what": "no worker is running", "mend": "queuectl worker start -d"}

router = APIRouter(tags=["status"])


@router.get("/status", **documented(answer="status", example=_STATUS))
def show_status(stores: Given, _visitor: Reader) -> "Shape":
    """Count jobs by state and queue, and list the living workers."""

    def read(tx: "Tx") -> "Shape":
        return status_shape(look(tx), tx.dialect)

    return stores.read(read)


@router.get("/doctor", **documented(answer=listed("findings", "doctor"), example={"findings": [_FINDING]}))
def list_findings(
    examinations: SharedExaminations,
    visitor: Reader,
    deep: Annotated[
        bool, Query(description="read the whole SQLite file, however long that takes; needs the role operate")
    ] = False,
) -> "Shape":
    """Look at the store and at the host of this server, and say what is wrong and how to mend it.

    Whoever asks while another's look is under way is told what that one finds.
    """
    if deep and not visitor.may(Role.OPERATE):
        raise Forbidden(f"a deep look needs the role operate; yours is {visitor.role}", hint="leave out deep")
    return {"findings": [finding.shape for finding in examinations.look(is_deep=deep).findings]}
