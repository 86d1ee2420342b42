"""One run of a job: what the runner reports (Report) and what is kept of it (Attempt)."""

from queuectl.model.value import Value
from queuectl.model.verdict import EXITED_WELL, Outcome, OutcomeKind, Result, result_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

NOTED_OUTPUT_BYTES = 1024


class Report(Value):
    """A run that is over: its outcome, what it cost and what it printed; `stderr_*` only where it was kept apart."""

    outcome: Outcome
    cpu_ms: int | None = None
    peak_memory_bytes: int | None = None
    output_bytes: int = 0
    output_file: str | None = None
    output_tail: bytes = b""
    stderr_bytes: int | None = None
    stderr_file: str | None = None
    stderr_tail: bytes | None = None
    begun_s: float | None = None
    """When the command was started, on the clock of its host that counts from its boot; None: nobody knows."""
    ended_s: float | None = None
    """When it was seen to be over, on the same clock."""

    @classmethod
    def of_success(cls, cpu_ms: int, peak_kib: int, printed: bytes, begun_s: float, ended_s: float) -> "Report":
        """Build that of a plain run that ended well, of which all that it printed is here."""
        return cls.of_row(
            (
                EXITED_WELL,
                cpu_ms,
                peak_kib * 1024,
                len(printed),
                None,
                printed,
                None,
                None,
                None,
                begun_s,
                ended_s,
            )
        )

    @property
    def is_short_success(self) -> bool:
        """Whether it ended well and printed little: all there is to say of it fits into a note."""
        return (
            self.outcome is EXITED_WELL
            and len(self.output_tail) <= NOTED_OUTPUT_BYTES
            and self.output_file is None
            and self.stderr_bytes is None
        )

    @property
    def can_be_noted(self) -> bool:
        """Whether it is a short success of which all is known that a note says."""
        return (
            self.is_short_success
            and self.cpu_ms is not None
            and self.peak_memory_bytes is not None
            and self.begun_s is not None
            and self.ended_s is not None
        )

    def as_note(self) -> str:
        """Return one that can be noted as a line of JSON that `of_note` reads; by hand, for every command has one."""
        tail = f', "output_tail": {_dumps(self.output_tail.decode("latin-1"))}' if self.output_tail else ""
        return (
            f'{{"cpu_ms": {self.cpu_ms}, "peak_memory_bytes": {self.peak_memory_bytes}, "output_bytes":'
            f' {self.output_bytes}, "begun_s": {self.begun_s!r}, "ended_s": {self.ended_s!r}{tail}}}'
        )

    @classmethod
    def of_note(cls, note: "Mapping[str, object]") -> "Report":
        """Build from what a line of `as_note` says."""
        tail = str(note.get("output_tail", "")).encode("latin-1")
        return cls(outcome=Outcome.exited(0), output_tail=tail, **{name: note[name] for name in _NOTED})  # type: ignore[arg-type]

    def span(self, taken_at: int, now: int, now_s: float) -> tuple[int, int]:
        """Return when it began and ended on the database's clock, which shows `now` while the host's shows `now_s`.

        A job that was taken ahead begins later than it was taken, and the end of one that did well may be written later
        than it was; that of any other never waits, and a retry is reckoned from it.
        """
        if self.begun_s is None or self.ended_s is None:
            return taken_at, now
        ended_at = now
        if self.outcome.is_success:
            ended_at = min(now, max(taken_at, now - round((now_s - self.ended_s) * 1000)))
        return min(ended_at, max(taken_at, now - round((now_s - self.begun_s) * 1000))), ended_at


_NOTED = ("cpu_ms", "peak_memory_bytes", "output_bytes", "begun_s", "ended_s")


def _dumps(text: str) -> str:
    import json  # most commands print nothing

    return json.dumps(text)


class Attempt(Value):
    """One run on record; the fields are the columns. The run under way has no `finished_at` and no outcome."""

    job_seq: int
    run: int
    attempt: int
    worker_id: str
    host: str
    started_at: int
    finished_at: int | None
    outcome: OutcomeKind | None
    exit_code: int | None
    signal: int | None
    error: str | None
    cpu_ms: int | None
    peak_memory_bytes: int | None
    output_bytes: int
    output_file: str | None
    output_tail: bytes
    stderr_bytes: int | None
    stderr_file: str | None
    stderr_tail: bytes | None
    waited_ms: int | None
    """From when its job was ready until it was taken; None for runs from before that was noted."""

    queue: str
    """Where it ran; its job may be in another one since."""

    @property
    def is_split(self) -> bool:
        """Whether its stdout and stderr were kept apart."""
        return self.stderr_bytes is not None

    @property
    def result(self) -> Result | None:
        """What came of it; None while it is under way."""
        return None if self.outcome is None else result_of(OutcomeKind(self.outcome), self.error)

    @classmethod
    def of_row(cls, row: "Sequence[object]") -> "Attempt":
        """Build from a row over `columns_of(Attempt)`."""
        attempt = super().of_row(row)
        if attempt.outcome is not None:
            attempt.__dict__["outcome"] = OutcomeKind(attempt.outcome)
        return attempt
