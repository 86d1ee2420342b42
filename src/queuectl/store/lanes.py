"""Lanes: what a claim probes. A lane is a queue and what its jobs need of a worker; they are few, made on first use."""

from queuectl.model.needs import Needs, read_needs
from queuectl.model.rate import Rate
from queuectl.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

    from queuectl.store.database import Tx
    from queuectl.store.dialect import Row

LANE_COLUMNS = "l.id, l.queue, l.needs, q.paused_at, q.concurrency, q.rate_count, q.rate_period_ms, q.next_start_at"
_LANES = f"SELECT {LANE_COLUMNS} FROM lanes l JOIN queues q ON q.name = l.queue"
LONGEST_CLAIM_MS = 60_000
_known_needs: dict[str, Needs] = {"": Needs()}


class Lane(Value):
    """A lane, with what holds for its queue."""

    id: int
    queue: str
    needs: str
    paused_at: int | None
    concurrency: int | None
    rate_count: int | None
    rate_period_ms: int | None
    next_start_at: int | None

    @property
    def is_limited(self) -> bool:
        """Whether its queue lets only so many run, or start."""
        return self.concurrency is not None or self.rate_count is not None

    @property
    def rate(self) -> Rate | None:
        """How often jobs of its queue may start."""
        if self.rate_count is None or self.rate_period_ms is None:
            return None
        return Rate(count=self.rate_count, period_ms=self.rate_period_ms)

    def opens_at(self, now: int) -> int | None:
        """Return when the rate of its queue lets the next job start; None means now."""
        if self.rate is None or self.next_start_at is None:
            return None
        # Further off than a step it is because the clock was set back; but a claim that waited for another has read its
        # clock before that one, and must not take the difference for it.
        furthest = self.rate.interval_ms + LONGEST_CLAIM_MS
        return self.next_start_at if 0 < self.next_start_at - now <= furthest else None

    @property
    def is_special(self) -> bool:
        """Whether more than being served decides about it."""
        return self.is_limited or (bool(self.needs) and bool(self.asks.use))

    @property
    def asks(self) -> Needs:
        """What its jobs need of a worker; read once for each spelling."""
        needs = _known_needs.get(self.needs)
        if needs is None:
            needs = _known_needs[self.needs] = read_needs(self.needs)
        return needs


def lane_rows(tx: "Tx") -> "list[Row]":
    """Return every lane as a row."""
    return tx.rows(_LANES)


def all_lanes(tx: "Tx") -> list[Lane]:
    """Return every lane."""
    return [Lane.of_row(row) for row in lane_rows(tx)]


def paused_lanes(tx: "Tx") -> set[int]:
    """Return the lanes of paused queues."""
    rows = tx.rows("SELECT l.id FROM lanes l JOIN queues q ON q.name = l.queue WHERE q.paused_at IS NOT NULL")
    return {int(row[0] or 0) for row in rows}


def drop(tx: "Tx", lane_ids: "Collection[int]") -> int:
    """Forget lanes. The caller knows that no job stands in them and has `keep_out` of lanes."""
    return sum(tx.changed("DELETE FROM lanes WHERE id = :id", {"id": lane_id}) for lane_id in lane_ids)


def narrow_queues(tx: "Tx") -> frozenset[str]:
    """Return the queues that let only so many jobs run at once."""
    return frozenset(str(row[0]) for row in tx.rows("SELECT name FROM queues WHERE concurrency IS NOT NULL"))


def lanes_of(tx: "Tx", queues: "Collection[str]") -> list[Lane]:
    """Return the lanes of some queues."""
    return [lane for lane in all_lanes(tx) if lane.queue in queues]
