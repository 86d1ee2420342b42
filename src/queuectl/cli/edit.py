"""Change jobs. The main use: mend the command of a dead job, then run it again with `queuectl retry`.

Of a job that waits everything can change; of a finished one all but its time, and it takes effect when the job is
retried; of a running one its tags alone. Jobs named one by one are changed all or none; of a range such as 3-9 those
that cannot be changed are passed by and counted.

The word `none` takes back a deadline, a policy, needs, limits, the jobs it is to run after, and what it asks of its
process. Lists, but for variables and tags, take the place of those it has.
"""

import os

from queuectl.actions.edit import edit_act
from queuectl.actions.selection import Selection
from queuectl.cli.acts import act_on, add_trial
from queuectl.cli.enqueue import FIELD_FLAGS, LIST_FLAGS, read_pair, variables_in
from queuectl.cli.selection import add_names
from queuectl.clock import wall_ms
from queuectl.errors import BadInput
from queuectl.model.checks import as_items, check_name
from queuectl.model.edit import EDITABLE, NONE, edit_from_fields
from queuectl.system.paths import whole_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from queuectl.cli.parser import Args, Parser
    from queuectl.model.edit import Edit

TAKES_WORDS = True
EXAMPLES = """\
  queuectl edit 12 --command './fixed.sh --all' && queuectl retry 12
  queuectl edit 12 -- rsync -a /data /backup
  queuectl edit job1 job2 --priority 10 --queue mail
  queuectl edit 3-9 --run-at 'tomorrow 3:00'
  queuectl edit last --timeout default --max-retries 5 --tag urgent --untag slow
"""
_FLAGS = {flag: about for flag, about in FIELD_FLAGS.items() if about[0] in EDITABLE}
_ABOUT = {
    "--command": "the shell line to run instead",
    "--queue": "the queue to move it to",
    "--delay": "run it after this long from now; 0 = now",
    "--run-at": "run it at this time",
    "--timeout": "longest run before it is stopped; 0 = none, 'default' = setting job_timeout",
    "--max-retries": "runs after the first before it is buried",
    "--priority": "higher runs first",
}


def add_arguments(parser: "Parser", _defaults: "Mapping[str, object]") -> None:
    """Declare the arguments."""
    parser.usage = "queuectl edit ID ... [options] [-- program [argument ...]]"
    add_names(parser, nargs="+")
    for flag, (field, metavar, about) in _FLAGS.items():
        shown = _ABOUT.get(flag, about).replace("%", "%%")
        parser.add_argument(flag, dest=field, metavar=metavar, help=shown)
    for flag, (field, metavar, about) in LIST_FLAGS.items():
        parser.add_argument(flag, dest=field, action="append", metavar=metavar, help=about)
    parser.add_argument("--stdin", metavar="FILE", help="the file it reads on standard input")
    parser.add_argument("--cwd", metavar="DIR", help="where to run it")
    parser.add_argument("--env", action="append", metavar="K=V", help="set a variable; may be repeated")
    parser.add_argument(
        "--env-file", action="append", metavar="FILE", help="set the variables of a file of NAME=VALUE lines, read now"
    )
    parser.add_argument("--unset-env", action="append", metavar="K", help="drop a variable; may be repeated")
    parser.add_argument("--tag", action="append", metavar="TAG", help="add a tag; may be repeated")
    parser.add_argument("--untag", action="append", metavar="TAG", help="remove a tag; may be repeated")
    parser.add_argument("--no-tags", action="store_true", help="remove the tags it has")
    add_trial(parser)
    parser.set_defaults(run=run)


def run(args: "Args") -> int:
    """Change the jobs and say what is different."""
    selection = Selection(names=tuple(args.ids))
    return act_on(args, edit_act(_read(args)), selection, is_sure=True)


def _read(args: "Args") -> "Edit":
    fields: dict[str, object] = {field: getattr(args, field) for field, _, _ in _FLAGS.values()}
    fields |= {field: _listed(field, getattr(args, field)) for field, _, _ in LIST_FLAGS.values()}
    if args.stdin is not None:
        fields["stdin"] = _file(args.stdin)
    if args.has_words:
        if args.command is not None:
            raise BadInput("give the command once: as words or with --command")
        fields["argv"] = args.words
    if args.cwd is not None:
        fields["cwd"] = whole_path(os.path.expanduser(args.cwd))
    if args.env or args.env_file:
        fields["env"] = {**variables_in(args.env_file or ()), **dict(read_pair(text) for text in args.env or ())}
    if args.tag:
        fields["tags"] = args.tag
    return edit_from_fields(
        fields,
        wall_ms(),
        unset_env=args.unset_env or (),
        untags=[check_name("tag", tag) for tag in args.untag or ()],
        has_no_tags=args.no_tags,
    )


def _listed(field: str, given: "Sequence[str] | None") -> object:
    """Return what a flag that may be repeated says in all: these in place of those it has; `none` for none."""
    if not given or given == [NONE]:
        return given and NONE
    return [part for text in given for part in as_items(field, text)]


def _file(name: str) -> str:
    if name == "-":
        raise BadInput("what comes in here cannot be kept with a job that exists", hint="name a file: --stdin FILE")
    if not name.strip():
        raise BadInput("--stdin is empty", hint=f"name a file, or take it back with: --stdin {NONE}")
    return name if name == NONE else whole_path(os.path.expanduser(name))
