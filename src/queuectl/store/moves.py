"""Moves: the only writer of jobs.state besides insert (jobs.py) and claim (claims.py). The table is in model/states.py.

COMPLETE of many jobs at once is in completing.py.

Every statement names the states a move may leave in its WHERE, so a job that has moved on is never touched.
"""

from functools import cache

from queuectl.model.job import Job
from queuectl.model.states import FINAL, MOVES, Move, State
from queuectl.store.jobs import CHUNK, COLUMNS, listed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from queuectl.model.job import Claim
    from queuectl.model.verdict import Verdict
    from queuectl.store.database import Tx
    from queuectl.store.dialect import Params, SqlValue

DUE_LIMIT = 200

# The fence: a worker whose claim was lost changes no row (tests/store/test_races.py shows what happens without it).
_SETTLE = """
    UPDATE jobs
       SET state = :state, attempts = attempts + :charged, losses = losses + :losses, run_at = :run_at,
           finished_at = :finished_at, exit_code = :exit_code, error = :error, worker_id = NULL, cancel_requested = 0,
           units = NULL, updated_at = :now
     WHERE state = 'processing' AND seq = :seq AND run = :run AND worker_id = :worker_id
"""
# Others may come to wait for a job while it runs. Most have nobody, and then nothing need be told: on SQLite RETURNING
# builds a table for its rows.
_SETTLE_ALONE = f"{_SETTLE} AND has_dependents = 0"
_SETTLE_WITH_OTHERS = f"{_SETTLE} RETURNING has_dependents"
RECORDS = "attempts"
# It waits since it was ready (Job.ready_at), not since now.
_PUT_BACK = """
    UPDATE jobs
       SET state = 'pending', run = run - 1, worker_id = NULL, updated_at = started_at - COALESCE(waited_ms, 0)
     WHERE state = 'processing' AND seq = :seq AND run = :run AND worker_id = :worker_id AND cancel_requested = 0
"""

# Looked up first and moved after: most of the time nothing is due, and then this is one probe of jobs_due.
_DUE = """
    SELECT seq
      FROM jobs
     WHERE state IN ('scheduled', 'failed') AND run_at <= :now
     ORDER BY run_at
     LIMIT :most
"""

# What a move changes beside the state. Those out of `processing` are written by `settle`, START by claims.py.
_EFFECTS = {
    Move.DUE: "run_at = :now,",
    Move.DEFER: "run_at = :run_at,",
    Move.CANCEL: "finished_at = :now, error = :error, held_at = NULL, parked_for = NULL,",
    Move.PARK: "parked_for = :parked_for,",
    Move.UNBLOCK: "run_at = :run_at, held_at = NULL, parked_for = NULL,",
    Move.STARVE: "finished_at = :now, starved_at = :now, error = :error, held_at = NULL, parked_for = NULL,",
    Move.EXPIRE: "finished_at = :now, error = :error, held_at = NULL, parked_for = NULL,",
    Move.HOLD: "held_at = :now,",
    Move.REVIVE: "finished_at = NULL, error = NULL, exit_code = NULL, attempts = 0, losses = 0, run_at = :run_at,"
    " deadline_at = :now + deadline_ms, starved_at = NULL,",
}


def settle(tx: "Tx", claim: "Claim", verdict: "Verdict", exit_code: int | None, record: "Params") -> Job | None:
    """Write what becomes of a run, and its record; None means the claim was lost, and nothing was touched."""
    _check(verdict.move, verdict.state)
    job = claim.job
    changes: dict[str, SqlValue] = {
        "state": verdict.state,
        "charged": verdict.charged,
        "losses": verdict.losses,
        "run_at": job.run_at if verdict.delay_ms is None else tx.now + verdict.delay_ms,
        "finished_at": tx.now if verdict.state in FINAL else None,
        "exit_code": exit_code,
        "error": verdict.error,
        "now": tx.now,
        **claim.fence,
    }
    has_dependents = _settle(tx, job, changes, record)
    if has_dependents is None:
        return None
    return job.replace(
        has_dependents=has_dependents,
        attempts=job.attempts + verdict.charged,
        losses=job.losses + verdict.losses,
        run_at=changes["run_at"],
        **outcome_fields(verdict.state, changes["finished_at"], exit_code, verdict.error, tx.now),
    )


def outcome_fields(
    state: State, finished_at: object, exit_code: int | None, error: str | None, now: int
) -> dict[str, object]:
    """Return what a settle changes in a job whatever the verdict."""
    return {
        "state": state,
        "finished_at": finished_at,
        "exit_code": exit_code,
        "error": error,
        "worker_id": None,
        "cancel_requested": 0,
        "units": None,
        "updated_at": now,
    }


def put_back(tx: "Tx", claim: "Claim") -> bool:
    """Put a job that was taken ahead and never begun back in the line, as if nobody had taken it.

    Its run number is free again: nothing ever carried it, neither a process nor a file nor a record. False means that
    the claim was lost, or that somebody asked to cancel the job: nothing was touched.
    """
    return bool(tx.changed(_PUT_BACK, claim.fence))


