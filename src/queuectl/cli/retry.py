"""Run jobs again now: a waiting one skips its wait; a dead, cancelled or completed one gets a fresh life.

Jobs named one by one are acted on all or none. Of a range such as 3-9, and of what a filter finds, those to which the
act does not apply are passed by and counted; what a filter finds is told first and needs a yes, or --yes in a script.

By a filter that names no state, only failed and dead jobs are retried. A held job is refused: release it.

With --group alone, the dead and cancelled jobs of the group are retried, and if it was stopped it goes on: no --yes.
"""

from queuectl.actions import verbs
from queuectl.actions.regroup import refuse_unknown_group, retry_group
from queuectl.actions.selection import Selection, group_alone
from queuectl.actions.shapes import tally_shape
from queuectl.cli.acts import act_on, add_choice, by_state, run_act
from queuectl.cli.selection import read_selection
from queuectl.cli.store import open_store, who
from queuectl.cli.text import note, print_json
from queuectl.errors import BadInput
from queuectl.model.units import counted
from queuectl.store.group_views import FAILED
from queuectl.store.jobs import Filter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from queuectl.cli.parser import Args, Parser
    from queuectl.model.states import State

EXAMPLES = """\
  queuectl retry 12
  queuectl retry last
  queuectl retry --error 'exit code 7' --since 1d
  queuectl retry 12 --with-dependents
  queuectl retry --group nightly
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
    name = group_alone(read_selection(args))
    if name is None or args.all:
        return run_act(args, verbs.RETRY_WITH_DEPENDENTS if args.with_dependents else verbs.RETRY)
    if args.with_dependents:
        raise BadInput(
            "--with-dependents is for jobs, not for a group",
            hint="name the jobs, or say which states of it: --state dead",
        )
    return _retry_group(args, name)


def _retry_group(args: "Args", name: str) -> int:
    database = open_store(args)
    if args.is_trial:
        database.read(lambda tx: refuse_unknown_group(tx, name))
        selection = Selection(wanted=Filter(group=name, states=FAILED))
        return act_on(args, verbs.RETRY, selection, is_sure=True)
    done = retry_group(database, name, who=who())
    if args.json:
        print_json(tally_shape(done.count, done.refused))
        return 0
    print(f"{done.count:,} retried" + (f": {by_state(done.retried)}" if done.count else ""))
    if done.was_stopped:
        note(f"group {name} was stopped, and goes on now")
    if done.refused:
        others = f"; all: queuectl list --group {name} --state dead,cancelled" if sum(done.refused.values()) > 1 else ""
        note(f"{by_state(done.refused)} {_stays(done.refused)} so: {done.why}{others}")
    if done.stopping:
        note(f"{counted(done.stopping, 'job')} still being stopped; when that is over: queuectl retry --group {name}")
    return 0


def _stays(counts: "Mapping[State, int]") -> str:
    return "stays" if sum(counts.values()) == 1 else "stay"
