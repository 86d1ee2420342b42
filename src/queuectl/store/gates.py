"""Gates: what a worker may take now. One mechanism for all of them; taking is in claims.py.

A lane is shut while its queue is paused or full, while the rate of its queue forbids a start, and to a worker that
lacks what its jobs need; nobody looks at the jobs of a lane that is shut. What keeps one job alone, a named limit that
is full or a deadline that is over, is found when it is the next of its lane: it is parked or buried, and so leaves the
line.

Whatever is limited is locked first, in a statement of its own, then counted, then taken. Counted in the same statement,
8 claimers overran a limit of 3 in most of their claims. What nobody limits takes no lock.
"""

from queuectl.model.job import Job, dumps, read_units
from queuectl.model.needs import fits, take, without
from queuectl.model.value import Value
from queuectl.store import limits, moves, parking, queues
from queuectl.store.deadlines import expire
from queuectl.store.lanes import Lane, lane_rows
from queuectl.store.takers import Taker

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from queuectl.model.needs import Units
    from queuectl.store.database import Tx
    from queuectl.store.dialect import Row
    from queuectl.store.parking import Patient

UNITS_PATIENCE_MS = 30_000
ASIDE_AT_ONCE = 1000
LANES_AT_ONCE = 200  # SQLite takes at most 500 terms in a compound SELECT, and 2000 columns


class Map(Value):
    """The lanes as one worker sees them; the same until somebody changes a queue, so it is drawn once."""

    queue_of: "dict[int, str]"
    served: "dict[int, Lane]"
    narrow: frozenset[str]
    """The queues that let only so many run: whoever ends a job there makes room."""
    is_plain: bool
    """Whether no lane is limited, nor asks for a resource."""
    plain_lane: int | None
    """The only lane there is to take from, where it is a plain one."""

    @classmethod
    def of(cls, rows: "list[Row]", taker: Taker) -> "Map":
        """Return the map for rows of lanes, drawn anew when they differ from the last."""
        before = _last_maps.get(taker.worker_id)
        if before is not None and before[0] is taker and before[1] == rows:
            return before[2]
        drawn = cls._drawn(rows, taker)
        _last_maps[taker.worker_id] = taker, rows, drawn
        return drawn

    @classmethod
    def _drawn(cls, rows: "list[Row]", taker: Taker) -> "Map":
        lanes = [Lane.of_row(row) for row in rows]
        served = {lane.id: lane for lane in lanes if lane.paused_at is None and taker.serves(lane)}
        is_plain = not any(lane.is_special for lane in served.values())
        return cls(
            queue_of={lane.id: lane.queue for lane in lanes},
            served=served,
            narrow=frozenset(lane.queue for lane in lanes if lane.concurrency is not None),
            is_plain=is_plain,
            plain_lane=next(iter(served)) if is_plain and len(served) == 1 else None,
        )


_last_maps: dict[str, tuple[Taker, "list[Row]", Map]] = {}  # a process is one worker: it holds one


