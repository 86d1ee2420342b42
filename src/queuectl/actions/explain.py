"""Explain: why a job does not run, what ended it, and what a person can do about either."""

from queuectl.actions.gating import foremost, gates
from queuectl.actions.liveness import pulse
from queuectl.actions.manning import SLOT, WORKER
from queuectl.model.states import FINAL, State
from queuectl.model.units import counted
from queuectl.model.value import Value
from queuectl.model.verdict import MAX_LOSSES, OutcomeKind
from queuectl.store import workers
from queuectl.system.liveness import Pulse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from queuectl.actions.scene import Gate
    from queuectl.model.attempt import Attempt
    from queuectl.model.job import Job
    from queuectl.store.database import Tx

SHELL_SAYS = {126: "as a shell says: cannot be executed", 127: "as a shell says: no such command"}


class Wait(Value):
    """What a job waits for, and what would end that: a command to type, where there is one."""

    reason: str
    remedy: str | None = None
    is_passing: bool = False
    """Whether it ends without anybody's doing."""
    is_for_any_worker: bool = False
    """Whether nothing is missing but somebody, whoever it is, to run it."""


def is_for_a_worker(wait: Wait) -> bool:
    """Whether nothing is missing but somebody to run it."""
    return wait.is_for_any_worker


def why_waiting(tx: "Tx", job: "Job") -> Wait | None:
    """Say why a job does not run yet; None when it does not wait."""
    if job.state in FINAL:
        return None
    if job.state is State.PROCESSING:
        return _why_running_is_over(tx, job)
    return wait_of(job, foremost(gates(tx, job)))


def wait_of(job: "Job", gate: "Gate | None") -> Wait:
    """Say what a job waits for that this gate keeps waiting; None means that all are open."""
    if gate is None:
        return Wait(reason="its turn", is_passing=True, is_for_any_worker=not job.needs)
    return Wait(
        reason=gate.reason,
        remedy=gate.remedy,
        is_passing=gate.ends is not None,
        is_for_any_worker=gate.name in (WORKER, SLOT) and not job.needs,
    )


def cause(job: "Job", runs: "Sequence[Attempt]") -> str | None:
    """Say in one line what ended a job, or its last run while it waits for the next; None when nothing went wrong."""
    if job.state not in (State.DEAD, State.FAILED, State.CANCELLED):
        return None
    ended = [run for run in runs if run.finished_at is not None]
    what = _ended_by(job, ended[-1]) if ended else job.error
    if what is None:
        return None
    if job.state is State.DEAD and job.losses < MAX_LOSSES and job.attempts > job.max_retries:
        return f"{what}; {counted(job.attempts, 'run')} used, none left"
    if job.state is State.FAILED:
        return f"{what}; {counted(max(1, job.max_retries + 1 - job.attempts), 'run')} left"
    return what


def mending_edit(job: "Job", runs: "Sequence[Attempt]") -> str | None:
    """Return what to change of a dead job as `edit` takes it, where its end tells; None: it may be the command."""
    error = job.error or ""
    if "its deadline" in error:
        return "--deadline DURATION"
    ended = [run for run in runs if run.finished_at is not None]
    if not ended:
        return None
    launch = job.launch_map
    if ended[-1].outcome is OutcomeKind.NOT_STARTED:
        return _starting_edit(error, launch.get("shell"))
    if ended[-1].outcome is OutcomeKind.TIMED_OUT:
        return "--timeout DURATION"
    if ended[-1].outcome is OutcomeKind.OUT_OF_MEMORY and "memory_bytes" in launch:
        return "--memory SIZE"
    return next((edit for said, edit in _END_EDITS.items() if said in error), None)


def _starting_edit(error: str, shell: object) -> str | None:
    if shell is not None and error.startswith(f"cannot run {shell!r}"):
        return "--shell PROGRAM"
    return next((edit for said, edit in _START_EDITS.items() if said in error), None)


# What an error holds, and the change that would help; the texts are those of system/ and model/verdict.py.
_START_EDITS = {
    "standard input": "--stdin FILE",
    "cannot enter": "--cwd DIR",
    "with so little memory": "--memory SIZE",
    "cannot set memory": "--memory SIZE",
    "cannot set nofile": "--nofile N",
    "cannot set cpu_seconds": "--cpu-seconds N",
    "cannot set file_size": "--file-size SIZE",
    "cannot set nice": "--nice N",
    "secret ": "--secret NAME",
}
_END_EDITS = {
    "SIGXCPU": "--cpu-seconds N",
    "SIGXFSZ": "--file-size SIZE",
    "(success codes:": "--success-codes 0",
}


def _ended_by(job: "Job", run: "Attempt") -> str | None:
    """Say what ended a job that has run: how its last run ended and what follows, or what came after that."""
    error, of_run = job.error or run.error, run.error or ""
    if error is None or not of_run or not error.startswith(of_run):
        return error
    return _run_ended_by(run) + error.removeprefix(of_run)


def _run_ended_by(run: "Attempt") -> str:
    said = run.error or ""
    if run.outcome is OutcomeKind.NOT_STARTED:
        return f"it could not be started: {said}"
    if run.outcome is OutcomeKind.EXITED and run.exit_code in SHELL_SAYS:
        return f"{said} ({SHELL_SAYS[run.exit_code]})"
    if run.outcome is OutcomeKind.KILLED:
        return f"{said} (signal {run.signal})"
    return said


def _why_running_is_over(tx: "Tx", job: "Job") -> Wait | None:
    holder = workers.get(tx, job.worker_id or "")
    if holder is not None and holder.state == workers.LIVE and pulse(holder, tx.dialect) is not Pulse.DEAD:
        return None
    stuck = f" ({job.error})" if job.error else ""
    return Wait(
        reason=f"a rescue: its worker is dead; a running supervisor brings it back{stuck}",
        remedy="queuectl worker start -d",
    )
