"""Say why jobs wait: every gate, open or shut, who holds it, what would change it, and the place in the line.

Of a job that runs it says where and what it holds, of one that is over how it ended.
"""

from queuectl.actions.selection import Selection, numbers
from queuectl.actions.shapes import standing_shape
from queuectl.actions.standing import standing
from queuectl.cli.selection import add_names
from queuectl.cli.store import open_store
from queuectl.cli.text import print_json, safe
from queuectl.store import jobs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from queuectl.actions.scene import Gate
    from queuectl.actions.standing import Standing
    from queuectl.cli.parser import Args, Parser
    from queuectl.store.database import Tx

EXAMPLES = """\
  queuectl why 12
  queuectl why last
  queuectl why 3-5 job1
  queuectl why job1 --json
"""
MARKS = {True: "ok", False: "WAIT"}
MARK_WIDTH = 4


def add_arguments(parser: "Parser", _defaults: "Mapping[str, object]") -> None:
    """Declare the arguments."""
    add_names(parser, nargs="+")
    parser.set_defaults(run=run)


def run(args: "Args") -> int:
    """Print what decides about the jobs, in the order named; those of a range oldest first."""

    def look(tx: "Tx") -> "list[Standing]":
        seqs = [seq for name in args.ids for seq in numbers(tx, Selection(names=(name,)))]
        return [standing(tx, job) for job in jobs.by_seqs(tx, list(dict.fromkeys(seqs)))]

    for place, found in enumerate(open_store(args).read(look)):
        if args.json:
            print_json(standing_shape(found))
        else:
            print("\n" * bool(place), end="")
            _print(found)
    return 0


def _print(found: "Standing") -> None:
    print(safe(f"Job {found.job.id} is {found.job.state}: it {found.summary}"))
    width = max((len(gate.name) for gate in found.gates), default=0)
    for gate in found.gates:
        lead = f"  {MARKS[gate.is_open]:<{MARK_WIDTH}}  {gate.name:<{width}}  "
        print(safe(f"{lead}{gate.words}"))
        for words in () if gate.is_open else _changes(gate):
            print(safe(f"{'':<{len(lead)}}{words}"))
    for held in found.holds:
        print(safe(f"  holds {held}"))
    if found.place is not None:
        print(safe(f"Position: {found.place.words}"))
    elif found.gates:
        print("Position: none yet; it is in no line")
    elif found.wait is not None:
        print(safe(f"It waits for {found.wait.reason}; to change it: {found.wait.remedy}"))
    elif found.remedy is not None:
        print(safe(f"To bring it back: {found.remedy}"))


def _changes(gate: "Gate") -> list[str]:
    """Return what would open a gate, a line each."""
    ends = [f"ends {gate.ends}"] if gate.ends else []
    return [*ends, *([f"to change it: {gate.remedy}"] if gate.remedy else [])]
