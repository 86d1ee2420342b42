"""Probes: what whoever looks after the server asks: does it answer, and could it do anything. Open without login."""

from contextlib import closing

from fastapi import APIRouter

from queuectl.actions.connect import look_at
from queuectl.errors import StoreUnreachable
from queuectl.store import migrate
from queuectl.web.given import Given

router = APIRouter()


@router.get("/healthz")
async def is_alive() -> dict[str, str]:
    """Say that the process answers; the store is not asked."""
    return {"status": "ok"}


@router.get("/readyz")
def is_ready(stores: Given) -> dict[str, object]:
    """Say that the store can be opened and has the schema of this program; else 503 with the reason.

    It is opened anew each time: a connection that is open already would not notice a file that is gone.
    """
    database = look_at(stores.target)
    if database is None:
        raise StoreUnreachable(f"no database at {stores.target.sqlite_path}", hint="any queuectl command makes one")
    with closing(database):
        version = database.read(lambda tx: tx.dialect.schema_version())
    migrate.check(version)
    return {"status": "ready", "schema": version}
