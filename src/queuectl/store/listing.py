"""Listing: pages of jobs in any order, each as quick as the first however many jobs there are.

A page begins where the one before ended: behind a key (the value sorted by, and the number), never at a count of rows.
Each order is walked along an index that has it, in sections that follow each other; what is asked for beside it is
looked at on the way. Where few jobs are in the states that are asked for, these are taken whole and sorted here.
"""

from enum import StrEnum

from queuectl.model.states import FINAL, State
from queuectl.model.value import Value
from queuectl.store.jobs import Filter, by_seqs, listed, where_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from queuectl.model.job import Job
    from queuectl.store.database import Tx
    from queuectl.store.dialect import SqlValue

    Pair = tuple[int | None, int]

FEW = 4000
"""So many jobs are read and sorted in about 20 ms; a walk past a million others takes ten times that."""


_SELDOM_STARTED = frozenset({State.PENDING, State.SCHEDULED, State.BLOCKED})
"""A walk by start would pass all others before it met one of these."""


class Order(StrEnum):
    """What jobs may be listed by."""

    ADDED = "added"
    PRIORITY = "priority"
    STARTED = "started"
    FINISHED = "finished"


COLUMNS = {
    Order.ADDED: "seq",
    Order.PRIORITY: "priority",
    Order.STARTED: "started_at",
    Order.FINISHED: "finished_at",
}


class Key(Value):
    """Where a job stands in an order: the value it is sorted by, and its number."""

    value: int | None
    seq: int


class Sorting(Value):
    """An order and its direction: the newest or highest first, unless reversed.

    Jobs that have no such time come last either way; of two with the same priority the one that runs first is first.
    """

    order: Order = Order.ADDED
    is_reversed: bool = False

    @property
    def way(self) -> str:
        """The direction of the values."""
        return "ASC" if self.is_reversed else "DESC"

    @property
    def tie(self) -> str:
        """The direction of the numbers of jobs that have the same value."""
        return self.way if self.order is not Order.PRIORITY else ("DESC" if self.is_reversed else "ASC")

    def key_of(self, job: "Job") -> Key:
        """Return where a job stands."""
        return Key(value=getattr(job, COLUMNS[self.order]), seq=job.seq)

    def place(self, key: Key) -> tuple[bool, int, int]:
        """Return what keys are compared by."""
        way, tie = (1 if each == "ASC" else -1 for each in (self.way, self.tie))
        return key.value is None, way * (key.value or 0), tie * key.seq


def page(tx: "Tx", parts: "Sequence[Filter]", sorting: Sorting, limit: int, after: Key | None = None) -> "list[Job]":
    """Return the first jobs of an order behind a key that match one of the filters, of which no two match one job."""
    found: list[Key] = []
    for part in parts:
        is_few = _is_few(tx, part, sorting)
        found += _few(tx, part, sorting) if is_few else _walked(tx, part, sorting, limit, after)
    start = None if after is None else sorting.place(after)
    keys = sorted((key for key in found if start is None or sorting.place(key) > start), key=sorting.place)
    return by_seqs(tx, [key.seq for key in keys[:limit]])


def page_before(tx: "Tx", parts: "Sequence[Filter]", sorting: Sorting, limit: int, before: Key) -> "list[Job]":
    """Return the last jobs of an order before a key, in that order: the way back from a page."""
    back = sorting.replace(is_reversed=not sorting.is_reversed)
    found = page(tx, parts, back, limit, before)
    # Jobs without a value are last whichever way it goes: on the way back they come first, and then the others.
    if before.value is None:
        if len(found) < limit:
            found += [job for job in page(tx, parts, back, limit - len(found)) if back.key_of(job).value is not None]
    else:
        found = [job for job in found if back.key_of(job).value is not None]
    return found[::-1]


def _is_few(tx: "Tx", wanted: Filter, sorting: Sorting) -> bool:
    """Whether the states, or the group, that are asked for hold few jobs; counts so many in the index and no more."""
    if wanted.first is not None and wanted.last is not None and wanted.last - wanted.first < FEW:
        return True
    if not wanted.states and wanted.group is None:
        return False
    is_unusual = sorting.order is Order.STARTED and frozenset(wanted.states or State) <= _SELDOM_STARTED
    left = FEW * 10 if is_unusual else FEW
    for state in wanted.states or State:
        where, params = where_of(Filter(states=(state,), group=wanted.group, ended_since=wanted.ended_since))
        sql = f"SELECT count(*) FROM (SELECT 1 FROM jobs WHERE {where} LIMIT :left) AS first_ones"
        row = tx.row(sql, {**params, "left": left})
        left -= int(row[0] or 0) if row else 0
        if left <= 0:
            return False
    return True


def _few(tx: "Tx", wanted: Filter, sorting: Sorting) -> list[Key]:
    where, params = where_of(wanted)
    rows = tx.rows(f"SELECT {COLUMNS[sorting.order]}, seq FROM jobs WHERE {where}", params)
    return [_key(row) for row in rows]


