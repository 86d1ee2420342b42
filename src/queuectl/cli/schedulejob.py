"""Schedule job: what a command line says of the job of a schedule. The verbs are in schedule.py."""

import argparse
import json

from queuectl.cli.enqueue import add_job_options, fields_of_flags, read_pair, spec_from_words, variables_in
from queuectl.clock import wall_ms
from queuectl.errors import BadInput
from queuectl.model.asked import flat_job, taken_back
from queuectl.model.edit import NONE
from queuectl.model.job import JobSpec
from queuectl.model.spec import looks_like_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queuectl.cli.parser import Args, Parser

    Fields = dict[str, object]

_HIDDEN = ("id", "run_at", "delay", "after", "on_dead_dependency", "hold")
_SWITCHES = ("split_output",)


def add_options(parser: "Parser") -> None:
    """Declare the options of a job; those that make no sense here are understood, so that they can be refused."""
    add_job_options(parser)
    for action in parser._actions:
        if action.dest in _HIDDEN:
            action.help = argparse.SUPPRESS


def add_takings_back(parser: "Parser") -> None:
    parser.add_argument("--unset-env", action="append", metavar="K", help="drop a variable; may be repeated")
    parser.add_argument("--untag", action="append", metavar="TAG", help="remove a tag; may be repeated")
    parser.add_argument("--no-tags", action="store_true", help="remove the tags it has")
    parser.add_argument("--no-split-output", action="store_true", help="keep stdout and stderr together")


def job_of_words(args: "Args") -> "Fields":
    """Return the fields of the job a command line holds; checked as `enqueue` does, with the same words of error."""
    fields = fields_of_flags(args)
    words = [*args.ids, *args.words]
    if not words and "command" not in fields:
        raise BadInput("no command given", hint="give it as one quoted word, after --, or with --command")
    args.line = args.ids
    spec = spec_from_words(args, fields, wall_ms(), JobSpec())
    if len(words) == 1 and not args.has_words and looks_like_json(words[0]):
        given = flat_job(json.loads(words[0]))
        fields = {**{name: value for name, value in given.items() if value is not None}, **fields}
    else:
        fields |= {"argv": list(spec.argv)} if spec.argv is not None else {"command": spec.command}
    return _storable({**fields, "cwd": spec.cwd})


def changes_of_flags(args: "Args") -> "Fields":
    """Return the fields of the job that flags change; None takes one back. Variables and tags are added elsewhere."""
    takes_stdin_back = args.stdin == NONE
    if takes_stdin_back:
        args.stdin = None
    fields = taken_back(fields_of_flags(args))
    fields.pop("env", None)
    fields.pop("tags", None)
    if args.has_words:
        if "command" in fields:
            raise BadInput("give the command once: as words or with --command")
        if not args.words:
            raise BadInput("no command given", hint="give a program after --")
        fields["argv"] = list(args.words)
    if takes_stdin_back:
        fields |= {"stdin": None, "input": None}
    fields |= {name: None for name in _SWITCHES if getattr(args, f"no_{name}")}
    return _storable(fields)


def additions(args: "Args", before: "Fields") -> "Fields":
    """Return variables and tags as they are to be: those it has, less and more."""
    changes: Fields = {}
    if args.env or args.env_file or args.unset_env:
        had = before.get("env")
        env = dict(had) if isinstance(had, dict) else {}
        env = {key: value for key, value in env.items() if key not in (args.unset_env or ())}
        env |= {**variables_in(args.env_file or ()), **dict(read_pair(text) for text in args.env or ())}
        changes["env"] = env or None
    if args.tag or args.untag or args.no_tags:
        tags = before.get("tags")
        kept = list(tags) if isinstance(tags, list) and not args.no_tags else []
        kept = [tag for tag in kept if tag not in (args.untag or ())]
        changes["tags"] = list(dict.fromkeys([*kept, *(args.tag or ())])) or None
    return changes


def _storable(fields: "Fields") -> "Fields":
    """Return fields as JSON holds them: what came in as bytes is text."""
    data = fields.get("input")
    if isinstance(data, bytes):
        try:
            return {**fields, "input": data.decode()}
        except UnicodeDecodeError:
            raise BadInput("--stdin - is not valid UTF-8", hint="put it in a file: --stdin FILE") from None
    return fields
