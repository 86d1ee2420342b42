"""Notes: what is done to the queue from outside, written down by whoever does it, for the checker and the figures."""

import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from tests.chaos.checker import Record, Violation


@dataclass(frozen=True, kw_only=True)
class Kill:
    """A worker that was killed: when (seconds since boot), and by which fault."""

    worker: str
    at: float
    fault: str


@dataclass(kw_only=True)
class Notes:
    """Everything noted in one run."""

    journal: Path
    is_handing_back_by_itself: bool
    """Whether workers of this kind of store hand back without being told: on PostgreSQL, when they lose touch."""
    acknowledged: list[str] = field(default_factory=list)
    batches: dict[str, int] = field(default_factory=dict)
    cancelled: set[str] = field(default_factory=set)
    revived: set[str] = field(default_factory=set)
    kills: list[Kill] = field(default_factory=list)
    hand_backs: list[tuple[int, int]] = field(default_factory=list)
    faults: Counter[str] = field(default_factory=Counter)
    violations: list[Violation] = field(default_factory=list)
    slowest_call_s: float = 0.0

    def tell(self, text: str) -> None:
        """Write a line into the journal that a diagnosis prints."""
        with self.journal.open("a") as file:
            file.write(f"{boot_clock():.2f} {text}\n")

    def accuse(self, rule: str, about: str, text: str) -> None:
        """Write down a broken promise that was seen on the way."""
        self.violations.append(Violation(rule, about, text))

    def record(self) -> Record:
        """Return what the checker wants to know."""
        return Record(
            acknowledged=set(self.acknowledged),
            batches=dict(self.batches),
            cancelled=set(self.cancelled),
            revived=set(self.revived),
            killed={kill.worker for kill in self.kills},
            hand_backs=None if self.is_handing_back_by_itself else [*self.hand_backs],
        )


def boot_clock() -> float:
    """Return the clock of the ledger: seconds since boot."""
    return float(Path("/proc/uptime").read_text().split()[0])


def wall_ms() -> int:
    """Return the clock of the database, which is on this host."""
    return time.time_ns() // 1_000_000
