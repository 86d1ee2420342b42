"""The page of the store's health: what it is, how large, how well, and what `queuectl doctor` finds."""

import os
import platform

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from queuectl import __version__, clock
from queuectl.model.finding import Level
from queuectl.model.value import Value
from queuectl.store import health, migrate
from queuectl.system.disk import size_of, space_of
from queuectl.web.given import Given, board_of, examinations_of
from queuectl.web.templating import LIVE_HEADER, render
from queuectl.web.visitor import Reader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queuectl.actions.connect import Target
    from queuectl.store.database import Tx
    from queuectl.system.disk import Space
    from queuectl.web.stores import Stores

KEPT_S = 60.0
AGAIN_S = 3.0
"""Whoever asks to check now gets what was found so shortly before: many may ask at once."""
_ORDER = {Level.ERROR: 0, Level.WARNING: 1, Level.OK: 2}
_STARTED_S = clock.boot_s()

router = APIRouter()


class Facts(Value):
    """What the store is and how it does."""

    kind: str
    where: str
    version: str
    schema: int
    size_bytes: int
    free_bytes: int | None
    """Room inside a SQLite file."""
    wal_bytes: int | None
    journal: str
    room: "health.Room | None"
    dead: "health.DeadRows | None"
    disk: "Space"


@router.get("/health")
def show(request: Request, stores: Given, _visitor: Reader, check: str = "") -> HTMLResponse:
    """Show how the store does; a page that only follows changes examines nothing."""
    is_following = LIVE_HEADER in request.headers
    within_s = float("inf") if is_following else AGAIN_S if check else KEPT_S
    examined = examinations_of(request).look(within_s=within_s)
    found = sorted(examined.findings, key=lambda one: _ORDER[one.level])
    return render(
        request,
        "health.html",
        title="Health",
        command="queuectl doctor -v",
        facts=facts_of(stores),
        found=found,
        bad=[one for one in found if one.level is not Level.OK],
        at=examined.at_ms,
        versions=(("queuectl", __version__), ("Python", platform.python_version()), ("schema", str(migrate.LATEST))),
        up_ms=int((clock.boot_s() - _STARTED_S) * 1000),
        viewers=board_of(request).viewers,
    )


def facts_of(stores: "Stores") -> Facts:
    """Read what the store says of itself."""
    path = stores.target.sqlite_path
    if path is None:
        return stores.read(lambda tx: _postgres_facts(tx, stores.target))
    return stores.read(lambda tx: _sqlite_facts(tx, path))


def _sqlite_facts(tx: "Tx", path: str) -> Facts:
    pages = health.pages(tx)
    return Facts(
        kind="SQLite",
        where=path,
        version=health.sqlite_version(tx),
        schema=tx.dialect.schema_version(),
        size_bytes=pages.size * pages.count,
        free_bytes=pages.free_bytes,
        wal_bytes=size_of(f"{path}-wal"),
        journal=pages.journal_mode,
        room=None,
        dead=None,
        disk=space_of(os.path.dirname(path)),
    )


def _postgres_facts(tx: "Tx", target: "Target") -> Facts:
    return Facts(
        kind="PostgreSQL",
        where=tx.dialect.address,
        version=health.server_version(tx),
        schema=tx.dialect.schema_version(),
        size_bytes=health.database_bytes(tx),
        free_bytes=None,
        wal_bytes=None,
        journal="",
        room=health.room(tx),
        dead=health.dead_rows(tx),
        disk=space_of(target.home.root),
    )
