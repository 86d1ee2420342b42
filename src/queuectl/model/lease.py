"""Lease: how long a worker that nobody can see may be silent, from both ends. Pure: the caller brings the clock.

Where a worker's lock cannot be reached, its death is judged by its heartbeat number alone. The watcher counts only what
it has seen itself (`Silence`); the worker leaves off in time before anybody can have counted to the end (`Lease`).
"""

from queuectl.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

LEAST_SAFETY_S = 1.0
LEAST_GAP_S = 5.0
MOST_ANSWER_S = 3.0


class Lease(Value):
    """What a worker must do how long after the last renewal it began: stop its commands, kill them, be gone."""

    lease_s: float
    grace_s: float

    @property
    def kill_after_s(self) -> float:
        """When nothing of its commands may be left."""
        return self.lease_s - max(LEAST_SAFETY_S, self.lease_s * 0.1)

    @property
    def stop_after_s(self) -> float:
        """When to begin to stop them; the grace is cut to fit."""
        return self.kill_after_s - min(self.grace_s, self.lease_s / 4)

    @property
    def answer_within_s(self) -> float:
        """How long it may wait for the database at a time, and still be in time with the rest."""
        return min(MOST_ANSWER_S, self.stop_after_s / 4)

    @property
    def end_after_s(self) -> float:
        """When its supervisor steps in, for a worker that is stopped or hung."""
        return (self.kill_after_s + self.lease_s) / 2


class Watched(Value):
    """Somebody out of sight: what changes while it lives, and for how long it may stay the same."""

    key: "Hashable"
    token: int
    lease_s: float


class Silence:
    """What one watcher has seen unchanged for how long.

    Only what it watched counts: when it could not look itself for a while (asleep, stopped, cut off), it begins anew,
    since those it watches may have been cut off with it.
    """

    def __init__(self) -> None:
        self._seen: dict[Hashable, tuple[int, float]] = {}
        self._looked_at: float | None = None

    def look(self, began: float, ended: float, watched: "Iterable[Watched]") -> "set[Hashable]":
        """Take in what was found, all of it, in a look that began and ended at these times.

        Returns the keys whose token has not changed for their lease. A token counts as seen when the look had ended,
        and as unchanged up to when it began: however long the look itself took, nobody is wronged.
        """
        gap = 0.0 if self._looked_at is None else ended - self._looked_at
        self._looked_at = ended
        before, self._seen = self._seen, {}
        over: set[Hashable] = set()
        for one in watched:
            token, since = before.get(one.key, (one.token, ended))
            if token != one.token or gap > max(LEAST_GAP_S, one.lease_s / 3):
                since = ended
            self._seen[one.key] = (one.token, since)
            if began - since >= one.lease_s:
                over.add(one.key)
        return over
