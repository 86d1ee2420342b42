"""Limits: how many jobs that name the same one may run at once, and who waits for it.

Who holds a limit is counted from the running jobs, never from a number kept beside them, so nothing leaks when a worker
dies. A job whose limit is full is parked; the settle that frees the limit puts the next ones back in the line.
"""

from queuectl.model.job import Job, read_list
from queuectl.model.limits import LIMIT, MUTEX, Limit
from queuectl.model.states import State
from queuectl.model.value import columns_of
from queuectl.store import moves
from queuectl.store.jobs import COLUMNS as JOB_COLUMNS
from queuectl.store.jobs import listed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from queuectl.store.database import Tx

UNLIMITED = 1 << 31
RELEASED_AT_ONCE = 200
REPARKED_AT_ONCE = 10
KEYS_AT_ONCE = 200

# Both skip from one value of the index to the next: a plain DISTINCT would read an entry for every job.
_PARKED_KEYS = """
    WITH RECURSIVE keys(parked_for, number) AS (
        SELECT min(parked_for), 1 FROM jobs WHERE state = 'blocked' AND parked_for IS NOT NULL AND parked_for > :after
        UNION ALL
        SELECT (SELECT min(j.parked_for)
                  FROM jobs j
                 WHERE j.state = 'blocked' AND j.parked_for IS NOT NULL AND j.parked_for > keys.parked_for), number + 1
          FROM keys
         WHERE keys.parked_for IS NOT NULL AND number < :most)
    SELECT parked_for FROM keys
"""
_PARKED_LANES = """
    WITH RECURSIVE found(lane_id) AS (
        SELECT min(lane_id) FROM jobs WHERE state = 'blocked' AND parked_for IS NOT NULL AND parked_for = :key
        UNION ALL
        SELECT (SELECT min(j.lane_id)
                  FROM jobs j
                 WHERE j.state = 'blocked' AND j.parked_for IS NOT NULL AND j.parked_for = :key
                   AND j.lane_id > found.lane_id)
          FROM found
         WHERE found.lane_id IS NOT NULL)
    SELECT lane_id FROM found
"""


COLUMNS = columns_of(Limit)


def all_limits(tx: "Tx") -> list[Limit]:
    """Return every limit somebody made, by name."""
    return sorted((Limit.of_row(row) for row in tx.rows(f"SELECT {COLUMNS} FROM limits")), key=lambda one: one.name)


def get(tx: "Tx", name: str) -> Limit | None:
    """Return a limit."""
    row = tx.row(f"SELECT {COLUMNS} FROM limits WHERE name = :name", {"name": name})
    return None if row is None else Limit.of_row(row)


def put(tx: "Tx", name: str, slots: int) -> None:
    """Make a limit, or give it another number."""
    tx.changed(
        """
        INSERT INTO limits (name, slots, created_at)
        VALUES (:name, :slots, :now)
        ON CONFLICT (name) DO UPDATE SET slots = :slots
        """,
        {"name": name, "slots": slots, "now": tx.now},
    )


def create_as_it_was(tx: "Tx", limit: Limit) -> bool:
    """Make a limit of another store; False means one of this name is here already, and stays as it is."""
    values = ", ".join(f":{name}" for name in Limit.FIELDS)
    return bool(
        tx.changed(
            f"INSERT INTO limits ({COLUMNS}) VALUES ({values}) ON CONFLICT (name) DO NOTHING",
            limit.as_dict(),  # type: ignore[arg-type]
        )
    )


def drop(tx: "Tx", name: str) -> bool:
    """Remove a limit; False means there was none."""
    return bool(tx.changed("DELETE FROM limits WHERE name = :name", {"name": name}))


def slots_of(tx: "Tx", keys: "Collection[str]") -> dict[str, int]:
    """Return how many may run at once, by key; a limit nobody made holds nothing back."""
    slots = {key: 1 if key.startswith(MUTEX) else UNLIMITED for key in keys}
    named = [key.removeprefix(LIMIT) for key in keys if key.startswith(LIMIT)]
    if named:
        names, params = listed("name", named)
        rows = tx.rows(f"SELECT name, slots FROM limits WHERE name IN ({names})", params)
        slots |= {LIMIT + str(name): int(number or 0) for name, number in rows}
    return slots


