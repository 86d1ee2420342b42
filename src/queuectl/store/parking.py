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
from queuectl.store.takers import served_lanes

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
PATIENT_AT_ONCE = 4
PATIENCE_MS = 30_000

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
_PATIENT = """
    SELECT seq, given_id, priority, limits, parked_for, created_at, run_at
      FROM jobs
     WHERE state = 'blocked' AND parked_for IS NOT NULL AND replace(limits, ',', '') <> limits
     ORDER BY priority DESC, seq
     LIMIT :most
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
    kept = kept_for_the_patient(tx) if wanted else {}
    for key, room in limits.rooms(tx, wanted).items() if wanted else ():
        if room > 0:
            moved += _release_of(tx, key, room, kept.get(key))
    if moved:
        tx.wake()
    return moved


class Patient(Value):
    """A job that names several limits and has waited long for all of them to have room at once."""

    seq: int
    id: str
    priority: int

    def yields_to(self, seq: int, priority: int) -> bool:
        """Whether a job may take what is kept for this one: it is the same, or more urgent."""
        return seq == self.seq or priority > self.priority


def kept_for_the_patient(tx: "Tx") -> dict[str, Patient]:
    """Return the limits that are kept free for a job which waits for another of its limits, and is the next for that.

    Else one that needs two limits would wait for ever while many that need one take turns. They are kept for half a
    minute, and then not for half a minute: what it waits for may take hours.
    """
    kept: dict[str, Patient] = {}
    for seq, given_id, priority, names, parked_for, created_at, run_at in tx.rows(_PATIENT, {"most": PATIENT_AT_ONCE}):
        waited_ms = tx.now - max(int(created_at or 0), int(run_at or 0))
        if waited_ms // PATIENCE_MS % 2 == 0:
            continue
        heads = _heads(tx, str(parked_for))
        if heads and heads[0].seq == seq:
            patient = Patient(seq=int(seq or 0), id=str(given_id or seq), priority=int(priority or 0))
            kept |= {key: patient for key in read_list(str(names)) if key != parked_for and key not in kept}
    return kept


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


def _release_of(tx: "Tx", key: str, room: int, kept_for: Patient | None) -> int:
    most, moved = min(room, RELEASED_AT_ONCE) + SPARE, 0
    for head in _heads(tx, key):
        if moved >= most:
            break
        if kept_for is not None and not kept_for.yields_to(head.seq, head.priority):
            continue
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
    """Return the next jobs that wait for a limit, one of a lane: those that somebody serves first, the best before.

    Of many lanes a few are looked at, others each time. Those of paused queues come when their queue is resumed.
    """
    served = served_lanes(tx)
    some = sorted(served) if len(served) <= LANES_AT_ONCE else random.sample(sorted(served), LANES_AT_ONCE)
    others = set(_lanes_parked_for(tx, key, SPARE)) - served - paused_lanes(tx)
    return [*_heads_in(tx, key, some), *_heads_in(tx, key, sorted(others))]


def _heads_in(tx: "Tx", key: str, lanes: "Sequence[int]") -> list[_Head]:
    """Return the next job of each of some lanes that waits for a limit, the best first."""
    if not lanes:
        return []
    sql = " UNION ALL ".join(
        f"""
        SELECT * FROM (
            SELECT lane_id, seq, priority, limits
              FROM jobs
             WHERE state = 'blocked' AND parked_for IS NOT NULL AND parked_for = :key AND lane_id = :lane_{number}
             ORDER BY priority DESC, seq
             LIMIT 1) AS lane_{number}
        """
        for number in range(len(lanes))
    )
    rows = tx.rows(sql, {"key": key, **{f"lane_{number}": lane for number, lane in enumerate(lanes)}})
    return sorted(map(_Head.of_row, rows), key=lambda head: (-head.priority, head.seq))


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


def _release_of_lane(tx: "Tx", key: str, head: _Head, wanted: int) -> int:
    """Put the next jobs of a lane back in the line; those that another limit would stop wait for that."""
    for _ in range(REPARKED_AT_ONCE):
        other = _other_that_is_full(tx, head.limits, key)
        if other is None or not moves.park_for_another(tx, head.lane_id, head.limits, key, other):
            return _unpark(tx, key, head.lane_id, wanted)
        following = _heads_in(tx, key, [head.lane_id])
        if not following:
            return 0
        head = following[0]
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
