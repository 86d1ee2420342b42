"""Write the store as lines of JSON, for another store or for keeping. With a filter: the jobs that match, alone."""

import json
import sys

from queuectl.actions.transfer import export
from queuectl.cli.list import add_filter, read_filter, read_states
from queuectl.cli.store import open_store
from queuectl.cli.text import note
from queuectl.model.states import State
from queuectl.model.units import counted
from queuectl.store import jobs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from queuectl.cli.parser import Args, Parser
    from queuectl.model.transfer import Shape

EXAMPLES = """\
  queuectl export > queue.jsonl
  queuectl export --state dead --queue mail > dead.jsonl
  queuectl export | ssh other queuectl import -
  queuectl export | gzip > queue.jsonl.gz

Holds commands, variables and output: keep it as you keep the store. Read it back with: queuectl import
"""


def add_arguments(parser: "Parser", _defaults: "Mapping[str, object]") -> None:
    """Declare the arguments."""
    add_filter(parser)
    parser.add_argument("--state", metavar="A,B", help=f"only these states: {', '.join(State)}")
    parser.set_defaults(run=run)


def run(args: "Args") -> int:
    """Write every line as it is read."""
    wanted = read_filter(args, read_states(args.state))
    out = sys.stdout.buffer
    encode = json.JSONEncoder(ensure_ascii=False, check_circular=False).encode

    def write(shape: "Shape") -> None:
        out.write(encode(shape).encode() + b"\n")

    end = export(open_store(args), None if wanted == jobs.Filter() else wanted, write)
    out.flush()
    if sys.stderr.isatty() and not sys.stdout.isatty():
        note(f"{counted(end.jobs, 'job')} and {counted(end.runs, 'run')} written")
    return 0
