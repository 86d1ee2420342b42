"""Claims: how a worker takes jobs. Finishing them is in moves.py."""

from queuectl.model.job import Claim, Job
from queuectl.model.states import State
from queuectl.model.value import Value
from queuectl.model.verdict import MAX_LOSSES
from queuectl.store import queues
from queuectl.store.jobs import CHUNK, COLUMNS, listed
from queuectl.store.workers import Worker, get

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from queuectl.store.database import Tx
    from queuectl.store.dialect import Row

ALONE_FROM_LOSSES = MAX_LOSSES - 1
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
_START_SQL = """
    UPDATE jobs
       SET state = 'processing', run = run + 1, worker_id = :worker_id, started_at = :now, updated_at = :now
     WHERE state = 'pending' AND seq IN ({seqs})
"""


def claim(
    tx: "Tx", worker_id: str, served: "Sequence[str] | None", wanted: int, *, is_idle: bool = True
) -> list[Claim]:
    """Take up to `wanted` ready jobs of the served queues: higher priority first, then first in, first out.

    The caller has checked in the same transaction that the worker's own row is live. A job that has lost its worker
    so often that one more loss buries it is taken alone, by a worker that runs nothing else (`is_idle`): if it is what
    kills workers, nobody dies with it. A worker that is not idle takes nothing when such a job is next, and so becomes.
    """
    lanes = queues.open_lanes(tx, served)
    taken: list[Job] = []
    shares = {lanes[0]: wanted} if len(lanes) == 1 else _shares(tx, lanes, wanted)
    while shares and len(taken) < wanted:
        fit, alone = _fitting([_heads_of(tx, lane, share) for lane, share in shares.items()])
        if alone is not None:
            taken += _start(tx, [alone], worker_id) if is_idle and not taken else []
            break
        taken += _start(tx, fit, worker_id)
        if not fit or len(lanes) == 1:
            break  # others hold what was seen; they run it or give it up with a wake
        shares = _shares(tx, lanes, wanted - len(taken)) if len(taken) < wanted else {}
    return [Claim(job=job) for job in sorted(taken, key=lambda job: (-job.priority, job.seq))]


def runs_alone(claim: Claim) -> bool:
    """Whether a worker that holds this takes nothing beside it."""
    return claim.job.losses >= ALONE_FROM_LOSSES


def held_by(tx: "Tx", worker_id: str) -> list[Claim]:
    """Return what the database says a worker holds."""
    rows = tx.rows(
        f"SELECT {COLUMNS} FROM jobs WHERE state = 'processing' AND worker_id = :worker_id",
        {"worker_id": worker_id},
    )
    return [Claim(job=Job.of_row(row)) for row in rows]


class Orphan(Value):
    """A running job whose worker is not living, with what is known of that worker."""

    claim: Claim
    worker: Worker | None


def orphans(tx: "Tx") -> list[Orphan]:
    """Return the running jobs whose worker is not living."""
    columns = ", ".join(f"j.{name}" for name in Job.FIELDS)
    rows = tx.rows(
        f"""
        SELECT {columns}
          FROM jobs j
          LEFT JOIN workers w ON w.id = j.worker_id
         WHERE j.state = 'processing' AND (w.id IS NULL OR w.state <> 'live')
        """
    )
    found = sorted((Job.of_row(row) for row in rows), key=lambda job: job.seq)
    known = {worker_id: get(tx, worker_id) for worker_id in {str(job.worker_id) for job in found}}
    return [Orphan(claim=Claim(job=job), worker=known[str(job.worker_id)]) for job in found]


def note_stuck(tx: "Tx", claim: Claim, pids: "Sequence[int]") -> str:
    """Say in the job's row why a run that was to end is not over yet; return what was said."""
    why = f"process {' '.join(map(str, pids))} cannot be ended, so the job is neither over nor run again"
    tx.changed(
        "UPDATE jobs SET error = :why WHERE state = 'processing' AND seq = :seq AND run = :run"
        " AND worker_id = :worker_id AND (error IS NULL OR error <> :why)",
        {"why": why, **claim.fence},
    )
    return why


def cancel_requests(tx: "Tx", worker_id: str) -> list[int]:
    """Return the numbers of the jobs a worker holds that somebody wants cancelled."""
    rows = tx.rows(
        "SELECT seq FROM jobs WHERE state = 'processing' AND worker_id = :worker_id AND cancel_requested = 1",
        {"worker_id": worker_id},
    )
    return [int(row[0] or 0) for row in rows]


def _heads_of(tx: "Tx", lane_id: int, wanted: int) -> list[Job]:
    rows = tx.rows(f"{_HEAD} {tx.dialect.skip_locked}", {"lane_id": lane_id, "wanted": wanted})
    return [Job.of_row(row) for row in rows]


def _start(tx: "Tx", heads: "Sequence[Job]", worker_id: str) -> list[Job]:
    for start in range(0, len(heads), CHUNK):
        names, params = listed("seq", [job.seq for job in heads[start : start + CHUNK]])
        tx.changed(_START_SQL.format(seqs=names), {**params, "worker_id": worker_id, "now": tx.now})
    changes = {"state": State.PROCESSING, "worker_id": worker_id, "started_at": tx.now, "updated_at": tx.now}
    return [job.replace(run=job.run + 1, **changes) for job in heads]


def _fitting(lanes: "Sequence[Sequence[Job]]") -> tuple[list[Job], Job | None]:
    """Return the heads up to the first that must run alone in each lane; and that one, where it is next in its lane."""
    fit: list[Job] = []
    for heads in lanes:
        if heads and heads[0].losses >= ALONE_FROM_LOSSES:
            return [], heads[0]
        for job in heads:
            if job.losses >= ALONE_FROM_LOSSES:
                break
            fit.append(job)
    return fit, None


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
