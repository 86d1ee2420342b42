"""Timeline: the life of a job as spans drawn to scale: waits, runs, the pauses between them, and what is to come."""

from queuectl.model.states import FINAL, WAITING_FOR_TIME, State
from queuectl.model.units import rough_duration_text, ticking_duration_text
from queuectl.model.value import Value
from queuectl.model.verdict import OutcomeKind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from queuectl.model.attempt import Attempt
    from queuectl.model.job import Job

LEAST_SHARE = 0.6
MOST_RUNS = 60
_NOT_CHARGED = (OutcomeKind.HANDED_BACK, OutcomeKind.LOST)
_ENDS = {
    OutcomeKind.OUT_OF_MEMORY: "out of memory",
    OutcomeKind.TIMED_OUT: "timed out",
    OutcomeKind.CANCELLED: "cancelled",
    OutcomeKind.NOT_STARTED: "not started",
    OutcomeKind.HANDED_BACK: "handed back",
    OutcomeKind.LOST: "lost worker",
}


class Span(Value):
    """A part of a job's life; `left` and `width` are hundredths of the whole."""

    kind: str
    """What is drawn: wait, run, good, bad, stopped, backoff, over or next."""
    name: str
    """What it was."""
    end_words: str
    """How it ended, where that can be said."""
    start: int
    end: int
    left: float = 0.0
    width: float = 0.0
    is_open: bool = False
    """Whether it goes on."""

    @property
    def took(self) -> str:
        """How long it took, for people."""
        write = ticking_duration_text if self.is_open else rough_duration_text
        return write(max(0, self.end - self.start))

    @property
    def words(self) -> str:
        """All there is to say of it in a line."""
        return " ".join(part for part in (self.name, self.took, self.end_words) if part)


def timeline(job: "Job", runs: "Sequence[Attempt]", now: int) -> list[Span]:
    """Return the life of a job in order and to scale; of very many runs the last ones."""
    return _to_scale(list(_spans(job, runs[-MOST_RUNS:], now, is_cut=len(runs) > MOST_RUNS)))


def end_words(run: "Attempt") -> str:
    """Say in a few words how a run ended."""
    if run.outcome is None:
        return "running"
    if run.outcome is OutcomeKind.EXITED:
        return f"exit {run.exit_code}"
    if run.outcome is OutcomeKind.KILLED:
        return (run.error or f"signal {run.signal}").removeprefix("killed by ").partition(":")[0]
    return _ENDS[run.outcome]


def kind_of(run: "Attempt") -> str:
    """Return how a run is drawn: under way, good, bad, or stopped by somebody."""
    if run.outcome is None:
        return "run"
    if run.outcome in (OutcomeKind.CANCELLED, OutcomeKind.HANDED_BACK):
        return "stopped"
    return "good" if run.outcome is OutcomeKind.EXITED and run.error is None else "bad"


def _spans(job: "Job", runs: "Sequence[Attempt]", now: int, *, is_cut: bool) -> "Iterator[Span]":
    if not runs:
        yield from _waiting(job, job.created_at, now, last=None)
        return
    if not is_cut:
        yield _span("wait", "waited", job.created_at, runs[0].started_at)
    for place, run in enumerate(runs):
        end = run.finished_at or now
        name = f"attempt {run.attempt}" if run.run == run.attempt else f"attempt {run.attempt} (run {run.run})"
        yield _span(kind_of(run), name, run.started_at, end, end_words(run), is_open=run.outcome is None)
        if place + 1 < len(runs):
            yield _span(*_between(run, runs[place + 1]), end, runs[place + 1].started_at)
    if runs[-1].finished_at is not None:
        yield from _waiting(job, runs[-1].finished_at, now, last=runs[-1])


def _between(run: "Attempt", after: "Attempt") -> tuple[str, str]:
    """Say what was between two runs: a backoff, a wait that cost nothing, or an end that somebody took back."""
    if run.outcome in _NOT_CHARGED or (kind_of(run) == "good" and after.attempt == run.attempt):
        return "wait", "waited"
    return ("backoff", "backoff") if after.attempt > run.attempt else ("over", "over, then retried")


def _waiting(job: "Job", since: int, now: int, *, last: "Attempt | None") -> "Iterator[Span]":
    """Yield the wait that is under way, and the time to come before the next run; nothing of a job that is over."""
    if job.state in FINAL:
        if last is None:
            yield _span("wait", "waited", since, job.finished_at or now, job.state.value)
        return
    is_backoff = job.state is State.FAILED
    yield _span("backoff" if is_backoff else "wait", "backoff" if is_backoff else "waits", since, now, is_open=True)
    if job.state in WAITING_FOR_TIME and job.run_at is not None and job.run_at > now:
        yield _span("next", "runs in", now, job.run_at)


def _span(kind: str, name: str, start: int, end: int, end_words: str = "", *, is_open: bool = False) -> Span:
    return Span(kind=kind, name=name, start=start, end=max(start, end), end_words=end_words, is_open=is_open)


def _to_scale(spans: list[Span]) -> list[Span]:
    """Give each its share of the whole; what would be too narrow to see gets a little of the others'."""
    if not spans:
        return []
    total = max(1, sum(span.end - span.start for span in spans))
    shares = [max(LEAST_SHARE, 100 * (span.end - span.start) / total) for span in spans]
    scale = 100 / sum(shares)
    left, placed = 0.0, []
    for span, share in zip(spans, shares, strict=True):
        placed.append(span.replace(left=round(left, 3), width=round(share * scale, 3)))
        left += share * scale
    return placed
