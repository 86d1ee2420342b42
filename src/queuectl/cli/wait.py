"""Wait until jobs have ended. Exit code 0: all completed; 1: one is dead or was cancelled; 3: one was deleted, or
there is no such group; 4: the time was up. On a terminal a line shows how far it is.

A filter means the jobs it finds now; with --group alone, those added to the group meanwhile are waited for, too.
"""

import os
from contextlib import contextmanager

from queuectl.actions.explain import why_waiting
from queuectl.actions.selection import group_alone, is_everything, numbers
from queuectl.cli.progress import bar_on_terminal
from queuectl.cli.selection import add_filter, add_names, add_state, read_selection
from queuectl.cli.store import connect, target_of
from queuectl.cli.text import end_text, note, print_json, range_text, safe
from queuectl.errors import BadInput, JobFailed, NotFound, WaitTimedOut
from queuectl.model.shapes import job_shape
from queuectl.model.states import State
from queuectl.model.units import DURATION_HELP, counted, duration_ms
from queuectl.runtime.wait import wait_for_all, wait_for_any
from queuectl.store import jobs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from queuectl.actions.connect import Target
    from queuectl.actions.explain import Wait
    from queuectl.cli.parser import Args, Parser
    from queuectl.model.job import Job
    from queuectl.runtime.wait import Waited
    from queuectl.store.database import Database, Tx

DIGEST_LINES = 20
NAMED = 5
SAMPLE = 100
EXAMPLES = """\
  queuectl wait 12
  queuectl wait job1 job2 --timeout 10m && ./publish.sh
  queuectl wait --any 12 13
  queuectl wait 3-9
  queuectl wait --tag nightly
  queuectl wait --group nightly --timeout 2h
  id=$(queuectl enqueue ./build.sh) && queuectl wait "$id"
"""


def add_arguments(parser: "Parser", _defaults: "Mapping[str, object]") -> None:
    """Declare the arguments."""
    add_names(parser)
    add_state(parser)
    add_filter(parser)
    parser.add_argument("--timeout", metavar="DURATION", help=f"wait at most so long: {DURATION_HELP}")
    parser.add_argument("--any", action="store_true", help="until the first of them has ended")
    parser.set_defaults(run=run)


def run(args: "Args") -> int:
    """Wait, then say what became of the jobs."""
    timeout_s = None if args.timeout is None else duration_ms(args.timeout) / 1000
    target = target_of(args)
    database = connect(target)
    if (name := group_alone(read_selection(args))) is not None:
        from queuectl.cli.group_wait import stay_with_group

        return stay_with_group(args, target, database, name, timeout_s)
    seqs, waits = database.read(lambda tx: (seqs := _chosen(tx, args), waits_of(tx, seqs)))
    with going_on(seqs):
        for job_name, what in waits:
            note(f"{job_name} waits for {what.reason}; to change it: {what.remedy}")
        if args.any:
            waited = wait_for_any(target, database, seqs, timeout_s=timeout_s, on_trouble=tell_trouble)
        else:
            waited = wait_in_view(target, database, seqs, timeout_s=timeout_s)
    if args.json:
        for job in waited.jobs:
            print_json(job_shape(job))
    return judge(waited)


def wait_in_view(
    target: "Target", database: "Database", seqs: "Sequence[int]", *, timeout_s: float | None = None
) -> "Waited":
    """Wait until jobs have ended; of several a terminal is shown how far they are."""
    bar = bar_on_terminal(counted(len(seqs), "job")) if len(seqs) > 1 else None
    if bar is None:
        return wait_for_all(target, database, seqs, timeout_s=timeout_s, on_trouble=tell_trouble)
    with bar:
        return wait_for_all(
            target,
            database,
            seqs,
            timeout_s=timeout_s,
            on_trouble=lambda message: bar.note(trouble_text(message)),
            progress=bar,
        )


