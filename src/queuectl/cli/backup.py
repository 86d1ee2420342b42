"""Copy the store, as it is at one moment, into one SQLite file, while workers run. Output files are not part of it."""

from queuectl.actions import archive
from queuectl.cli.store import target_of, who
from queuectl.cli.text import note, print_json, safe
from queuectl.model.units import counted, rough_size_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from queuectl.cli.parser import Args, Parser

EXAMPLES = """\
  queuectl backup /var/backups/queue.db
  queuectl backup --force nightly.db
  queuectl --db sqlite:////var/backups/queue.db list

The file holds jobs, runs with the end of their output, queues, settings and the audit trail.
The output files in logs/ of each host are not in it: copy those folders, too, if you need all of the output.
"""


def add_arguments(parser: "Parser", _defaults: "Mapping[str, object]") -> None:
    """Declare the arguments."""
    parser.add_argument("file", metavar="FILE", help="the file to make")
    parser.add_argument("--force", action="store_true", help="replace the file if it exists")
    parser.set_defaults(run=run)


def run(args: "Args") -> int:
    """Make the copy and say how large it is."""
    made = archive.backup(target_of(args), args.file, who=who(), force=args.force)
    if args.json:
        print_json({"file": made.file, "jobs": made.jobs, "bytes": made.bytes})
    else:
        print(f"{safe(made.file)}: {counted(made.jobs, 'job')}, {rough_size_text(made.bytes)}")
    if not made.is_recorded:
        note("the store could not be written to, so this is not on record in its audit trail")
    return 0
