"""Outcome (how a run ended) and Verdict (what follows from it). `judge` is pure and returns delays, never times."""

from enum import StrEnum

from queuectl.model.job import Job
from queuectl.model.retry import Backoff, delay_ms
from queuectl.model.states import Move, State
from queuectl.model.value import Value

MAX_LOSSES = 3


class OutcomeKind(StrEnum):
    """The ways a run can end."""

    EXITED = "exited"
    KILLED = "killed"
    OUT_OF_MEMORY = "out_of_memory"
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"
    NOT_STARTED = "not_started"
    HANDED_BACK = "handed_back"
    LOST = "lost"


class Outcome(Value):
    """How a run ended. Build one through its verbs, so that no impossible mix exists."""

    kind: OutcomeKind
    exit_code: int | None = None
    signal: int | None = None
    error: str | None = None

    @classmethod
    def exited(cls, code: int, *, note: str | None = None) -> "Outcome":
        """The command ended by itself; `note` is what else is known of a failure."""
        error = f"exit code {code}" if code else None
        return cls(kind=OutcomeKind.EXITED, exit_code=code, error=f"{error}; {note}" if error and note else error)

    @classmethod
    def killed(cls, signal: int, name: str, *, why: str | None = None) -> "Outcome":
        """A signal that was not ours ended the command."""
        return cls(kind=OutcomeKind.KILLED, signal=signal, error=f"killed by {name}" + (f": {why}" if why else ""))

    @classmethod
    def out_of_memory(cls, signal: int, *, limit: str | None = None) -> "Outcome":
        """The kernel killed the command for lack of memory; without a `limit`, its count for the whole host says so."""
        error = "out of memory: killed while the kernel killed for lack of memory on this host"
        if limit is not None:
            error = f"out of memory: killed by the kernel at its limit of {limit}"
        return cls(kind=OutcomeKind.OUT_OF_MEMORY, signal=signal, error=error)

    @classmethod
    def timed_out(cls, after_ms: int, *, exit_code: int | None = None, signal: int | None = None) -> "Outcome":
        """The command ran longer than its timeout and was stopped."""
        error = f"timed out after {after_ms / 1000:g} s"
        return cls(kind=OutcomeKind.TIMED_OUT, exit_code=exit_code, signal=signal, error=error)

    @classmethod
    def cancelled(cls, *, exit_code: int | None = None, signal: int | None = None) -> "Outcome":
        """A person cancelled the job and the command was stopped."""
        return cls(kind=OutcomeKind.CANCELLED, exit_code=exit_code, signal=signal, error="cancelled while running")

    @classmethod
    def not_started(cls, code: int, error: str) -> "Outcome":
        """The command could not be started; 126 or 127, as a shell gives."""
        return cls(kind=OutcomeKind.NOT_STARTED, exit_code=code, error=error)

    @classmethod
    def handed_back(cls, reason: str = "worker was told to stop") -> "Outcome":
        """The worker gave the job back: it was told to stop at once, or the host had no room to start the command."""
        return cls(kind=OutcomeKind.HANDED_BACK, error=f"{reason}; handed back")

    @classmethod
    def lapsed(cls) -> "Outcome":
        """The worker could not say in time that it lives, and gave the job back before another could be given it."""
        return cls.handed_back("its worker could not renew its lease")

    @classmethod
    def lost(cls) -> "Outcome":
        """The worker died while the command ran."""
        return cls(kind=OutcomeKind.LOST, error="worker was lost")

    @property
    def is_success(self) -> bool:
        """Whether the job is done."""
        return self.kind is OutcomeKind.EXITED and self.exit_code == 0


class Verdict(Value):
    """What becomes of the job: the move, where to, after which delay, and what is counted."""

    move: Move
    state: State
    delay_ms: int | None = None
    error: str | None = None
    charged: int = 0
    losses: int = 0


SUCCESS = Verdict(move=Move.COMPLETE, state=State.COMPLETED, charged=1)


def judge(job: Job, outcome: Outcome, backoff: Backoff, dice: float) -> Verdict:
    """Decide what follows from a run of a job."""
    if outcome.is_success:
        return SUCCESS
    if outcome.kind is OutcomeKind.CANCELLED:
        return Verdict(move=Move.STOP, state=State.CANCELLED, error=outcome.error)
    if outcome.kind is OutcomeKind.LOST:
        return _judge_loss(job, outcome, backoff, dice)
    if outcome.kind is OutcomeKind.HANDED_BACK:
        return _cancelled_instead(job) or Verdict(move=Move.HAND_BACK, state=State.PENDING)
    if job.attempts >= job.max_retries:
        return Verdict(move=Move.BURY, state=State.DEAD, error=outcome.error, charged=1)
    if cancelled := _cancelled_instead(job):
        return cancelled.replace(charged=1)
    delay = delay_ms(job.attempts + 1, backoff, dice)
    return Verdict(move=Move.FAIL, state=State.FAILED, delay_ms=delay, error=outcome.error, charged=1)


def _judge_loss(job: Job, outcome: Outcome, backoff: Backoff, dice: float) -> Verdict:
    losses = job.losses + 1
    if cancelled := _cancelled_instead(job):
        return cancelled.replace(losses=1)
    if losses >= MAX_LOSSES:
        error = f"its worker died {losses} times while running it"
        return Verdict(move=Move.LOST, state=State.DEAD, error=error, losses=1)
    if losses == 1:
        return Verdict(move=Move.LOST, state=State.PENDING, error=outcome.error, losses=1)
    delay = delay_ms(losses, backoff, dice)
    return Verdict(move=Move.LOST, state=State.FAILED, delay_ms=delay, error=outcome.error, losses=1)


def _cancelled_instead(job: Job) -> Verdict | None:
    """A job somebody asked to cancel is never run again, however its run ended."""
    if not job.cancel_requested:
        return None
    return Verdict(move=Move.STOP, state=State.CANCELLED, error="cancelled while running")
