"""Which jobs a command line means: ids, ranges of numbers, and what to look for in them. The rules are in actions/."""

from queuectl.actions import selection
from queuectl.actions.selection import Selection
from queuectl.clock import wall_ms
from queuectl.model.states import STATE_NAMES, State
from queuectl.model.units import PAST_HELP
from queuectl.store import jobs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queuectl.cli.parser import Args, Parser

ERROR_HELP = "only jobs whose error holds this text"
NAMES_HELP = "jobs: numbers, ids, ranges such as 3-9, or 'last'"


def add_names(parser: "Parser", *, nargs: str = "*") -> None:
    """Declare the jobs that are named."""
    parser.add_argument("ids", nargs=nargs, metavar="ID", help=NAMES_HELP)


def add_filter(parser: "Parser", *, default: str | None = None, error_help: str = ERROR_HELP) -> None:
    """Declare what to look for in jobs; their state is apart, for the commands that are about one state alone."""
    parser.add_argument("--queue", metavar="NAME", default=default, help="only this queue")
    parser.add_argument("--group", metavar="NAME", default=default, help="only this group")
    parser.add_argument(
        "--tag", metavar="TAG", action="append", default=default, help="only jobs with this tag; repeated: with all"
    )
    parser.add_argument(
        "--command", dest="text", metavar="TEXT", default=default, help="only jobs whose command holds this text"
    )
    parser.add_argument("--error", metavar="TEXT", default=default, help=error_help)
    parser.add_argument("--since", metavar="TIME", default=default, help=f"only jobs added since: {PAST_HELP}")
    parser.add_argument("--until", metavar="TIME", default=default, help="only jobs added before")
    parser.add_argument("--ended-since", metavar="TIME", default=default, help="only jobs that came to an end since")


def add_state(parser: "Parser") -> None:
    """Declare the states to look for."""
    parser.add_argument(
        "--state",
        metavar="A,B",
        help=f"only these states: {', '.join(State)}; also held, parked (waits for a limit), "
        "dependent (waits for other jobs), running",
    )


def read_filter(args: "Args", states: tuple[State, ...] = ()) -> jobs.Filter:
    """Read what to look for in jobs; their states, too, of the commands that are not about some alone."""
    return selection.read_filter(
        wall_ms(),
        states=states,
        state=None if states else args.state,
        queue=args.queue,
        group=args.group,
        tags=args.tag or (),
        text=args.text,
        error=args.error,
        since=args.since,
        until=args.until,
        ended_since=args.ended_since,
    )


def read_selection(args: "Args") -> Selection:
    """Read names and filter together."""
    return Selection(names=tuple(args.ids), wanted=read_filter(args))


def read_states(text: str | None) -> tuple[State, ...]:
    """Read a list of states, or raise with the nearest one."""
    return tuple(dict.fromkeys(STATE_NAMES[name] for name in selection.state_names(text)))
