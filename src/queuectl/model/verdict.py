"""Outcome (how a run ended) and Verdict (what follows from it). `judge` is pure and returns delays, never times."""

from enum import StrEnum

from queuectl.model.job import Job
from queuectl.model.retry import Backoff, delay_ms
from queuectl.model.states import Move, State
from queuectl.model.units import duration_text
from queuectl.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queuectl.model.policy import Policy

MAX_LOSSES = 3
ALONE_FROM_LOSSES = MAX_LOSSES - 1
"""One more loss buries the job: from then on it runs alone on its host."""


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


class Result(StrEnum):
    """What came of a run: the outcome, and for a command that exited whether that was well."""

    COMPLETED = "completed"
    FAILED = "failed"
    KILLED = "killed"
    OUT_OF_MEMORY = "out_of_memory"
    TIMED_OUT = "timed_out"
    NOT_STARTED = "not_started"
    LOST = "lost"
    SNOOZED = "snoozed"
    CANCELLED = "cancelled"
    HANDED_BACK = "handed_back"


FAILURES = (
    Result.FAILED,
    Result.KILLED,
    Result.OUT_OF_MEMORY,
    Result.TIMED_OUT,
    Result.NOT_STARTED,
    Result.LOST,
)
"""The results that are no success and were nobody's wish."""
SNOOZE_WORDS = "asked to run again later"


class Outcome(Value):
    """How a run ended. Build one through its verbs, so that no impossible mix exists."""

    kind: OutcomeKind
    exit_code: int | None = None
    signal: int | None = None
    error: str | None = None
    signal_name: str | None = None
    """The name of a signal that was not ours."""
    is_past_deadline: bool = False
    """Whether the time of the whole job was over, not that of this run."""

    @classmethod
    def exited(cls, code: int, *, note: str | None = None) -> "Outcome":
        """The command ended by itself; `note` is what else is known of a failure."""
        if not code:
            return EXITED_WELL
        return cls(kind=OutcomeKind.EXITED, exit_code=code, error=f"exit code {code}" + (f"; {note}" if note else ""))

    @classmethod
    def killed(cls, signal: int, name: str, *, why: str | None = None) -> "Outcome":
        """A signal that was not ours ended the command."""
        error = f"killed by {name}" + (f": {why}" if why else "")
        return cls(kind=OutcomeKind.KILLED, signal=signal, signal_name=name, error=error)

    @classmethod
    def out_of_memory(
        cls, *, signal: int | None = None, exit_code: int | None = None, limit: str | None = None
    ) -> "Outcome":
        """The kernel killed the command for lack of memory, or a program whose end its shell passed on as a code.

        Without a `limit`, the kernel's count for the whole host says so.
        """
        error = "out of memory: killed while the kernel killed for lack of memory on this host"
        if limit is not None:
            error = f"out of memory: killed by the kernel at its limit of {limit}"
        return cls(kind=OutcomeKind.OUT_OF_MEMORY, signal=signal, exit_code=exit_code, error=error)

    @classmethod
    def timed_out(cls, after_ms: int, *, exit_code: int | None = None, signal: int | None = None) -> "Outcome":
        """The command ran longer than its timeout and was stopped."""
        error = f"timed out after {after_ms / 1000:g} s"
        return cls(kind=OutcomeKind.TIMED_OUT, exit_code=exit_code, signal=signal, error=error)

    @classmethod
    def past_deadline(cls, deadline_ms: int, *, exit_code: int | None = None, signal: int | None = None) -> "Outcome":
        """The deadline of the job passed while the command ran, and it was stopped."""
        error = f"its deadline of {duration_text(deadline_ms)} passed while it ran"
        kind = OutcomeKind.TIMED_OUT
        return cls(kind=kind, exit_code=exit_code, signal=signal, error=error, is_past_deadline=True)

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
    def left(cls) -> "Outcome":
        """The worker was told to stop and left without a word to the store, which was away."""
        return cls.handed_back("worker was told to stop while the store was away")

    @classmethod
    def lost(cls) -> "Outcome":
        """The worker died while the command ran."""
        return cls(kind=OutcomeKind.LOST, error="worker was lost")

    @property
    def is_success(self) -> bool:
        """Whether the job is done; one with a policy of its own is asked `under` it."""
        return self.kind is OutcomeKind.EXITED and self.error is None

    def under(self, policy: "Policy") -> "Outcome":
        """Return it as a policy sees it: which codes are no failure, or one though they are 0."""
        if self.kind is not OutcomeKind.EXITED or self.exit_code is None:
            return self
        if self.exit_code in policy.success_codes:
            return self.replace(error=None)
        if str(self.exit_code) in policy.snooze_codes:
            return self.replace(error=f"{SNOOZE_WORDS} (exit code {self.exit_code})")
        if self.exit_code == 0:
            return self.replace(error=f"exit code 0 (success codes: {', '.join(map(str, policy.success_codes))})")
        return self

    @property
    def ends(self) -> tuple[str, ...]:
        """What a policy may call it."""
        if self.kind is OutcomeKind.TIMED_OUT:
            return ("timeout",)
        if self.kind is OutcomeKind.KILLED:
            return ("signal", str(self.signal_name))
        code = () if self.exit_code is None else (str(self.exit_code),)
        # Lack of memory may be a guess; that it was a signal is not.
        killed = ("signal", "SIGKILL") if self.kind is OutcomeKind.OUT_OF_MEMORY and self.signal is not None else ()
        return code if self.kind is OutcomeKind.EXITED else (self.kind.value, *killed, *code)


