"""Jobs: finding, listing and counting them. Adding is in adding.py, changes of state in claims.py and moves.py."""

from functools import lru_cache

from queuectl.errors import BadInput
from queuectl.model.job import Job, read_list
from queuectl.model.states import Hindrance, State
from queuectl.model.value import Value, columns_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from queuectl.store.database import Tx
    from queuectl.store.dialect import SqlValue

COLUMNS = columns_of(Job)
FIRST_RUN_AT = "SELECT min(run_at) FROM jobs WHERE state IN ('scheduled', 'failed')"
"""One entry of jobs_due. Not EXISTS with a time: PostgreSQL expects to meet one soon, and walks the history instead."""
CHUNK = 500
NEWEST_WINDOW = 10_000
"""How many of the newest numbers are walked before a state that holds most of the history is looked up whole."""

FEW_LANES = 16
"""Up to so many lanes, to compare each row with every lane costs less than to sort the rows by lane."""


_HINDRANCES = {
    Hindrance.HELD: "held_at IS NOT NULL",
    Hindrance.PARKED: "parked_for IS NOT NULL",
    Hindrance.DEPENDENT: "waits_for > 0",
}
_HINDRANCE_COLUMNS = {
    Hindrance.HELD: "held_at",
    Hindrance.PARKED: "parked_for",
    Hindrance.DEPENDENT: "waits_for",
}


class Filter(Value):
    """Which jobs a person means; every part that is given must hold."""

    states: tuple[State, ...] = ()
    hindrances: tuple[Hindrance, ...] = ()
    """Of those that are blocked, why; empty means for whatever reason."""
    queue: str | None = None
    group: str | None = None
    tags: tuple[str, ...] = ()
    text: str | None = None
    """What the command holds, letter by letter."""
    error: str | None = None
    """What the last error holds, letter by letter."""
    errors: tuple[str, ...] = ()
    """What the last error is, as a whole, one of these; empty stands for none."""
    since: int | None = None
    until: int | None = None
    """When it was added: from `since` on, before `until`."""
    ended_since: int | None = None
    """From when on it came to its end; one that is not over has none."""
    first: int | None = None
    last: int | None = None
    """The numbers it may have, both ends included."""

    if not TYPE_CHECKING:

        def __init__(self, **fields):
            super().__init__(**fields)
            if "" in (self.text, self.error):
                raise BadInput("an empty text is in every job", hint="leave it out")

    @property
    def state_names(self) -> list[str]:
        """What people call the states that are meant."""
        blocked = self.hindrances or (State.BLOCKED,)
        return [str(name) for state in self.states for name in (blocked if state is State.BLOCKED else (state,))]

    def means(self, job: Job) -> bool:
        """Whether a job that matched is still blocked for the same reason, if it is."""
        if job.state is not State.BLOCKED or not self.hindrances:
            return True
        return any(getattr(job, _HINDRANCE_COLUMNS[each]) for each in self.hindrances)


def get(tx: "Tx", seq: int) -> Job | None:
    """Return a job by its number."""
    row = tx.row(f"SELECT {COLUMNS} FROM jobs WHERE seq = :seq", {"seq": seq})
    return None if row is None else Job.of_row(row)


def get_for_update(tx: "Tx", seq: int) -> Job | None:
    """Return a job by its number and keep others from changing it until this transaction ends."""
    row = tx.row(f"SELECT {COLUMNS} FROM jobs WHERE seq = :seq {tx.dialect.for_update}", {"seq": seq})
    return None if row is None else Job.of_row(row)


def find(tx: "Tx", job_id: str) -> Job | None:
    """Return a job by what people call it: its number, the id they gave it, or `last`."""
    if job_id == "last":
        row = tx.row(f"SELECT {COLUMNS} FROM jobs ORDER BY seq DESC LIMIT 1")
    elif job_id.isascii() and job_id.isdigit():
        return get(tx, int(job_id)) if len(job_id) < 19 else None
    else:
        row = tx.row(f"SELECT {COLUMNS} FROM jobs WHERE given_id = :id", {"id": job_id})
    return None if row is None else Job.of_row(row)


