"""Telling: what the log of a worker says of runs that are over and settled."""

from queuectl.model.states import State
from queuectl.model.units import duration_text, rough_duration_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from queuectl.actions.settle import Step
    from queuectl.model.attempt import Report
    from queuectl.model.job import Claim, Job
    from queuectl.runtime.log import Log


def say_ends(log: "Log", step: "Step", ended: "Sequence[tuple[Claim, Report]]") -> None:
    """Say what became of each run that a step settled, and of those whose claim was lost.

    A job that was given back without a run, and could not go back in the line, is settled too: somebody cancelled it.
    """
    if step.settled:
        reports = {claim.job.seq: (claim, report) for claim, report in ended}
        log.runs([(job.state, _told(job, reports.get(job.seq), step.now), job.id, job.run) for job in step.settled])
    for claim in step.lost:
        log.warning("lost", "claim was lost; nothing was written", job=claim.job.id, run=claim.job.run)


def _told(job: "Job", ended: "tuple[Claim, Report] | None", now: int) -> str:
    return f"{job.state} before it began" if ended is None else _ended_text(job, *ended, now)


def _ended_text(job: "Job", claim: "Claim", report: "Report", now: int) -> str:
    took = rough_duration_text(_ran_ms(claim, report, now))
    if job.state is State.COMPLETED:
        return f"completed in {took}"
    if job.state is State.SCHEDULED and job.run_at is not None:
        return f"snoozed (exit code {job.exit_code}, took {took}); again in {duration_text(job.run_at - now)}"
    reason = f"{job.error or report.outcome.error}, took {took}"
    if job.state is State.FAILED and job.run_at is not None:
        return f"failed ({reason}); attempt {job.attempts}/{job.max_retries}, again in {(job.run_at - now) / 1000:g} s"
    if job.state is State.DEAD:
        return f"dead ({reason}); attempts {job.attempts}/{job.max_retries}"
    return f"{job.state} ({reason})"


def _ran_ms(claim: "Claim", report: "Report", now: int) -> int:
    if report.begun_s is None or report.ended_s is None:
        return max(0, now - (claim.job.started_at or now))
    return max(0, round((report.ended_s - report.begun_s) * 1000))
