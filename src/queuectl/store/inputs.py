"""Inputs: what jobs read on standard input, where it is kept with them. They go when their job goes (jobs.py)."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from queuectl.store.database import Tx


def insert(tx: "Tx", inputs: "Iterable[tuple[int, bytes]]") -> None:
    """Keep what jobs are to read, by their numbers."""
    tx.insert_many("inputs", ("job_seq", "data"), inputs)


def get(tx: "Tx", seq: int) -> bytes | None:
    """Return what a job is to read; None means nothing is kept for it."""
    row = tx.row("SELECT data FROM inputs WHERE job_seq = :seq", {"seq": seq})
    return None if row is None else bytes(row[0])  # type: ignore[arg-type]
