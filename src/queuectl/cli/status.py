"""Count jobs by state and queue, and list the living workers; with --watch, again whenever something changes.

With --group: how far a group is, how quickly it goes on, and what failed in it; with --groups: the newest of them.
"""

import sys

from queuectl.actions.snapshot import look, status_shape
from queuectl.cli.store import connect, target_of
from queuectl.cli.text import print_json, table
from queuectl.cli.worker import WORKER_RIGHT
from queuectl.cli.worker import workers_table as table_of
from queuectl.model.checks import check_name
from queuectl.model.states import State
from queuectl.model.units import counted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from queuectl.actions.snapshot import Snapshot
    from queuectl.cli.parser import Args, Parser

    Table = tuple[tuple[str, ...], list[tuple[str, ...]], tuple[str, ...]]

ALWAYS_SHOWN = frozenset({State.PENDING, State.PROCESSING, State.COMPLETED, State.FAILED, State.DEAD})
EXAMPLES = """\
  queuectl status
  queuectl status --watch
  queuectl status --json
  queuectl status --groups
  queuectl status --group nightly
  queuectl
"""
NO_WORKER = "no worker is running"

_FIRST_STEPS = """\
Nothing here yet. Three commands to try:

  queuectl enqueue 'echo hello from $QUEUECTL_JOB_ID'
  queuectl worker start --until-idle
  queuectl logs last
"""


def add_arguments(parser: "Parser", _defaults: "Mapping[str, object]") -> None:
    """Declare the arguments."""
    parser.add_argument("-w", "--watch", action="store_true", help="show it again whenever it changes, until Ctrl-C")
    parser.add_argument("--group", metavar="NAME", help="show a group alone")
    parser.add_argument("--groups", action="store_true", help="list the newest groups: how many jobs, how many failed")
    parser.set_defaults(run=run)


def run(args: "Args") -> int:
    """Print where everything stands, once or from now on."""
    target = target_of(args)
    database = connect(target)
    if args.groups:
        from queuectl.cli.group_status import list_groups

        return list_groups(args, database)
    if args.group is not None:
        from queuectl.cli.group_status import show_group

        return show_group(args, target, database, check_name("group", args.group))
    if args.watch:
        from queuectl.cli.screen import watch_status

        return watch_status(args, target, database)
    found = database.read(look)
    if args.json:
        print_json(status_shape(found, database.dialect))
    elif not found.queues:
        print(_FIRST_STEPS, end="")
    else:
        print_status(found)
    return 0


def print_status(found: "Snapshot") -> None:
    """Print it as text."""
    table(*counts_table(found)[:2], right=counts_table(found)[2])
    print()
    if found.workers:
        table(*workers_table(found)[:2], right=WORKER_RIGHT)
    else:
        print(no_worker_line(found))
    if lines := [*waiting_lines(found), *group_lines(found)]:
        print()
        print("\n".join(lines))
    sys.stdout.flush()


def counts_table(found: "Snapshot") -> "Table":
    """Return a row per queue; a state that is rare and that no job is in has no column."""
    total = found.total
    states = [state for state in State if state in ALWAYS_SHOWN or total[state]]
    rows = [
        (
            f"{queue.name} (paused)" if queue.paused_at else queue.name,
            *(str(found.counts.get(queue.name, {}).get(state, 0)) for state in states),
        )
        for queue in found.queues
    ]
    if len(rows) > 1:
        rows.append(("(all)", *(str(total[state]) for state in states)))
    headers = ("QUEUE", *(state.value.upper() for state in states))
    return headers, rows, headers[1:]


def workers_table(found: "Snapshot") -> "Table":
    """Return a row per living worker."""
    return *table_of(found.workers, found.load, found.now), WORKER_RIGHT


def no_worker_line(found: "Snapshot") -> str:
    """Say that nobody works, and what starts a worker, unless nothing waits but what such a one could not take."""
    is_for_any = found.total[State.PENDING] > sum(one.jobs for one in found.unservable)
    return f"{NO_WORKER}; start one: queuectl worker start -d" if is_for_any or not found.unservable else NO_WORKER


def waiting_lines(found: "Snapshot") -> list[str]:
    """Return a line for each queue and each kind of job that no worker takes, with what starts one that would."""
    unserved = [
        f"no running worker serves queue {queue.name}, where {counted(ready, 'job')} wait{'s' * (ready == 1)}; "
        f"start one: queuectl worker start -d --queue {queue.name}"
        for queue in found.queues
        if queue.paused_at is None and (ready := found.counts.get(queue.name, {}).get(State.PENDING, 0))
        if found.workers and not any(one.queue_list is None or queue.name in one.queue_list for one in found.workers)
    ]
    return [*unserved, *(f"{one.words}; start one: {one.remedy}" for one in found.unservable)]


def group_lines(found: "Snapshot") -> list[str]:
    """Return a line that names the groups under way, and the command that shows how far they are."""
    if not found.groups:
        return []
    if len(found.groups) == 1:
        return [f"group under way: {found.groups[0]}; see: queuectl status --group {found.groups[0]}"]
    return [f"groups under way: {', '.join(found.groups)}; see: queuectl status --groups"]
