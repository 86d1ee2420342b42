"""Add jobs. One quoted word is a shell line; words after -- are a program and its arguments, run without a shell."""

import gc
import os
import sys

from queuectl.actions.connect import connect
from queuectl.actions.submit import Fate, enter, ids_of, notes_of
from queuectl.cli.store import target_of, who
from queuectl.clock import wall_ms
from queuectl.errors import BadInput
from queuectl.model.checks import as_items
from queuectl.model.fields import ENDS_HELP, MAX_INPUT_BYTES
from queuectl.model.job import JobSpec
from queuectl.model.spec import looks_like_json, refuse_almost_json, spec_from_fields, spec_from_json
from queuectl.model.units import DURATION_HELP, SIZE_HELP, TIME_HELP
from queuectl.system.paths import whole_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from queuectl.actions.submit import Entry
    from queuectl.cli.parser import Args, Parser
    from queuectl.model.batch import Batch

    Shape = Mapping[str, object]

TAKES_WORDS = True
WARNED_WIDTH = 60
EXAMPLES = """\
  queuectl enqueue 'sleep 2 && echo done'
  queuectl enqueue -- convert 'my picture.jpg' out.png
  queuectl enqueue '{"id": "job1", "command": "sleep 2", "max_retries": 5}'
  queuectl enqueue --id nightly --command './backup.sh' --run-at 'tomorrow 3:00' --timeout 1h30m
  queuectl enqueue --priority 10 --queue mail --tag newsletter './send.sh'
  printf 'echo one\\n{"command": "echo two", "priority": 5}\\n' | queuectl enqueue --from -
  id=$(queuectl enqueue true)
"""

# flag: (field of the job, metavar, help)
FIELD_FLAGS = {
    "--id": ("id", "ID", "a name for the job (default: the next number)"),
    "--command": ("command", "LINE", "the shell line to run"),
    "--queue": ("queue", "NAME", "the queue (default: default)"),
    "--priority": ("priority", "N", "higher runs first (default: 0)"),
    "--delay": ("delay", "DURATION", f"first run after this long: {DURATION_HELP}"),
    "--run-at": ("run_at", "TIME", f"first run at this time: {TIME_HELP}"),
    "--max-retries": (
        "max_retries",
        "N",
        "runs after the first before it is buried (default: setting max_retries)",
    ),
    "--timeout": (
        "timeout",
        "DURATION",
        "longest run before it is stopped; 0 = none (default: setting job_timeout)",
    ),
    "--backoff-strategy": ("backoff_strategy", "NAME", "exponential, linear or fixed"),
    "--backoff-base": ("backoff_base", "N", "wait base ** n seconds after failed run n"),
    "--backoff-max": ("max_backoff_seconds", "DURATION", "longest wait between two runs"),
    "--backoff-jitter": ("backoff_jitter", "0..1", "spread of the wait"),
    "--backoff-delay": ("job_retry_delay", "DURATION", "the wait of the fixed strategy"),
    "--deadline": ("deadline", "DURATION", "longest time in all, waiting and retries included, before it is buried"),
    "--needs": ("needs", "LABEL,...", "only a worker that has all of these labels runs it"),
    "--use": ("use", "NAME=N,...", "so much of a worker's resources while it runs: gpu=1,mem=4G"),
    "--retry-on": ("retry_on", "END,...", f"try again only after these: {ENDS_HELP}"),
    "--no-retry-on": ("no_retry_on", "END,...", "never try again after these"),
    "--success-codes": ("success_codes", "CODE,...", "exit codes that mean success (default: 0)"),
    "--memory": ("memory", "SIZE", f"most memory it may use: {SIZE_HELP}"),
    "--cpu-seconds": ("cpu_seconds", "DURATION", "most processor time a process of it may use"),
    "--nofile": ("nofile", "N", "most files a process of it may have open"),
    "--file-size": ("file_size", "SIZE", "largest file it may write"),
    "--nice": ("nice", "N", "how far to stand back for others: -20 to 19"),
    "--umask": ("umask", "MODE", "what its files may not allow, in octal: 027"),
    "--shell": ("shell", "PROGRAM", "what runs the shell line (default: setting shell)"),
    "--on-dead-dependency": (
        "on_dead_dependency",
        "WHAT",
        "when one of --after ended otherwise: cancel it (default), keep it waiting, or run it all the same",
    ),
    "--unique": ("unique", "KEY", "do not add it while another job with this key has not ended"),
    "--unique-for": ("unique_for", "DURATION", "nor until so long after that one was added, if it completed"),
    "--on-conflict": (
        "on_conflict",
        "WHAT",
        "when another has the key: attach to it (default), skip, replace it, or error",
    ),
    "--group": ("group", "NAME", "wait for, cancel and retry it together with others of this name"),
    "--max-failures": ("max_failures", "N|N%", "cancel the rest of the group when more than so many are dead"),
    "--on-group-done": ("on_group_done", "LINE", "a shell line to add when all of the group have ended"),
}
# Flags that may be repeated: (field of the job, metavar, help)
LIST_FLAGS = {
    "--mutex": ("mutex", "NAME", "run while no other job with this mutex does; may be repeated"),
    "--after": (
        "after",
        "ID,...",
        "run it when these jobs have completed; any:ID: ended, fail:ID: did not complete; also 3-9 and group:NAME",
    ),
    "--at-most": ("at_most", "NAME:N", "run while fewer than N jobs that say the same NAME:N do; may be repeated"),
    "--limit": ("limits", "NAME", "run while this limit has room (queuectl limit set); may be repeated"),
    "--snooze-code": ("snooze_codes", "CODE:DURATION", "an exit code that means `later`, not failure: 99:5m"),
    "--secret": ("secrets", "NAME", "a variable its worker fills when it runs, never stored, masked in its output"),
}