def _walked(tx: "Tx", wanted: Filter, sorting: Sorting, limit: int, after: Key | None) -> list[Key]:
    """Return the first keys along the indexes: section by section, until there are enough."""
    found: list[Key] = []
    for section in _SECTIONS[sorting.order]:
        for where, params, order_by in section(wanted, sorting, after):
            sql = f"SELECT {COLUMNS[sorting.order]}, seq FROM jobs WHERE {where} ORDER BY {order_by} LIMIT :limit"
            found += [_key(row) for row in tx.rows(sql, {**params, "limit": limit})]
        if len(found) >= limit:
            break
    return found


def _key(row: "Sequence[SqlValue]") -> Key:
    value, seq = row
    return Key(value=None if value is None else int(value), seq=int(seq or 0))


def _by_number(wanted: Filter, way: str, after_seq: int | None, more: str = "") -> "Statement":
    """Return a walk by number; the states are spelt so that no index of theirs is taken for it."""
    where, params = where_of(wanted.replace(states=()))
    if wanted.states:
        names, states = listed("state", [state.value for state in wanted.states])
        where, params = f"{where} AND state || '' IN ({names})", {**params, **states}
    if after_seq is not None:
        where, params = f"seq {'>' if way == 'ASC' else '<'} :after_seq AND {where}", {**params, "after_seq": after_seq}
    return f"{where}{more}", params, f"seq {way}"


def _by_value(
    wanted: Filter, sorting: Sorting, after: Key | None, within: str, *, spelt: str | None = None
) -> "Statement":
    """Return a walk by value within what an index holds, behind a key."""
    column = COLUMNS[sorting.order]
    where, params = where_of(wanted.replace(states=()))
    if spelt is None and wanted.states:
        names, states = listed("state", [state.value for state in wanted.states])
        where, params = f"{where} AND state || '' IN ({names})", {**params, **states}
    if after is not None:
        beyond, next_to = (">" if each == "ASC" else "<" for each in (sorting.way, sorting.tie))
        behind = f"{column} {beyond}= :after AND ({column} {beyond} :after OR seq {next_to} :after_seq)"
        where, params = f"{behind} AND {where}", {**params, "after": after.value, "after_seq": after.seq}
    return f"{within} AND {where}", params, f"{column} {sorting.way}, seq {sorting.tie}"


def _added(wanted: Filter, sorting: Sorting, after: Key | None) -> "Iterator[Statement]":
    yield _by_number(wanted, sorting.way, None if after is None else after.seq)


def _first_priorities(wanted: Filter, sorting: Sorting, after: Key | None) -> "Iterator[Statement]":
    """The priorities that come before 0."""
    sign = "<" if sorting.is_reversed else ">"
    if after is None or _comes_before_zero(after, sorting):
        yield _by_value(wanted, sorting, after, f"priority <> 0 AND priority {sign} 0")


def _no_priorities(wanted: Filter, sorting: Sorting, after: Key | None) -> "Iterator[Statement]":
    """Those of priority 0, as most are: no index holds them."""
    if after is None or after.value == 0 or _comes_before_zero(after, sorting):
        after_seq = after.seq if after is not None and after.value == 0 else None
        yield _by_number(wanted, sorting.tie, after_seq, " AND priority = 0")


def _last_priorities(wanted: Filter, sorting: Sorting, after: Key | None) -> "Iterator[Statement]":
    """The priorities that come after 0."""
    sign = ">" if sorting.is_reversed else "<"
    is_behind = after is not None and after.value != 0 and not _comes_before_zero(after, sorting)
    yield _by_value(wanted, sorting, after if is_behind else None, f"priority <> 0 AND priority {sign} 0")


def _comes_before_zero(key: Key, sorting: Sorting) -> bool:
    return (key.value or 0) < 0 if sorting.is_reversed else (key.value or 0) > 0


def _started(wanted: Filter, sorting: Sorting, after: Key | None) -> "Iterator[Statement]":
    if after is None or after.value is not None:
        yield _by_value(wanted, sorting, after, "started_at IS NOT NULL")


def _not_started(wanted: Filter, sorting: Sorting, after: Key | None) -> "Iterator[Statement]":
    after_seq = after.seq if after is not None and after.value is None else None
    yield _by_number(wanted, sorting.way, after_seq, " AND started_at IS NULL")


def _finished(wanted: Filter, sorting: Sorting, after: Key | None) -> "Iterator[Statement]":
    """Each final state by itself, as its index has it."""
    if after is not None and after.value is None:
        return
    for state in FINAL & frozenset(wanted.states or FINAL):
        own, _ = where_of(Filter(states=(state,)))
        yield _by_value(wanted, sorting, after, f"{own} AND finished_at IS NOT NULL", spelt=own)


def _not_finished(wanted: Filter, sorting: Sorting, after: Key | None) -> "Iterator[Statement]":
    """The others; whatever is in a final state has finished, and need not be walked past again."""
    if wanted.states and FINAL.issuperset(wanted.states):
        return
    after_seq = after.seq if after is not None and after.value is None else None
    yield _by_number(wanted, sorting.way, after_seq, " AND finished_at IS NULL")


_SECTIONS = {
    Order.ADDED: (_added,),
    Order.PRIORITY: (_first_priorities, _no_priorities, _last_priorities),
    Order.STARTED: (_started, _not_started),
    Order.FINISHED: (_finished, _not_finished),
}

if TYPE_CHECKING:
    Statement = tuple[str, dict[str, SqlValue], str]
