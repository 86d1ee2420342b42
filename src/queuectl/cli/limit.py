"""Look after named limits: how many of the jobs that name one (`enqueue --limit NAME`) run at once, over all queues.

A mutex (`enqueue --mutex NAME`) is a limit of one that nobody has to make; `list` shows those in use.
"""

from queuectl.actions import gatekeeping
from queuectl.actions.shapes import full_limit_shape, limit_set_shape, limit_shape
from queuectl.cli.parser import add_verbs
from queuectl.cli.store import open_store, who
from queuectl.cli.text import facts, print_json, short, table, when
from queuectl.errors import NotFound
from queuectl.model.checks import check_name, check_own_name
from queuectl.model.limits import LIMIT, MUTEX
from queuectl.model.units import counted
from queuectl.store import overview

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from queuectl.cli.parser import Args, Parser
    from queuectl.store.database import Tx
    from queuectl.store.overview import LimitView

EXAMPLES = """\
  queuectl limit set api 4
  queuectl enqueue --limit api './fetch.sh'
  queuectl limit list
  queuectl limit show api
  queuectl limit show --mutex deploy
  queuectl limit delete api
"""
_SET_EXAMPLES = """\
  queuectl limit set api 4
  queuectl limit set api 0       no job that names it starts

In force at once: a higher number lets waiting jobs go; a lower one stops nobody who runs.
"""
SHORT_ID = 6
COMMAND_WIDTH = 60


def add_arguments(parser: "Parser", _defaults: "Mapping[str, object]") -> None:
    """Declare the verbs and their arguments."""
    verbs = add_verbs(
        parser,
        {
            "list": ("list limits, and the mutexes in use", "  queuectl limit list", run_list),
            "show": (
                "show who holds a limit and who waits for it",
                "  queuectl limit show api\n  queuectl limit show --mutex deploy",
                run_show,
            ),
            "set": ("make a limit, or give it another number", _SET_EXAMPLES, run_set),
            "delete": (
                "remove a limit that no job needs any more",
                "  queuectl limit delete api",
                run_delete,
            ),
        },
        default="list",
    )
    for name in ("show", "set", "delete"):
        verbs[name].add_argument("name", metavar="NAME", help="the limit")
    verbs["set"].add_argument("slots", metavar="SLOTS", help="how many jobs that name it may run at once; 0 = none")
    verbs["show"].add_argument("--mutex", action="store_true", help="the mutex of this name, not the limit")


def run_list(args: "Args") -> int:
    """Print every limit, and the mutexes in use."""
    known = open_store(args).read(overview.all_limits)
    if args.json:
        for view in known:
            print_json(limit_shape(view))
        return 0
    rows = [(view.name, view.kind, _slots(view), str(view.held), str(view.waiting)) for view in known]
    table(("NAME", "KIND", "SLOTS", "HELD", "WAITING"), rows, right=("SLOTS", "HELD", "WAITING"))
    return 0


def run_show(args: "Args") -> int:
    """Print all that is known of a limit or a mutex."""
    kind, prefix = ("mutex", MUTEX) if args.mutex else ("limit", LIMIT)
    name = check_name(kind, args.name)

    def look(tx: "Tx") -> "tuple[LimitView, int]":
        view = overview.limit(tx, prefix + name)
        if view is None and any((one.kind, one.name) == ("mutex", name) for one in overview.all_limits(tx)):
            raise NotFound(f"no limit {name!r}, but a mutex", hint=f"see it with: queuectl limit show --mutex {name}")
        if view is None:
            raise gatekeeping.unknown_limit(tx, name)
        return view, tx.now

    view, now = open_store(args).read(look)
    if args.json:
        print_json(full_limit_shape(view))
    else:
        facts(_facts(view, now))
    return 0


def run_set(args: "Args") -> int:
    """Make or change a limit."""
    name = check_own_name("limit", args.name)
    done = gatekeeping.set_limit(open_store(args), name, args.slots, who=who())
    if args.json:
        print_json(limit_set_shape(done))
        return 0
    was = "new, " if done.before is None else f"{done.before} -> " if done.before != done.slots else "is so already: "
    released = f"; {counted(done.released, 'job')} back in the line" if done.released else ""
    print(f"{name}: {was}{done.slots}{released}")
    return 0


def run_delete(args: "Args") -> int:
    """Remove a limit."""
    name = check_name("limit", args.name)
    gatekeeping.delete_limit(open_store(args), name, who=who())
    if args.json:
        print_json({"limit": name, "deleted": True})
    else:
        print(f"{name} is deleted")
    return 0


def _slots(view: "LimitView") -> str:
    return "-" if view.slots is None else str(view.slots)


def _facts(view: "LimitView", now: int) -> "Iterator[tuple[str, str]]":
    yield view.kind.capitalize(), view.name
    yield "Held", f"{view.held}, no limit was made" if view.slots is None else f"{view.held} of {view.slots}"
    for job in view.holders:
        where = f"worker {(job.worker_id or '')[:SHORT_ID]}, since {when(job.started_at, now)}"
        yield "Holder", f"{job.id} on {where}: {short(job.line, COMMAND_WIDTH)}"
    yield "Waiting", str(view.waiting)
    if view.next:
        yield "Next", ", ".join(view.next)
    if view.created_at is not None:
        yield "Created", when(view.created_at, now)