class Admission:
    """What one claim may take: asked for the open lanes, then told of the next jobs of them, round by round."""

    def __init__(self, tx: "Tx", taker: Taker, seen: Map) -> None:
        self._tx = tx
        self._taker = taker
        self.opens_at: int | None = None
        """When a rate lets a job start that it forbids now."""
        self.buried: list[Job] = []
        """Jobs that were next, but whose deadline had passed."""
        self.is_cut_short = False
        """Whether something may be left that was out of reach for a moment: look again soon."""
        self._lanes = self._served(seen)
        self._rooms: dict[str, int] = {}
        self._starts: dict[str, int] = {}
        self._free: Units = {}
        self._keys: set[str] = set()
        self._aside = 0
        self._is_plain = self._map.is_plain
        self._secured: set[int] = set()
        if not self._is_plain:
            self._measure()
            self._shut_empty_lanes()

    @property
    def open_lanes(self) -> list[Lane]:
        """The lanes it may take from, as far as is known by now."""
        return list(self._lanes.values())

    def secure(self, lane_ids: "Iterable[int]") -> bool:
        """Lock what limits the lanes whose jobs come next, and look again; False means that one of them is shut now.

        The first locks of a transaction are waited for: they are held by claims alone, and short.
        """
        if self._is_plain:
            return True
        chosen = [self._lanes[lane_id] for lane_id in lane_ids if lane_id not in self._secured]
        locks = {lane.id: self._locks_of(lane) for lane in chosen if lane.is_special}
        if not locks:
            return True
        ours = self._tx.lock(name for names in locks.values() for name in names)
        out_of_reach = [lane_id for lane_id, names in locks.items() if not ours.issuperset(names)]
        self._secured.update(locks)
        fresh = self._served(Map.of(lane_rows(self._tx), self._taker))
        self._lanes = {lane_id: fresh[lane_id] for lane_id in self._lanes if lane_id in fresh}
        if out_of_reach:
            self.is_cut_short = True
            self.pass_by(out_of_reach)
        self._measure()
        return all(lane_id in self._lanes for lane_id in locks)

    def admit(self, heads: "Sequence[Job]") -> "Sequence[Job]":
        """Return those of the next jobs that may start, each with the units it gets; the others are put aside.

        Call it with jobs this transaction has taken, in the order in which they should run.
        """
        if self._is_plain and all(job.limits is None and job.deadline_at is None for job in heads):
            return heads
        keys = {key for job in heads for key in job.limit_list}
        ours = self._tx.try_lock(keys) if keys else set()
        rooms = limits.rooms(self._tx, keys) if keys else {}
        kept = parking.kept_for_the_patient(self._tx) if keys else {}
        admitted: list[Job] = []
        full: list[tuple[Job, str]] = []
        for job in heads:
            if job.lane_id not in self._lanes:
                continue
            if not ours.issuperset(job.limit_list):
                self._shut(job.lane_id)
                self.is_cut_short = True
            elif job.deadline_at is not None and job.deadline_at <= self._tx.now:
                self._bury(job)
            elif shut := [key for key in job.limit_list if rooms[key] < 1 or _is_kept(kept.get(key), job)]:
                full.append((job, shut[0]))
            elif started := self._started(job):
                admitted.append(started)
                rooms |= {key: rooms[key] - 1 for key in job.limit_list}
        self._park(full, admitted)
        self._keys.update(key for job in admitted for key in job.limit_list)
        return admitted

    def pass_by(self, lane_ids: "Iterable[int]") -> None:
        """Look no more at lanes whose next jobs others are just taking."""
        for lane_id in lane_ids:
            self._shut(lane_id)

    def finish(self) -> None:
        """Write when the rates let the next jobs start, and fill the line where a limit has room for more.

        Only so many are let go at once: of a limit with a thousand slots, those taken make place for the next.
        """
        for queue, next_start_at in self._starts.items():
            queues.set_next_start(self._tx, queue, next_start_at)
        if self._keys:
            parking.release(self._tx, self._keys)

    def _served(self, seen: Map) -> dict[int, Lane]:
        """Return those lanes that are served and not paused."""
        self._map = seen
        self.narrow = self._map.narrow
        return self._map.served.copy()

    def _shut_empty_lanes(self) -> None:
        """Shut those special lanes that hold nothing to take: they are worth no lock."""
        special = [lane.id for lane in self.open_lanes if lane.is_special]
        for lane_id in set(special) - ready_lanes(self._tx, special):
            self._shut(lane_id)

    def _locks_of(self, lane: Lane) -> list[str]:
        names = [f"queue:{lane.queue}"] if lane.is_limited else []
        return [*names, f"group:{self._taker.group or self._taker.worker_id}"] if lane.asks.use else names

    def _measure(self) -> None:
        """Count what runs, and shut the lanes for which nothing is left."""
        lanes = self.open_lanes
        if any(lane.is_limited for lane in lanes):
            running = self._running()
            self._rooms = {lane.queue: self._room(lane, running) for lane in lanes if lane.is_limited}
        if any(lane.asks.use for lane in lanes):
            self._free = self._taker.supply.left(units_taken(self._tx, self._taker))
        roomy = [lane for lane in lanes if self._rooms.get(lane.queue, 1) > 0]
        self._lanes = {lane.id: lane for lane in roomy if fits(lane.asks.use, self._free)}
        rivals = [lane for lane in self.open_lanes if lane.asks.use]
        patient = [lane for lane in roomy if lane.id not in self._lanes] if rivals else []
        kept = kept_for_the_patient(self._tx, patient, self._free)
        for lane in rivals:
            if not kept.keys().isdisjoint(lane.asks.use):
                self._shut(lane.id)

    def _running(self) -> dict[str, int]:
        """Return how many jobs of each queue run, on every host."""
        counts: dict[str, int] = {}
        for lane_id, number in self._tx.rows(
            "SELECT lane_id, count(*) FROM jobs WHERE state = 'processing' GROUP BY lane_id"
        ):
            queue = self._map.queue_of.get(int(lane_id or 0), "")
            counts[queue] = counts.get(queue, 0) + int(number or 0)
        return counts

    def _room(self, lane: Lane, running: dict[str, int]) -> int:
        """Return how many more jobs the queue of a lane lets start; never more than one where it has a rate."""
        room = limits.UNLIMITED if lane.concurrency is None else lane.concurrency - running.get(lane.queue, 0)
        if lane.rate is None:
            return room
        if lane.queue in self._starts:
            return 0
        opens_at = lane.opens_at(self._tx.now)
        if opens_at is not None:
            self.opens_at = min(opens_at, self.opens_at or opens_at)
            return 0
        return min(room, 1)

    def _started(self, job: "Job") -> "Job | None":
        """Return a job as it may start, with its units, and count it; None means nothing is left for it."""
        lane = self._lanes[job.lane_id]
        use = lane.asks.use
        if self._rooms.get(lane.queue, 1) < 1 or not fits(use, self._free):
            self._shut(lane.id)
            return None
        if lane.queue in self._rooms:
            self._rooms[lane.queue] -= 1
            if not self._rooms[lane.queue]:
                self._lanes = {key: other for key, other in self._lanes.items() if other.queue != lane.queue}
        if lane.rate is not None:
            self._starts[lane.queue] = self._tx.now + lane.rate.interval_ms
            self.opens_at = min(self._starts[lane.queue], self.opens_at or self._starts[lane.queue])
        if not use:
            return job
        units = take(use, self._free)
        self._free = without(self._free, units)
        return job.replace(units=dumps(units))

    def _park(self, full: "Sequence[tuple[Job, str]]", admitted: "Sequence[Job]") -> None:
        """Take jobs, and their like, out of the line; what else they name may let others go meanwhile."""
        starting = {job.seq for job in admitted}
        for job, key in full:
            self._aside += moves.park(self._tx, job, key, starting)
        parking.release(self._tx, {other for job, key in full for other in job.limit_list if other != key})
        self._stop_at_enough()

    def _bury(self, job: Job) -> None:
        dead = expire(self._tx, job)
        if dead is not None:
            self.buried.append(dead)
        self._keys.update(job.limit_list)  # others may go in its place
        self._aside += 1
        self._stop_at_enough()

    def _stop_at_enough(self) -> None:
        """Take nothing more when this claim has put so many aside that others have waited for it long enough."""
        if self._aside >= ASIDE_AT_ONCE:
            self.is_cut_short = True
            self._lanes.clear()

    def _shut(self, lane_id: int) -> None:
        self._lanes.pop(lane_id, None)