def numbers_of(tx: "Tx", names: "Sequence[str]") -> dict[str, int]:
    """Return the numbers of jobs by what people call them; those that are not there are left out."""
    found: dict[str, int] = {}
    given = [name for name in names if not name.isdigit() and name != "last"]
    numbers = {int(name): name for name in names if name.isdigit()}
    if "last" in names and (last := last_seq(tx)):
        found["last"] = last
    for start in range(0, len(given), CHUNK):
        marks, params = listed("id", given[start : start + CHUNK])
        rows = tx.rows(f"SELECT given_id, seq FROM jobs WHERE given_id IN ({marks})", params)
        found |= {str(name): int(seq or 0) for name, seq in rows}
    return found | {numbers[seq]: seq for seq in states_by_number(tx, list(numbers))}


def ids_around(tx: "Tx", name: str, limit: int) -> list[str]:
    """Return ids people gave that stand next to a name in the index, so many before it and after it."""
    found: list[str] = []
    for side, order in (("<=", "DESC"), (">", "ASC")):
        rows = tx.rows(
            f"SELECT given_id FROM jobs WHERE given_id {side} :name ORDER BY given_id {order} LIMIT :limit",
            {"name": name, "limit": limit},
        )
        found += [str(row[0]) for row in rows]
    return found


def newest(tx: "Tx", wanted: Filter, limit: int) -> list[Job]:
    """Return the newest jobs that match, newest first."""
    if State.COMPLETED in wanted.states:
        # Most of history: its newest are near the end of the table, and sorting all of it takes 110 ms a million.
        end = last_seq(tx) if wanted.last is None else wanted.last
        near = wanted.replace(first=max(wanted.first or 0, end - NEWEST_WINDOW + 1))
        found = _seqs(tx, near, "seq DESC", limit)
        if len(found) == limit:
            return by_seqs(tx, found)
    # Adding 0 keeps the planner from walking the whole history by number when the states are in small indexes.
    return by_seqs(tx, _seqs(tx, wanted, "seq + 0 DESC" if wanted.states else "seq DESC", limit))


def last_seq(tx: "Tx") -> int:
    """Return the highest number a job has; 0 when there is none."""
    row = tx.row("SELECT max(seq) FROM jobs")
    return int(row[0] or 0) if row else 0


def has_between(tx: "Tx", first: int, last: int) -> bool:
    """Whether any job has a number from `first` to `last`."""
    sql = "SELECT seq FROM jobs WHERE seq BETWEEN :first AND :last LIMIT 1"
    return tx.row(sql, {"first": first, "last": last}) is not None


def states_of(tx: "Tx", wanted: Filter) -> "list[tuple[int, str]]":
    """Return the numbers and states of all matching jobs, in the order of their numbers; there may be a million."""
    where, params = where_of(wanted)
    rows = tx.rows(f"SELECT seq, state FROM jobs WHERE {where}", params)
    rows.sort()  # in place, and handed on as they are: each copy would cost 110 MB a million
    return rows  # type: ignore[return-value]


def lock(tx: "Tx", seqs: "Sequence[int]") -> list[Job]:
    """Return jobs by their numbers, oldest first, and keep others from changing them until this transaction ends."""
    locked: list[Job] = []
    for start in range(0, len(seqs), CHUNK):
        names, params = listed("seq", sorted(seqs)[start : start + CHUNK])
        sql = f"SELECT {COLUMNS} FROM jobs WHERE seq IN ({names}) ORDER BY seq {tx.dialect.for_update}"
        locked += [Job.of_row(row) for row in tx.rows(sql, params)]
    return locked


def edit(tx: "Tx", before: Job, after: Job) -> bool:
    """Write what differs between two versions of a job, but for its state; False means it has moved on meanwhile."""
    changes = {
        name: getattr(after, name)
        for name in Job.FIELDS
        if name != "state" and getattr(after, name) != getattr(before, name)
    }
    if not changes:
        return True
    columns = ", ".join(f"{name} = :{name}" for name in changes)
    return bool(
        tx.changed(
            f"UPDATE jobs SET {columns}, updated_at = :now WHERE state = :was AND seq = :seq",
            {**changes, "now": tx.now, "was": before.state.value, "seq": before.seq},
        )
    )


