"""Remove finished jobs that were kept long enough, with their runs and output. Workers do it by themselves, too."""

import os

from queuectl.actions import upkeep
from queuectl.actions.connect import settings_of
from queuectl.cli.selection import read_states
from queuectl.cli.store import open_store, who
from queuectl.cli.text import note, print_json
from queuectl.errors import BadInput
from queuectl.model.units import DURATION_HELP, counted, duration_ms, rough_size_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from queuectl.actions.upkeep import Pruned
    from queuectl.cli.parser import Args, Parser

EXAMPLES = """\
  queuectl prune --dry-run
  queuectl prune
  queuectl prune --state completed --older-than 1d
  queuectl prune --vacuum
"""


def add_arguments(parser: "Parser", _defaults: "Mapping[str, object]") -> None:
    """Declare the arguments."""
    parser.add_argument("--dry-run", action="store_true", help="only say how many would go")
    parser.add_argument(
        "--state", metavar="A,B", help="only these final states: completed, cancelled, dead (default: all)"
    )
    parser.add_argument(
        "--older-than",
        metavar="AGE",
        help=f"finished so long ago, whatever the retention settings say; needs --state. {DURATION_HELP}",
    )
    parser.add_argument(
        "--vacuum",
        action="store_true",
        help="then rewrite the SQLite file without its free space; only while no worker runs",
    )
    parser.set_defaults(run=run)


def run(args: "Args") -> int:
    """Prune, or say what would go."""
    states = read_states(args.state)
    if args.state is not None and not states:
        raise BadInput("--state is empty", hint="give completed, cancelled or dead")
    older_than_ms = None if args.older_than is None else duration_ms(args.older_than)
    if args.dry_run and args.vacuum:
        raise BadInput("--vacuum rewrites the file and --dry-run changes nothing", hint="give one of them")
    database = open_store(args)
    settings = database.read(lambda tx: settings_of(tx, os.environ))
    rules = upkeep.chosen_rules(settings, states, older_than_ms)
    if args.dry_run:
        return _say(args, upkeep.count_expired(database, rules), is_done=False)
    if args.vacuum:
        upkeep.refuse_rewrite(database)
    code = _say(args, upkeep.prune(database, rules, who=who()), is_done=True)
    if args.vacuum:
        before, after = upkeep.rewrite(database)
        note(f"the file was {rough_size_text(before)} and is {rough_size_text(after)} now")
    return code


def _say(args: "Args", pruned: "Pruned", *, is_done: bool) -> int:
    if args.json:
        print_json({**pruned.as_dict(), "dry_run": not is_done})
        return 0
    verb = "pruned" if is_done else "would be pruned"
    print(
        f"{counted(pruned.jobs, 'job')} {verb}: {pruned.completed} completed, {pruned.cancelled} cancelled, "
        f"{pruned.dead} dead"
    )
    if pruned.workers:
        print(f"{counted(pruned.workers, 'worker')} that ended long ago {'forgotten' if is_done else 'would be, too'}")
    if pruned.acts:
        print(f"{counted(pruned.acts, 'act')} of more than a year ago {'forgotten' if is_done else 'would be, too'}")
    return 0
