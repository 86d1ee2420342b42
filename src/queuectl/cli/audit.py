"""List who did what, newest first: every act of a person that changed something, in the words of the act."""

from queuectl.actions.shapes import act_shape
from queuectl.cli.list import DEFAULT_LIMIT, read_limit
from queuectl.cli.store import open_store
from queuectl.cli.text import moment, note, print_json, safe, short, table
from queuectl.clock import wall_ms
from queuectl.model.units import PAST_HELP, past_ms
from queuectl.store import audit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from queuectl.cli.parser import Args, Parser
    from queuectl.store.database import Tx

TARGET_WIDTH = 200
EXAMPLES = """\
  queuectl audit
  queuectl audit --action cancel --since 1d
  queuectl audit --who alice --limit 200 --json
"""


def add_arguments(parser: "Parser", _defaults: "Mapping[str, object]") -> None:
    """Declare the arguments."""
    parser.add_argument("--who", metavar="TEXT", help="only acts of people whose name holds this text")
    parser.add_argument(
        "--action", metavar="WORDS", help="only these acts: cancel, 'dlq retry', or the first word: config, worker"
    )
    parser.add_argument("--since", metavar="TIME", help=f"only acts since: {PAST_HELP}")
    parser.add_argument("--limit", metavar="N", default=str(DEFAULT_LIMIT), help="at most so many (default: 50)")
    parser.set_defaults(run=run)


def run(args: "Args") -> int:
    """Print the newest acts."""
    limit = read_limit(args.limit)
    since = None if args.since is None else past_ms(args.since, wall_ms())

    def look(tx: "Tx") -> tuple[list[audit.Act], int]:
        return audit.newest(tx, limit + 1, who=args.who, action=args.action, since=since), tx.now

    found, now = open_store(args).read(look)
    if args.json:
        for act in found[:limit]:
            print_json(act_shape(act))
    elif found:
        rows = (
            (
                moment(act.at, now),
                safe(act.who),
                safe(act.action),
                str(act.count),
                short(act.target or "-", TARGET_WIDTH),
            )
            for act in found[:limit]
        )
        table(("WHEN", "WHO", "ACTION", "COUNT", "WHAT"), rows, right=("COUNT",))
    else:
        note("no such act is on record" if args.who or args.action or args.since else "nothing is on record yet")
    if len(found) > limit:
        note(f"the newest {limit} are shown; see more with --limit {limit * 10}")
    return 0
