"""Workers: who runs jobs, how to know whether they live, and what they are told to do."""

import json

from queuectl.model.needs import Supply
from queuectl.model.value import Value, columns_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from queuectl.store.database import Tx

WORKER = "worker"
SUPERVISOR = "supervisor"
LIVE = "live"
ENDED = "ended"
LOST = "lost"
DRAIN = "drain"
NOW = "now"


class Worker(Value):
    """A worker or supervisor process; the fields are its columns."""

    id: str
    kind: str
    state: str
    supervisor_id: str | None
    pid: int
    host: str
    boot_id: str
    pid_namespace: str
    lock_path: str
    version: str
    queues: str | None
    slots: int
    stop: str | None
    beats: int
    beat_at: int
    started_at: int
    ended_at: int | None
    lease_ms: int
    restart: int = 0
    labels: str | None = None
    resources: str | None = None
    weights: str | None = None

    @property
    def queue_list(self) -> list[str] | None:
        """The queues it serves; None means all."""
        return None if self.queues is None else json.loads(self.queues)

    @property
    def weight_map(self) -> dict[str, int]:
        """The queues that share its time by weight; empty where priority alone decides."""
        return json.loads(self.weights) if self.weights else {}

    @property
    def supply(self) -> Supply:
        """What it has that jobs may need."""
        return Supply(
            labels=tuple(json.loads(self.labels)) if self.labels else (),
            resources=json.loads(self.resources) if self.resources else {},
        )


COLUMNS = columns_of(Worker)
_INSERT = f"INSERT INTO workers ({COLUMNS}) VALUES ({', '.join(f':{name}' for name in Worker.FIELDS)})"


def insert(tx: "Tx", worker: Worker) -> None:
    """Register a process that begins; its times are the database's."""
    tx.changed(_INSERT, {**worker.as_dict(), "started_at": tx.now, "beat_at": tx.now})  # type: ignore[dict-item]


def orders(tx: "Tx", worker_id: str) -> str | None:
    """Return what a living worker is told (`drain`, `now`, or an empty word); None means it was given up for dead.

    Its row cannot change before the transaction ends, so a claim or settle after this is a living worker's. On the way
    the transaction learns whether anybody watches, which saves it a question.
    """
    sql = f"SELECT stop, {tx.dialect.is_watched} FROM workers WHERE id = :id AND state = 'live' {tx.dialect.for_share}"
    row = tx.row(sql, {"id": worker_id, "now": tx.now})
    if row is None:
        return None
    tx.is_watched = bool(row[1])
    return str(row[0] or "")


def beat(tx: "Tx", worker_id: str, lease_ms: int) -> bool:
    """Count one heartbeat of a worker; False means it has been given up for dead and must stop its commands."""
    return bool(
        tx.changed(
            """
            UPDATE workers
               SET beats = beats + 1, beat_at = :now, lease_ms = :lease_ms
             WHERE id = :id AND state = 'live'
            """,
            {"id": worker_id, "now": tx.now, "lease_ms": lease_ms},
        )
    )


def end(tx: "Tx", worker_id: str) -> bool:
    """Close a worker's row for good; False means it was closed already."""
    return bool(
        tx.changed(
            "UPDATE workers SET state = 'ended', ended_at = :now WHERE id = :id AND state = 'live'",
            {"id": worker_id, "now": tx.now},
        )
    )


def give_up(tx: "Tx", worker: Worker) -> bool:
    """Close the row of a worker that is dead; False means it was closed already, or has beaten since it was read.

    It is never opened again: from now on that worker, should it live, can neither claim nor settle.
    """
    return bool(
        tx.changed(
            "UPDATE workers SET state = 'lost', ended_at = :now WHERE id = :id AND state = 'live' AND beats = :beats",
            {"id": worker.id, "now": tx.now, "beats": worker.beats},
        )
    )


def tell(tx: "Tx", ids: "Sequence[str]", stop: str, *, restart: bool = False) -> int:
    """Tell living workers to stop; `now` is never taken back to `drain`. Supervisors start over after a restart."""
    told = 0
    for worker_id in ids:
        told += tx.changed(
            """
            UPDATE workers
               SET stop = CASE WHEN stop = 'now' THEN stop ELSE :stop END, restart = :restart
             WHERE id = :id AND state = 'live'
            """,
            {"id": worker_id, "stop": stop, "restart": int(restart)},
        )
    return told


def get(tx: "Tx", worker_id: str) -> Worker | None:
    """Return a worker."""
    row = tx.row(f"SELECT {COLUMNS} FROM workers WHERE id = :id", {"id": worker_id})
    return None if row is None else Worker.of_row(row)


def live(tx: "Tx") -> list[Worker]:
    """Return the rows that say they live, oldest first; whether they do is for system/liveness.py to tell."""
    rows = tx.rows(f"SELECT {COLUMNS} FROM workers WHERE state = 'live'")
    return sorted(map(Worker.of_row, rows), key=lambda worker: (worker.started_at, worker.id))


def taking(tx: "Tx") -> list[Worker]:
    """Return the living workers that may take jobs: all but those told to stop."""
    rows = tx.rows(f"SELECT {COLUMNS} FROM workers WHERE state = 'live' AND kind = 'worker' AND stop IS NULL")
    return [Worker.of_row(row) for row in rows]


def newest(tx: "Tx", limit: int) -> list[Worker]:
    """Return workers and supervisors, also those that ended, newest first."""
    rows = tx.rows(f"SELECT {COLUMNS} FROM workers ORDER BY started_at DESC, id LIMIT :limit", {"limit": limit})
    return [Worker.of_row(row) for row in rows]


_PRUNABLE = """
      FROM workers w
     WHERE w.state <> 'live' AND w.ended_at < :before
       AND NOT EXISTS (SELECT 1 FROM jobs j WHERE j.state = 'processing' AND j.worker_id = w.id)
"""


def prune(tx: "Tx", before: int, limit: int) -> int:
    """Forget workers that ended, or were given up, before a time and that no running job names; return how many."""
    sql = f"SELECT w.id {_PRUNABLE} LIMIT :limit {tx.dialect.skip_locked}"
    rows = tx.rows(sql, {"before": before, "limit": limit})
    if not rows:
        return 0
    params = {f"id_{number}": row[0] for number, row in enumerate(rows)}
    names = ", ".join(f":{name}" for name in params)
    return tx.changed(f"DELETE FROM workers WHERE state <> 'live' AND id IN ({names})", params)


def count_prunable(tx: "Tx", before: int) -> int:
    """Return how many workers `prune` would forget."""
    row = tx.row(f"SELECT count(*) {_PRUNABLE}", {"before": before})
    return int(row[0] or 0) if row else 0


def give_up_all(tx: "Tx") -> int:
    """Close every row that says it lives, of a store that was put in another's place; return how many."""
    return tx.changed("UPDATE workers SET state = 'lost', ended_at = :now WHERE state = 'live'", {"now": tx.now})


def jobs_held(tx: "Tx") -> dict[str, list[str]]:
    """Return the ids of the running jobs by worker."""
    held: dict[str, list[str]] = {}
    rows = tx.rows("SELECT worker_id, given_id, seq FROM jobs WHERE state = 'processing'")
    for worker_id, given_id, seq in sorted(rows, key=lambda row: int(row[2] or 0)):
        held.setdefault(str(worker_id), []).append(str(given_id or seq))
    return held
