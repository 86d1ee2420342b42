"""Claims: how a worker takes jobs. Finishing them is in moves.py."""

from functools import cache

from queuectl.model.job import Claim, Job
from queuectl.model.states import State
from queuectl.model.value import Value
from queuectl.model.verdict import ALONE_FROM_LOSSES, MAX_LOSSES
from queuectl.model.weights import Turns
from queuectl.store.gates import LANES_AT_ONCE, Admission, Map
from queuectl.store.jobs import COLUMNS
from queuectl.store.lanes import lane_rows
from queuectl.store.plain_claims import HEAD, mark_started, order, take_plain, taken_together
from queuectl.store.takers import Taker
from queuectl.store.workers import Worker, get

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from queuectl.store.database import Tx
    from queuectl.store.dialect import Row, SqlValue
    from queuectl.store.lanes import Lane

ALONE_PATIENCE_MS = 30_000
STUCK_WORDS = "cannot be ended"


class Taken(Value):
    """What one claim brought."""

    claims: tuple[Claim, ...] = ()
    opens_at: int | None = None
    """When a rate lets a job start that it forbids now."""
    is_cut_short: bool = False
    """Whether something may be left that was out of reach for a moment: look again soon."""
    buried: tuple[Job, ...] = ()
    """Jobs that were next, but whose deadline had passed."""
    narrow: frozenset[str] | None = None
    """The queues that let only so many run: whoever ends a job there makes room. None: nobody looked."""


def claim(
    tx: "Tx", taker: Taker, wanted: int, lanes_seen: "list[Row] | None" = None, *, is_idle: bool = True, ahead: int = 0
) -> Taken:
    """Take up to `wanted` ready jobs that a worker may run: higher priority first, then first in, first out.

    The caller has checked in the same transaction that the worker's own row is live, and may have read the lanes.
    `is_idle` says that the worker runs nothing else, and so may take a job that must run alone. `ahead` more are taken
    where nothing but their order decides, and none was ever lost: a worker may be lost with all that it holds.
    """
    seen = Map.of(lane_rows(tx) if lanes_seen is None else lanes_seen, taker)
    if seen.plain_lane is not None:
        most = taken_together(tx, wanted, ahead) if ahead else wanted
        jobs = take_plain(tx, seen.plain_lane, most, taker.worker_id, 1) if most > wanted else None
        if jobs is None and wanted:
            jobs = take_plain(tx, seen.plain_lane, wanted, taker.worker_id, ALONE_FROM_LOSSES)
        if jobs is not None:
            return Taken(claims=_claims(jobs), narrow=seen.narrow)
    if not wanted:
        return Taken(narrow=seen.narrow)
    if lanes_seen is not None and not tx.dialect.is_local:
        seen = Map.of(lane_rows(tx), taker)  # the settle may have waited, and somebody paused a queue meanwhile
    return _claim_with_care(tx, taker, wanted, seen, is_idle=is_idle)


def _claim_with_care(tx: "Tx", taker: Taker, wanted: int, seen: Map, *, is_idle: bool) -> Taken:
    """Take jobs where more than their order decides: gates, turns, what must run alone."""
    admission = Admission(tx, taker, seen)
    taken: list[Job] = []
    while len(taken) < wanted and (lanes := admission.open_lanes):
        left = wanted - len(taken)
        shares = {lanes[0].id: left} if len(lanes) == 1 else _shares(tx, lanes, left, _turns(taker, taken))
        if not admission.secure(shares):
            continue
        heads = _heads_of(tx, shares)
        if any(map(_runs_alone, heads)):
            beside = _beside(tx, taker.worker_id, shares, heads, is_idle=is_idle and not taken)
            if beside is None:
                break
            heads = beside
        if not heads:
            admission.pass_by(shares or [lane.id for lane in lanes])  # what others hold is theirs: they run it
            continue
        admitted = admission.admit(heads)
        taken += _start(tx, admitted, taker.worker_id)
        if any(map(_runs_alone, admitted)) or (len(lanes) == 1 and len(admitted) == len(heads)):
            break
    admission.finish()
    return _taken(admission, taken)


