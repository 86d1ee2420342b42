"""Which jobs a command line means: ids, ranges of numbers, and what to look for in them. The rules are in actions/."""

from queuectl.actions.selection import EVERYTHING, Selection
from queuectl.clock import wall_ms
from queuectl.errors import BadInput, UnknownName
from queuectl.model.checks import check_name
from queuectl.model.states import STATE_NAMES, State, hindrances
from queuectl.model.units import PAST_HELP, past_ms
from queuectl.store import jobs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queuectl.cli.parser import Args, Parser

NAMES_HELP = "jobs: numbers, ids, ranges such as 3-9, or 'last'"


def add_names(parser: "Parser", *, nargs: str = "*") -> None:
    """Declare the jobs that are named."""
    parser.add_argument("ids", nargs=nargs, metavar="ID", help=NAMES_HELP)


def add_filter(parser: "Parser", *, default: str | None = None) -> None:
    """Declare what to look for in jobs; their state is apart, for the commands that are about one state alone."""
    parser.add_argument("--queue", metavar="NAME", default=default, help="only this queue")
    parser.add_argument("--group", metavar="NAME", default=default, help="only this group")
    parser.add_argument(
        "--tag", metavar="TAG", action="append", default=default, help="only jobs with this tag; repeated: with all"
    )
    parser.add_argument(
        "--command", dest="text", metavar="TEXT", default=default, help="only jobs whose command holds this text"
    )
    parser.add_argument("--error", metavar="TEXT", default=default, help="only jobs whose error holds this text")
    parser.add_argument("--since", metavar="TIME", default=default, help=f"only jobs added since: {PAST_HELP}")
    parser.add_argument("--until", metavar="TIME", default=default, help="only jobs added before")


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
    names = () if states else _state_names(args.state)
    now_ms = wall_ms()
    return jobs.Filter(
        states=states or tuple(dict.fromkeys(STATE_NAMES[name] for name in names)),
        hindrances=hindrances(names),
        queue=None if args.queue is None else check_name("queue", args.queue),
        group=None if args.group is None else check_name("group", args.group),
        tags=tuple(dict.fromkeys(check_name("tag", tag) for tag in args.tag or ())),
        text=args.text,
        error=args.error,
        since=None if args.since is None else past_ms(args.since, now_ms),
        until=None if args.until is None else past_ms(args.until, now_ms),
    )


def read_selection(args: "Args") -> Selection:
    """Read names and filter together."""
    return Selection(names=tuple(args.ids), wanted=read_filter(args))


def read_states(text: str | None) -> tuple[State, ...]:
    """Read a list of states, or raise with the nearest one."""
    return tuple(dict.fromkeys(STATE_NAMES[name] for name in _state_names(text)))


def _state_names(text: str | None) -> list[str]:
    names = [name.strip().lower() for name in (text or "").split(",") if name.strip()]
    if text is not None and not names:
        raise BadInput("--state names no state", hint=f"known: {', '.join(State)}")
    for name in names:
        if name not in STATE_NAMES:
            raise UnknownName.among("state", name, list(STATE_NAMES))
    return names


def is_everything(selection: Selection) -> bool:
    """Whether nothing was said about which jobs are meant."""
    return not selection.names and selection.wanted == EVERYTHING


def group_alone(selection: Selection) -> str | None:
    """Return the group that is meant as a whole: named, and nothing else said about which jobs."""
    group = selection.wanted.group
    return group if group is not None and selection == Selection(wanted=jobs.Filter(group=group)) else None
