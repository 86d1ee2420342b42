"""Pages: jobs in an order, one page after the other in both directions, each begun where the one before it ended.

No page counts those before it: the thousandth costs what the first does. A job that is added or moves between two
pages is on one of them or on none; those that stay where they are come once each.
"""

from queuectl.errors import BadInput
from queuectl.model.patterns import ascii_pattern
from queuectl.model.states import FINAL, State
from queuectl.model.value import Value
from queuectl.store.jobs import (
    NEWEST_WINDOW,
    ORDER_COLUMNS,
    Filter,
    Order,
    by_seqs,
    last_seq,
    newest,
    seqs_in,
    where_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queuectl.model.job import Job
    from queuectl.store.database import Tx
    from queuectl.store.dialect import SqlValue

_CURSOR = r"(?:(-?\d{1,18}|none)\.)?(\d{1,18})"


class Mark(Value):
    """The place of a job in an order: what it is ordered by, and its number."""

    seq: int
    value: int | None = None

    @property
    def text(self) -> str:
        """As an address carries it."""
        return f"{'none' if self.value is None else self.value}.{self.seq}"

    @classmethod
    def of(cls, job: "Job", order: Order) -> "Mark":
        """Return the place of a job."""
        return cls(seq=job.seq, value=getattr(job, ORDER_COLUMNS[order]))


class Page(Value):
    """Some jobs in their order, and where those before and behind them are, if there are any."""

    jobs: "list[Job]"
    before: Mark | None
    after: Mark | None


def read_mark(text: str) -> Mark:
    """Read a place as an address carries it, or raise."""
    found = ascii_pattern(_CURSOR).fullmatch(text)
    if found is None:
        raise BadInput(f"bad cursor {text[:80]!r}", hint="take it from the page before, or leave it out")
    value = found[1]
    return Mark(seq=int(found[2]), value=None if value in (None, "none") else int(value))


def page_of(
    tx: "Tx",
    wanted: Filter,
    order: Order,
    limit: int,
    *,
    is_reversed: bool = False,
    after: Mark | None = None,
    before: Mark | None = None,
) -> Page:
    """Return the first matching jobs of an order, the first behind a place, or the last ones before a place.

    The order is that of `jobs.ordered`: newest or highest first unless reversed, those without such a time last.
    """
    is_back = before is not None
    mark = before if is_back else after
    walk = _Walk(tx, wanted, order, is_reversed=is_reversed, is_back=is_back)
    found = by_seqs(tx, walk.seqs(mark, limit + 1))
    has_more, found = len(found) > limit, found[:limit]
    if is_back:
        found.reverse()
    first, last = (Mark.of(found[0], order), Mark.of(found[-1], order)) if found else (None, None)
    return Page(
        jobs=found,
        before=first if (has_more if is_back else after is not None) else None,
        after=last if (is_back or has_more) else None,
    )


class _Walk:
    """One way through an order: forth, or back against it."""

    def __init__(self, tx: "Tx", wanted: Filter, order: Order, *, is_reversed: bool, is_back: bool) -> None:
        self._tx = tx
        self._wanted = wanted
        self._order = order
        self._is_back = is_back
        self._falls = is_reversed == is_back
        """Whether what it is ordered by falls on this way."""
        self._tie_falls = self._falls != (order is Order.PRIORITY)

    def seqs(self, mark: Mark | None, limit: int) -> list[int]:
        """Return the numbers of the next jobs behind a place on this way."""
        if self._order is Order.ADDED:
            return self._by_number(self._wanted, mark, limit)
        if self._order is Order.PRIORITY:
            return self._by_value(self._wanted, mark, limit)
        return self._by_time(mark, limit)

    def _by_time(self, mark: Mark | None, limit: int) -> list[int]:
        """Return those that have such a time and those that have none, apart: the latter are always last."""
        is_among_last = mark is not None and mark.value is None
        if self._is_back:
            found = self._without(mark, limit) if is_among_last else []
            mark = None if is_among_last else mark
            return found + (self._with(mark, limit - len(found)) if len(found) < limit else [])
        found = [] if is_among_last else self._with(mark, limit)
        mark = mark if is_among_last else None
        return found + (self._without(mark, limit - len(found)) if len(found) < limit else [])

    def _with(self, mark: Mark | None, limit: int) -> list[int]:
        if self._order is not Order.FINISHED:
            return self._by_value(self._wanted, mark, limit, "started_at IS NOT NULL")
        # Just those that are over have such a time, and each of their states is ordered by it in an index.
        rows: list[tuple[int, int]] = []
        for state in self._states(are_final=True):
            rows += self._valued(self._wanted.replace(states=(state,)), mark, limit)
        rows.sort(key=lambda row: (row[1], row[0]), reverse=self._falls)
        return [seq for seq, _ in rows[:limit]]

    def _without(self, mark: Mark | None, limit: int) -> list[int]:
        if self._order is Order.FINISHED:
            states = self._states(are_final=False)
            return self._by_number(self._wanted.replace(states=states), mark, limit) if states else []
        where = (
            "started_at IS NULL" if mark is None else f"started_at IS NULL AND seq {self._sign(self._tie_falls)} :at"
        )
        return self._select(self._wanted, where, {} if mark is None else {"at": mark.seq}, limit)

    def _states(self, *, are_final: bool) -> tuple[State, ...]:
        return tuple(state for state in self._wanted.states or State if (state in FINAL) is are_final)

    def _by_number(self, wanted: Filter, mark: Mark | None, limit: int) -> list[int]:
        tx = self._tx
        if self._falls:
            last = (
                wanted.last if mark is None else min(mark.seq - 1, wanted.last if wanted.last is not None else mark.seq)
            )
            return [job.seq for job in newest(tx, wanted.replace(last=last), limit)]
        first = wanted.first if mark is None else max(mark.seq + 1, wanted.first or 0)
        begun = wanted.replace(first=first)
        if State.COMPLETED in wanted.states:
            # As in `newest`: what is near is looked at first, for the state holds most of the history.
            end = min((first or 1) + NEWEST_WINDOW, last_seq(tx) if wanted.last is None else wanted.last)
            found = seqs_in(tx, begun.replace(last=end), "seq", limit)
            if len(found) == limit:
                return found
        return seqs_in(tx, begun, "seq + 0" if wanted.states else "seq", limit)

    def _by_value(self, wanted: Filter, mark: Mark | None, limit: int, has_value: str = "1 = 1") -> list[int]:
        return [seq for seq, _ in self._valued(wanted, mark, limit, has_value)]

    def _valued(
        self, wanted: Filter, mark: Mark | None, limit: int, has_value: str = "1 = 1"
    ) -> "list[tuple[int, int]]":
        """Return numbers and what they are ordered by, behind a place."""
        column = ORDER_COLUMNS[self._order]
        where, params = where_of(wanted)
        if mark is not None:
            sign, tie = self._sign(self._falls), self._sign(self._tie_falls)
            # The first part is what an index can begin at.
            where += f" AND {column} {sign}= :at_value AND ({column} {sign} :at_value OR seq {tie} :at)"
            params = {**params, "at": mark.seq, "at_value": mark.value}
        rows = self._tx.rows(
            f"""
            SELECT seq, {column}
              FROM jobs
             WHERE {has_value} AND {where}
             ORDER BY {column} {self._way(self._falls)}, seq {self._tie_way}
             LIMIT :limit
            """,
            {**params, "limit": limit},
        )
        return [(int(seq or 0), int(value or 0)) for seq, value in rows]

    def _select(self, wanted: Filter, condition: str, given: "dict[str, SqlValue]", limit: int) -> list[int]:
        where, params = where_of(wanted)
        rows = self._tx.rows(
            f"SELECT seq FROM jobs WHERE {where} AND {condition} ORDER BY seq {self._tie_way} LIMIT :limit",
            {**params, **given, "limit": limit},
        )
        return [int(row[0] or 0) for row in rows]

    @property
    def _tie_way(self) -> str:
        return self._way(self._tie_falls)

    @staticmethod
    def _sign(falls: bool) -> str:
        return "<" if falls else ">"

    @staticmethod
    def _way(falls: bool) -> str:
        return "DESC" if falls else "ASC"