def claim_only(tx: "Tx", worker_id: str, seq: int) -> Taken:
    """Take one job by its number, if it is ready and may run now. The caller's row is live, and it is idle."""
    row = tx.row(
        f"SELECT {COLUMNS} FROM jobs WHERE state = 'pending' AND seq = :seq {tx.dialect.skip_locked}", {"seq": seq}
    )
    if row is None:
        return Taken()
    job = Job.of_row(row)
    taker = Taker(worker_id=worker_id, queues=(job.queue,))
    admission = Admission(tx, taker, Map.of(lane_rows(tx), taker))
    is_open = job.lane_id in {lane.id for lane in admission.open_lanes} and admission.secure([job.lane_id])
    admitted = admission.admit([job]) if is_open else []
    taken = _start(tx, admitted, worker_id)
    admission.finish()
    return _taken(admission, taken)


def _taken(admission: Admission, taken: "Sequence[Job]") -> Taken:
    claims = _claims(sorted(taken, key=order))
    return Taken.of_row((claims, admission.opens_at, admission.is_cut_short, tuple(admission.buried), admission.narrow))


def _claims(taken: "Sequence[Job]") -> tuple[Claim, ...]:
    return tuple([Claim(job=job) for job in taken])


def _turns(taker: Taker, taken: "Sequence[Job]") -> Turns | None:
    """Return whose turn it is among the queues a worker shares its time between; None where priority alone decides."""
    return None if taker.turns is None else taker.turns.after([job.queue for job in taken])


def runs_alone(claim: Claim) -> bool:
    """Whether a worker that holds this takes nothing beside it."""
    return _runs_alone(claim.job)


def held_by(tx: "Tx", worker_id: str) -> list[Claim]:
    """Return what the database says a worker holds."""
    rows = tx.rows(
        f"SELECT {COLUMNS} FROM jobs WHERE state = 'processing' AND worker_id = :worker_id",
        {"worker_id": worker_id},
    )
    return [Claim(job=Job.of_row(row)) for row in rows]


def running(tx: "Tx") -> list[Claim]:
    """Return every claim there is, whoever holds it."""
    rows = tx.rows(f"SELECT {COLUMNS} FROM jobs WHERE state = 'processing'")
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
    why = f"process {' '.join(map(str, pids))} {STUCK_WORDS}, so the job is neither over nor run again"
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


def _heads_of(tx: "Tx", shares: dict[int, int], most_losses: int = MAX_LOSSES) -> list[Job]:
    """Return the next jobs of some lanes, so many of each, in the order in which they should run."""
    sql = _head(tx.dialect.skip_locked)
    heads: list[Job] = []
    for lane_id, wanted in shares.items():
        params = {"lane_id": lane_id, "wanted": wanted, "most_losses": most_losses}
        heads += [Job.of_row(row) for row in tx.rows(sql, params)]
    return heads if len(shares) == 1 else sorted(heads, key=order)


@cache
def _head(skip_locked: str) -> str:
    return f"{HEAD.format(columns=COLUMNS)} {skip_locked}"


def _runs_alone(job: Job) -> bool:
    """One more loss buries the job: if it is what kills workers, nobody is to die with it."""
    return job.losses >= ALONE_FROM_LOSSES


def _beside(
    tx: "Tx", worker_id: str, shares: dict[int, int], heads: "Sequence[Job]", *, is_idle: bool
) -> list[Job] | None:
    """Return what to take when some of the next jobs must run alone; None means nothing more.

    An idle worker takes such a job when it is the very next, unless another runs on this host. All others pass it by;
    but when it has waited long, one worker takes nothing more until it is idle.
    """
    first = heads[0]
    if _runs_alone(first):
        if is_idle and not _is_one_alone_here(tx, worker_id):
            return [first]
        if not is_idle and tx.now - first.updated_at >= ALONE_PATIENCE_MS and _is_first_of_its_kind(tx, worker_id):
            return None
    return _heads_of(tx, shares, ALONE_FROM_LOSSES)