def result_of(kind: OutcomeKind, error: str | None) -> Result:
    """Return what came of a run that ended so."""
    if kind is not OutcomeKind.EXITED:
        return Result(kind.value)
    if error is None:
        return Result.COMPLETED
    return Result.SNOOZED if error.startswith(SNOOZE_WORDS) else Result.FAILED


EXITED_WELL = Outcome(kind=OutcomeKind.EXITED, exit_code=0)  # frozen: most runs share it


class Verdict(Value):
    """What becomes of the job: the move, where to, after which delay, and what is counted."""

    move: Move
    state: State
    delay_ms: int | None = None
    error: str | None = None
    charged: int = 0
    losses: int = 0


SUCCESS = Verdict(move=Move.COMPLETE, state=State.COMPLETED, charged=1)


def judge(job: Job, outcome: Outcome, backoff: Backoff, dice: float, left_ms: int | None = None) -> Verdict:
    """Decide what follows from a run of a job; `left_ms` is how long its deadline is away, None that it has none."""
    policy = job.own_policy
    if policy is not None:
        outcome = outcome.under(policy)
    if outcome.is_success:
        return SUCCESS
    if outcome.kind is OutcomeKind.CANCELLED:
        return Verdict(move=Move.STOP, state=State.CANCELLED, error=outcome.error)
    if outcome.kind is OutcomeKind.LOST:
        return _judge_loss(job, outcome, backoff, dice)
    if outcome.kind is OutcomeKind.HANDED_BACK:
        return _cancelled_instead(job) or Verdict(move=Move.HAND_BACK, state=State.PENDING)
    if policy is not None and (delay := _snooze_ms(policy, outcome)) is not None:
        return _cancelled_instead(job) or _in_time(_snooze(outcome, delay), left_ms)
    if job.attempts >= job.max_retries or outcome.is_past_deadline:
        return _bury(outcome.error)
    if policy is not None and (why := _why_not_again(policy, outcome)):
        return _bury(f"{outcome.error}; not retried ({why})")
    if cancelled := _cancelled_instead(job):
        return cancelled.replace(charged=1)
    delay = delay_ms(job.attempts + 1, backoff, dice)
    again = Verdict(move=Move.FAIL, state=State.FAILED, delay_ms=delay, error=outcome.error, charged=1)
    return _in_time(again, left_ms)


def _bury(error: str | None, charged: int = 1) -> Verdict:
    return Verdict(move=Move.BURY, state=State.DEAD, error=error, charged=charged)


def _snooze(outcome: Outcome, delay: int) -> Verdict:
    return Verdict(move=Move.SNOOZE, state=State.SCHEDULED, delay_ms=delay, error=outcome.error)


def _snooze_ms(policy: "Policy", outcome: Outcome) -> int | None:
    """Return after how long a command asks to be run again; None when it does not."""
    return policy.snooze_codes.get(str(outcome.exit_code)) if outcome.kind is OutcomeKind.EXITED else None


def _why_not_again(policy: "Policy", outcome: Outcome) -> str | None:
    """Say which part of a policy keeps a failed run from being tried again; None when none does."""
    if policy.may_retry(outcome.ends):
        return None
    if any(end in policy.no_retry_on for end in outcome.ends):
        return "no_retry_on"
    from queuectl.model.policy import ends_text  # only a job that has a policy comes here

    return f"retry_on {ends_text(policy.retry_on or ())}"


def _in_time(again: Verdict, left_ms: int | None) -> Verdict:
    """Return the verdict of a job that is to run again; one whose deadline is over before that is buried at once."""
    if left_ms is None or (again.delay_ms or 0) < left_ms:
        return again
    return _bury(f"{again.error}; its deadline leaves no time for another run", again.charged)


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
