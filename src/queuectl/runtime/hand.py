"""Hand: the jobs a worker has taken ahead of its slots, and how many those may be. Short commands alone are.

One transaction then settles and takes several jobs, where each would cost more than its command. Nobody waits for it
long: what has not begun after a moment goes back in the line, and one command that is not short ends it for a while.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from queuectl.model.job import Claim

TAKE_S = 0.04
"""How long the jobs in hand should last, by the pace of the last commands."""
HOLD_S = 0.08
"""How long a job may lie in hand, and the end of a run be a mere note."""
MOST = 64
LONGEST_S = 1.0
NEVER = float("inf")


class Hand:
    """What a worker holds beside what it runs: claims to begin, claims to give back, and ends to be settled."""

    def __init__(self) -> None:
        self.claims: list[Claim] = []
        self.returned: list[Claim] = []
        self.late: set[int] = set()
        """The jobs that began later than they were taken."""
        self.prompt: set[int] = set()
        """The jobs that ended and ran from when they were taken until they are settled."""
        self._until = NEVER
        self._in_a_row = 1
        self._taken_at = 0.0
        self._pace_s = LONGEST_S

    def room(self, slots: int) -> int:
        """Return how many jobs to take ahead."""
        if self.claims or self.returned:
            return 0
        return min(MOST, int(slots * TAKE_S / self._pace_s))

    @property
    def until(self) -> float:
        """The monotonic time at which what is still in hand goes back."""
        return self._until if self.claims else NEVER

    def take(self, claims: "Iterable[Claim]", now: float) -> None:
        """Hold claims until they begin."""
        self.claims.extend(claims)
        self._taken_at = now
        self._until = now + HOLD_S

    def begin(self, now: float) -> "Claim":
        """Return the next one to begin."""
        claim = self.claims.pop(0)
        if now > self._taken_at:
            self.late.add(claim.job.seq)
        return claim

    @property
    def next_in_a_row(self) -> "Sequence[Claim]":
        """The next ones to begin in one call, where one that is not to be noted makes those behind it wait in vain."""
        return self.claims[: self._in_a_row]

    def note_row(self, *, is_whole: bool) -> None:
        """Learn how a row went: after a whole one twice as many are begun, after any other a single one."""
        self._in_a_row = min(MOST, 2 * self._in_a_row) if is_whole else 1

    def note_pace(self, ran_s: float) -> None:
        """Learn from a command how long they take: half of what is believed comes from the last one."""
        self._pace_s = (self._pace_s + min(ran_s, LONGEST_S)) / 2

    def give_back(self) -> None:
        """Begin nothing of it any more: the next settle puts it back in the line."""
        self.returned += self.claims
        self.claims = []
        self._pace_s = LONGEST_S

    def drop(self, seqs: "Iterable[int]") -> None:
        """Give some of it back."""
        chosen = set(seqs)
        self.returned += [claim for claim in self.claims if claim.job.seq in chosen]
        self.claims = [claim for claim in self.claims if claim.job.seq not in chosen]

    def keep(self, held: "Iterable[tuple[int, int]]") -> None:
        """Forget what is not ours any more; `held` is what is, by number and run."""
        ours = set(held)
        self.claims = [claim for claim in self.claims if (claim.job.seq, claim.job.run) in ours]
        self.returned = [claim for claim in self.returned if (claim.job.seq, claim.job.run) in ours]