def latest_dead(tx: "Tx", wanted: Filter, limit: int) -> list[Job]:
    """Return dead jobs that match, the latest death first."""
    where, params = where_of(wanted.replace(states=(State.DEAD,)))
    seqs = tx.rows(
        f"SELECT seq FROM jobs WHERE {where} ORDER BY finished_at DESC, seq DESC LIMIT :limit",
        {**params, "limit": limit},
    )
    return by_seqs(tx, [int(row[0] or 0) for row in seqs])


def by_seqs(tx: "Tx", seqs: "Sequence[int]") -> list[Job]:
    """Return jobs by their numbers, in the order asked; those that are gone are left out."""
    found: dict[int, Job] = {}
    for start in range(0, len(seqs), CHUNK):
        names, params = listed("seq", seqs[start : start + CHUNK])
        for row in tx.rows(f"SELECT {COLUMNS} FROM jobs WHERE seq IN ({names})", params):
            job = Job.of_row(row)
            found[job.seq] = job
    return [found[seq] for seq in seqs if seq in found]


def limits_named(tx: "Tx", seqs: "Sequence[int]") -> set[str]:
    """Return the keys of the limits that jobs name."""
    keys: set[str] = set()
    for start in range(0, len(seqs), CHUNK):
        names, params = listed("seq", seqs[start : start + CHUNK])
        rows = tx.rows(f"SELECT DISTINCT limits FROM jobs WHERE seq IN ({names}) AND limits IS NOT NULL", params)
        keys.update(key for row in rows for key in read_list(str(row[0])))
    return keys


def groups_named(tx: "Tx", seqs: "Sequence[int]") -> set[str]:
    """Return the groups that jobs are of."""
    found: set[str] = set()
    for start in range(0, len(seqs), CHUNK):
        names, params = listed("seq", seqs[start : start + CHUNK])
        sql = f"SELECT DISTINCT group_name FROM jobs WHERE seq IN ({names}) AND group_name IS NOT NULL"
        found.update(str(row[0]) for row in tx.rows(sql, params))
    return found


def states_by_number(tx: "Tx", seqs: "Sequence[int]") -> dict[int, State]:
    """Return the states of jobs by their numbers; those that are gone are left out."""
    found: dict[int, State] = {}
    for start in range(0, len(seqs), CHUNK):
        names, params = listed("seq", seqs[start : start + CHUNK])
        for seq, state in tx.rows(f"SELECT seq, state FROM jobs WHERE seq IN ({names})", params):
            found[int(seq or 0)] = State(str(state))
    return found


def seqs_matching(tx: "Tx", wanted: Filter, after_seq: int, limit: int) -> list[int]:
    """Return the numbers of matching jobs beyond `after_seq`, oldest first: one page of a walk over them all."""
    where, params = where_of(wanted)
    rows = tx.rows(
        f"SELECT seq FROM jobs WHERE seq > :after AND {where} ORDER BY seq LIMIT :limit",
        {**params, "after": after_seq, "limit": limit},
    )
    return [int(row[0] or 0) for row in rows]


def page(tx: "Tx", wanted: Filter, after_seq: int, limit: int) -> list[Job]:
    """Return matching jobs beyond `after_seq`, oldest first: one page of a walk over the whole table by number.

    The states are spelt so that no index holds them: else each page might be sorted out of all jobs in a state.
    """
    where, params = where_of(wanted.replace(states=()))
    if wanted.states:
        names, states = listed("state", [state.value for state in wanted.states])
        where, params = f"{where} AND state || '' IN ({names})", {**params, **states}
    rows = tx.rows(
        f"SELECT {COLUMNS} FROM jobs WHERE seq > :after AND {where} ORDER BY seq LIMIT :limit",
        {**params, "after": after_seq, "limit": limit},
    )
    return [Job.of_row(row) for row in rows]


def has_any(tx: "Tx") -> bool:
    """Whether the store holds any job."""
    return tx.row("SELECT 1 FROM jobs LIMIT 1") is not None


def count_matching(tx: "Tx", wanted: Filter) -> int:
    """Return how many jobs match; from the indexes alone where only states and the queue are asked for."""
    if wanted == Filter(states=wanted.states, queue=wanted.queue):
        by_queue = counts(tx)
        chosen = by_queue.values() if wanted.queue is None else [by_queue.get(wanted.queue, {})]
        return sum(n for of_queue in chosen for state, n in of_queue.items() if state in (wanted.states or State))
    where, params = where_of(wanted)
    row = tx.row(f"SELECT count(*) FROM jobs WHERE {where}", params)
    return int(row[0] or 0) if row else 0