def held(tx: "Tx") -> dict[str, int]:
    """Return how many running jobs hold each limit."""
    return _by_key(tx, State.PROCESSING)


def in_line(tx: "Tx") -> dict[str, int]:
    """Return how many ready jobs name each limit; a claim that meets one whose limit is full parks it."""
    return _by_key(tx, State.PENDING)


def rooms(tx: "Tx", keys: "Collection[str]") -> dict[str, int]:
    """Return how many more jobs each limit lets run. The caller has locked the keys in a statement before."""
    running = held(tx)
    return {key: slots - running.get(key, 0) for key, slots in slots_of(tx, keys).items()}


def ahead(tx: "Tx", lane_id: int, limits: str, priority: int, most: int) -> int:
    """Return how many ready jobs of a lane with exactly these limits go before one of a priority, up to `most`."""
    rows = tx.rows(
        """
        SELECT seq
          FROM jobs
         WHERE state = 'pending' AND limits IS NOT NULL AND lane_id = :lane_id AND limits = :limits
           AND priority >= :priority
         LIMIT :most
        """,
        {"lane_id": lane_id, "limits": limits, "priority": priority, "most": most},
    )
    return len(rows)


def release(tx: "Tx", keys: "Iterable[str]") -> int:
    """Put the next jobs that wait for these limits back in the line, as many of each lane as there is room.

    Of each lane, because some lanes may be paused or needed by nobody: a job there must not keep others waiting. Those
    too many are parked again by the claim that finds the limit full. The caller has locked the keys: else a claim that
    is just parking another job is not seen, and that job is found by the net alone (actions/parking.py).
    """
    wanted = sorted(set(keys))
    moved = 0
    for key, room in rooms(tx, wanted).items() if wanted else ():
        for lane_id in _lanes_parked_for(tx, key) if room > 0 else ():
            moved += _release_of_lane(tx, key, lane_id, min(room, RELEASED_AT_ONCE))
    if moved:
        tx.wake()
    return moved


def left_line(tx: "Tx", job: "Job") -> None:
    """Let others go in the place of a job, given as it was, that has left the line without running."""
    if job.limits is not None and job.state is State.PENDING:
        release(tx, job.limit_list)


def parked_keys(tx: "Tx", after: str = "", most: int = KEYS_AT_ONCE) -> list[str]:
    """Return the keys that jobs are parked for, in order from one on: a probe each, however many jobs."""
    rows = tx.rows(_PARKED_KEYS, {"after": after, "most": most})
    return [str(row[0]) for row in rows if row[0] is not None]


def users(tx: "Tx", key: str, most: int) -> list[str]:
    """Return the ids of some jobs that are not over and name a limit.

    Looks through all that wait and name any limit, and through all that wait for a time: nothing a claim should do.
    """
    found: list[str] = []
    for where in _NOT_OVER:
        rows = tx.rows(
            f"SELECT given_id, seq FROM jobs WHERE {where} AND {_NAMES} ORDER BY seq + 0 LIMIT :most",
            {"word": _word(key), "most": most - len(found)},
        )
        found += [str(given_id or seq) for given_id, seq in rows]
        if len(found) >= most:
            break
    return found


def holders(tx: "Tx", key: str) -> "list[Job]":
    """Return the running jobs that hold a limit, the first to start first."""
    rows = tx.rows(f"SELECT {JOB_COLUMNS} FROM jobs WHERE state = 'processing' AND {_NAMES}", {"word": _word(key)})
    return sorted(map(Job.of_row, rows), key=lambda job: (job.started_at or 0, job.seq))


