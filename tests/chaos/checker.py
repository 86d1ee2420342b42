"""The checker: holds what the database says against what the jobs wrote down. Pure; a rule yields its violations."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

from tests.chaos.ledger import END, KILLS, OVERLAP, START, Line

FINAL = {"completed", "dead", "cancelled"}
MAX_LOSSES = 3
CHARGED = {"exited", "killed", "out_of_memory", "timed_out", "not_started"}


@dataclass(frozen=True, kw_only=True)
class JobRow:
    """What the database says of a job."""

    id: str
    state: str
    run: int
    attempts: int
    losses: int
    max_retries: int
    has_timeout: bool = False
    batch: str | None = None
    parents: tuple[tuple[str, str], ...] = ()
    """The jobs it runs after, each with how that must end: ok, any, fail."""
    is_starved: bool = False


@dataclass(frozen=True, kw_only=True)
class RunRow:
    """What the database says of a run that ended; `finished_at` is in milliseconds of the day's clock."""

    job: str
    run: int
    attempt: int
    worker: str
    outcome: str
    exit_code: int | None = None
    finished_at: int = 0


@dataclass(frozen=True, kw_only=True)
class Record:
    """What was done to the queue from outside, noted by whoever did it."""

    acknowledged: Collection[str] = ()
    """Jobs whose id `enqueue` printed."""
    batches: Mapping[str, int] = field(default_factory=dict)
    """How many jobs each batch had, by its tag; also of batches that were refused or cut off."""
    cancelled: Collection[str] = ()
    """Jobs somebody asked to cancel, whether or not the answer arrived."""
    revived: Collection[str] = ()
    """Jobs somebody asked to retry, whether or not the answer arrived."""
    killed: Collection[str] = ()
    """Workers that were sent SIGKILL."""
    hand_backs: Sequence[tuple[int, int]] | None = None
    """When workers were told to hand back, in milliseconds; None where they may also do so by themselves."""


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """All that a check goes by."""

    lines: Sequence[Line]
    jobs: Sequence[JobRow]
    runs: Sequence[RunRow]
    record: Record

    @cached_property
    def job_ids(self) -> set[str]:
        return {job.id for job in self.jobs}

    @cached_property
    def runs_of(self) -> dict[str, list[RunRow]]:
        """The runs on record by job, in order."""
        found: dict[str, list[RunRow]] = {}
        for row in sorted(self.runs, key=lambda row: row.run):
            found.setdefault(row.job, []).append(row)
        return found

    @cached_property
    def lines_of(self) -> dict[str, list[Line]]:
        """What the runs of each job said, in the order they did."""
        found: dict[str, list[Line]] = {}
        for line in self.lines:
            found.setdefault(line.job, []).append(line)
        return found

    @cached_property
    def starts(self) -> dict[tuple[str, int], Line]:
        return {(line.job, line.run): line for line in self.lines if line.what == START}

    @cached_property
    def ends(self) -> dict[tuple[str, int], Line]:
        return {(line.job, line.run): line for line in self.lines if line.what == END}


@dataclass(frozen=True)
class Violation:
    """A promise that was broken: which rule, about what, and how."""

    rule: str
    about: str
    text: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.about}: {self.text}"


Found = Iterator[tuple[str, str]]
Rule = Callable[[Evidence], Found]


def check(evidence: Evidence) -> list[Violation]:
    """Return every violation of every rule."""
    return [Violation(_name_of(rule), about, text) for rule in RULES for about, text in rule(evidence)]


def acknowledged_jobs_are_there(evidence: Evidence) -> Found:
    for job in sorted(set(evidence.record.acknowledged) - evidence.job_ids):
        yield f"job {job}", "was acknowledged and is not in the database"


def batches_are_whole_or_absent(evidence: Evidence) -> Found:
    counts = Counter(job.batch for job in evidence.jobs if job.batch is not None)
    for batch, size in evidence.record.batches.items():
        if counts[batch] not in (0, size):
            yield f"batch {batch}", f"{counts[batch]} of its {size} jobs are in the database"


