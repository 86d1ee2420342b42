"""Wording: what a run of a job asks for: the words of its command, how long it may take; and what ending it means."""

from queuectl.model.verdict import Outcome
from queuectl.system import process
from queuectl.system.home import remove_file, script_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queuectl.model.job import Job
    from queuectl.system.home import Home

FILE_COMMAND_BYTES = 128 << 10

# Why a run is ended.
TIMEOUT = "timeout"
DEADLINE = "deadline"
CANCEL = "cancel"
HAND_BACK = "hand back"
LAPSE = "lapse"


def words_of(job: "Job", shell: str, home: "Home") -> tuple[list[str], str | None]:
    """Return the argument vector of a job, and the file that holds its shell line, where that is too long for one."""
    if job.command is None:
        return job.argv_list or [], None
    if len(job.command) < FILE_COMMAND_BYTES // 4 or len(process.encoded(job.command)) < FILE_COMMAND_BYTES:
        return [shell, "-c", job.command], None
    # The kernel takes no argument of 128 KiB or more.
    script = script_path(home, job.seq, job.run)
    try:
        with open(script, "wb") as file:
            file.write(process.encoded(job.command))
    except OSError as error:
        remove_file(script)
        reason, is_passing = f"cannot write {script}: {error.strerror}", error.errno in process.NO_ROOM
        raise process.CannotStart(process.CANNOT_RUN, reason, is_passing=is_passing) from None
    return [shell, script], script


def longest_run(job: "Job", job_timeout_s: float) -> tuple[float, str]:
    """Return how many seconds a run may take, 0 for any, and what ends it then.

    What is left until the deadline is measured by the database's clock at the claim, and then counted here.
    """
    timeout_s = job_timeout_s if job.timeout_ms is None else job.timeout_ms / 1000
    if job.deadline_at is None:
        return timeout_s, TIMEOUT
    left_s = max(1, job.deadline_at - (job.started_at or 0)) / 1000
    return (timeout_s, TIMEOUT) if 0 < timeout_s <= left_s else (left_s, DEADLINE)


def stopped_outcome(reason: str | None, ended: process.Ended, timeout_s: float, deadline_ms: int) -> Outcome:
    """Say how a run ended that was stopped, after its first process was collected."""
    if reason == TIMEOUT:
        return Outcome.timed_out(round(timeout_s * 1000), exit_code=ended.exit_code, signal=ended.signal)
    if reason == DEADLINE:
        return Outcome.past_deadline(deadline_ms, exit_code=ended.exit_code, signal=ended.signal)
    if reason == CANCEL:
        return Outcome.cancelled(exit_code=ended.exit_code, signal=ended.signal)
    if reason == LAPSE:
        return Outcome.lapsed()
    return Outcome.handed_back()