def _settle(tx: "Tx", job: Job, changes: "dict[str, SqlValue]", record: "Params") -> int | None:
    """Write it and return whether others wait for the job; None means the claim was lost."""
    if not job.has_dependents:
        if not tx.dialect.is_local:
            if tx.changed(_both_sql(_SETTLE_ALONE, tuple(record)), {**changes, **_named(record)}):
                return 0
        elif tx.changed(_SETTLE_ALONE, changes):
            tx.insert(RECORDS, record)
            return 0
    row = tx.row(_SETTLE_WITH_OTHERS, changes)
    if row is None:
        return None
    tx.insert(RECORDS, record)
    return int(row[0] or 0)


@cache
def _both_sql(settle_sql: str, columns: tuple[str, ...]) -> str:
    """Return one statement that settles and records: to ask a server costs more than most of what it is asked for."""
    return f"""
        WITH settled AS ({settle_sql} RETURNING 1)
        INSERT INTO {RECORDS} ({", ".join(columns)})
        SELECT {", ".join(f":run_{column}" for column in columns)}
          FROM settled
    """


def _named(record: "Params") -> "dict[str, SqlValue]":
    return {f"run_{column}": value for column, value in record.items()}


def make_due(tx: "Tx", most: int = DUE_LIMIT) -> int:
    """Make jobs whose time has come ready, the longest due first; return how many.

    They have been so since that time, however late somebody looks: what is said of waits (Job.ready_at) counts from it.
    """
    rows = tx.rows(f"{_DUE} {tx.dialect.skip_locked}", {"now": tx.now, "most": most})
    if not rows:
        return 0
    names, params = listed("seq", [row[0] for row in rows])
    return tx.changed(
        f"""
        UPDATE jobs
           SET state = 'pending', updated_at = CASE WHEN run_at > updated_at THEN run_at ELSE updated_at END
         WHERE state IN ('scheduled', 'failed') AND seq IN ({names})
        """,
        params,
    )


def park(tx: "Tx", job: Job, key: str, starting: "Collection[int]" = (), most: int = DUE_LIMIT) -> int:
    """Take a ready job out of the line until a limit has room, with all, in whatever lane, that name the same limits.

    `starting` are the numbers of jobs that are about to start, and so stay.
    """
    rows = tx.rows(
        f"""
        SELECT seq
          FROM jobs
         WHERE state = 'pending' AND limits IS NOT NULL AND limits = :limits
         LIMIT :most {tx.dialect.skip_locked}
        """,
        {"limits": job.limits, "most": most},
    )
    names, params = listed("seq", sorted({job.seq, *(int(row[0] or 0) for row in rows)} - set(starting)))
    return tx.changed(
        f"""
        UPDATE jobs
           SET state = 'blocked', {_EFFECTS[Move.PARK]} updated_at = :now
         WHERE state = 'pending' AND seq IN ({names})
        """,
        {**params, "parked_for": key, "now": tx.now},
    )


def unpark(tx: "Tx", seqs: "Sequence[int]") -> int:
    """Put parked jobs back in the line."""
    names, params = listed("seq", seqs)
    return tx.changed(
        f"""
        UPDATE jobs
           SET state = 'pending', parked_for = NULL, updated_at = :now
         WHERE state = 'blocked' AND parked_for IS NOT NULL AND seq IN ({names})
        """,
        {**params, "now": tx.now},
    )


def park_for_another(tx: "Tx", lane_id: int, limits: str, key: str, other: str, most: int = DUE_LIMIT) -> int:
    """Let jobs of a lane that name the same limits and wait for one of them wait for another instead."""
    rows = tx.rows(
        f"""
        SELECT seq
          FROM jobs
         WHERE state = 'blocked' AND parked_for IS NOT NULL AND parked_for = :key AND lane_id = :lane_id
           AND limits = :limits
         LIMIT :most {tx.dialect.skip_locked}
        """,
        {"key": key, "lane_id": lane_id, "limits": limits, "most": most},
    )
    if not rows:
        return 0
    names, params = listed("seq", [row[0] for row in rows])
    return tx.changed(
        f"UPDATE jobs SET parked_for = :other WHERE state = 'blocked' AND parked_for = :key AND seq IN ({names})",
        {**params, "key": key, "other": other},
    )


def free(tx: "Tx", seqs: "Sequence[int]") -> int:
    """Put jobs that wait for no other any more, and for no person, in the line, or let them wait for their time."""
    moved = 0
    for start in range(0, len(seqs), CHUNK):
        names, params = listed("seq", seqs[start : start + CHUNK])
        moved += tx.changed(
            f"""
            UPDATE jobs
               SET state = CASE WHEN run_at > :now THEN 'scheduled' ELSE 'pending' END, updated_at = :now
             WHERE state = 'blocked' AND waits_for = 0 AND held_at IS NULL AND parked_for IS NULL AND seq IN ({names})
            """,
            {**params, "now": tx.now},
        )
    return moved


