"""Parking: jobs that a limit keeps out of the line, and how they come back. Putting them aside is in gates.py.

A job that names a limit which is full is `blocked` and `parked_for` it. Whoever makes room, by ending a job that held
the limit, by raising it or by taking a job out of the line, lets the next ones go.
"""

import random

from queuectl.model.job import Job, read_list
from queuectl.model.states import State
from queuectl.model.value import Value
from queuectl.model.verdict import ALONE_FROM_LOSSES
from queuectl.store import limits, moves
from queuectl.store.lanes import paused_lanes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from queuectl.store.database import Tx

RELEASED_AT_ONCE = 200
SPARE = 4
LANES_AT_ONCE = 32
ALL_LANES = 10_000
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
    WITH RECURSIVE found(lane_id, number) AS (
        SELECT min(lane_id), 1
          FROM jobs
         WHERE state = 'blocked' AND parked_for IS NOT NULL AND parked_for = :key AND lane_id > :after
        UNION ALL
        SELECT (SELECT min(j.lane_id)
                  FROM jobs j
                 WHERE j.state = 'blocked' AND j.parked_for IS NOT NULL AND j.parked_for = :key
                   AND j.lane_id > found.lane_id), number + 1
          FROM found
         WHERE found.lane_id IS NOT NULL AND number < :most)
    SELECT lane_id FROM found
"""


def release(tx: "Tx", keys: "Iterable[str]") -> int:
    """Put the next jobs that wait for these limits back in the line: as many as there is room, and a few more.

    A few more, of other lanes: some lanes may be needed by nobody, and a job there must not keep the others waiting.
    Those too many are parked again by the claim that finds the limit full. The caller has locked the keys: else a claim
    that is just parking another job is not seen, and that job is found by the net alone (actions/parking.py).
    """
    wanted = sorted(set(keys))
    moved = 0
    for key, room in limits.rooms(tx, wanted).items() if wanted else ():
        if room > 0:
            moved += _release_of(tx, key, room)
    if moved:
        tx.wake()
    return moved


def left_line(tx: "Tx", jobs: "Sequence[Job]") -> None:
    """Let others go in the place of jobs, given as they were, that have left the line without running."""
    release(
        tx, {key for job in jobs if job.limits is not None and job.state is State.PENDING for key in job.limit_list}
    )


def parked_keys(tx: "Tx", after: str = "", most: int = KEYS_AT_ONCE) -> list[str]:
    """Return the keys that jobs are parked for, in order from one on: a probe each, however many jobs."""
    rows = tx.rows(_PARKED_KEYS, {"after": after, "most": most})
    return [str(row[0]) for row in rows if row[0] is not None]


def parked(tx: "Tx", key: str, most: int) -> list[str]:
    """Return the ids of the next jobs that are parked for a limit: so many probes as lanes, however many jobs."""
    found = []
    for lane_id in _lanes_parked_for(tx, key, ALL_LANES):
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


def ahead(tx: "Tx", lane_id: int, names: str, priority: int, most: int) -> int:
    """Return how many ready jobs of a lane with exactly these limits go before one of a priority, up to `most`.

    One that must run alone does not count: busy workers pass it by, and it must not keep the others from a free limit.
    """
    rows = tx.rows(
        """
        SELECT seq
          FROM jobs
         WHERE state = 'pending' AND limits IS NOT NULL AND lane_id = :lane_id AND limits = :limits
           AND priority >= :priority AND losses < :losses
         LIMIT :most
        """,
        {"lane_id": lane_id, "limits": names, "priority": priority, "most": most, "losses": ALONE_FROM_LOSSES},
    )
    return len(rows)


def _release_of(tx: "Tx", key: str, room: int) -> int:
    most, moved = min(room, RELEASED_AT_ONCE) + SPARE, 0
    for head in _heads(tx, key):
        if moved >= most:
            break
        wanted = min(room, most - moved) - ahead(tx, head.lane_id, head.limits, head.priority, room)
        if wanted > 0:
            moved += _release_of_lane(tx, key, head, wanted)
    return moved


class _Head(Value):
    """The next of the jobs of one lane that wait for a limit."""

    lane_id: int
    seq: int
    priority: int
    limits: str


def _heads(tx: "Tx", key: str) -> list[_Head]:
    """Return the next jobs that wait for a limit, the best first: of a few lanes, others each time where they are many.

    Those of paused queues are left out; they come when their queue is resumed.
    """
    paused = paused_lanes(tx)
    lanes = [lane_id for lane_id in _lanes_parked_for(tx, key, LANES_AT_ONCE) if lane_id not in paused]
    heads = [head for lane_id in lanes if (head := _head_of(tx, key, lane_id)) is not None]
    return sorted(heads, key=lambda head: (-head.priority, head.seq))


def _lanes_parked_for(tx: "Tx", key: str, most: int) -> list[int]:
    """Return lanes that hold jobs parked for a limit, a probe each; where there are more, some of them by chance."""
    lanes = _lanes_after(tx, key, 0, most)
    if len(lanes) < most:
        return lanes
    row = tx.row(
        "SELECT max(lane_id) FROM jobs WHERE state = 'blocked' AND parked_for IS NOT NULL AND parked_for = :key",
        {"key": key},
    )
    start = random.randrange(int(row[0] or 0) if row else 1)
    return list(dict.fromkeys(_lanes_after(tx, key, start, most) + lanes))[:most]


def _lanes_after(tx: "Tx", key: str, after: int, most: int) -> list[int]:
    rows = tx.rows(_PARKED_LANES, {"key": key, "after": after, "most": most})
    return [int(row[0]) for row in rows if row[0] is not None]


def _head_of(tx: "Tx", key: str, lane_id: int) -> _Head | None:
    row = tx.row(
        """
        SELECT lane_id, seq, priority, limits
          FROM jobs
         WHERE state = 'blocked' AND parked_for IS NOT NULL AND parked_for = :key AND lane_id = :lane_id
         ORDER BY priority DESC, seq
         LIMIT 1
        """,
        {"key": key, "lane_id": lane_id},
    )
    return None if row is None else _Head.of_row(row)


def _release_of_lane(tx: "Tx", key: str, head: _Head, wanted: int) -> int:
    """Put the next jobs of a lane back in the line; those that another limit would stop wait for that."""
    for _ in range(REPARKED_AT_ONCE):
        other = _other_that_is_full(tx, head.limits, key)
        if other is None or not moves.park_for_another(tx, head.lane_id, head.limits, key, other):
            return _unpark(tx, key, head.lane_id, wanted)
        following = _head_of(tx, key, head.lane_id)
        if following is None:
            return 0
        head = following
    return 0


def _unpark(tx: "Tx", key: str, lane_id: int, wanted: int) -> int:
    rows = tx.rows(
        f"""
        SELECT seq
          FROM jobs
         WHERE state = 'blocked' AND parked_for IS NOT NULL AND parked_for = :key AND lane_id = :lane_id
         ORDER BY priority DESC, seq
         LIMIT :wanted {tx.dialect.skip_locked}
        """,
        {"key": key, "lane_id": lane_id, "wanted": wanted},
    )
    return moves.unpark(tx, [int(row[0] or 0) for row in rows]) if rows else 0


def _other_that_is_full(tx: "Tx", text: str, key: str) -> str | None:
    """Return a limit that keeps jobs from running which another one lets go; None where it cannot be locked now."""
    others = [other for other in read_list(text) if other != key]
    if not others or not tx.try_lock(others).issuperset(others):
        return None
    return next((other for other, room in limits.rooms(tx, others).items() if room < 1), None)
