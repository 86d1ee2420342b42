"""Staying with a group until all its jobs have ended: how far it is, and at the end a digest of what failed."""

from contextlib import nullcontext

from queuectl.actions.regroup import refuse_unknown_group
from queuectl.actions.shapes import group_shape
from queuectl.cli.group_text import digest, retry_line, states_text, summary
from queuectl.cli.progress import bar_on_terminal
from queuectl.cli.text import note, print_json
from queuectl.cli.wait import own_job, tell_trouble, trouble_text, waits_of
from queuectl.errors import BadInput, JobFailed, NotFound, WaitTimedOut
from queuectl.model.states import FINAL
from queuectl.model.units import counted
from queuectl.runtime.group_wait import wait_for_group
from queuectl.store import groups

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queuectl.actions.connect import Target
    from queuectl.actions.explain import Wait
    from queuectl.cli.parser import Args
    from queuectl.runtime.group_wait import GroupWaited
    from queuectl.store.database import Database, Tx
    from queuectl.store.group_views import GroupView

SAMPLE = 100


def stay_with_group(args: "Args", target: "Target", database: "Database", name: str, timeout_s: float | None) -> int:
    """Wait for a group, then say what became of it; return or raise for the exit code."""
    bar = bar_on_terminal(name)
    try:
        for job, what in database.read(lambda tx: _look(tx, name)):
            note(f"{job} waits for {what.reason}; to change it: {what.remedy}")
        with bar or nullcontext():
            waited = wait_for_group(
                target,
                database,
                name,
                timeout_s=timeout_s,
                is_any=args.any,
                on_trouble=tell_trouble if bar is None else lambda message: bar.note(trouble_text(message)),
                progress=bar,
            )
    except KeyboardInterrupt:
        note(f"group {name} goes on; wait for it again with: queuectl wait --group {name}")
        raise
    return _judge(args, name, waited)


def _look(tx: "Tx", name: str) -> "list[tuple[str, Wait]]":
    refuse_unknown_group(tx, name)
    own = own_job(tx)
    if own is not None and own.group_name == name:
        raise BadInput(f"job {own.id} is of group {name} and cannot wait for it", hint="wait for it from outside")
    return waits_of(tx, groups.unfinished(tx, name, SAMPLE))


def _judge(args: "Args", name: str, waited: "GroupWaited") -> int:
    view = waited.view
    if view is None:
        raise NotFound(f"no job of group {name} is left: all were deleted", hint="list jobs with: queuectl list")
    if args.json:
        print_json(group_shape(view))
    note(summary(view))
    for line in digest(view):
        note(line)
    if view.failed and not waited.is_timed_out:
        raise JobFailed(
            f"{counted(view.failed, 'job')} of group {name} did not complete",
            hint=f"run again with: {retry_line(name)}",
        )
    if waited.is_timed_out:
        raise _timed_out(view)
    return 0


def _timed_out(view: "GroupView") -> WaitTimedOut:
    rest = {state: number for state, number in view.counts.items() if state not in FINAL}
    return WaitTimedOut(
        f"{counted(sum(rest.values()), 'job')} of group {view.name} not over in time: {states_text(rest)}",
        hint=f"see: queuectl status --group {view.name}",
    )