def starve(tx: "Tx", seqs: "Sequence[int]", error: str) -> list[Job]:
    """Cancel jobs that wait for one which ended otherwise than they asked; return them."""
    return _end_many(tx, Move.STARVE, seqs, error)


def cancel(tx: "Tx", seqs: "Sequence[int]", error: str) -> list[Job]:
    """Cancel those of many jobs that wait; return them."""
    return _end_many(tx, Move.CANCEL, seqs, error)


def _end_many(tx: "Tx", what: Move, seqs: "Sequence[int]", error: str) -> list[Job]:
    ended: list[Job] = []
    sources = ", ".join(f"'{state}'" for state in sorted(MOVES[what][0]))
    for start in range(0, len(seqs), CHUNK):
        names, params = listed("seq", seqs[start : start + CHUNK])
        rows = tx.rows(
            f"""
            UPDATE jobs
               SET state = 'cancelled', {_EFFECTS[what]} updated_at = :now
             WHERE state IN ({sources}) AND seq IN ({names})
            RETURNING {COLUMNS}
            """,
            {**params, "now": tx.now, "error": error},
        )
        ended += [Job.of_row(row) for row in rows]
    return ended


def revive(tx: "Tx", seqs: "Sequence[int]") -> int:
    """Give jobs that ended a fresh life, now."""
    return _revive(tx, seqs, State.PENDING, "run_at = NULL")


def revive_to_wait(tx: "Tx", seqs: "Sequence[int]") -> int:
    """Give jobs that ended a fresh life that begins with waiting for others; a time still to come is kept."""
    return _revive(tx, seqs, State.BLOCKED, "run_at = CASE WHEN run_at > :now THEN run_at END")


def _revive(tx: "Tx", seqs: "Sequence[int]", to: State, run_at: str) -> int:
    _check(Move.REVIVE, to)
    moved = 0
    effects = _EFFECTS[Move.REVIVE].replace("run_at = :run_at", run_at)
    for start in range(0, len(seqs), CHUNK):
        names, params = listed("seq", seqs[start : start + CHUNK])
        moved += tx.changed(
            f"""
            UPDATE jobs
               SET state = :state, {effects} updated_at = :now
             WHERE state IN ('completed', 'dead', 'cancelled') AND seq IN ({names})
            """,
            {**params, "state": to.value, "now": tx.now},
        )
    return moved


def wait_again(tx: "Tx", seq: int) -> Job | None:
    """Take a job that has not run yet out of the line: what it waited for runs again."""
    return move(tx, Move.PARK, seq, State.BLOCKED)


def let_go(tx: "Tx", seq: int) -> Job | None:
    """Let a job that a person held, and that waits for others, go on waiting for those alone."""
    row = tx.row(
        f"""
        UPDATE jobs
           SET held_at = NULL, updated_at = :now
         WHERE state = 'blocked' AND held_at IS NOT NULL AND waits_for > 0 AND seq = :seq
        RETURNING {COLUMNS}
        """,
        {"seq": seq, "now": tx.now},
    )
    return None if row is None else Job.of_row(row)


def hold_blocked(tx: "Tx", seq: int) -> Job | None:
    """Let a person hold a job that waited for a limit or for other jobs: it waits for that person as well."""
    row = tx.row(
        f"""
        UPDATE jobs
           SET held_at = :now, parked_for = NULL, updated_at = :now
         WHERE state = 'blocked' AND held_at IS NULL AND seq = :seq
        RETURNING {COLUMNS}
        """,
        {"seq": seq, "now": tx.now},
    )
    return None if row is None else Job.of_row(row)


def move(
    tx: "Tx",
    what: Move,
    seq: int,
    to: State,
    *,
    run_at: int | None = None,
    error: str | None = None,
    parked_for: str | None = None,
) -> Job | None:
    """Move one job that no worker holds; None means it was not in a state this move may leave."""
    _check(what, to)
    sources = ", ".join(f"'{state}'" for state in sorted(MOVES[what][0]))
    row = tx.row(
        f"""
        UPDATE jobs
           SET state = :state, {_EFFECTS[what]} updated_at = :now
         WHERE state IN ({sources}) AND seq = :seq
        RETURNING {COLUMNS}
        """,
        {"state": to.value, "seq": seq, "now": tx.now, "run_at": run_at, "error": error, "parked_for": parked_for},
    )
    return None if row is None else Job.of_row(row)


def request_cancel(tx: "Tx", seq: int) -> Job | None:
    """Ask the worker that holds a job to stop it; None means no worker holds it."""
    row = tx.row(
        f"""
        UPDATE jobs
           SET cancel_requested = 1, updated_at = :now
         WHERE state = 'processing' AND seq = :seq
        RETURNING {COLUMNS}
        """,
        {"seq": seq, "now": tx.now},
    )
    return None if row is None else Job.of_row(row)


def _check(what: Move, to: State) -> None:
    if to not in MOVES[what][1]:
        raise ValueError(f"{what} does not lead to {to}")