def _is_one_alone_here(tx: "Tx", worker_id: str) -> bool:
    """Whether a job runs alone on the host of a worker; nobody else there can begin one before this transaction ends.

    What takes down all workers of a host must not take down two such jobs at once.
    """
    here: dict[str, SqlValue] = {"worker_id": worker_id, "losses": ALONE_FROM_LOSSES}
    tx.rows(
        f"""
        SELECT s.id
          FROM workers s
         WHERE s.kind = 'supervisor' AND s.state = 'live'
           AND s.boot_id = (SELECT w.boot_id FROM workers w WHERE w.id = :worker_id)
         ORDER BY s.id
         LIMIT 1 {tx.dialect.for_update}
        """,
        here,
    )
    return bool(
        tx.rows(
            """
            SELECT 1
              FROM jobs j
              JOIN workers w ON w.id = j.worker_id
             WHERE j.state = 'processing' AND j.losses >= :losses
               AND w.boot_id = (SELECT o.boot_id FROM workers o WHERE o.id = :worker_id)
             LIMIT 1
            """,
            here,
        )
    )


def _is_first_of_its_kind(tx: "Tx", worker_id: str) -> bool:
    """Whether it is for this worker, of all that serve the same queues, to become idle."""
    row = tx.row(
        """
        SELECT MIN(w.id)
          FROM workers w
          JOIN workers o ON o.id = :worker_id AND COALESCE(o.queues, '') = COALESCE(w.queues, '')
         WHERE w.kind = 'worker' AND w.state = 'live'
        """,
        {"worker_id": worker_id},
    )
    return row is not None and row[0] == worker_id


def _start(tx: "Tx", heads: "Sequence[Job]", worker_id: str) -> list[Job]:
    mark_started(tx, heads, worker_id)
    for job in heads:
        if job.units is not None:
            tx.changed("UPDATE jobs SET units = :units WHERE seq = :seq", {"units": job.units, "seq": job.seq})
    changes = {"state": State.PROCESSING, "worker_id": worker_id, "started_at": tx.now, "updated_at": tx.now}
    return [job.replace(run=job.run + 1, waited_ms=max(0, tx.now - job.ready_at), **changes) for job in heads]


def _shares(tx: "Tx", lanes: "Sequence[Lane]", wanted: int, turns: Turns | None) -> dict[int, int]:
    """Return how many of the best `wanted` jobs stand in each lane; takes no locks, so it never keeps others out."""
    heads: list[Row] = []
    ids = [lane.id for lane in lanes]
    for start in range(0, len(ids), LANES_AT_ONCE):
        heads += _heads(tx, ids[start : start + LANES_AT_ONCE], wanted)
    heads.sort(key=lambda row: (-int(row[1] or 0), int(row[2] or 0)))
    order = [int(row[0] or 0) for row in heads]
    if turns is not None:
        order = turns.order(order, {lane.id: lane.queue for lane in lanes}, wanted)
    shares: dict[int, int] = {}
    for lane_id in order[:wanted]:
        shares[lane_id] = shares.get(lane_id, 0) + 1
    return shares


def _heads(tx: "Tx", lanes: "Sequence[int]", wanted: int) -> "list[Row]":
    """Return lane, priority and number of the next jobs of each lane, so many of each."""
    sql = " UNION ALL ".join(
        f"""
        SELECT * FROM (
            SELECT lane_id, priority, seq FROM jobs WHERE state = 'pending' AND lane_id = :lane_{number}
             ORDER BY priority DESC, seq LIMIT :wanted) AS lane_{number}
        """
        for number in range(len(lanes))
    )
    params = {f"lane_{number}": lane for number, lane in enumerate(lanes)}
    return tx.rows(sql, {**params, "wanted": wanted})