def counts(tx: "Tx") -> dict[str, dict[State, int]]:
    """Return how many jobs each queue has in each state; exact, from the indexes alone."""
    queues = {int(lane or 0): str(queue) for lane, queue in tx.rows("SELECT id, queue FROM lanes")}
    return by_queue(counts_by_lane(tx, list(queues)), queues)


def counts_by_lane(tx: "Tx", lanes: "Sequence[int]") -> dict[int, dict[State, int]]:
    """Return how many jobs each lane has in each state, of all lanes there are; those that are empty are left out."""
    found: dict[int, dict[State, int]] = {}
    for state, lane, count in _compared(tx, lanes) if len(lanes) <= FEW_LANES else _grouped(tx):
        found.setdefault(lane, {})[state] = count
    return found


def by_queue(counts: "Mapping[int, Mapping[State, int]]", queues: "Mapping[int, str]") -> dict[str, dict[State, int]]:
    """Sum up the counts of lanes by the queue of each."""
    found: dict[str, dict[State, int]] = {}
    for lane, of_lane in counts.items():
        of_queue = found.setdefault(queues[lane], {})
        for state, count in of_lane.items():
            of_queue[state] = of_queue.get(state, 0) + count
    return found


def used_lanes(tx: "Tx") -> set[int]:
    """Return the lanes that any job stands in; walks the indexes, 0.1 s a million jobs."""
    return {lane for _, lane, _ in _grouped(tx)}


def _compared(tx: "Tx", lanes: "Sequence[int]") -> "list[tuple[State, int, int]]":
    """Count the jobs of a few lanes by state, in one walk over each index.

    A million completed jobs of one lane: 45 ms on SQLite, which would sort them to group them, 230 ms; 85 ms on
    PostgreSQL, where hashing each takes 135 ms, and reading the table, which it takes for cheaper, 230 ms.
    """
    if not lanes:
        return []
    tx.dialect.keep_to_indexes()
    columns = ", ".join(f"count(*) FILTER (WHERE lane_id = {lane})" for lane in lanes)
    each = (f"SELECT '{state}', {columns} FROM jobs WHERE {where}" for state, where in _STATE_WHERE.items())
    rows = tx.rows(" UNION ALL ".join(each))
    return [
        (State(str(state)), lane, int(count))
        for state, *numbers in rows
        for lane, count in zip(lanes, numbers, strict=True)
        if count
    ]


def _grouped(tx: "Tx") -> "list[tuple[State, int, int]]":
    """Count the jobs of all lanes that hold any, by state."""
    tx.dialect.keep_to_indexes()
    each = (
        f"SELECT '{state}', lane_id, count(*) FROM jobs WHERE {where} GROUP BY lane_id"
        for state, where in _STATE_WHERE.items()
    )
    rows = tx.rows(" UNION ALL ".join(each))
    return [(State(str(state)), int(lane or 0), int(count or 0)) for state, lane, count in rows]


def next_run_at(tx: "Tx") -> int | None:
    """Return the earliest time any job waits for."""
    row = tx.row(FIRST_RUN_AT)
    return None if row is None or row[0] is None else int(row[0])


def has_unfinished(tx: "Tx", lanes: "Sequence[int]") -> bool:
    """Whether these lanes hold a job that is ready, runs or waits for a retry."""
    if not lanes:
        return False
    names, params = listed("lane", lanes)
    # One after the other, so that the last, which may pass over many future jobs, is rarely asked. Ordered as the
    # indexes are: else PostgreSQL expects to meet a ready job soon and walks the history instead.
    for where, order in (
        ("state = 'pending'", "lane_id, priority DESC, seq"),
        ("state = 'processing'", "worker_id, lane_id"),
        ("state IN ('scheduled', 'failed') AND state = 'failed'", "run_at"),
    ):
        sql = f"SELECT seq FROM jobs WHERE {where} AND lane_id IN ({names}) ORDER BY {order} LIMIT 1"
        if tx.row(sql, params) is not None:
            return True
    return False


