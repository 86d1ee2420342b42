"""Staying with jobs until they have ended: what their end means for whoever waited."""

from queuectl.actions.submit import Fate
from queuectl.cli.text import note, safe
from queuectl.errors import JobFailed
from queuectl.model.states import State
from queuectl.model.verdict import OutcomeKind
from queuectl.store import attempts, jobs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from queuectl.actions.connect import Target
    from queuectl.actions.submit import Entry
    from queuectl.model.attempt import Attempt
    from queuectl.model.job import Job
    from queuectl.store.database import Database, Tx

FAILURE_CODE = 125
TIMEOUT_CODE = 124
SIGNAL_CODE = 128


def stay(target: "Target", database: "Database", entries: "Sequence[Entry]") -> int:
    """Wait until jobs that were handed in have ended; return the exit code of the one, or what they came to."""
    from queuectl.cli.wait import going_on, wait_in_view

    seqs = _numbers(entries)
    if len(seqs) != 1:
        return stay_with_all(target, database, entries)
    with going_on(seqs):
        wait_in_view(target, database, seqs)
    job, last = database.read(lambda tx: outcome_of(tx, seqs[0]))
    if job.state is not State.COMPLETED:
        tell_failure(job)
    return exit_code(job, last)


def stay_with_all(target: "Target", database: "Database", entries: "Sequence[Entry]") -> int:
    """Wait until jobs that were handed in have ended, one or many; return 0 if all completed, or raise."""
    from queuectl.cli.wait import going_on, judge, wait_in_view

    seqs = _numbers(entries)
    with going_on(seqs):
        return judge(wait_in_view(target, database, seqs)) if seqs else 0


def _numbers(entries: "Sequence[Entry]") -> list[int]:
    """Return the numbers of those that are waited for: not those that were skipped, or are over and removed."""
    waited = [entry for entry in entries if entry.fate is not Fate.SKIPPED and not entry.is_removed]
    return list(dict.fromkeys(entry.seq for entry in waited))


def tell_failure(job: "Job") -> None:
    """Say what became of a job that did not complete."""
    note(f"job {job.id} is {job.state}: {safe(job.error or '-')}; see: queuectl show {job.id}")


def outcome_of(tx: "Tx", seq: int) -> "tuple[Job, Attempt | None]":
    """Return a job as it stands, and its last run."""
    job = jobs.get(tx, seq)
    if job is None:
        raise JobFailed(f"job {seq} was deleted while it was waited for")
    runs = attempts.runs_of(tx, job)
    return job, runs[-1] if runs else None


def exit_code(job: "Job", last: "Attempt | None") -> int:
    """Return what a shell would give for the command, or say that it was ours to fail."""
    if last is None and job.state is State.DEAD:
        return TIMEOUT_CODE  # its deadline passed before it could run
    if job.state is State.CANCELLED or last is None or last.outcome is None:
        return FAILURE_CODE
    if last.outcome is OutcomeKind.TIMED_OUT:
        return TIMEOUT_CODE
    if last.outcome in (OutcomeKind.KILLED, OutcomeKind.OUT_OF_MEMORY) and last.signal:
        return SIGNAL_CODE + last.signal
    if last.outcome in (OutcomeKind.EXITED, OutcomeKind.NOT_STARTED) and last.exit_code is not None:
        return last.exit_code or int(job.state is not State.COMPLETED)
    return FAILURE_CODE
