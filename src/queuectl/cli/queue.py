"""Look after queues: how many of their jobs run at once, how often one starts, what a job gets that says nothing.

A queue exists from the first job or command that names it.
"""

from queuectl.actions import control, gatekeeping
from queuectl.actions.gatekeeping import setting_text
from queuectl.actions.liveness import serving
from queuectl.actions.shapes import able, full_queue_shape, queue_set_shape, queue_shape, ready_since
from queuectl.cli.parser import add_verbs
from queuectl.cli.store import open_store, who
from queuectl.cli.text import age, facts, note, print_json, table, when
from queuectl.errors import BadInput
from queuectl.model.checks import check_name
from queuectl.model.queue import queue_settings_shape
from queuectl.model.rate import RATE_HELP
from queuectl.model.states import State
from queuectl.model.units import DURATION_HELP, counted, duration_text
from queuectl.store import overview, queues

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from queuectl.cli.parser import Args, Parser
    from queuectl.model.queue import Queue
    from queuectl.store.database import Tx
    from queuectl.store.overview import QueueView
    from queuectl.store.workers import Worker

EXAMPLES = """\
  queuectl queue list
  queuectl queue set mail --concurrency 4 --rate 10/m
  queuectl queue set mail --rate none --timeout 5m --max-retries 5 --priority 3
  queuectl queue show mail
  queuectl queue pause mail
  queuectl queue resume mail
  queuectl queue delete mail
"""
# flag: (setting, metavar, what it is)
SETTING_FLAGS = {
    "--concurrency": ("concurrency", "N", "how many of its jobs may run at once, over all hosts"),
    "--rate": ("rate", "RATE", f"how often a job may start, evenly spaced: {RATE_HELP}"),
    "--timeout": ("timeout", "DURATION", f"the timeout of jobs added without one: {DURATION_HELP}; 0 = never stopped"),
    "--max-retries": ("max_retries", "N", "the retries of jobs added without"),
    "--priority": ("priority", "N", "the priority of jobs added without"),
}
_SET_EXAMPLES = """\
  queuectl queue set mail --concurrency 4
  queuectl queue set mail --rate 10/m --timeout 5m
  queuectl queue set mail --concurrency none --rate none

The word none takes a setting back. Concurrency and rate are in force at once, for the jobs that are there, too; running
ones go on. Timeout, retries and priority are given to a job when it is added.
"""
SHORT_ID = 6
WORKERS_NAMED = 5


def add_arguments(parser: "Parser", _defaults: "Mapping[str, object]") -> None:
    """Declare the verbs and their arguments."""
    verbs = add_verbs(
        parser,
        {
            "list": ("list queues and what is in them", "  queuectl queue list", run_list),
            "show": ("show all that is known of a queue", "  queuectl queue show mail", run_show),
            "set": ("limit a queue, and say what its jobs get; makes it if it is new", _SET_EXAMPLES, run_set),
            "pause": (
                "hand out no more jobs of a queue; running ones go on",
                "  queuectl queue pause mail",
                run_pause,
            ),
            "resume": ("hand out jobs of a queue again", "  queuectl queue resume mail", run_resume),
            "delete": (
                "remove a queue that holds no job, with what was set for it",
                "  queuectl queue delete mail",
                run_delete,
            ),
        },
        default="list",
    )
    for name in ("show", "set", "pause", "resume", "delete"):
        verbs[name].add_argument("name", metavar="NAME", help="the queue")
    for flag, (setting, metavar, about) in SETTING_FLAGS.items():
        names = (flag, "--retries") if setting == "max_retries" else (flag,)
        verbs["set"].add_argument(*names, dest=setting, metavar=metavar, help=f"{about}; or none")


def run_list(args: "Args") -> int:
    """Print every queue."""

    def look(tx: "Tx") -> "tuple[list[QueueView], int]":
        return overview.all_queues(tx), tx.now

    known, now = open_store(args).read(look)
    if args.json:
        for view in known:
            print_json(queue_shape(view))
        return 0
    rows = [
        (
            view.queue.name,
            f"paused {when(view.queue.paused_at, now)}" if view.queue.paused_at else "open",
            "-" if view.queue.concurrency is None else f"{view.running}/{view.queue.concurrency}",
            "-" if view.queue.rate is None else view.queue.rate.text,
            *(str(view.counts.get(state, 0)) for state in (State.PENDING, State.PROCESSING, State.DEAD)),
        )
        for view in known
    ]
    headers = ("QUEUE", "STATE", "CONCURRENCY", "RATE", "PENDING", "PROCESSING", "DEAD")
    table(headers, rows, right=("PENDING", "PROCESSING", "DEAD"))
    return 0