def seqs_between(tx: "Tx", first: int, last: int) -> set[int]:
    """Return which numbers of a range, both ends included, jobs have."""
    rows = tx.rows("SELECT seq FROM jobs WHERE seq >= :first AND seq <= :last", {"first": first, "last": last})
    return {int(row[0] or 0) for row in rows}


def has_beyond(tx: "Tx", seq: int) -> bool:
    """Whether a job has a higher number."""
    return tx.row("SELECT seq FROM jobs WHERE seq > :seq ORDER BY seq LIMIT 1", {"seq": seq}) is not None


def _seqs(tx: "Tx", wanted: Filter, order: str, limit: int) -> list[int]:
    where, params = where_of(wanted)
    rows = tx.rows(f"SELECT seq FROM jobs WHERE {where} ORDER BY {order} LIMIT :limit", {**params, "limit": limit})
    return [int(row[0] or 0) for row in rows]


def where_of(wanted: Filter) -> "tuple[str, dict[str, SqlValue]]":
    """Return the condition that holds for matching jobs, and its values."""
    parts: list[str] = []
    params: dict[str, SqlValue] = {}
    if wanted.states:
        parts.append("(" + " OR ".join(f"({_STATE_WHERE[state]})" for state in wanted.states) + ")")
    if wanted.hindrances:
        parts.append(f"(state <> 'blocked' OR {' OR '.join(_HINDRANCES[each] for each in wanted.hindrances)})")
    if wanted.queue is not None:
        parts.append("lane_id IN (SELECT id FROM lanes WHERE queue = :queue)")  # lanes are in the partial indexes
        params["queue"] = wanted.queue
    if wanted.group is not None:
        parts.append("group_name IS NOT NULL AND group_name = :group")
        params["group"] = wanted.group
    for number, tag in enumerate(wanted.tags):
        parts.append(f"tags IS NOT NULL AND {_holds('tags', f'tag_{number}')}")
        params[f"tag_{number}"] = f'"{tag}"'
    if wanted.text is not None:
        parts.append(_holds("COALESCE(command, argv)", "text"))
        params["text"] = wanted.text
    _add_errors(wanted, parts, params)
    for column, comparison, name in _BOUNDS:
        value = getattr(wanted, name)
        if value is not None:
            parts.append(f"{column} {comparison} :{name}")
            params[name] = value
    return " AND ".join(parts) or "1 = 1", params


def _add_errors(wanted: Filter, parts: list[str], params: "dict[str, SqlValue]") -> None:
    if wanted.error is not None:
        parts.append(f"error IS NOT NULL AND {_holds('error', 'error')}")
        params["error"] = wanted.error
    if wanted.errors:
        names, errors = listed("error", wanted.errors)
        parts.append(f"COALESCE(error, '') IN ({names})")
        params.update(errors)


_BOUNDS = (
    ("created_at", ">=", "since"),
    ("created_at", "<", "until"),
    ("finished_at", ">=", "ended_since"),
    ("seq", ">=", "first"),
    ("seq", "<=", "last"),
)


def _holds(column: str, parameter: str) -> str:
    """Whether a text holds another: LIKE minds the case on one database and not on the other."""
    return f"replace({column}, :{parameter}, '') <> {column}"


# Spelt as the partial indexes are, so that both planners know which of them holds the rows.
_STATE_WHERE = {
    State.PENDING: "state = 'pending'",
    State.SCHEDULED: "state IN ('scheduled', 'failed') AND state = 'scheduled'",
    State.BLOCKED: "state = 'blocked'",
    State.PROCESSING: "state = 'processing'",
    State.COMPLETED: "state = 'completed'",
    State.FAILED: "state IN ('scheduled', 'failed') AND state = 'failed'",
    State.DEAD: "state = 'dead'",
    State.CANCELLED: "state = 'cancelled'",
}


def listed(name: str, values: "Sequence[SqlValue]") -> "tuple[str, dict[str, SqlValue]]":
    """Return the placeholders of an IN list and their values."""
    marks, keys = _marks(name, len(values))
    return marks, dict(zip(keys, values, strict=True))


@lru_cache(maxsize=64)
def _marks(name: str, count: int) -> tuple[str, list[str]]:
    keys = [f"{name}_{number}" for number in range(count)]
    return ", ".join(f":{key}" for key in keys), keys
