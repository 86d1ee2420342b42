"""Unique keys: which job has a key that only one may have. What becomes of the second is decided in actions/."""

from queuectl.model.states import State

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

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


def let_go(tx: "Tx", ended: "Iterable[Job]") -> None:
    """Free the keys of jobs that have ended; one that completed keeps its own until it expires."""
    for job in ended:
        if job.unique_key is None:
            continue
        params: dict[str, SqlValue] = {"key": job.unique_key, "seq": job.seq}
        if job.state is State.COMPLETED and job.unique_for_ms is not None:
            tx.changed("UPDATE unique_keys SET held = 0 WHERE key = :key AND job_seq = :seq", params)
        else:
            tx.changed("DELETE FROM unique_keys WHERE key = :key AND job_seq = :seq", params)


def forget(tx: "Tx", keys: "Iterable[tuple[str, int]]") -> None:
    """Free the keys of jobs that are gone."""
    for key, seq in keys:
        tx.changed("DELETE FROM unique_keys WHERE key = :key AND job_seq = :seq", {"key": key, "seq": seq})


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
