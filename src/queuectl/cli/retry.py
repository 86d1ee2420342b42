"""Run jobs again now: a waiting one skips its wait; a dead, cancelled or completed one gets a fresh life.

Jobs named one by one are acted on all or none. Of a range such as 3-9, and of what a filter finds, those to which the
act does not apply are passed by and counted; what a filter finds is told first and needs a yes, or --yes in a script.

By a filter that names no state, only failed and dead jobs are retried. A held job is refused: release it.
"""

from queuectl.actions import acts
from queuectl.cli.acts import add_choice, run_act

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from queuectl.cli.parser import Args, Parser

EXAMPLES = """\
  queuectl retry 12
  queuectl retry last
  queuectl retry --error 'exit code 7' --since 1d
  queuectl retry 12 --with-dependents
  queuectl retry --state completed --tag nightly --yes
"""


def add_arguments(parser: "Parser", _defaults: "Mapping[str, object]") -> None:
    """Declare the arguments."""
    add_choice(parser)
    parser.add_argument(
        "--with-dependents",
        action="store_true",
        help="run all that run after them again, too, in their order",
    )
    parser.set_defaults(run=run)


def run(args: "Args") -> int:
    """Act on the jobs and say what became of them."""
    return run_act(args, acts.RETRY_WITH_DEPENDENTS if args.with_dependents else acts.RETRY)
