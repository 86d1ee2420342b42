"""Remove jobs and their history; a running one is refused."""

from queuectl.actions import control
from queuectl.cli.acts import add_ids, report
from queuectl.cli.store import open_store, who

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from queuectl.cli.parser import Args, Parser

EXAMPLES = """\
  queuectl delete 12
  queuectl delete job1 job2
"""


def add_arguments(parser: "Parser", _defaults: "Mapping[str, object]") -> None:
    """Declare the arguments."""
    add_ids(parser)
    parser.set_defaults(run=run)


def run(args: "Args") -> int:
    """Act on the jobs, all or none, and say what became of each."""
    return report(args, control.delete(open_store(args), args.ids, who=who()))
