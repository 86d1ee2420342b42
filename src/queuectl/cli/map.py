"""Add a job for each value of a list, all or none: a command with {} in it, and the values behind :::.

The command is a shell line, or words after -- that are run without a shell. {} is the value, {.} the value without its
extension, {/} its last part, {//} its folder, {/.} its last part without extension, {#} the number of the job; {1},
{2.} and so on are of the first list, the second. A command without any of them gets the value at its end. In a shell
line values are quoted, always: each reaches the command as it is, whatever it holds. Several lists are combined, the
last varying fastest. Without a list, values are the lines of standard input.
"""

import os
import sys

from queuectl.actions.connect import connect
from queuectl.actions.mapping import check_shell, enter_mapped, fresh_name
from queuectl.cli.enqueue import add_job_options, fields_of_flags, here, print_entries, say
from queuectl.cli.store import target_of, who
from queuectl.cli.values import FILES, SEPARATORS, STANDARD_INPUT, read_sources, reads_standard_input
from queuectl.clock import wall_ms
from queuectl.errors import BadInput
from queuectl.model.array import ARRAY_HELP, read_array
from queuectl.model.job import JobSpec
from queuectl.model.mapping import Source, combine, common_spec, map_jobs, read_names
from queuectl.model.pitfalls import pitfalls
from queuectl.model.spec import looks_like_json
from queuectl.model.template import MARK, read_line, read_words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from queuectl.cli.parser import Args, Parser
    from queuectl.model.array import Array
    from queuectl.model.template import Template

    Row = tuple[str, ...]

TAKES_WORDS = True
TAIL = SEPARATORS
EXAMPLES = """\
  queuectl map 'convert {} {.}.png' ::: *.jpg
  queuectl map -- gzip -k ::: *.log
  find . -name '*.wav' -print0 | queuectl map -0 'flac -s {}'
  queuectl map --dry-run 'train --rate {1} --seed {2}' ::: 0.1 0.01 ::: 1 2 3
  queuectl map --id 'fetch-{#}' --limit net 'curl -fsSO {}' :::: urls.txt
  queuectl map --array 1-100:2%5 ./step.sh
"""


def add_arguments(parser: "Parser", _defaults: "Mapping[str, object]") -> None:
    """Declare the arguments."""
    parser.usage = (
        "queuectl map [options] 'shell line with {}' | -- program [argument ...]  [::: VALUE ... | :::: FILE ...] ..."
    )
    parser.add_argument("line", nargs="*", metavar="WORD", help="a shell line, or a program and its arguments")
    parser.add_argument("-I", dest="mark", metavar="STRING", default=MARK, help="what to replace in place of {}")
    parser.add_argument("-0", "--null", action="store_true", help="values in files end with a NUL byte, not a newline")
    parser.add_argument("--array", metavar="NUMBERS", help=f"a first list of numbers: {ARRAY_HELP.replace('%', '%%')}")
    parser.add_argument("--dry-run", action="store_true", help="print the commands and add nothing")
    add_job_options(parser)
    parser.add_argument("--wait", action="store_true", help="stay until all have ended; exit code 1 if one failed")
    parser.set_defaults(run=run)


def run(args: "Args") -> int:
    """Check everything, then write it in one transaction and print the ids."""
    now_ms = wall_ms()
    template = _template(args)
    array = None if args.array is None else read_array(args.array)
    tail = _tail(args)
    fields = _fields(args, array)
    base = common_spec(fields, template, now_ms, JobSpec(cwd=None if "cwd" in fields else here()))
    sources = _sources(tail, array, ends_with_nul=args.null)
    rows = combine(sources)
    template = template.for_lists(len(sources), silent=0 if array is None else 1)
    names = read_names(fields, len(sources), args.mark)
    if not rows:
        say("no values: nothing was added")
        return 0
    for warning in pitfalls(template):
        say(f"warning: {warning}")
    specs = map_jobs(template, rows, base, names=names, has_index=array is not None)
    if args.dry_run:
        _print_commands(rows, specs, as_json=args.json)
        return 0
    target = target_of(args)
    database = connect(target)
    entries = enter_mapped(database, specs, who=who(), environ=os.environ)
    print_entries(entries, as_json=args.json, more=_shapes(rows, specs) if args.json else None)
    if sys.stderr.isatty():
        from queuectl.cli.telling import tell

        tell(database, specs, entries)
    if args.wait:
        from queuectl.cli.staying import stay_with_all

        return stay_with_all(target, database, entries)
    return 0


def _template(args: "Args") -> "Template":
    words = [*args.line, *args.words]
    if args.command is not None:
        if words:
            raise BadInput("give the command once: as words or with --command")
        return read_line(args.command, args.mark)
    if not words:
        hint = (
            "try: queuectl map 'echo {}' ::: a b c; for lines that are commands themselves: queuectl enqueue --from -"
        )
        raise BadInput("no command given", hint=hint)
    if args.has_words:
        return read_words(words, args.mark)
    if len(words) > 1:
        if " " in words[0]:
            hint = "quote the whole line as one word, write ::: before values, or -- before a program"
            raise BadInput(f"{words[0]!r} is not the name of a program", hint=hint)
        return read_words(words, args.mark)
    if looks_like_json(words[0]) and '"' in words[0]:
        raise BadInput("a command for many values is no JSON job", hint="give the shell line, and flags for the rest")
    return read_line(words[0], args.mark)


def _fields(args: "Args", array: "Array | None") -> "dict[str, object]":
    """Return the fields that flags give; what an array says of how many may run at once is one of them."""
    fields = fields_of_flags(args)
    fields.pop("command", None)
    if "shell" in fields:
        check_shell(str(fields["shell"]))
    return fields if array is None else array.limiting(fields, fresh_name())


def _tail(args: "Args") -> list[str]:
    """Return what says where the values are: standard input where nothing does."""
    tail = args.tail
    if args.array is None and not tail:
        if sys.stdin is None or sys.stdin.isatty():
            raise BadInput(
                "no values given", hint="write them behind ':::', or pipe lines in; see: queuectl map --help"
            )
        tail = [FILES, STANDARD_INPUT]
    if reads_standard_input(tail) and args.stdin == "-":
        raise BadInput("--stdin - and the values would read the same", hint="put one of them in a file")
    return tail


def _sources(tail: "Sequence[str]", array: "Array | None", *, ends_with_nul: bool) -> list[Source]:
    """Return the lists of values: the numbers of the array first."""
    sources = read_sources(tail, ends_with_nul=ends_with_nul)
    if array is not None:
        sources.insert(0, Source(values=tuple(map(str, array.numbers))))
    return sources


def _print_commands(rows: "Sequence[Row]", specs: "Sequence[JobSpec]", *, as_json: bool) -> None:
    """Print what would be added; what a shell could read goes out as it is, unless a terminal would obey it."""
    if as_json:
        from queuectl.cli.text import print_json

        for spec, shape in zip(specs, _shapes(rows, specs), strict=True):
            print_json({"id": spec.given_id, "result": None, **shape})
        return
    import shlex  # only to show argument vectors

    from queuectl.cli.text import safe

    show = safe if sys.stdout.isatty() else str
    lines = (spec.command if spec.command is not None else shlex.join(spec.argv or ()) for spec in specs)
    sys.stdout.write("".join(f"{show(line)}\n" for line in lines))


def _shapes(rows: "Sequence[Row]", specs: "Sequence[JobSpec]") -> "list[dict[str, object]]":
    return [{"values": row, "command": spec.command, "argv": spec.argv} for row, spec in zip(rows, specs, strict=True)]
