"""Completing: the COMPLETE move for many jobs at once. One by one, and every other verdict: moves.py."""

from functools import cache, lru_cache

from queuectl.model.job import Job
from queuectl.model.states import State
from queuectl.store.attempts import OWN_TYPES
from queuectl.store.jobs import listed
from queuectl.store.moves import RECORDS, outcome_fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from queuectl.model.job import Claim
    from queuectl.store.database import Tx
    from queuectl.store.dialect import Params, Row

_OUTCOME = """
    state = 'completed', attempts = jobs.attempts + 1, finished_at = :now, exit_code = 0, error = NULL,
    worker_id = NULL, cancel_requested = 0, units = NULL, updated_at = :now
"""
# Fenced as moves.settle is: a worker whose claim was lost changes no row.
_COMPLETE = f"""
    UPDATE jobs
       SET {_OUTCOME}
     WHERE state = 'processing' AND run = :run AND worker_id = :worker_id AND has_dependents = 0 AND seq IN ({{seqs}})
    RETURNING seq
"""


def complete_many(tx: "Tx", claims: "Sequence[Claim]", own: "Sequence[Row]", shared: "Params") -> list[Job]:
    """Complete the jobs of runs of one worker that ended well, and write their records: the own part of each, a shared.

    Returns them as they are now. Those whose claim was lost, or for which others have come to wait, are left as they
    were: `settle` sees to each.
    """
    done = (_complete_here if tx.dialect.is_local else _complete_on_server)(tx, claims, own, shared)
    now = outcome_fields(State.COMPLETED, tx.now, 0, None, tx.now)
    return [claim.job.replace(attempts=claim.job.attempts + 1, **now) for claim in claims if claim.job.seq in done]


def _complete_here(tx: "Tx", claims: "Sequence[Claim]", own: "Sequence[Row]", shared: "Params") -> set[int]:
    """Complete them, a statement for those with the same run number, and write the records by one more."""
    by_run: dict[int, list[int]] = {}
    for claim in claims:
        by_run.setdefault(claim.job.run, []).append(claim.job.seq)
    done: set[int] = set()
    for run, seqs in by_run.items():
        names, params = listed("seq", seqs)
        fence = {"now": tx.now, "run": run, "worker_id": claims[0].job.worker_id}
        done.update([int(row[0] or 0) for row in tx.rows(_complete_sql(names), {**params, **fence})])
    rest = tuple(shared.values())
    tx.insert_many(RECORDS, (*OWN_TYPES, *shared), [row + rest for row in own if row[0] in done])
    return done


@lru_cache(maxsize=64)
def _complete_sql(names: str) -> str:
    return _COMPLETE.format(seqs=names)


def _complete_on_server(tx: "Tx", claims: "Sequence[Claim]", own: "Sequence[Row]", shared: "Params") -> set[int]:
    """Complete them and write the records by one statement: to ask a server costs more than most of what it does."""
    params: dict[str, Any] = {"now": tx.now, "worker_id": claims[0].job.worker_id}
    params |= {column: list(values) for column, values in zip(OWN_TYPES, zip(*own, strict=True), strict=True)}
    params |= {f"run_{column}": value for column, value in shared.items()}
    return {int(row[0] or 0) for row in tx.rows(_complete_many_sql(tuple(shared)), params)}


@cache
def _complete_many_sql(shared: tuple[str, ...]) -> str:
    arrays = ", ".join(f":{column}::{kind}[]" for column, kind in OWN_TYPES.items())
    values = ", ".join((*(f"ended.{column}" for column in OWN_TYPES), *(f":run_{column}" for column in shared)))
    return f"""
        WITH ended AS MATERIALIZED (
            SELECT * FROM unnest({arrays}) AS ended({", ".join(OWN_TYPES)})),
        completed AS (
            UPDATE jobs
               SET {_OUTCOME}
              FROM ended
             WHERE jobs.state = 'processing' AND jobs.seq = ended.job_seq AND jobs.run = ended.run
               AND jobs.worker_id = :worker_id AND jobs.has_dependents = 0
            RETURNING jobs.seq)
        INSERT INTO {RECORDS} ({", ".join((*OWN_TYPES, *shared))})
        SELECT {values}
          FROM ended
          JOIN completed ON completed.seq = ended.job_seq
        RETURNING job_seq
    """
