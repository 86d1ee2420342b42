"""Plain claims: taking the next jobs of a lane where nothing but their order decides. All others are in claims.py."""

from functools import cache

from queuectl.model.job import Job
from queuectl.model.verdict import ALONE_FROM_LOSSES, MAX_LOSSES
from queuectl.store.jobs import CHUNK, COLUMNS, listed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from queuectl.store.database import Tx
    from queuectl.store.dialect import SqlValue

_NO_LANE = 0

# The claim probes the head of one lane through jobs_ready, which holds ready rows only, so its cost does not grow with
# history, future or paused jobs. On SQLite two plain statements, not UPDATE ... FROM (SELECT ...) RETURNING: the one
# statement takes 148 us, since it builds three ephemeral tables, and the two take 35 us.
HEAD = """
    SELECT {columns}
      FROM jobs
     WHERE state = 'pending' AND lane_id = :lane_id AND losses < :most_losses
     ORDER BY priority DESC, seq
     LIMIT :wanted
"""
_IS_PLAIN = """
    EXISTS (SELECT 1
              FROM lanes l
              JOIN queues q ON q.name = l.queue
             WHERE l.id = :lane_id AND q.paused_at IS NULL AND q.concurrency IS NULL AND q.rate_count IS NULL)
"""
_STARTED = {
    "state": "'processing'",
    "run": "run + 1",
    "worker_id": ":worker_id",
    "started_at": ":now",
    "updated_at": ":now",
    "waited_ms": "CASE WHEN updated_at < :now THEN :now - updated_at ELSE 0 END",  # since Job.ready_at
}
_SET_STARTED = ", ".join(f"{name} = {value}" for name, value in _STARTED.items())
_START = f"""
    UPDATE jobs
       SET {_SET_STARTED}
     WHERE state = 'pending' AND seq IN ({{seqs}})
"""
# PostgreSQL: all in one, which saves a round trip. The server may keep the plan it makes while the queue is short, so
# nothing in it may depend on that: how many are wanted stands in the text, or the planner expects a tenth of the line,
# and that they are pending is said where they are locked alone, or it looks for them among all that are ready.
_TAKE = f"""
    WITH head AS MATERIALIZED (
        SELECT seq AS next, limits IS NOT NULL OR deadline_at IS NOT NULL OR losses >= :care_from AS asks_for_care
          FROM jobs
         WHERE state = 'pending' AND lane_id = :lane_id AND losses < :most_losses AND {_IS_PLAIN}
         ORDER BY priority DESC, seq
         LIMIT {{wanted}}
           FOR UPDATE SKIP LOCKED)
    UPDATE jobs
       SET {_SET_STARTED}
     WHERE seq = ANY(ARRAY(SELECT next FROM head))
       AND NOT EXISTS (SELECT 1 FROM head WHERE asks_for_care)
    RETURNING {COLUMNS}
"""
_AS_STARTED = ", ".join(_STARTED.get(name, name) for name in Job.FIELDS)
"""The columns of a job as they will be once it is started: what it costs to change a Job is saved."""
_PLAIN_HEAD = HEAD.format(columns=_AS_STARTED)


def take_plain(tx: "Tx", lane_id: int, wanted: int, worker_id: str, care_from: int) -> list[Job] | None:
    """Take the next jobs of a lane; None means that it takes more care (from so many losses), and nothing was taken."""
    params: dict[str, SqlValue] = {"lane_id": lane_id, "wanted": wanted, "most_losses": MAX_LOSSES}
    params |= {"worker_id": worker_id, "now": tx.now}
    if not tx.dialect.is_local:
        taken = tx.rows(_take_sql(wanted), {**params, "care_from": care_from})
        return sorted(map(Job.of_row, taken), key=order) or None
    jobs = [Job.of_row(row) for row in tx.rows(_PLAIN_HEAD, params)]
    if not jobs or any(_asks_for_care(job, care_from) for job in jobs):
        return None
    mark_started(tx, jobs, worker_id)
    return jobs


def taken_together(tx: "Tx", wanted: int, ahead: int) -> int:
    """Return how many to take at once: up to `ahead` more than are wanted.

    A server plans each number anew, for it stands in the text: so it is asked for a power of two, of which few are.
    """
    most = wanted + ahead
    return most if tx.dialect.is_local else max(wanted, 1 << (most.bit_length() - 1))


def rehearse(tx: "Tx", worker_id: str, wanted: int) -> None:
    """Take so many jobs from a lane that is not there, so that a server has its plan for that."""
    take_plain(tx, _NO_LANE, wanted, worker_id, ALONE_FROM_LOSSES)


def mark_started(tx: "Tx", heads: "Sequence[Job]", worker_id: str) -> None:
    """Give jobs that this transaction holds to a worker."""
    for start in range(0, len(heads), CHUNK):
        names, params = listed("seq", [job.seq for job in heads[start : start + CHUNK]])
        begun = tx.changed(_start_sql(names), {**params, "worker_id": worker_id, "now": tx.now})
        if begun != len(params):
            raise AssertionError(f"{begun} of {len(params)} jobs that this transaction holds could be started")


@cache
def _start_sql(names: str) -> str:
    return _START.format(seqs=names)


def order(job: Job) -> tuple[int, int]:
    """Higher priority first, then first in, first out."""
    return -job.priority, job.seq


@cache
def _take_sql(wanted: int) -> str:
    return _TAKE.format(wanted=wanted)


def _asks_for_care(job: Job, from_losses: int) -> bool:
    """Whether more than being the next decides whether it may start."""
    return job.limits is not None or job.deadline_at is not None or job.losses >= from_losses
