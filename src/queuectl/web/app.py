"""App: puts the parts of the web face together around one store."""

import asyncio
import os
from contextlib import asynccontextmanager

from fastapi import Depends, FastAPI
from starlette.staticfiles import StaticFiles

from queuectl import __version__
from queuectl.web import metrics, probes, templating
from queuectl.web.edge import Edge
from queuectl.web.examining import Examinations
from queuectl.web.figures import Figures
from queuectl.web.guard import Guard
from queuectl.web.livepages import LivePages
from queuectl.web.logins import Logins
from queuectl.web.metrics import add_metrics
from queuectl.web.openapi import add_openapi, operation_id
from queuectl.web.pages import audit as audit_page
from queuectl.web.pages import dlq as dlq_page
from queuectl.web.pages import health as health_page
from queuectl.web.pages import job as job_page
from queuectl.web.pages import jobs as jobs_page
from queuectl.web.pages import login as login_page
from queuectl.web.pages import newjob as newjob_page
from queuectl.web.pages import overview as overview_page
from queuectl.web.pages import queues as queues_page
from queuectl.web.pages import runs as runs_page
from queuectl.web.pages import schedules as schedules_page
from queuectl.web.pages import settings as settings_page
from queuectl.web.pages import workers as workers_page
from queuectl.web.problems import add_problems
from queuectl.web.reach import Reach
from queuectl.web.rest import (
    audit,
    dlq,
    events,
    groups,
    jobacts,
    jobs,
    limits,
    output,
    queues,
    schedules,
    settings,
    stats,
    status,
    tokens,
    workers,
)
from queuectl.web.rest.asking import only_known_queries
from queuectl.web.shield import Shield
from queuectl.web.snapshot import Board
from queuectl.web.stores import Stores

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from queuectl.actions.connect import Target

STATIC = os.path.join(os.path.dirname(__file__), "static")
API = "/api/v1"
REST = (
    jobs,
    jobacts,
    output,
    groups,
    events,
    queues,
    limits,
    workers,
    schedules,
    settings,
    audit,
    status,
    tokens,
    dlq,
    stats,
)
PAGES = (
    overview_page,
    jobs_page,
    login_page,
    newjob_page,
    job_page,
    dlq_page,
    queues_page,
    runs_page,
    workers_page,
    schedules_page,
    settings_page,
    audit_page,
    health_page,
)


def warm_up(app: FastAPI) -> None:
    """Do what the first who comes would wait for: by far most begin with one of two pages."""
    templating.prepare(overview_page.TEMPLATE, jobs_page.TEMPLATE)
    overview_page.prepare(app.state.board, app.state.figures)


def make_app(target: "Target", reach: Reach | None = None) -> FastAPI:
    """Return the whole web face of a store, as it is reached."""
    stores = Stores(target)
    board = Board(target)
    figures = Figures(board)

    @asynccontextmanager
    async def life(_app: FastAPI) -> "AsyncIterator[None]":
        yield
        figures.close()
        board.close()
        stores.close()

    app = FastAPI(
        title="queuectl",
        version=__version__,
        lifespan=life,
        docs_url=None,
        redoc_url=None,
        generate_unique_id_function=operation_id,
        redirect_slashes=False,
    )
    app.state.stores = stores
    app.state.board = board
    app.state.figures = figures
    app.state.examinations = Examinations(target)
    app.state.reach = reach = reach or Reach()
    app.state.logins = logins = Logins(stores)
    app.state.closing = asyncio.Event()
    app.add_middleware(LivePages)
    app.add_middleware(Guard, reach=reach, logins=logins)
    app.add_middleware(Edge)
    app.add_middleware(Shield, reach=reach)  # the last one added is the first one passed
    add_metrics(app, stores, board)
    add_problems(app)
    add_openapi(app)
    for module in REST:
        app.include_router(module.router, prefix=API, dependencies=[Depends(only_known_queries)])
    app.include_router(schedules.instants, prefix=API, dependencies=[Depends(only_known_queries)])
    for module in PAGES:
        app.include_router(module.router, include_in_schema=False)
    for module in (metrics, probes):
        app.include_router(module.router, include_in_schema=False)
    app.mount("/static", StaticFiles(directory=STATIC), name="static")
    return app
