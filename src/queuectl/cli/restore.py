"""Put a backup in the place of all that is in the store, at once or not at all. Nothing else may be using the store."""

from queuectl.actions.restore import restore
from queuectl.cli.acts import confirm
from queuectl.cli.store import target_of, who
from queuectl.cli.text import note, print_json, safe
from queuectl.model.units import counted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from queuectl.cli.parser import Args, Parser

EXAMPLES = """\
  queuectl restore /var/backups/queue.db
  queuectl restore --yes nightly.db
  queuectl --db postgresql://queue@db/queue restore queue.db

What was there is kept in backups/ of the home. Jobs that ran when the backup was made run again.
A backup of one kind of database can be restored into the other: that is how a queue moves.
"""


def add_arguments(parser: "Parser", _defaults: "Mapping[str, object]") -> None:
    """Declare the arguments."""
    parser.add_argument("file", metavar="FILE", help="a file that queuectl backup made; it is not changed")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.set_defaults(run=run)


def run(args: "Args") -> int:
    """Restore and say where the old state is kept."""

    def ask(going: int, coming: int) -> None:
        what = f"replaces {counted(going, 'job')} by {counted(coming, 'job')} of {safe(args.file)}"
        confirm(what, is_sure=args.yes)

    done = restore(target_of(args), args.file, who=who(), confirm=ask)
    if args.json:
        print_json(done.as_dict())
        return 0
    print(f"{counted(done.jobs, 'job')} restored from {safe(done.file)}; they replace {done.replaced}")
    if done.kept:
        note(f"what was there before is kept: {safe(done.kept)}")
    return 0