def run_show(args: "Args") -> int:
    """Print all that is known of a queue."""
    name = check_name("queue", args.name)

    def look(tx: "Tx") -> "tuple[QueueView, list[Worker], int]":
        view = overview.queue(tx, name)
        if view is None:
            raise gatekeeping.unknown_queue(tx, name)
        return view, serving(tx, [name]), tx.now

    view, serve, now = open_store(args).read(look)
    if args.json:
        print_json(full_queue_shape(view, serve, now))
    else:
        facts(_facts(view, serve, now))
    return 0


def run_set(args: "Args") -> int:
    """Set something for a queue, and say what is different."""
    name = check_name("queue", args.name)
    given = {setting: getattr(args, setting) for setting, _, _ in SETTING_FLAGS.values()}
    fields = {setting: value for setting, value in given.items() if value is not None}
    if not fields:
        raise BadInput("nothing to set", hint=f"give {', '.join(SETTING_FLAGS)}; the word none takes one back")
    done = gatekeeping.set_queue(open_store(args), name, fields, who=who())
    if args.json:
        print_json(queue_set_shape(done))
        return 0
    if done.is_new:
        note(f"queue {name} is new: nothing was ever put into it")
    words = [f"{key} {setting_text(key, old)} -> {setting_text(key, new)}" for key, (old, new) in done.changes.items()]
    print(f"{name}: {', '.join(words) or 'is so already'}")
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


def run_delete(args: "Args") -> int:
    """Remove a queue."""
    name = check_name("queue", args.name)
    gatekeeping.delete_queue(open_store(args), name, who=who())
    if args.json:
        print_json({"queue": name, "deleted": True})
    else:
        print(f"{name} is deleted")
    return 0


def _say(args: "Args", name: str, state: str, changed: bool) -> int:
    if args.json:
        print_json({"queue": name, "paused": state == "paused", "changed": changed})
    else:
        print(f"{name} is {state}" if changed else f"{name} was {state} already")
    return 0


def _facts(view: "QueueView", serve: "Sequence[Worker]", now: int) -> "Iterator[tuple[str, str]]":
    queue = view.queue
    yield "Queue", queue.name
    yield "State", "open" if queue.paused_at is None else f"paused {when(queue.paused_at, now)}"
    running = f"{view.running} of {queue.concurrency}" if queue.concurrency is not None else f"{view.running}, no limit"
    yield "Running", running
    if queue.rate is not None:
        yield "Rate", f"{queue.rate.text}, one start every {duration_text(queue.rate.interval_ms)}"
        yield "Next start", _next_start(queue, now)
    yield "Timeout", _default(queue_settings_shape(queue), "timeout", "job_timeout")
    yield "Retries", _default(queue_settings_shape(queue), "max_retries", "max_retries")
    yield "Priority", setting_text("priority", queue.priority or 0)
    yield "Jobs", ", ".join(f"{number} {state}" for state, number in sorted(view.counts.items())) or "none"
    if view.oldest is not None:
        yield "Oldest ready", f"{view.oldest.id}, ready {age(ready_since(view), now)}"
    yield "Workers", _workers_text(queue.name, serve)
    for lane in view.lanes:
        if lane.needs.words:
            yield (
                "Needs",
                f"{lane.needs.words}: {lane.ready} ready, {counted(able(lane, serve), 'worker')} can run them",
            )
    yield "Created", when(queue.created_at, now)


def _next_start(queue: "Queue", now: int) -> str:
    if queue.next_start_at is None or queue.next_start_at <= now:
        return "now"
    return when(queue.next_start_at, now)


def _default(settings: "Mapping[str, object]", name: str, setting: str) -> str:
    value = settings[name]
    return f"as setting {setting} says" if value is None else setting_text(name, value)


def _workers_text(queue: str, serve: "Sequence[Worker]") -> str:
    if not serve:
        return f"none serves it; start one: queuectl worker start -d --queue {queue}"
    more = f" and {len(serve) - WORKERS_NAMED} more" if len(serve) > WORKERS_NAMED else ""
    return f"{len(serve)}: {', '.join(worker.id[:SHORT_ID] for worker in serve[:WORKERS_NAMED])}{more}"
