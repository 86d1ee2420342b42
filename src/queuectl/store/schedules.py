"""Schedules and their fires as rows. When they fire is decided in model/schedule.py, how in actions/."""

from queuectl.model.job import Job
from queuectl.model.schedule import REPLACED, Fire, Schedule
from queuectl.model.value import Value, columns_of
from queuectl.store.jobs import CHUNK, by_seqs, listed
from queuectl.store.jobs import COLUMNS as JOB_COLUMNS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from queuectl.store.database import Tx
    from queuectl.store.dialect import Params

COLUMNS = columns_of(Schedule)
FIRE_COLUMNS = columns_of(Fire)
KEPT_FIRES = 100
MOST_FORGOTTEN = 500
MOST_EARLIER = 100
_UNFINISHED = "state NOT IN ('completed', 'dead', 'cancelled')"


class LastFire(Value):
    """The newest fire of a schedule and its job, as far as that is still there."""

    fire: Fire
    job: Job | None


def insert(tx: "Tx", schedule: Schedule) -> bool:
    """Add a schedule; False means that there is one of this name already, which stays as it is."""
    values = ", ".join(f":{name}" for name in Schedule.FIELDS)
    sql = f"INSERT INTO schedules ({COLUMNS}) VALUES ({values}) ON CONFLICT (name) DO NOTHING"
    return bool(tx.changed(sql, _params(schedule)))


def update(tx: "Tx", schedule: Schedule) -> None:
    """Write a schedule that the caller has locked as it is now."""
    changes = ", ".join(f"{name} = :{name}" for name in Schedule.FIELDS if name != "name")
    tx.changed(f"UPDATE schedules SET {changes} WHERE name = :name", _params(schedule))


def delete(tx: "Tx", name: str) -> None:
    """Remove a schedule and the record of its fires; their jobs stay."""
    tx.changed("DELETE FROM schedules WHERE name = :name", {"name": name})
    tx.changed("DELETE FROM fires WHERE schedule = :name", {"name": name})


def get(tx: "Tx", name: str) -> Schedule | None:
    """Return a schedule."""
    row = tx.row(f"SELECT {COLUMNS} FROM schedules WHERE name = :name", {"name": name})
    return None if row is None else Schedule.of_row(row)


def lock(tx: "Tx", name: str) -> Schedule | None:
    """Return a schedule that this transaction is about to change; waits for whoever fires it."""
    sql = f"SELECT {COLUMNS} FROM schedules WHERE name = :name {tx.dialect.for_update}"
    row = tx.row(sql, {"name": name})
    return None if row is None else Schedule.of_row(row)


def all_schedules(tx: "Tx") -> list[Schedule]:
    """Return every schedule, by name."""
    rows = tx.rows(f"SELECT {COLUMNS} FROM schedules")
    return sorted(map(Schedule.of_row, rows), key=lambda schedule: schedule.name)


def names(tx: "Tx") -> list[str]:
    """Return the name of every schedule."""
    return sorted(str(row[0]) for row in tx.rows("SELECT name FROM schedules"))


def take_due(tx: "Tx") -> Schedule | None:
    """Return the schedule that has been due for longest and that nobody else fires now; it is locked."""
    row = tx.row(
        f"""
        SELECT {COLUMNS}
          FROM schedules
         WHERE next_at IS NOT NULL AND next_at <= :now
         ORDER BY next_at
         LIMIT 1 {tx.dialect.skip_locked}
        """,
        {"now": tx.now},
    )
    return None if row is None else Schedule.of_row(row)


def next_at(tx: "Tx") -> int | None:
    """Return when the next schedule is due."""
    row = tx.row("SELECT next_at FROM schedules WHERE next_at IS NOT NULL ORDER BY next_at LIMIT 1")
    return None if row is None else int(row[0] or 0)


def overdue(tx: "Tx", before: int) -> list[str]:
    """Return the names of the schedules that were due before a time."""
    sql = "SELECT name FROM schedules WHERE next_at IS NOT NULL AND next_at < :before ORDER BY next_at LIMIT 20"
    return [str(row[0]) for row in tx.rows(sql, {"before": before})]


def record(tx: "Tx", fire: Fire) -> bool:
    """Put on record what came of an instant; False means that somebody did so already."""
    values = ", ".join(f":{name}" for name in Fire.FIELDS)
    sql = f"INSERT INTO fires ({FIRE_COLUMNS}) VALUES ({values}) ON CONFLICT (schedule, instant) DO NOTHING"
    return bool(tx.changed(sql, _params(fire)))


def note_job(tx: "Tx", fire: Fire) -> None:
    """Say of a fire on record which job it brought, or why none."""
    tx.changed(
        """
        UPDATE fires
           SET outcome = :outcome, job_seq = :job_seq, why = :why
         WHERE schedule = :schedule AND instant = :instant
        """,
        _params(fire),
    )


