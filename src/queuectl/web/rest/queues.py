"""Queues over REST: what is in them, what is set for them, and whether they hand out jobs."""

from typing import Annotated

from fastapi import APIRouter, Path

from queuectl.actions import control, gatekeeping
from queuectl.actions.liveness import serving
from queuectl.actions.shapes import full_queue_shape, queue_set_shape, queue_shape
from queuectl.model.checks import check_name
from queuectl.store import overview
from queuectl.web.given import Given
from queuectl.web.rest.asking import Fields, only
from queuectl.web.rest.documenting import documented, listed
from queuectl.web.visitor import Operator, Reader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queuectl.store.database import Tx

    Shape = dict[str, object]

SETTINGS = ("concurrency", "rate", "timeout", "max_retries", "priority")
_SET_BODY = {
    "type": "object",
    "additionalProperties": False,
    "minProperties": 1,
    "properties": {
        "concurrency": {"type": ["integer", "null"], "minimum": 1, "maximum": 1_000_000},
        "rate": {"type": ["string", "null"], "examples": ["10/m"]},
        "timeout": {"type": ["string", "number", "null"], "description": "seconds, or as in `5m`"},
        "max_retries": {"type": ["integer", "null"], "minimum": 0},
        "priority": {"type": ["integer", "null"]},
    },
}
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
_SET = {"concurrency": 4, "rate": "10/m", "timeout": 300.0, "max_retries": None, "priority": None}
_QUEUE = {
    "queue": "mail",
    "paused_at": None,
    "created_at": "2026-11-16T10:00:00.000Z",
    **_SET,
    "next_start_at": None,
    **_COUNTS,
}
_FULL = {
    **_QUEUE,
    "oldest_ready": {"id": "12", "since": "2026-11-16T10:00:00.000Z", "seconds": 2.5},
    "workers": ["5f0c2f1a9b3d4e6f"],
    "lanes": [{"needs": [], "use": {}, "ready": 3, "workers": 1}],
}

Name = Annotated[str, Path(description="the queue")]
router = APIRouter(prefix="/queues", tags=["queues"])


@router.get("", **documented(answer=listed("queues", "queue-list"), example={"queues": [_QUEUE]}))
def list_queues(stores: Given, _visitor: Reader) -> "Shape":
    """List the queues with what is in them."""
    return {"queues": [queue_shape(view) for view in stores.read(overview.all_queues)]}


@router.get("/{name}", **documented(answer="queue-show", example=_FULL))
def show_queue(name: Name, stores: Given, _visitor: Reader) -> "Shape":
    """Show all that is known of a queue."""
    check_name("queue", name)

    def look(tx: "Tx") -> "Shape":
        view = overview.queue(tx, name)
        if view is None:
            raise gatekeeping.unknown_queue(tx, name)
        return full_queue_shape(view, serving(tx, [name]), tx.now)

    return stores.read(look)


@router.patch(
    "/{name}",
    **documented(
        answer="queue-set",
        example={"queue": "mail", "created": False, "changes": {"concurrency": {"from": None, "to": 4}}, **_SET},
        body=_SET_BODY,
        body_example={"concurrency": 4, "rate": "10/m"},
    ),
)
def set_queue(name: Name, fields: Fields, stores: Given, visitor: Operator) -> "Shape":
    """Limit a queue, and say what its jobs get; makes it if it is new.

    What is not named stays; null takes a setting back. Concurrency and rate are in force at once. Timeout, retries and
    priority are given to a job when it is added.
    """
    check_name("queue", name)
    return queue_set_shape(gatekeeping.set_queue(stores.database, name, only(fields, SETTINGS), who=visitor.name))


@router.post(
    "/{name}/pause", **documented(answer="queue-pause", example={"queue": "mail", "paused": True, "changed": True})
)
def pause_queue(name: Name, stores: Given, visitor: Operator) -> "Shape":
    """Hand out no more jobs of a queue; running ones go on. Makes it if it is new."""
    changed = control.pause_queue(stores.database, check_name("queue", name), who=visitor.name)
    return {"queue": name, "paused": True, "changed": changed}


@router.post(
    "/{name}/resume", **documented(answer="queue-resume", example={"queue": "mail", "paused": False, "changed": True})
)
def resume_queue(name: Name, stores: Given, visitor: Operator) -> "Shape":
    """Hand out jobs of a queue again."""
    changed = control.resume_queue(stores.database, check_name("queue", name), who=visitor.name)
    return {"queue": name, "paused": False, "changed": changed}


@router.delete(
    "/{name}", **documented(answer="queue-delete", example={"queue": "mail", "deleted": True}, problems=[409])
)
def delete_queue(name: Name, stores: Given, visitor: Operator) -> "Shape":
    """Remove a queue that holds no job, with what was set for it."""
    gatekeeping.delete_queue(stores.database, check_name("queue", name), who=visitor.name)
    return {"queue": name, "deleted": True}
