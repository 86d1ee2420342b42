"""Claims: how a worker takes jobs. Finishing them is in moves.py."""

from queuectl.model.job import Claim, Job
from queuectl.model.states import State
from queuectl.store import queues
from queuectl.store.jobs import CHUNK, COLUMNS, listed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from queuectl.store.database import Tx
    from queuectl.store.dialect import Row

LANES_AT_ONCE = 200  # SQLite takes at most 500 terms in a compound SELECT

# The claim probes the head of one lane through jobs_ready, which holds ready rows only, so its cost does not grow with
# history, future or paused jobs. Two plain statements, not UPDATE ... FROM (SELECT ...) RETURNING: on SQLite the one
# statement takes 148 us, since it builds three ephemeral tables, and the two take 35 us; on PostgreSQL the difference
# is one round trip of 70 us.
_HEAD = f"""
    SELECT {COLUMNS}
      FROM jobs
     WHERE state = 'pending' AND lane_id = :lane_id
     ORDER BY priority DESC, seq
     LIMIT :wanted
"""
_START = """
    UPDATE jobs
       SET state = 'processing', run = run + 1, worker_id = :worker_id, started_at = :now, updated_at = :now
     WHERE state = 'pending' AND seq IN ({seqs})
"""


def claim(tx: "Tx", worker_id: str, served: "Sequence[str] | None", wanted: int) -> list[Claim]:
    """Take up to `wanted` ready jobs of the served queues: higher priority first, then first in, first out.

    The caller has checked in the same transaction that the worker's own row is live.
    """
    lanes = queues.open_lanes(tx, served)
    taken: list[Job] = []
    shares = {lanes[0]: wanted} if len(lanes) == 1 else _shares(tx, lanes, wanted)
    while shares and len(taken) < wanted:
        before = len(taken)
        for lane, share in shares.items():
            taken += _claim_lane(tx, lane, worker_id, share)
        if len(taken) == before or len(lanes) == 1:
            break  # others hold what was seen; they run it or give it up with a wake
        shares = _shares(tx, lanes, wanted - len(taken)) if len(taken) < wanted else {}
    return [Claim(job=job) for job in sorted(taken, key=lambda job: (-job.priority, job.seq))]


def held_by(tx: "Tx", worker_id: str) -> list[Claim]:
    """Return what the database says a worker holds."""
    rows = tx.rows(
        f"SELECT {COLUMNS} FROM jobs WHERE state = 'processing' AND worker_id = :worker_id",
        {"worker_id": worker_id},
    )
    return [Claim(job=Job.of_row(row)) for row in rows]


def without_worker(tx: "Tx") -> list[tuple[Claim, str]]:
    """Return the running jobs whose worker is not living, each with the host it ran on (empty: not known)."""
    columns = ", ".join(f"j.{name}" for name in Job.FIELDS)
    rows = tx.rows(
        f"""
        SELECT COALESCE(w.host, ''), {columns}
          FROM jobs j
          LEFT JOIN workers w ON w.id = j.worker_id
         WHERE j.state = 'processing' AND (w.id IS NULL OR w.state <> 'live')
        """
    )
    return [(Claim(job=Job.of_row(row[1:])), str(row[0])) for row in rows]


def cancel_requests(tx: "Tx", worker_id: str) -> list[int]:
    """Return the numbers of the jobs a worker holds that somebody wants cancelled."""
    rows = tx.rows(
        "SELECT seq FROM jobs WHERE state = 'processing' AND worker_id = :worker_id AND cancel_requested = 1",
        {"worker_id": worker_id},
    )
    return [int(row[0] or 0) for row in rows]


def _claim_lane(tx: "Tx", lane_id: int, worker_id: str, wanted: int) -> list[Job]:
    rows = tx.rows(f"{_HEAD} {tx.dialect.skip_locked}", {"lane_id": lane_id, "wanted": wanted})
    heads = [Job.of_row(row) for row in rows]
    for start in range(0, len(heads), CHUNK):
        names, params = listed("seq", [job.seq for job in heads[start : start + CHUNK]])
        tx.changed(_START.format(seqs=names), {**params, "worker_id": worker_id, "now": tx.now})
    changes = {"state": State.PROCESSING, "worker_id": worker_id, "started_at": tx.now, "updated_at": tx.now}
    return [job.replace(run=job.run + 1, **changes) for job in heads]


def _shares(tx: "Tx", lanes: "Sequence[int]", wanted: int) -> dict[int, int]:
    """Return how many of the best `wanted` jobs stand in each lane; takes no locks, so it never keeps others out."""
    if wanted < 1:
        return {}
    heads: list[Row] = []
    for start in range(0, len(lanes), LANES_AT_ONCE):
        heads += _heads(tx, lanes[start : start + LANES_AT_ONCE], wanted)
    shares: dict[int, int] = {}
    for lane, _, _ in sorted(heads, key=lambda row: (-int(row[1] or 0), int(row[2] or 0)))[:wanted]:
        shares[int(lane or 0)] = shares.get(int(lane or 0), 0) + 1
    return shares


def _heads(tx: "Tx", lanes: "Sequence[int]", wanted: int) -> "list[Row]":
    sql = " UNION ALL ".join(
        f"""
        SELECT * FROM (
            SELECT lane_id, priority, seq FROM jobs WHERE state = 'pending' AND lane_id = :lane_{number}
             ORDER BY priority DESC, seq LIMIT :wanted) AS lane_{number}
        """
        for number in range(len(lanes))
    )
    params = {f"lane_{number}": lane for number, lane in enumerate(lanes)}
    return tx.rows(f"{sql} ORDER BY priority DESC, seq LIMIT :wanted", {**params, "wanted": wanted})