def jobs_are_over(evidence: Evidence) -> Found:
    for job in evidence.jobs:
        if job.state not in FINAL:
            yield f"job {job.id}", f"is still {job.state} (run {job.run})"


def no_two_copies_run_at_once(evidence: Evidence) -> Found:
    for line in evidence.lines:
        if line.what == OVERLAP:
            yield _named(line), "began while something of an earlier run was alive"
    for lines in evidence.lines_of.values():
        newest = lines[0]
        for line in lines:
            if line.run < newest.run:
                yield _named(line), f"said {line.what!r} at {line.at:.2f}, after run {newest.run} began"
            elif line.run > newest.run:
                newest = line


def a_run_starts_once_and_in_order(evidence: Evidence) -> Found:
    for lines in evidence.lines_of.values():
        last = 0
        for line in lines:
            if line.what != START:
                continue
            if line.run == last:
                yield _named(line), "started twice"
            elif line.run < last:
                yield _named(line), f"started after run {last}"
            last = max(last, line.run)


def every_run_is_on_record(evidence: Evidence) -> Found:
    jobs = {job.id: job for job in evidence.jobs}
    rows = {(row.job, row.run): row for row in evidence.runs}
    for key, line in evidence.starts.items():
        job, row = jobs.get(line.job), rows.get(key)
        if job is None:
            yield _named(line), "ran, and the database has no such job"
        elif row is None and not (job.state == "processing" and job.run == line.run):
            yield _named(line), f"started, and has no row; the job is {job.state} at run {job.run}"
        elif row is not None and row.worker != line.worker:
            yield _named(line), f"was run by worker {line.worker[:6]}, and is on record for {row.worker[:6]}"


def run_numbers_have_no_gaps(evidence: Evidence) -> Found:
    for job in evidence.jobs:
        numbers = [row.run for row in evidence.runs_of.get(job.id, [])]
        last = job.run - 1 if job.state == "processing" else job.run
        if numbers != list(range(1, last + 1)):
            yield f"job {job.id}", f"is {job.state} at run {job.run}, and has rows of runs {numbers}"


def exits_are_what_the_runs_said(evidence: Evidence) -> Found:
    for row in evidence.runs:
        if row.outcome != "exited":
            continue
        end = evidence.ends.get((row.job, row.run))
        if end is None:
            yield (
                f"job {row.job} run {row.run}",
                f"is on record with exit code {row.exit_code}, and never came to its end",
            )
        elif end.code != row.exit_code:
            yield f"job {row.job} run {row.run}", f"exited with {end.code}, and is on record with {row.exit_code}"


def completed_means_its_last_run_succeeded(evidence: Evidence) -> Found:
    for job in evidence.jobs:
        rows = evidence.runs_of.get(job.id, [])
        has_succeeded = bool(rows) and rows[-1].outcome == "exited" and rows[-1].exit_code == 0
        if (job.state == "completed") != has_succeeded and not (has_succeeded and job.id in evidence.record.revived):
            last = f"{rows[-1].outcome} {rows[-1].exit_code}" if rows else "none"
            yield f"job {job.id}", f"is {job.state}, and its last run is: {last}"


def nothing_runs_again_after_success(evidence: Evidence) -> Found:
    for job, rows in evidence.runs_of.items():
        if job in evidence.record.revived:
            continue
        for row, after in pairwise(rows):
            if row.outcome == "exited" and row.exit_code == 0:
                yield f"job {job} run {after.run}", f"ran though run {row.run} had succeeded"


def counters_agree_with_the_runs(evidence: Evidence) -> Found:
    for job in evidence.jobs:
        rows = evidence.runs_of.get(job.id, [])
        # A revival sets both to 0, so the runs since some point must add up; without one, all of them.
        lives = range(len(rows) + 1) if job.id in evidence.record.revived else range(1)
        sums = [_counted(rows[first:]) for first in lives]
        if (job.attempts, job.losses) not in sums:
            told = f"attempts {job.attempts} and losses {job.losses}"
            yield f"job {job.id}", f"has {told}; its runs: {' '.join(row.outcome for row in rows)}"
        elif lives == range(1):
            for number, row in enumerate(rows):
                if row.attempt != _counted(rows[:number])[0] + 1:
                    yield f"job {job.id} run {row.run}", f"is on record as attempt {row.attempt}"


