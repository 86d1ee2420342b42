"""Cancel jobs: a waiting one at once, a running one as soon as its worker has stopped its whole process tree.

Jobs named one by one are acted on all or none. Of a range such as 3-9, and of what a filter finds, those to which the
act does not apply are passed by and counted; what a filter finds is told first and needs a yes, or --yes in a script.
With --group alone the group is named, and nobody is asked.
"""

from queuectl.actions import verbs
from queuectl.cli.acts import add_choice, run_act

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from queuectl.cli.parser import Args, Parser

EXAMPLES = """\
  queuectl cancel 12
  queuectl cancel job1 job2
  queuectl cancel 3-9 last
  queuectl cancel --state pending --tag old --dry-run
  queuectl cancel --queue mail --since 2h --yes
  queuectl cancel --group nightly
"""


def add_arguments(parser: "Parser", _defaults: "Mapping[str, object]") -> None:
    """Declare the arguments."""
    add_choice(parser)
    parser.set_defaults(run=run)


def run(args: "Args") -> int:
    """Act on the jobs and say what became of them."""
    return run_act(args, verbs.CANCEL)
