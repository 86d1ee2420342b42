"""Lines: who stands before a job, who runs meanwhile, and how many are ready. For people who ask; no claim needs it."""

from queuectl.model.value import Value, columns_of
from queuectl.store.jobs import listed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from queuectl.store.database import Tx


class Running(Value):
    """A job that runs, as far as it keeps others waiting; the fields are its columns."""

    seq: int
    given_id: str | None
    lane_id: int
    worker_id: str | None
    losses: int
    limits: str | None

    @property
    def id(self) -> str:
        """What people call the job."""
        return self.given_id or str(self.seq)

    @property
    def limit_list(self) -> list[str]:
        """The keys of the limits it holds."""
        import json

        return json.loads(self.limits) if self.limits else []


def running(tx: "Tx") -> list[Running]:
    """Return the jobs that run, on every host, oldest first."""
    rows = tx.rows(f"SELECT {columns_of(Running)} FROM jobs WHERE state = 'processing'")
    return sorted(map(Running.of_row, rows), key=lambda job: job.seq)


def ahead(tx: "Tx", lanes: "Sequence[int]", priority: int, seq: int) -> int:
    """Return how many ready jobs of some lanes are taken before one of a priority and number.

    Two counts, each of a piece of jobs_ready: asked for both at once, SQLite reads every ready job of the lanes.
    """
    if not lanes:
        return 0
    names, params = listed("lane", lanes)
    row = tx.row(
        f"""
        SELECT (SELECT count(*) FROM jobs
                 WHERE state = 'pending' AND lane_id IN ({names}) AND priority > :priority)
             + (SELECT count(*) FROM jobs
                 WHERE state = 'pending' AND lane_id IN ({names}) AND priority = :priority AND seq < :seq)
        """,
        {**params, "priority": priority, "seq": seq},
    )
    return int(row[0] or 0) if row else 0


def parked_ahead(tx: "Tx", key: str, priority: int, seq: int) -> int:
    """Return how many jobs that are parked for the same limit go before one of a priority and number."""
    row = tx.row(
        """
        SELECT count(*)
          FROM jobs
         WHERE state = 'blocked' AND parked_for IS NOT NULL AND parked_for = :key
           AND (priority > :priority OR (priority = :priority AND seq < :seq))
        """,
        {"key": key, "priority": priority, "seq": seq},
    )
    return int(row[0] or 0) if row else 0


def ready_with(tx: "Tx", key: str, most: int) -> list[str]:
    """Return what people call the first ready jobs that name a limit, up to `most`."""
    rows = tx.rows(
        """
        SELECT given_id, seq
          FROM jobs
         WHERE state = 'pending' AND limits IS NOT NULL AND replace(limits, :word, '') <> limits
         ORDER BY priority DESC, seq
         LIMIT :most
        """,
        {"word": f'"{key}"', "most": most},
    )
    return [str(given_id or seq) for given_id, seq in rows]


def ready_counts(tx: "Tx", lanes: "Sequence[int]") -> dict[int, int]:
    """Return how many jobs are ready in each of some lanes; one that has none is left out."""
    if not lanes:
        return {}
    names, params = listed("lane", lanes)
    rows = tx.rows(
        f"SELECT lane_id, count(*) FROM jobs WHERE state = 'pending' AND lane_id IN ({names}) GROUP BY lane_id", params
    )
    return {int(lane or 0): int(count or 0) for lane, count in rows}


def left(tx: "Tx", lanes: "Sequence[int]", most: int) -> list[str]:
    """Return what people call jobs of some lanes that are ready or wait for a limit, up to `most`."""
    if not lanes:
        return []
    names, params = listed("lane", lanes)
    found: list[str] = []
    for where, order in (
        ("state = 'pending'", "lane_id, priority DESC, seq"),
        ("state = 'blocked' AND parked_for IS NOT NULL", "parked_for, priority DESC, seq"),
    ):
        sql = f"SELECT given_id, seq FROM jobs WHERE {where} AND lane_id IN ({names}) ORDER BY {order} LIMIT :most"
        found += [str(given_id or seq) for given_id, seq in tx.rows(sql, {**params, "most": most - len(found)})]
    return found


def limits_named(tx: "Tx") -> list[str]:
    """Return the keys of all limits that jobs which are ready or run name, in order."""
    import json

    rows = tx.rows(
        """
        SELECT limits FROM jobs WHERE state = 'pending' AND limits IS NOT NULL GROUP BY limits
        UNION
        SELECT limits FROM jobs WHERE state = 'processing' AND limits IS NOT NULL GROUP BY limits
        """
    )
    return sorted({key for row in rows for key in json.loads(str(row[0]))})
