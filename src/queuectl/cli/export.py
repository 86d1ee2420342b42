"""Write the store as lines of JSON, for another store or for keeping. With a filter: the jobs that match, alone."""

import sys

from queuectl.actions.exporting import export, export_file, line_of
from queuectl.cli.selection import add_filter, add_state, read_filter
from queuectl.cli.store import connect, target_of
from queuectl.cli.text import note, print_json, safe
from queuectl.errors import BadInput
from queuectl.model.units import counted
from queuectl.store import jobs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from queuectl.cli.parser import Args, Parser

EXAMPLES = """\
  queuectl export queue.jsonl
  queuectl export --state dead --queue mail > dead.jsonl
  queuectl export | ssh other queuectl import -
  queuectl export | gzip > queue.jsonl.gz

Holds commands, variables and output: keep it as you keep the store. Read it back with: queuectl import
"""


def add_arguments(parser: "Parser", _defaults: "Mapping[str, object]") -> None:
    """Declare the arguments."""
    parser.add_argument("file", nargs="?", default="-", metavar="FILE", help="the file to make (default: -, stdout)")
    parser.add_argument("--force", action="store_true", help="replace the file if it exists")
    add_filter(parser)
    add_state(parser)
    parser.set_defaults(run=run)


def run(args: "Args") -> int:
    """Write every line as it is read."""
    found = read_filter(args)
    wanted = None if found == jobs.Filter() else found
    target = target_of(args)
    if args.file != "-":
        end = export_file(target, wanted, args.file, force=args.force)
        if args.json:
            print_json({"file": args.file, "jobs": end.jobs, "runs": end.runs})
        else:
            print(f"{safe(args.file)}: {counted(end.jobs, 'job')} and {counted(end.runs, 'run')}")
        return 0
    if args.force:
        raise BadInput("--force replaces a file", hint="name it: queuectl export --force FILE")
    out = sys.stdout.buffer
    end = export(connect(target), wanted, lambda shape: out.write(line_of(shape)))
    out.flush()
    if sys.stderr.isatty() and not sys.stdout.isatty():
        note(f"{counted(end.jobs, 'job')} and {counted(end.runs, 'run')} written")
    return 0