def note_replaced(tx: "Tx", name: str, seqs: "Sequence[int]", by: int) -> None:
    """Say of the fires that brought some jobs which job took their place."""
    for start in range(0, len(seqs), CHUNK):
        listed_seqs, params = listed("seq", seqs[start : start + CHUNK])
        tx.changed(
            f"UPDATE fires SET why = :why WHERE schedule = :name AND job_seq IN ({listed_seqs})",
            {**params, "name": name, "why": f"{REPLACED}{by}"},
        )


def fire_of(tx: "Tx", name: str, instant: int) -> Fire | None:
    """Return what came of an instant."""
    sql = f"SELECT {FIRE_COLUMNS} FROM fires WHERE schedule = :name AND instant = :instant"
    row = tx.row(sql, {"name": name, "instant": instant})
    return None if row is None else Fire.of_row(row)


def is_on_record(tx: "Tx", name: str, instant: int) -> bool:
    """Whether somebody dealt with an instant."""
    sql = "SELECT 1 FROM fires WHERE schedule = :name AND instant = :instant"
    return tx.row(sql, {"name": name, "instant": instant}) is not None


def unfinished(tx: "Tx", name: str) -> list[int]:
    """Return the numbers of the jobs of a schedule that are not over, among its newest ones."""
    rows = tx.rows(
        f"""
        SELECT j.seq
          FROM (SELECT job_seq FROM fires WHERE schedule = :name AND job_seq IS NOT NULL
                 ORDER BY instant DESC LIMIT :most) AS f
          JOIN jobs j ON j.seq = f.job_seq
         WHERE j.{_UNFINISHED}
        """,
        {"name": name, "most": MOST_EARLIER},
    )
    return sorted(int(row[0] or 0) for row in rows)


def fires(tx: "Tx", name: str, most: int) -> list[LastFire]:
    """Return the newest fires of a schedule with their jobs, newest first."""
    rows = tx.rows(
        f"SELECT {FIRE_COLUMNS} FROM fires WHERE schedule = :name ORDER BY instant DESC LIMIT :most",
        {"name": name, "most": most},
    )
    found = [Fire.of_row(row) for row in rows]
    return [LastFire(fire=fire, job=_job(tx, fire.job_seq)) for fire in found]


def newest_fires(tx: "Tx", most: int) -> dict[str, list[LastFire]]:
    """Return the newest fires of every schedule with their jobs, newest first, in two questions however many."""
    rows = tx.rows(
        f"""
        SELECT {FIRE_COLUMNS}
          FROM (SELECT f.*, row_number() OVER (PARTITION BY schedule ORDER BY instant DESC) AS place FROM fires f) AS f
         WHERE place <= :most
         ORDER BY schedule, instant DESC
        """,
        {"most": most},
    )
    found = [Fire.of_row(row) for row in rows]
    known = {job.seq: job for job in by_seqs(tx, [fire.job_seq for fire in found if fire.job_seq is not None])}
    last: dict[str, list[LastFire]] = {}
    for fire in found:
        last.setdefault(fire.schedule, []).append(LastFire(fire=fire, job=known.get(fire.job_seq or 0)))
    return last


def crowded(tx: "Tx") -> list[str]:
    """Return the names of the schedules that have clearly more fires on record than are kept."""
    sql = "SELECT schedule FROM fires GROUP BY schedule HAVING count(*) >= :many ORDER BY schedule"
    return [str(row[0]) for row in tx.rows(sql, {"many": KEPT_FIRES + KEPT_FIRES // 5})]


def forget(tx: "Tx", name: str) -> int:
    """Forget all but the newest fires of a schedule, some at a time; those of jobs that are not over stay."""
    oldest_kept = tx.row(
        "SELECT instant FROM fires WHERE schedule = :name ORDER BY instant DESC LIMIT 1 OFFSET :kept",
        {"name": name, "kept": KEPT_FIRES - 1},
    )
    if oldest_kept is None:
        return 0
    return tx.changed(
        f"""
        DELETE FROM fires
         WHERE schedule = :name AND instant IN (
                SELECT f.instant
                  FROM fires f
                 WHERE f.schedule = :name AND f.instant < :oldest
                   AND NOT EXISTS (SELECT 1 FROM jobs j WHERE j.seq = f.job_seq AND j.{_UNFINISHED})
                 ORDER BY f.instant
                 LIMIT :most)
        """,
        {"name": name, "oldest": oldest_kept[0], "most": MOST_FORGOTTEN},
    )


def _job(tx: "Tx", seq: int | None) -> Job | None:
    if seq is None:
        return None
    row = tx.row(f"SELECT {JOB_COLUMNS} FROM jobs WHERE seq = :seq", {"seq": seq})
    return None if row is None else Job.of_row(row)


def _params(value: Value) -> "Params":
    """Return the columns of a row; a word of a closed set is plain text to a driver."""
    return {name: str(each) if isinstance(each, str) else each for name, each in value.as_dict().items()}  # type: ignore[misc]