@contextmanager
def going_on(seqs: "Sequence[int]") -> "Iterator[None]":
    """Say to whoever ends a wait with Ctrl-C that the jobs go on, and how to wait for them again."""
    try:
        yield
    except KeyboardInterrupt:
        names = [range_text(seqs)] if len(seqs) > NAMED else [str(seq) for seq in seqs]
        again = f"; wait again with: queuectl wait {' '.join(names)}" if all(names) else ""
        note(f"the {'job goes' if len(seqs) == 1 else 'jobs go'} on{again}")
        raise


def _chosen(tx: "Tx", args: "Args") -> list[int]:
    """Return the numbers of the jobs a person means, or raise."""
    selection = read_selection(args)
    if is_everything(selection):
        raise BadInput("which jobs?", hint="give ids, or a filter such as --tag")
    seqs = numbers(tx, selection)
    if not seqs:
        raise NotFound("no job matches", hint="list them with: queuectl list")
    own = own_job(tx)
    if own is not None and own.seq in seqs:
        raise BadInput(f"job {own.id} cannot wait for itself", hint="name other jobs")
    return seqs


def own_job(tx: "Tx") -> "Job | None":
    """Return the running job whose command this is, if it is one."""
    own = jobs.find(tx, os.environ.get("QUEUECTL_JOB_ID", ""))
    return own if own is not None and own.state is State.PROCESSING else None


def waits_of(tx: "Tx", seqs: "Sequence[int]") -> "list[tuple[str, Wait]]":
    """Return what a person would have to do before these jobs can end, each thing once; no more than that."""
    found: dict[str, tuple[str, Wait]] = {}
    for job in jobs.by_seqs(tx, seqs[:SAMPLE]):
        wait = why_waiting(tx, job)
        if wait is not None and wait.remedy is not None and not wait.is_passing:
            found.setdefault(wait.remedy, (f"job {job.id}", wait))
    return list(found.values())[:NAMED]


def tell_trouble(message: str) -> None:
    """Say that the store does not answer."""
    note(trouble_text(message))


def trouble_text(message: str) -> str:
    """Return what is said when the store does not answer."""
    return f"{safe(message)}; trying again until it answers"


def judge(waited: "Waited") -> int:
    """Raise for the first thing that is not as hoped: a failure, a job that is gone, the time."""
    if waited.failed:
        _print_digest(waited.failed, len(waited.jobs))
        raise JobFailed(f"{counted(len(waited.failed), 'job')} did not complete", hint=_how_to_retry(waited.failed))
    if waited.deleted:
        names = " ".join(map(str, waited.deleted[:DIGEST_LINES]))
        raise NotFound(f"{counted(len(waited.deleted), 'job')} deleted meanwhile: {names}")
    if waited.is_timed_out:
        states = ", ".join(f"{job.id} is {job.state}" for job in waited.remaining[:DIGEST_LINES])
        raise WaitTimedOut(
            f"{counted(len(waited.remaining), 'job')} not over in time: {states}",
            hint=f"see why with: queuectl why {waited.remaining[0].id}",
        )
    return 0


def _how_to_retry(failed: "Sequence[Job]") -> str:
    """Say how to run them again; those that were cancelled because of another come back with that."""
    names = [job.id for job in failed if job.starved_at is None]
    if names:
        return f"run again with: queuectl retry {' '.join(names[:NAMED])}"
    return f"what kept them from running, and how they come back: queuectl why {failed[0].id}"


def _print_digest(failed: "Sequence[Job]", total: int) -> None:
    """Name each that did not complete, why, and the command that shows its output."""
    for job in failed[:DIGEST_LINES]:
        look = f"queuectl logs {job.id}" if job.run else f"queuectl show {job.id}"
        note(f"{job.id}: {end_text(job.state, job.error)}; see: {look}")
    if len(failed) > DIGEST_LINES:
        note(f"and {len(failed) - DIGEST_LINES} more of {total}: queuectl list --state {State.DEAD},{State.CANCELLED}")
