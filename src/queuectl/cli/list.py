"""List jobs, newest first."""

from queuectl.cli.store import open_store
from queuectl.cli.text import age, note, print_json, short, table
from queuectl.errors import BadInput, UnknownName
from queuectl.model.shapes import job_shape
from queuectl.model.spec import check_name
from queuectl.model.states import State
from queuectl.store import jobs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from queuectl.cli.parser import Args, Parser
    from queuectl.model.job import Job
    from queuectl.store.database import Tx

DEFAULT_LIMIT = 50
MAX_LIMIT = 1_000_000
COMMAND_WIDTH = 200
EXAMPLES = """\
  queuectl list
  queuectl list --state failed,dead --queue mail
  queuectl list --tag newsletter --limit 10 --json
  queuectl list --state pending --limit 100000 -q | xargs queuectl cancel
"""


def add_arguments(parser: "Parser", _defaults: "Mapping[str, object]") -> None:
    """Declare the arguments."""
    add_filter(parser)
    parser.add_argument("--state", metavar="A,B", help=f"only these states: {', '.join(State)}")
    parser.add_argument("--limit", metavar="N", default=str(DEFAULT_LIMIT), help="at most so many (default: 50)")
    parser.add_argument("-q", "--quiet", action="store_true", help="print ids only")
    parser.set_defaults(run=run)


def add_filter(parser: "Parser", *, default: str | None = None) -> None:
    """Declare the arguments that choose among jobs."""
    parser.add_argument("--queue", metavar="NAME", default=default, help="only this queue")
    parser.add_argument("--tag", metavar="TAG", default=default, help="only jobs with this tag")


def run(args: "Args") -> int:
    """Print the newest jobs that match."""
    wanted = read_filter(args, read_states(args.state))
    limit = read_limit(args.limit)

    def look(tx: "Tx") -> "tuple[list[Job], int]":
        return jobs.newest(tx, wanted, limit + 1), tx.now

    found, now = open_store(args).read(look)
    shown = found[:limit]
    if args.json:
        for job in shown:
            print_json(job_shape(job))
    elif args.quiet:
        for job in shown:
            print(job.id)
    elif shown:
        print_jobs(shown, now)
    else:
        note(
            "no jobs match"
            if args.state or args.queue or args.tag
            else "no jobs yet; add one: queuectl enqueue 'echo hello'"
        )
    if len(found) > limit:
        note(f"the newest {limit} are shown; see more with --limit {limit * 10}")
    return 0


def read_filter(args: "Args", states: tuple[State, ...]) -> jobs.Filter:
    """Read which jobs a person means."""
    return jobs.Filter(
        states=states,
        queue=None if args.queue is None else check_name("queue", args.queue),
        tags=() if args.tag is None else (check_name("tag", args.tag),),
    )


def print_jobs(found: "list[Job]", now: int) -> None:
    """Print jobs as a table."""
    rows = (
        (
            job.id,
            job.state.value,
            job.queue,
            str(job.priority),
            f"{job.attempts}/{job.max_retries}",
            age(job.created_at, now),
            short(job.line, COMMAND_WIDTH),
        )
        for job in found
    )
    table(
        ("ID", "STATE", "QUEUE", "PRIORITY", "ATTEMPTS", "ADDED", "COMMAND"),
        rows,
        right=("PRIORITY", "ATTEMPTS"),
    )


def read_states(text: str | None) -> tuple[State, ...]:
    """Read a list of states, or raise with the nearest one."""
    names = [name.strip().lower() for name in (text or "").split(",") if name.strip()]
    for name in names:
        if name not in list(State):
            raise UnknownName.among("state", name, list(State))
    return tuple(dict.fromkeys(State(name) for name in names))


def read_limit(text: str, flag: str = "--limit") -> int:
    """Read how many rows or lines a person wants."""
    if not (text.isascii() and text.isdigit() and 1 <= int(text[:9]) <= MAX_LIMIT):
        raise BadInput(f"bad {flag} {text!r}", hint=f"give a whole number from 1 to {MAX_LIMIT}")
    return int(text)
