"""List, pause and resume queues. A queue exists from the first job or command that names it."""

from queuectl.actions import control
from queuectl.cli.parser import add_verbs
from queuectl.cli.store import open_store, who
from queuectl.cli.text import note, print_json, table, when
from queuectl.model.checks import check_name
from queuectl.model.shapes import counts_shape, time_shape
from queuectl.model.states import State
from queuectl.store import jobs, queues

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from queuectl.cli.parser import Args, Parser
    from queuectl.store.database import Tx
    from queuectl.store.queues import Queue

EXAMPLES = """\
  queuectl queue list
  queuectl queue pause mail
  queuectl queue resume mail
"""


def add_arguments(parser: "Parser", _defaults: "Mapping[str, object]") -> None:
    """Declare the verbs and their arguments."""
    verbs = add_verbs(
        parser,
        {
            "list": ("list queues and what is in them", "  queuectl queue list", run_list),
            "pause": (
                "hand out no more jobs of a queue; running ones go on",
                "  queuectl queue pause mail",
                run_pause,
            ),
            "resume": ("hand out jobs of a queue again", "  queuectl queue resume mail", run_resume),
        },
        default="list",
    )
    for name in ("pause", "resume"):
        verbs[name].add_argument("name", metavar="NAME", help="the queue")


def run_list(args: "Args") -> int:
    """Print every queue."""

    def look(tx: "Tx") -> "tuple[list[Queue], dict[str, dict[State, int]], int]":
        return queues.all_queues(tx), jobs.counts(tx), tx.now

    known, counts, now = open_store(args).read(look)
    if args.json:
        for queue in known:
            shape = {
                "queue": queue.name,
                "paused_at": time_shape(queue.paused_at),
                "created_at": time_shape(queue.created_at),
            }
            print_json({**shape, **counts_shape(counts.get(queue.name, {}))})
        return 0
    rows = [
        (
            queue.name,
            f"paused {when(queue.paused_at, now)}" if queue.paused_at else "open",
            *(str(counts.get(queue.name, {}).get(state, 0)) for state in (State.PENDING, State.PROCESSING, State.DEAD)),
        )
        for queue in known
    ]
    table(("QUEUE", "STATE", "PENDING", "PROCESSING", "DEAD"), rows, right=("PENDING", "PROCESSING", "DEAD"))
    return 0


def run_pause(args: "Args") -> int:
    """Pause a queue."""
    name = check_name("queue", args.name)
    database = open_store(args)
    is_new = database.read(lambda tx: queues.get(tx, name)) is None
    changed = control.pause_queue(database, name, who=who())
    if is_new:
        note(f"queue {name} is new: nothing was ever put into it")
    return _say(args, name, "paused", changed)


def run_resume(args: "Args") -> int:
    """Resume a queue."""
    name = check_name("queue", args.name)
    changed = control.resume_queue(open_store(args), name, who=who())
    return _say(args, name, "open", changed)


def _say(args: "Args", name: str, state: str, changed: bool) -> int:
    if args.json:
        print_json({"queue": name, "paused": state == "paused", "changed": changed})
    else:
        print(f"{name} is {state}" if changed else f"{name} was {state} already")
    return 0
