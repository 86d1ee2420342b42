"""Run a command through the queue and stay with it: its output as it comes, and its exit code.

It is a job like any other: kept, logged, shown. Workers take it; where none is running, this command runs it itself.
Ctrl-C cancels it. The exit code is the command's own, 128+n for signal n, 124 for a timeout or a deadline, 125 when
queuectl itself could not do it, 130 when interrupted; 1 when the command's own is 0 and --success-codes do not have it.
"""

import os

from queuectl.actions.connect import connect
from queuectl.actions.explain import is_for_a_worker, why_waiting
from queuectl.actions.submit import Fate, enter
from queuectl.cli import staying
from queuectl.cli.enqueue import add_job_options, fields_of_flags, spec_from_words
from queuectl.cli.interruption import Interruption
from queuectl.cli.logs import Printer
from queuectl.cli.staying import SIGNAL_CODE, exit_code, outcome_of, tell_failure
from queuectl.cli.store import find_job, target_of, who
from queuectl.cli.text import drop_output, note, print_json, safe
from queuectl.clock import wall_ms
from queuectl.errors import INTERRUPTED_CODE
from queuectl.model.job import JobSpec
from queuectl.model.shapes import job_shape
from queuectl.model.states import State
from queuectl.runtime.errand import Errand
from queuectl.runtime.follow import follow
from queuectl.runtime.outputs import output_of
from queuectl.system.signals import on_stop_signals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from queuectl.actions.connect import Target
    from queuectl.cli.parser import Args, Parser
    from queuectl.model.attempt import Attempt
    from queuectl.model.job import Job
    from queuectl.store.database import Database

TAKES_WORDS = True
FAILURE_CODE = staying.FAILURE_CODE
"""What main.py gives for whatever goes wrong here: it is not to look like the command's own failure."""
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
    # From here on: a job that was added and not cancelled would run later.
    with Interruption(target) as interruption, on_stop_signals(interruption.hear):
        [entry] = enter(database, [spec], who=who(), environ=os.environ)
        if entry.note is not None:
            note(safe(entry.note))
        if entry.fate is Fate.SKIPPED:
            return 0
        job = database.read(lambda tx: find_job(tx, str(entry.seq)))
        interruption.watch(job, is_ours=entry.fate is Fate.ADDED)
        with Errand(target, job):
            try:
                _show(args, target, database, job)
            except BrokenPipeError:
                interruption.cancel_now()  # as the command itself would have ended of it
                drop_output()
                return SIGNAL_CODE + PIPE_SIGNAL
    after, last = database.read(lambda tx: outcome_of(tx, job.seq))
    code = INTERRUPTED_CODE if interruption.is_heard else exit_code(after, last)
    if args.json:
        print_json({**job_shape(after), "code": code, "printed": _printed(target, database, after, last)})
    elif after.state is not State.COMPLETED:
        tell_failure(after)
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
