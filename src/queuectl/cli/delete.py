"""Remove jobs and their history; a running one is refused.

Jobs named one by one are acted on all or none. Of a range such as 3-9, and of what a filter finds, those to which the
act does not apply are passed by and counted; what a filter finds is told first and needs a yes, or --yes in a script.
"""

from queuectl.actions import verbs
from queuectl.cli.acts import add_choice, run_act

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from queuectl.cli.parser import Args, Parser

EXAMPLES = """\
  queuectl delete 12
  queuectl delete job1 job2
  queuectl delete 100-199
  queuectl delete --state completed,cancelled --until 7d --yes
"""


def add_arguments(parser: "Parser", _defaults: "Mapping[str, object]") -> None:
    """Declare the arguments."""
    add_choice(parser)
    parser.set_defaults(run=run)


def run(args: "Args") -> int:
    """Act on the jobs and say what became of them."""
    return run_act(args, verbs.DELETE)