def ready(tx: "Tx", key: str, most: int) -> list[str]:
    """Return the ids of the next jobs in the line that name a limit; the claim parks them should it be full."""
    rows = tx.rows(
        f"SELECT given_id, seq FROM jobs WHERE state = 'pending' AND {_NAMES} ORDER BY priority DESC, seq LIMIT :most",
        {"word": _word(key), "most": most},
    )
    return [str(given_id or seq) for given_id, seq in rows]


def parked(tx: "Tx", key: str, most: int) -> list[str]:
    """Return the ids of the next jobs that are parked for a limit: so many probes as lanes, however many jobs."""
    found = []
    for lane_id in _lanes_parked_for(tx, key):
        found += tx.rows(
            """
            SELECT priority, seq, given_id
              FROM jobs
             WHERE state = 'blocked' AND parked_for IS NOT NULL AND parked_for = :key AND lane_id = :lane_id
             ORDER BY priority DESC, seq
             LIMIT :most
            """,
            {"key": key, "lane_id": lane_id, "most": most},
        )
    found.sort(key=lambda row: (-int(row[0] or 0), int(row[1] or 0)))
    return [str(given_id or seq) for _, seq, given_id in found[:most]]


def parked_counts(tx: "Tx") -> dict[str, int]:
    """Return how many jobs are parked for each limit; from the index alone."""
    rows = tx.rows(
        "SELECT parked_for, count(*) FROM jobs WHERE state = 'blocked' AND parked_for IS NOT NULL GROUP BY parked_for"
    )
    return {str(key): int(number or 0) for key, number in rows}


# Whether a job names a limit: in the text of its limits each is quoted, and no name holds a quote.
_NAMES = "limits IS NOT NULL AND replace(limits, :word, '') <> limits"
# Spelt as the partial indexes are, so that none of these walks the history.
_NOT_OVER = (
    "state = 'processing'",
    "state = 'pending'",
    "state = 'blocked'",
    "state IN ('scheduled', 'failed')",
)


def _by_key(tx: "Tx", state: State) -> dict[str, int]:

    counts: dict[str, int] = {}
    rows = tx.rows(f"SELECT limits, count(*) FROM jobs WHERE state = '{state}' AND limits IS NOT NULL GROUP BY limits")
    for limits, number in rows:
        for key in read_list(str(limits)):
            counts[key] = counts.get(key, 0) + int(number or 0)
    return counts


def _word(key: str) -> str:
    return f'"{key}"'


def _lanes_parked_for(tx: "Tx", key: str) -> list[int]:
    """Return the lanes that hold jobs parked for a limit: a probe each, however many jobs."""
    return [int(row[0]) for row in tx.rows(_PARKED_LANES, {"key": key}) if row[0] is not None]


def _release_of_lane(tx: "Tx", key: str, lane_id: int, room: int) -> int:
    """Put the next jobs of a lane back in the line; those that another limit would stop wait for that."""
    for _ in range(REPARKED_AT_ONCE):
        rows = tx.rows(
            f"""
            SELECT seq, limits, priority
              FROM jobs
             WHERE state = 'blocked' AND parked_for IS NOT NULL AND parked_for = :key AND lane_id = :lane_id
             ORDER BY priority DESC, seq
             LIMIT :room {tx.dialect.skip_locked}
            """,
            {"key": key, "lane_id": lane_id, "room": room},
        )
        if not rows:
            return 0
        _, text, priority = rows[0]
        other = _other_that_is_full(tx, str(text), key)
        if other is None or not moves.park_for_another(tx, lane_id, str(text), key, other):
            room -= ahead(tx, lane_id, str(text), int(priority or 0), room)
            seqs = [int(row[0] or 0) for row in rows[: max(0, room)]]
            return moves.unpark(tx, seqs) if seqs else 0
    return 0


def _other_that_is_full(tx: "Tx", text: str, key: str) -> str | None:
    """Return a limit that keeps jobs from running which another one lets go; None where it cannot be locked now."""
    others = [other for other in read_list(text) if other != key]
    if not others or not tx.try_lock(others).issuperset(others):
        return None
    return next((other for other, room in rooms(tx, others).items() if room < 1), None)
