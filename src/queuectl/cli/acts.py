"""What the commands that act on jobs share: naming them and saying what became of each."""

import sys

from queuectl.cli.text import note, print_json
from queuectl.errors import BadInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queuectl.actions.control import Done
    from queuectl.cli.parser import Args, Parser


def add_ids(parser: "Parser", *, nargs: str = "+") -> None:
    """Declare the ids of the jobs to act on."""
    parser.add_argument("ids", nargs=nargs, metavar="ID", help="the jobs: numbers, ids, or 'last'")


def report(args: "Args", done: "list[Done]") -> int:
    """Say what became of each job."""
    for act in done:
        if args.json:
            print_json({"id": act.job.id, "was": act.job.state.value, "result": act.note})
        else:
            print(f"{act.job.id}: {act.note}")
    return 0


def confirm(what: str, *, is_sure: bool) -> None:
    """Ask before acting on many; in a pipe `--yes` must have been given."""
    if is_sure:
        return
    if not sys.stdin.isatty():
        raise BadInput(f"this {what}", hint="add --yes to do it")
    note(f"this {what}; go on? [y/N] ")
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise BadInput("not confirmed; nothing was changed")
