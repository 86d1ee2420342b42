"""The figures of a run: what was done to the queue, what it did, and how soon it was back."""

import json
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field

from tests.chaos.checker import Evidence, Violation
from tests.chaos.ledger import START
from tests.chaos.notes import Kill, Notes

LOST_RULES = {"acknowledged jobs are there", "jobs are over", "batches are whole or absent", "the queue drains"}
OVERLAP_RULES = {"no two copies run at once", "a run starts once and in order"}


@dataclass(kw_only=True)
class Figures:
    """What is printed at the end."""

    database: str
    seed: int
    seconds: float = 0.0
    rounds: int = 0
    faults: dict[str, int] = field(default_factory=dict)
    jobs: int = 0
    states: dict[str, int] = field(default_factory=dict)
    runs: int = 0
    outcomes: dict[str, int] = field(default_factory=dict)
    lost: int = 0
    overlapping: int = 0
    recovery_p50_s: float | None = None
    recovery_p95_s: float | None = None
    recoveries: int = 0
    slowest_recovery: str = ""
    slowest_call_s: float = 0.0
    violations: list[str] = field(default_factory=list)

    def add(self, evidence: Evidence, notes: Notes, violations: Sequence[Violation]) -> None:
        """Take in what is known after a round, and the violations that are new."""
        self.rounds += 1
        self.faults = dict(sorted(notes.faults.items()))
        self.jobs, self.runs = len(evidence.jobs), len(evidence.runs)
        self.states = dict(sorted(Counter(job.state for job in evidence.jobs).items()))
        self.outcomes = dict(sorted(Counter(row.outcome for row in evidence.runs).items()))
        self.lost += sum(violation.rule in LOST_RULES for violation in violations)
        self.overlapping += sum(violation.rule in OVERLAP_RULES for violation in violations)
        self.slowest_call_s = round(notes.slowest_call_s, 2)
        self.violations += [str(violation) for violation in violations]
        found = recoveries(evidence, notes.kills)
        self.recoveries = len(found)
        if found:
            times = [seconds for seconds, _ in found]
            self.recovery_p50_s = round(statistics.median(times), 2)
            self.recovery_p95_s = round(times[max(0, round(len(times) * 0.95) - 1)], 2)
            self.slowest_recovery = f"{found[-1][0]:.2f} s, {found[-1][1]}"

    def as_json(self) -> str:
        """Return them as one object on one line."""
        return json.dumps(asdict(self))

    def as_text(self) -> str:
        """Return them for people."""
        recovery = "none seen"
        if self.recoveries:
            recovery = f"p50 {self.recovery_p50_s:.2f} s, p95 {self.recovery_p95_s:.2f} s of {self.recoveries}"
            recovery += f"; slowest {self.slowest_recovery}"
        return "\n".join(
            (
                f"{self.database}: {self.rounds} rounds in {self.seconds:.0f} s, seed {self.seed}",
                f"  faults    {_counts(self.faults)}",
                f"  jobs      {self.jobs} ({_counts(self.states)})",
                f"  runs      {self.runs} ({_counts(self.outcomes)})",
                f"  lost {self.lost}, overlapping {self.overlapping}, violations {len(self.violations)}",
                f"  recovery  from kill -9 of a worker to the next start of its job: {recovery}",
                f"  slowest call of queuectl: {self.slowest_call_s:g} s",
            )
        )


def recoveries(evidence: Evidence, kills: Sequence[Kill]) -> list[tuple[float, str]]:
    """Return how long each job of a killed worker waited for its next start, and which; the slowest last.

    Of workers killed alone, and of first losses: a second one waits for its backoff, and is meant to.
    """
    killed = {kill.worker: kill.at for kill in kills if kill.fault == "kill worker"}
    found = []
    for job, rows in evidence.runs_of.items():
        first = next((row for row in rows if row.outcome == "lost"), None)
        if first is None or first.worker not in killed:
            continue
        later = [line.at for line in evidence.lines_of.get(job, []) if line.what == START and line.run > first.run]
        if later:
            at = killed[first.worker]
            found.append((max(0.0, later[0] - at), f"job {job} run {first.run} killed at {at:.2f}"))
    return sorted(found)


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items()) or "none"
