"""Run a command through the queue and stay with it: its output as it comes, and its exit code.

It is a job like any other: kept, logged, shown. Workers take it; where none is running, this command runs it itself.
Ctrl-C cancels it. The exit code is the command's own, 128+n for signal n, 124 for a timeout or a deadline, 125 when
queuectl itself could not do it, 130 when interrupted; 1 when the command's own is 0 and --success-codes do not have it.
"""

import os

from queuectl.actions import control
from queuectl.actions.connect import connect
from queuectl.actions.explain import is_for_a_worker, why_waiting
from queuectl.actions.submit import submit
from queuectl.cli.enqueue import add_job_options, fields_of_flags, spec_from_words
from queuectl.cli.logs import Printer
from queuectl.cli.store import find_job, target_of, who
from queuectl.cli.text import drop_output, note, print_json, safe
from queuectl.clock import wall_ms
from queuectl.errors import JobFailed, NotFound, Refused
from queuectl.model.job import JobSpec
from queuectl.model.shapes import job_shape
from queuectl.model.states import State
from queuectl.model.verdict import OutcomeKind
from queuectl.runtime.errand import Errand
from queuectl.runtime.follow import follow, output_of
from queuectl.store import attempts, jobs
from queuectl.system.signals import on_stop_signals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from queuectl.actions.connect import Target
    from queuectl.cli.parser import Args, Parser
    from queuectl.model.attempt import Attempt
    from queuectl.model.job import Job
    from queuectl.store.database import Database, Tx

TAKES_WORDS = True
FAILURE_CODE = 125
TIMEOUT_CODE = 124
INTERRUPTED_CODE = 130
SIGNAL_CODE = 128
PIPE_SIGNAL = 13
EXAMPLES = """\
  queuectl run 'make all'
  queuectl run --timeout 10m --queue builds -- ./build.sh release
  queuectl run --max-retries 3 'curl -fsS https://example.org/feed' > feed.xml
"""


def add_arguments(parser: "Parser", _defaults: "Mapping[str, object]") -> None:
    """Declare the arguments."""
    parser.usage = "queuectl run [options] 'shell line' | JSON | -- program [argument ...]"
    parser.add_argument(
        "line", nargs="*", metavar="WORD", help="a shell line, a JSON job, or a program and its arguments"
    )
    add_job_options(parser)
    parser.set_defaults(run=run)


def run(args: "Args") -> int:
    """Add the job, show its output as it comes, and return what the command returned."""
    spec = _spec(args)
    target = target_of(args)
    database = connect(target)
    interruption = _Interruption(target)
    with on_stop_signals(interruption.hear):  # from here on: a job that was added and not cancelled would run later
        [job_id] = submit(database, [spec], who=who(), environ=os.environ)
        job = database.read(lambda tx: find_job(tx, job_id))
        interruption.watch(job)
        with Errand(target, job):
            try:
                _show(args, target, database, job)
            except BrokenPipeError:
                interruption.cancel()  # as the command itself would have ended of it
                drop_output()
                return SIGNAL_CODE + PIPE_SIGNAL
    after, last = database.read(lambda tx: _outcome(tx, job.seq))
    code = INTERRUPTED_CODE if interruption.is_heard else _code(after, last)
    if args.json:
        print_json({**job_shape(after), "code": code, "printed": _printed(target, database, after, last)})
    elif after.state is not State.COMPLETED:
        note(f"job {after.id} is {after.state}: {safe(after.error or '-')}; see: queuectl show {after.id}")
    return code


def _show(args: "Args", target: "Target", database: "Database", job: "Job") -> None:
    """Stay with the job until it has ended, and print what it prints, unless it is to be one object at the end."""

    def say_wait(job: "Job") -> None:
        wait = database.read(lambda tx: why_waiting(tx, job))
        if wait is None or is_for_a_worker(wait):  # its own is just starting
            return
        change = f"; to change it: {wait.remedy}" if wait.remedy else ""
        note(f"job {job.id} waits for {wait.reason}{change}")

    chunks = follow(target, database, job.seq, on_wait=say_wait)
    if args.json:
        for _ in chunks:
            pass
    else:
        Printer(is_raw=False, is_merged=False, is_followed=True).print_all(chunks)


def _printed(target: "Target", database: "Database", job: "Job", last: "Attempt | None") -> "dict[str, str]":
    """Return what is kept of the output of the last run, each stream under its name."""
    kept: dict[str, bytearray] = {}
    for chunk in output_of(target, database, job, last) if last is not None else ():
        kept.setdefault(chunk.stream, bytearray()).extend(chunk.data)
    return {stream: bytes(data).decode(errors="replace") for stream, data in kept.items()}


def _spec(args: "Args") -> "JobSpec":
    fields = fields_of_flags(args)
    base = JobSpec(max_retries=0, split_output=_has_two_streams())
    return spec_from_words(args, fields, wall_ms(), base)


def _has_two_streams() -> bool:
    """Whether our stdout and stderr lead to different places; where they do not, one pipe keeps their order."""
    try:
        return not os.path.samestat(os.fstat(1), os.fstat(2))
    except OSError:
        return True


class _Interruption:
    """What asks this command to stop: the first time it cancels the job, the second time it leaves at once."""

    def __init__(self, target: "Target") -> None:
        self._target = target
        self._job: Job | None = None
        self.is_heard = False

    def watch(self, job: "Job") -> None:
        """Cancel this job when asked to stop, and now if that was before it was there."""
        self._job = job
        if self.is_heard:
            self.cancel()

    def hear(self) -> None:
        if self.is_heard and self._job is not None:
            note(f"not waiting for job {self._job.id} to end")
            raise KeyboardInterrupt
        self.is_heard = True
        self.cancel()

    def cancel(self) -> None:
        """Cancel the job through a connection of our own: the other one may be in the middle of something."""
        if self._job is None:
            return
        database = connect(self._target)
        try:
            control.cancel(database, [str(self._job.seq)], who=who())
        except (Refused, NotFound):
            pass  # it has just ended
        finally:
            database.close()


def _outcome(tx: "Tx", seq: int) -> "tuple[Job, Attempt | None]":
    job = jobs.get(tx, seq)
    if job is None:
        raise JobFailed(f"job {seq} was deleted while it was waited for")
    runs = attempts.runs_of(tx, job)
    return job, runs[-1] if runs else None


def _code(job: "Job", last: "Attempt | None") -> int:
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
