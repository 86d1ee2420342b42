"""The page of the queues."""

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from queuectl.store import overview
from queuectl.web.given import Given
from queuectl.web.templating import render
from queuectl.web.visitor import Reader

router = APIRouter()


@router.get("/queues")
def show(request: Request, stores: Given, _visitor: Reader) -> HTMLResponse:
    """Show every queue."""
    found = stores.read(overview.all_queues)
    return render(request, "queues.html", title="Queues", command="queuectl queue list", queues=found)
