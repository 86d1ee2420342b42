"""Runs by the time they ended: how many came to what, how long they ran and waited, in classes. One index tells."""

from queuectl.model.states import State
from queuectl.model.value import Value
from queuectl.model.verdict import OutcomeKind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from queuectl.store.database import Tx

RESULTS = ("completed", "failed", "snoozed", *(kind.value for kind in OutcomeKind if kind is not OutcomeKind.EXITED))
"""What may come of a run: of those whose command exited, it is told whether that was well."""
BOUNDS_MS = (
    10, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000, 300_000, 900_000, 3_600_000, 14_400_000,
)  # fmt: skip


class Spread(Value):
    """How many durations fell into each class, the last of them beyond every bound, and their sum."""

    counts: tuple[int, ...] = (0,) * (len(BOUNDS_MS) + 1)
    sum_ms: int = 0

    def plus(self, other: "Spread") -> "Spread":
        """Return both together."""
        counts = tuple(one + more for one, more in zip(self.counts, other.counts, strict=True))
        return Spread(counts=counts, sum_ms=self.sum_ms + other.sum_ms)

    def lacking(self, other: "Spread") -> "Spread":
        """Return by how much another is greater, class by class."""
        counts = tuple(max(0, more - one) for one, more in zip(self.counts, other.counts, strict=True))
        return Spread(counts=counts, sum_ms=max(0, other.sum_ms - self.sum_ms))


class Ended(Value):
    """Runs that ended within some time: how long they ran, by what came of them, and how long they had waited."""

    ran: "dict[str, Spread]"
    waited: Spread

    def plus(self, other: "Ended") -> "Ended":
        """Return both together."""
        ran = {result: self.ran[result].plus(other.ran[result]) for result in RESULTS}
        return Ended(ran=ran, waited=self.waited.plus(other.waited))

    def lacking(self, other: "Ended") -> "Ended":
        """Return by how much another is greater, class by class."""
        ran = {result: self.ran[result].lacking(other.ran[result]) for result in RESULTS}
        return Ended(ran=ran, waited=self.waited.lacking(other.waited))

    @property
    def count(self) -> int:
        """How many there are."""
        return sum(sum(spread.counts) for spread in self.ran.values())


NONE_ENDED = Ended(ran=dict.fromkeys(RESULTS, Spread()), waited=Spread())


def ended_within(tx: "Tx", after: int, until: int) -> Ended:
    """Count the runs that ended after one time and up to another."""
    where = "FROM attempts WHERE finished_at > :after AND finished_at <= :until"
    params = {"after": after, "until": until}
    ran = tx.rows(
        f"SELECT result, {_CLASS.format('finished_at - started_at')}, count(*), sum(finished_at - started_at) {where}"
        " GROUP BY 1, 2",
        params,
    )
    waited = tx.rows(
        f"SELECT {_CLASS.format('waited_ms')}, count(*), sum(waited_ms) {where} AND waited_ms IS NOT NULL GROUP BY 1",
        params,
    )
    found = {result: [row[1:] for row in ran if row[0] == result] for result in RESULTS}
    return Ended(
        ran={result: _spread(rows) for result, rows in found.items()},
        waited=_spread(waited),
    )


def running(tx: "Tx") -> int:
    """Return how many jobs run."""
    row = tx.row(f"SELECT count(*) FROM jobs WHERE state = '{State.PROCESSING}'")
    return int(row[0] or 0) if row else 0


_CLASS = "CASE {} ELSE {} END".format(
    " ".join(f"WHEN {{0}} <= {bound} THEN {place}" for place, bound in enumerate(BOUNDS_MS)), len(BOUNDS_MS)
)


def _spread(rows: "Sequence[tuple[object, ...]]") -> Spread:
    counts = [0] * (len(BOUNDS_MS) + 1)
    sum_ms = 0
    for place, count, total in rows:
        counts[int(str(place))] += int(str(count))
        sum_ms += max(0, int(str(total or 0)))
    return Spread(counts=tuple(counts), sum_ms=sum_ms)