def dead_means_out_of_tries(evidence: Evidence) -> Found:
    for job in evidence.jobs:
        is_spent = job.attempts > job.max_retries or job.losses >= MAX_LOSSES
        if job.attempts > job.max_retries + 1 or job.losses > MAX_LOSSES or (job.state == "dead") > is_spent:
            told = f"{job.attempts} attempts, {job.max_retries} retries, {job.losses} losses"
            yield f"job {job.id}", f"is {job.state} with {told}"


def cancelled_means_somebody_asked(evidence: Evidence) -> Found:
    ends = {("fail", job.id) if job.state == "completed" else ("ok", job.id) for job in evidence.jobs}
    for job in evidence.jobs:
        is_starved = job.is_starved and not ends.isdisjoint(job.parents)
        if job.state == "cancelled" and job.id not in evidence.record.cancelled and not is_starved:
            yield f"job {job.id}", "is cancelled, and nobody asked for it"
    for row in evidence.runs:
        if row.outcome == "cancelled" and row.job not in evidence.record.cancelled:
            yield f"job {row.job} run {row.run}", "was cancelled, and nobody asked for it"


def nothing_starts_before_what_it_waits_for(evidence: Evidence) -> Found:
    after = {job.id: {parent for kind, parent in job.parents if kind == "ok"} for job in evidence.jobs}
    succeeded: set[str] = set()
    for line in evidence.lines:
        if line.what == END and line.code == 0:
            succeeded.add(line.job)
        elif line.what == START and (missing := after.get(line.job, set()) - succeeded):
            yield _named(line), f"started before {', '.join(sorted(missing))} had completed"


def lost_means_its_worker_was_killed(evidence: Evidence) -> Found:
    killed = {*evidence.record.killed, *(line.worker for line in evidence.lines if line.what == KILLS)}
    for row in evidence.runs:
        if row.outcome == "lost" and row.worker not in killed:
            yield f"job {row.job} run {row.run}", f"was lost, and nobody killed its worker {row.worker[:6]}"


def handed_back_means_somebody_said_so(evidence: Evidence) -> Found:
    spans = evidence.record.hand_backs
    if spans is None:
        return
    for row in evidence.runs:
        if row.outcome == "handed_back" and not any(start <= row.finished_at <= end for start, end in spans):
            yield f"job {row.job} run {row.run}", f"was handed back by {row.worker[:6]}, and nobody asked for it"


def nothing_else_ends_a_run(evidence: Evidence) -> Found:
    timed = {job.id for job in evidence.jobs if job.has_timeout}
    for row in evidence.runs:
        if row.outcome in ("killed", "not_started") or (row.outcome == "timed_out" and row.job not in timed):
            yield f"job {row.job} run {row.run}", f"ended as {row.outcome}, which nothing here does to it"


RULES: tuple[Rule, ...] = (
    acknowledged_jobs_are_there,
    batches_are_whole_or_absent,
    jobs_are_over,
    no_two_copies_run_at_once,
    a_run_starts_once_and_in_order,
    every_run_is_on_record,
    run_numbers_have_no_gaps,
    exits_are_what_the_runs_said,
    completed_means_its_last_run_succeeded,
    nothing_runs_again_after_success,
    counters_agree_with_the_runs,
    dead_means_out_of_tries,
    cancelled_means_somebody_asked,
    nothing_starts_before_what_it_waits_for,
    lost_means_its_worker_was_killed,
    handed_back_means_somebody_said_so,
    nothing_else_ends_a_run,
)


def _counted(rows: Sequence[RunRow]) -> tuple[int, int]:
    return sum(row.outcome in CHARGED for row in rows), sum(row.outcome == "lost" for row in rows)


def _named(line: Line) -> str:
    return f"job {line.job} run {line.run}"


def _name_of(rule: Rule) -> str:
    return getattr(rule, "__name__", "rule").replace("_", " ")