def add_arguments(parser: "Parser", _defaults: "Mapping[str, object]") -> None:
    """Declare the arguments."""
    parser.usage = "queuectl enqueue [options] 'shell line' | JSON | -- program [argument ...] | --from FILE"
    parser.add_argument(
        "line", nargs="*", metavar="WORD", help="a shell line, a JSON job, or a program and its arguments"
    )
    parser.add_argument(
        "--from",
        dest="source",
        metavar="FILE",
        action="append",
        help="one shell line or JSON job per line, # begins a comment; - is standard input. Flags are then the "
        "defaults of every line: what a line says itself wins",
    )
    add_job_options(parser)
    parser.add_argument(
        "--wait",
        action="store_true",
        help="stay until it has ended; the exit code is the command's own, of several jobs 1 if one did not complete",
    )
    parser.set_defaults(run=run)


def add_job_options(parser: "Parser") -> None:
    """Declare what can be said of a job beside its command."""
    for flag, (field, metavar, about) in FIELD_FLAGS.items():
        parser.add_argument(flag, dest=field, metavar=metavar, help=about.replace("%", "%%"))
    for flag, (field, metavar, about) in LIST_FLAGS.items():
        parser.add_argument(flag, dest=field, action="append", metavar=metavar, help=about)
    parser.add_argument("--stdin", metavar="FILE", help="what it reads on standard input; - keeps what comes in here")
    parser.add_argument("--cwd", metavar="DIR", help="where to run it (default: here)")
    parser.add_argument("--env", action="append", metavar="K=V", help="a variable for the command; may be repeated")
    parser.add_argument(
        "--env-file", action="append", metavar="FILE", help="variables from a file of NAME=VALUE lines, read now"
    )
    parser.add_argument("--tag", action="append", metavar="TAG", help="a tag to find it by; may be repeated")
    parser.add_argument("--split-output", action="store_true", help="keep stdout and stderr apart")
    parser.add_argument("--hold", action="store_true", help="keep it from running until: queuectl release ID")


def run(args: "Args") -> int:
    """Check everything, then write it in one transaction and print the ids."""
    now_ms = wall_ms()
    fields = fields_of_flags(args)
    batch = None if args.source is None else _batch_from_file(args, fields, now_ms)
    specs = batch if batch is not None else [spec_from_words(args, fields, now_ms, JobSpec())]
    if batch is None:
        _warn_of_a_line(args)
    if not specs:
        say(f"no jobs in {'standard input' if args.source[0] == '-' else args.source[0]}")
        return 0
    if args.cwd is not None and not os.path.isdir(str(fields["cwd"])):
        say(f"warning: no folder {fields['cwd']} here now; where the job runs there must be one")
    target = target_of(args)
    database = connect(target)
    if batch is not None:
        from queuectl.actions.batching import enter_batch  # one job does without it

        entries = enter_batch(database, batch, who=who(), environ=os.environ)
    else:
        entries = enter(database, specs, who=who(), environ=os.environ)
    print_entries(entries, as_json=args.json)
    if sys.stderr.isatty():
        from queuectl.cli.telling import tell

        tell(database, specs, entries)
    if args.wait:
        from queuectl.cli.staying import stay

        return stay(target, database, entries)
    return 0