def _is_kept(patient: "Patient | None", job: Job) -> bool:
    return patient is not None and not patient.yields_to(job.seq, job.priority)


def ready_lanes(tx: "Tx", lane_ids: "Sequence[int]") -> set[int]:
    """Return those of some lanes that hold a ready job; one probe each."""
    found: set[int] = set()
    for start in range(0, len(lane_ids), LANES_AT_ONCE):
        chunk = lane_ids[start : start + LANES_AT_ONCE]
        probes = ", ".join(
            f"EXISTS (SELECT 1 FROM jobs WHERE state = 'pending' AND lane_id = :lane_{number})"
            for number in range(len(chunk))
        )
        row = tx.row(f"SELECT {probes}", {f"lane_{number}": lane_id for number, lane_id in enumerate(chunk)})
        found.update(lane_id for lane_id, is_ready in zip(chunk, row or (), strict=True) if is_ready)
    return found


def kept_for_the_patient(tx: "Tx", lanes: "Sequence[Lane]", free: "Units") -> dict[str, str]:
    """Return the resources nobody gets now, each with the job that wants more of it than is free and waits too long.

    Else one that wants two units would wait for ever behind many that want one.
    """
    kept: dict[str, str] = {}
    for lane in lanes:
        row = tx.row(
            """
            SELECT updated_at, given_id, seq
              FROM jobs
             WHERE state = 'pending' AND lane_id = :lane_id
             ORDER BY priority DESC, seq
             LIMIT 1
            """,
            {"lane_id": lane.id},
        )
        if row is not None and tx.now - int(row[0] or 0) >= UNITS_PATIENCE_MS:
            wanted = [name for name, amount in lane.asks.use.items() if not fits({name: amount}, free)]
            kept |= dict.fromkeys(wanted, str(row[1] or row[2]))
    return kept


def units_taken(tx: "Tx", taker: Taker) -> "list[Units]":
    """Return what running jobs have of the resources a worker shares with others."""
    return [units for _, units in unit_holders(tx, taker)]


def unit_holders(tx: "Tx", taker: Taker) -> "list[tuple[str, Units]]":
    """Return the running jobs that have some of the resources a worker shares with others, each with what it has.

    Others are the workers of its supervisor; and, on its host, those whose supervisor is dead, until they have ended:
    what they were given is given again by whoever was started in its place.
    """
    rows = tx.rows(
        """
        SELECT j.given_id, j.seq, j.units
          FROM jobs j
          LEFT JOIN workers w ON w.id = j.worker_id
          LEFT JOIN workers s ON s.id = w.supervisor_id
         WHERE j.state = 'processing' AND j.units IS NOT NULL
           AND (j.worker_id = :worker_id OR w.supervisor_id = :group
                OR (w.supervisor_id <> '' AND (s.id IS NULL OR s.state <> 'live')
                    AND w.boot_id = (SELECT o.boot_id FROM workers o WHERE o.id = :worker_id)))
        """,
        {"worker_id": taker.worker_id, "group": taker.group or taker.worker_id},
    )
    return [(str(given_id or seq), read_units(str(units))) for given_id, seq, units in rows]
