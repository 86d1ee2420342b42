"""Workers over REST: who lives, and how they are told to stop or to start over. They are started on their hosts."""

from typing import Annotated

from fastapi import APIRouter, Query

from queuectl.actions import control
from queuectl.actions.fleet import is_living, living, load_of, worker_shape
from queuectl.errors import BadInput, NotFound
from queuectl.store import workers
from queuectl.web.given import Given
from queuectl.web.rest.asking import Fields, flag, only
from queuectl.web.rest.documenting import documented, listed
from queuectl.web.visitor import Operator, Reader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from queuectl.store.database import Database, Tx
    from queuectl.store.workers import Worker

    Shape = dict[str, object]

ALL_LIMIT = 200
_WORKER = {
    "id": "5f0c2f1a9b3d4e6f",
    "kind": "worker",
    "state": "live",
    "pid": 4711,
    "host": "build1",
    "queues": None,
    "weights": {},
    "labels": [],
    "resources": {},
    "slots": 4,
    "jobs": ["12"],
    "heartbeat_at": "2026-11-16T10:00:05.000Z",
    "started_at": "2026-11-16T10:00:00.000Z",
    "stopping": None,
    "version": "0.1.0",
}
_TELL_BODY = {
    "type": ["object", "null"],
    "additionalProperties": False,
    "properties": {
        "ids": {
            "type": "array",
            "items": {"type": "string"},
            "minItems": 1,
            "description": "workers and supervisors; without it, all on every host",
        },
        "now": {
            "type": ["boolean", "null"],
            "description": "end the running commands and hand their jobs back, not charged",
        },
    },
}
_TOLD = {
    "type": "object",
    "additionalProperties": False,
    "required": ["told", "ids"],
    "properties": {
        "told": {"type": "integer", "minimum": 0, "description": "workers; supervisors are not counted"},
        "ids": {"type": "array", "items": {"type": "string"}, "description": "all who were told, supervisors too"},
    },
}
_TOLD_EXAMPLE = {"told": 1, "ids": ["5f0c2f1a9b3d4e6f"]}

router = APIRouter(prefix="/workers", tags=["workers"])


@router.get("", **documented(answer=listed("workers", "worker-list"), example={"workers": [_WORKER]}))
def list_workers(
    stores: Given,
    _visitor: Reader,
    all_of_them: Annotated[
        bool, Query(alias="all", description="supervisors and ended workers, too; the newest 200")
    ] = False,
) -> "Shape":
    """List the living workers."""

    def look(tx: "Tx") -> "list[Shape]":
        rows = workers.newest(tx, ALL_LIMIT) if all_of_them else living(tx)
        load = load_of(tx, rows)
        return [worker_shape(row, load, tx.dialect) for row in rows]

    return {"workers": stores.read(look)}


@router.post(
    "/stop",
    **documented(
        answer=_TOLD, example=_TOLD_EXAMPLE, body=_TELL_BODY, body_example={"ids": ["5f0c2f1a9b3d4e6f"]},
        is_body_needed=False, problems=[404],
    ),
)  # fmt: skip
def stop_workers(fields: Fields, stores: Given, visitor: Operator) -> "Shape":
    """Tell workers to stop when their jobs end, or now; a supervisor takes all of its workers with it.

    Nobody is started in their place. The answer does not wait for them: `GET /workers` shows who is left.
    """
    ids, stop = _read(fields)
    told = _chosen(stores.database, ids)
    if told:
        control.stop_workers(stores.database, [one.id for one in told], stop=stop, who=visitor.name)
    return _told_shape(told)


@router.post(
    "/restart",
    **documented(
        answer=_TOLD, example=_TOLD_EXAMPLE, body=_TELL_BODY, body_example={"now": True},
        is_body_needed=False, problems=[404],
    ),
)  # fmt: skip
def restart_workers(fields: Fields, stores: Given, visitor: Operator) -> "Shape":
    """Have supervisors replace their workers by fresh ones when their jobs end, or now, as after an upgrade.

    A worker that is named stands for its supervisor and all workers of that. The answer does not wait for them.
    """
    ids, stop = _read(fields)
    told = _crews(stores.database, ids)
    if told:
        names = [one.id for one in told]
        control.stop_workers(stores.database, names, stop=stop, who=visitor.name, restart=True)
    return _told_shape(told)


def _read(fields: "Shape") -> "tuple[list[str] | None, str]":
    """Read who is meant, None for all, and how they are to stop."""
    only(fields, ["ids", "now"])
    stop = workers.NOW if flag(fields, "now") else workers.DRAIN
    if "ids" not in fields:
        return None, stop
    ids = fields["ids"]
    if not isinstance(ids, list) or not ids or not all(isinstance(each, str) for each in ids):
        raise BadInput("ids is to be a list of the ids of workers", hint="leave it out for all workers")
    return ids, stop


def _chosen(database: "Database", ids: "Sequence[str] | None") -> "list[Worker]":
    """Return the living workers and supervisors that are meant, or raise for one that does not live."""
    rows = [one for one in database.read(workers.live) if is_living(one, database.dialect)]
    if ids is None:
        return rows
    known = {one.id: one for one in rows}
    for worker_id in ids:
        if worker_id not in known:
            raise NotFound(f"no living worker {worker_id[:40]!r}", hint="list them with: GET /api/v1/workers?all=true")
    return [known[worker_id] for worker_id in dict.fromkeys(ids)]


def _crews(database: "Database", ids: "Sequence[str] | None") -> "list[Worker]":
    """Return the supervisors that are meant, each with its workers."""
    heads = {one.id if one.kind == workers.SUPERVISOR else one.supervisor_id for one in _chosen(database, ids)}
    everybody = _chosen(database, None)
    return [one for one in everybody if one.id in heads or (one.supervisor_id and one.supervisor_id in heads)]


def _told_shape(told: "Sequence[Worker]") -> "Shape":
    return {"told": sum(one.kind == workers.WORKER for one in told), "ids": [one.id for one in told]}
