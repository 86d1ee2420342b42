"""Queues over REST."""

from fastapi import APIRouter

from queuectl.actions import control
from queuectl.store import overview
from queuectl.web.given import Given
from queuectl.web.visitor import Operator, Reader

router = APIRouter(prefix="/queues", tags=["queues"])


@router.get("")
def list_queues(stores: Given, _visitor: Reader) -> dict[str, object]:
    """List the queues with what is in them."""
    found = stores.read(overview.all_queues)
    return {"queues": [{"name": view.queue.name} for view in found]}


@router.post("/{name}/pause")
def pause(name: str, stores: Given, visitor: Operator) -> dict[str, object]:
    """Pause a queue."""
    return {"queue": name, "changed": control.pause_queue(stores.database, name, who=visitor.name)}
