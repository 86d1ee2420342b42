"""Groups as text and JSON: where one stands, the digest of what failed in it, and how to see and retry that."""

import shlex

from queuectl.cli.progress import left_text, rate_text
from queuectl.cli.text import end_text, safe, short, when
from queuectl.model.states import State
from queuectl.model.units import counted, rough_duration_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from queuectl.model.job import Job
    from queuectl.store.group_views import Failures, GroupView

DIGEST_LINES = 20
ERROR_WIDTH = 120
FEW = 3
"""So many with the same error are named one by one."""


def summary(view: "GroupView") -> str:
    """Say in a line how the jobs of a group ended."""
    took = "" if view.took_ms is None else f" in {rough_duration_text(view.took_ms)}"
    return f"group {view.name}: {states_text(view.counts)}{took}"


def states_text(counts: "Mapping[State, int]") -> str:
    """Write how many jobs are in each state, from those that wait to those that ended."""
    return ", ".join(f"{counts[state]:,} {state}" for state in State if counts.get(state))


def digest(view: "GroupView") -> list[str]:
    """Return a line for each failure, with the command that shows it; many with the same error share one."""
    lines: list[str] = []
    told = 0
    for kind in view.failures:
        if len(lines) >= DIGEST_LINES:
            break
        lines += _lines(view.name, kind)
        told += kind.count
    if view.failed > told:
        lines.append(f"and {view.failed - told:,} more: queuectl list {_chosen(view.name)} --state dead,cancelled")
    return lines


def retry_line(name: str) -> str:
    """Return the command that runs what failed in a group again."""
    return f"queuectl retry {_chosen(name)}"


def group_facts(view: "GroupView") -> "list[tuple[str, str]]":
    """Return what there is to know of a group, a name and a value each."""
    group = view.group
    facts = [("Group", view.name), ("Jobs", states_text(view.counts) or "none left")]
    if view.total:
        facts.append(("Progress", _progress(view)))
    if group.max_failures is not None:
        of = f" ({group.max_failures} of {counted(group.jobs, 'job')})" if group.max_failures.endswith("%") else ""
        facts.append(("Failures", f"{view.counts.get(State.DEAD, 0)} dead; at most {view.may_fail} may be{of}"))
    if group.stopped_at is not None:
        facts.append(("Stopped", f"{when(group.stopped_at, view.now)}; to let it go on: {retry_line(view.name)}"))
    if view.closing_command is not None:
        added = "" if group.done_at is None else f"; added {when(group.done_at, view.now)}"
        facts.append(("When done", f"{short(view.closing_command, ERROR_WIDTH)}{added}"))
    if group.created_at:
        facts.append(("Added", when(group.created_at, view.now)))
    if view.started_at is not None:
        facts.append(("Started", when(view.started_at, view.now)))
    if view.is_over and view.finished_at is not None:
        facts.append(("Finished", when(view.finished_at, view.now)))
    return facts


def _progress(view: "GroupView") -> str:
    text = f"{view.ended:,} of {view.total:,} ended ({view.ended * 100 // view.total} %)"
    if view.took_ms is not None:
        return f"{text} in {rough_duration_text(view.took_ms)}"
    if view.per_s is None or view.left_ms is None:
        return text
    return f"{text}, {rate_text(view.per_s)}, about {left_text(view.left_ms)} left"


def _lines(name: str, kind: "Failures") -> list[str]:
    end = end_text(kind.state, short(kind.error or "-", ERROR_WIDTH))
    if kind.count <= FEW:
        return [f"{job.id}: {end}; see: {_look(job)}" for job in kind.samples]
    ids = ", ".join(job.id for job in kind.samples)
    every = f"queuectl list {_chosen(name)} --state {kind.state}"
    if kind.error is not None and safe(kind.error) == kind.error:
        every += f" --error {shlex.quote(kind.error)}"
    more = f"{kind.count - len(kind.samples):,} more"
    return [f"{ids} and {more}: {end}; see: {_look(kind.samples[0])}; all: {every}"]


def _look(job: "Job") -> str:
    return f"queuectl logs {job.id}" if job.run else f"queuectl show {job.id}"


def _chosen(name: str) -> str:
    return f"--group {name}"