def _warn_of_a_line(args: "Args") -> None:
    """Say that a shell line behind `--` is taken for the name of a program."""
    if args.has_words and len(args.words) == 1 and not args.line and any(map(str.isspace, args.words[0].strip())):
        word = args.words[0] if len(args.words[0]) <= WARNED_WIDTH else f"{args.words[0][:WARNED_WIDTH]}…"
        say(f"warning: '{word}' is taken as the name of one program; a shell line has no -- before it")


def say(text: str) -> None:
    """Say something that is not data, with what a terminal would obey made visible."""
    from queuectl.cli.text import note, safe

    note(safe(text))


def print_entries(entries: "Sequence[Entry]", *, as_json: bool, more: "Sequence[Shape] | None" = None) -> None:
    """Print the ids of jobs handed in, as JSON with `more` of each, and say what a person should know of them."""
    for text in notes_of(entries):
        say(text)
    try:
        _print_ids(entries, as_json=as_json, more=more or [{}] * len(entries))
    except OSError:
        added = [entry.id for entry in entries if entry.fate is Fate.ADDED]
        if added:
            span = added[0] if len(added) == 1 else f"{added[0]} to {added[-1]}"
            print(f"queuectl: added {span}, but:", file=sys.stderr)
        raise


def _print_ids(entries: "Sequence[Entry]", *, as_json: bool, more: "Sequence[Shape]") -> None:
    if as_json:
        from queuectl.cli.text import print_json

        for entry, shape in zip(entries, more, strict=True):
            print_json({"id": entry.id, "result": entry.fate.value, **shape})
    elif ids := ids_of(entries):
        sys.stdout.write("\n".join(ids) + "\n")
    sys.stdout.flush()


def fields_of_flags(args: "Args") -> dict[str, object]:
    """Return the fields of a job that flags give."""
    fields = {field: getattr(args, field) for field, _, _ in FIELD_FLAGS.values() if getattr(args, field) is not None}
    for field, _, _ in LIST_FLAGS.values():
        if getattr(args, field):
            fields[field] = [part for text in getattr(args, field) for part in as_items(field, text)]
    if args.stdin is not None:
        fields.update(_standard_input(args.stdin))
    if args.cwd is not None:
        fields["cwd"] = whole_path(os.path.expanduser(args.cwd))
    if args.env or args.env_file:
        given = dict(read_pair(text) for text in args.env or ())
        fields["env"] = {**variables_in(args.env_file or ()), **given}
    if args.tag:
        fields["tags"] = args.tag
    if args.split_output:
        fields["split_output"] = True
    if args.hold:
        fields["hold"] = True
    return fields


def variables_in(paths: "Sequence[str]") -> dict[str, str]:
    """Read files of variables; the last one that names a variable counts."""
    from queuectl.model.envfile import read_env_file

    found: dict[str, str] = {}
    for path in paths:
        try:
            with open(os.path.expanduser(path), encoding="utf-8") as file:
                found |= read_env_file(file.read())
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "not valid UTF-8"
            raise BadInput(f"cannot read --env-file {path}: {why}") from None
        except BadInput as error:
            raise BadInput(f"--env-file {path}: {error.message}", hint=error.hint) from None
    return found


def _standard_input(source: str) -> dict[str, object]:
    """Return what says what a command reads: a file by name, or the bytes that come in here."""
    if not source.strip():
        raise BadInput("--stdin is empty", hint="name a file, or - for what comes in here")
    if source != "-":
        return {"stdin": whole_path(os.path.expanduser(source))}
    if sys.stdin is None or sys.stdin.isatty():
        raise BadInput("--stdin - reads standard input, which is a terminal", hint="pipe something in, or name a file")
    data = sys.stdin.buffer.read(MAX_INPUT_BYTES + 1)
    if len(data) > MAX_INPUT_BYTES:
        raise BadInput(f"--stdin - is more than {MAX_INPUT_BYTES} bytes", hint="put it in a file: --stdin FILE")
    return {"input": data}


