"""Unique keys: which job has a key that only one may have. What becomes of the second is decided in actions/."""

from queuectl.model.states import State
from queuectl.store.jobs import CHUNK, listed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from queuectl.model.job import Job
    from queuectl.store.database import Tx
    from queuectl.store.dialect import SqlValue

_FREE = "unique_keys.held = 0 AND (unique_keys.expires_at IS NULL OR unique_keys.expires_at <= :now)"


def take(tx: "Tx", key: str, seq: int, unique_for_ms: int | None, *, from_: int | None = None) -> bool:
    """Give a key to a job, unless another has it; waits for whoever is just taking it. `from_` may lose it."""
    free = _FREE if from_ is None else f"(({_FREE}) OR unique_keys.job_seq = :from_)"
    row = tx.row(
        f"""
        INSERT INTO unique_keys (key, job_seq, held, expires_at)
        VALUES (:key, :seq, 1, :expires_at)
        ON CONFLICT (key) DO UPDATE SET job_seq = :seq, held = 1, expires_at = :expires_at
         WHERE {free}
        RETURNING job_seq
        """,
        {
            "key": key,
            "seq": seq,
            "now": tx.now,
            "expires_at": None if unique_for_ms is None else tx.now + unique_for_ms,
            **({} if from_ is None else {"from_": from_}),
        },
    )
    return row is not None


def holder(tx: "Tx", key: str) -> int | None:
    """Return the number of the job that has a key; None when it is free."""
    row = tx.row(f"SELECT job_seq FROM unique_keys WHERE key = :key AND NOT ({_FREE})", {"key": key, "now": tx.now})
    return None if row is None else int(row[0] or 0)


def holders(tx: "Tx", keys: "Sequence[str]") -> dict[str, int]:
    """Return who has those of some keys that are not free."""
    found: dict[str, int] = {}
    for start in range(0, len(keys), CHUNK):
        names, params = listed("key", keys[start : start + CHUNK])
        sql = f"SELECT key, job_seq FROM unique_keys WHERE key IN ({names}) AND NOT ({_FREE})"
        found |= {str(key): int(seq or 0) for key, seq in tx.rows(sql, {**params, "now": tx.now})}
    return found


def expiries(tx: "Tx", owners: "Sequence[tuple[str, int]]") -> dict[int, int | None]:
    """Return when the keys of jobs expire, by the number of the job; those that another has by now are left out."""
    found: dict[int, int | None] = {}
    for start in range(0, len(owners), CHUNK):
        chunk = owners[start : start + CHUNK]
        names, params = listed("key", [key for key, _ in chunk])
        rows = tx.rows(f"SELECT job_seq, expires_at FROM unique_keys WHERE key IN ({names})", params)
        until = {int(seq or 0): None if expires_at is None else int(expires_at) for seq, expires_at in rows}
        found |= {seq: until[seq] for _, seq in chunk if seq in until}
    return found


def take_as_it_was(tx: "Tx", key: str, seq: int, *, is_held: bool, expires_at: int | None) -> bool:
    """Give a job of another store the key it had there, unless another has it here."""
    row = tx.row(
        f"""
        INSERT INTO unique_keys (key, job_seq, held, expires_at)
        VALUES (:key, :seq, :held, :expires_at)
        ON CONFLICT (key) DO UPDATE SET job_seq = :seq, held = :held, expires_at = :expires_at
         WHERE {_FREE}
        RETURNING job_seq
        """,
        {"key": key, "seq": seq, "held": int(is_held), "expires_at": expires_at, "now": tx.now},
    )
    return row is not None


def let_go(tx: "Tx", ended: "Iterable[Job]") -> None:
    """Free the keys of jobs that have ended; one that completed keeps its own until it expires."""
    for job in ended:
        if job.unique_key is None:
            continue
        if job.state is State.COMPLETED and job.unique_for_ms is not None:
            tx.changed(
                "UPDATE unique_keys SET held = 0 WHERE key = :key AND job_seq = :seq",
                {"key": job.unique_key, "seq": job.seq},
            )
        else:
            forget(tx, [(job.unique_key, job.seq)])


def forget(tx: "Tx", keys: "Iterable[tuple[str, int]]") -> None:
    """Free the keys of jobs; one whose place such a job had taken, and that is just being stopped, has its own back."""
    for key, seq in keys:
        params: dict[str, SqlValue] = {"key": key, "seq": seq}
        # Held before it has the key: else it could end without letting go of it.
        stopping = tx.row(
            f"""
            SELECT seq
              FROM jobs
             WHERE state = 'processing' AND unique_key = :key AND seq <> :seq
             LIMIT 1 {tx.dialect.for_update}
            """,
            params,
        )
        if stopping is None:
            tx.changed("DELETE FROM unique_keys WHERE key = :key AND job_seq = :seq", params)
        else:
            tx.changed(
                "UPDATE unique_keys SET job_seq = :other WHERE key = :key AND job_seq = :seq",
                {**params, "other": stopping[0]},
            )


def forget_expired(tx: "Tx", most: int) -> int:
    """Remove keys that nobody has any more."""
    return tx.changed(
        """
        DELETE FROM unique_keys
         WHERE held = 0 AND expires_at <= :now
           AND key IN (SELECT key FROM unique_keys WHERE held = 0 AND expires_at <= :now LIMIT :most)
        """,
        {"now": tx.now, "most": most},
    )
