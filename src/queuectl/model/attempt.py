"""One run of a job: what the runner reports (Report) and what is kept of it (Attempt)."""

from queuectl.model.value import Value
from queuectl.model.verdict import Outcome, OutcomeKind, Result, result_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


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