def spec_from_words(args: "Args", fields: dict[str, object], now_ms: int, base: JobSpec) -> JobSpec:
    """Read the one job a command line holds, over what is in `base`: a shell line, JSON, or a program and its words."""
    words = [*args.line, *args.words]
    base = base.replace(cwd=None if "cwd" in fields else here())
    if "command" in fields and words:
        raise BadInput("give the command once: as words or with --command")
    if "command" in fields or not words:
        if not words and "command" not in fields:
            raise BadInput("no command given", hint="try: queuectl enqueue 'echo hello'")
        return spec_from_fields(fields, now_ms, base)
    if words == ["-"]:
        raise BadInput("'-' is not a command", hint="to read jobs from standard input: queuectl enqueue --from -")
    if args.has_words or len(words) > 1:
        if not args.has_words and " " in words[0]:
            hint = "quote the whole line as one word, or write -- before a program and its arguments"
            raise BadInput(f"{words[0]!r} is not the name of a program", hint=hint)
        return spec_from_fields({**fields, "argv": words}, now_ms, base)
    if looks_like_json(words[0]):
        # Flags win over what the JSON says: they are what was typed last.
        spec = spec_from_json(words[0], now_ms, base, is_partial=True)
        return spec_from_fields(fields, now_ms, spec)
    refuse_almost_json(words[0])
    return spec_from_fields({**fields, "command": words[0]}, now_ms, base)


def _batch_from_file(args: "Args", fields: dict[str, object], now_ms: int) -> "Batch":
    from queuectl.model.joblines import read_job_lines

    if len(args.source) > 1:
        raise BadInput("--from is given twice", hint="join the files: cat a b | queuectl enqueue --from -")
    if args.stdin == "-" and args.source[0] == "-":
        raise BadInput("--from - and --stdin - would read the same", hint="put one of them in a file")
    if args.line or args.words or "command" in fields or "id" in fields:
        raise BadInput("--from takes its jobs from the file alone", hint="leave out the command, --command and --id")
    base = JobSpec(cwd=None if "cwd" in fields else here())
    # A stand-in command, so that the flags are checked before the file is read.
    base = spec_from_fields({**fields, "command": "true"}, now_ms, base, is_partial=True).replace(command=None)
    gc.disable()  # what a batch is made into is no garbage, however often it is looked through
    return read_job_lines(_text(args.source[0]), now_ms, base)


def _text(source: str) -> str:
    from queuectl.cli.lines import MAX_LINE_BYTES, read_pieces

    hint = "nothing was added; end each line with a newline"
    try:
        if source == "-":
            data = read_pieces(sys.stdin.buffer, MAX_LINE_BYTES, hint)
        else:
            with open(source, "rb") as file:
                data = read_pieces(file, MAX_LINE_BYTES, hint)
    except OSError as error:
        raise BadInput(f"cannot read {source}: {error.strerror}") from None
    try:
        return data.decode("utf-8-sig")  # Windows editors begin a file with a mark
    except UnicodeDecodeError as error:
        number = data.count(b"\n", 0, error.start) + 1
        raise BadInput(f"line {number}: not valid UTF-8", hint="nothing was added") from None


def here() -> str:
    """Return the current folder, where a job runs that names no other, or raise."""
    try:
        folder = os.getcwd()
        folder.encode()
    except OSError:
        raise BadInput("the current folder does not exist any more", hint="cd elsewhere, or give --cwd") from None
    except UnicodeEncodeError:
        raise BadInput(
            "the name of the current folder is not valid UTF-8", hint="cd elsewhere, or give --cwd"
        ) from None
    return folder


def read_pair(text: str) -> tuple[str, str]:
    """Read a variable and its value."""
    name, equals, value = text.partition("=")
    if not equals:
        raise BadInput(f"--env {text!r} has no '='", hint="write --env NAME=VALUE")
    return name, value
