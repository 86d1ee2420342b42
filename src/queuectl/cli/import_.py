"""Read what `queuectl export` wrote: every line is checked, then all is written in one transaction, or nothing."""

import sys

from queuectl.actions.importing import import_lines
from queuectl.actions.landing import Rules
from queuectl.cli.lines import MAX_EXPORT_LINE_BYTES, read_lines
from queuectl.cli.store import open_store, who
from queuectl.cli.text import note, print_json, safe
from queuectl.errors import BadInput
from queuectl.model.units import counted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from queuectl.actions.importing import Imported
    from queuectl.cli.parser import Args, Parser

EXAMPLES = """\
  queuectl import queue.jsonl
  queuectl export | QUEUECTL_DATABASE_URL=postgresql://queue@db/queue queuectl import -
  queuectl import --skip-existing queue.jsonl
  queuectl import --renumber dead.jsonl

Numbers and ids are kept; one that is taken refuses the whole file (exit code 6). With --skip-existing a job is there
already when its id is, when another job has its unique key, or, without an id, when the job of its number was added at
the same time with the same command. A job that waits for one that is neither in the file nor here comes in held.
A job that was running when it was exported waits to be run again, and no loss is counted.
"""

NAMED = 5
_HINT = "nothing was written; name a file that queuectl export wrote"


def add_arguments(parser: "Parser", _defaults: "Mapping[str, object]") -> None:
    """Declare the arguments."""
    parser.add_argument("file", metavar="FILE", help="what export wrote; - is standard input")
    parser.add_argument(
        "--renumber", action="store_true", help="give every job a fresh number; ids must be free all the same"
    )
    parser.add_argument("--skip-existing", action="store_true", help="pass by jobs that are there already")
    parser.add_argument(
        "--settings", action="store_true", help="take the settings, too, where the store has some of its own"
    )
    parser.set_defaults(run=run)


def run(args: "Args") -> int:
    """Check and write a file, and say what became of it."""
    if args.renumber and args.skip_existing:
        note("warning: under fresh numbers a job without an id cannot be told from one that is there: it comes in anew")
    rules = Rules(renumber=args.renumber, skip_existing=args.skip_existing, settings=args.settings)
    done = import_lines(open_store(args), _lines(args.file), rules=rules, who=who())
    if args.json:
        print_json(done.as_dict())
        return 0
    print(f"{counted(done.jobs, 'job')} and {counted(done.runs, 'run')} imported{_beside(done)}")
    if done.skipped:
        note(f"{counted(done.skipped, 'job')} passed by, there already: {_first_of(done.skipped_ids, done.skipped)}")
    if done.moved:
        note(f"{counted(done.moved, 'job')} with an id got a fresh number, because theirs was taken")
    if done.waiting_again:
        note(f"{counted(done.waiting_again, 'job')} ran when exported, and will run again")
    if done.held:
        note(
            f"{counted(done.held, 'job')} waited for others that are neither in the file nor here, and "
            f"{'is' if done.held == 1 else 'are'} held: {_first_of(done.held_ids, done.held)}; "
            f"let one run with: queuectl release {done.held_ids[0]}"
        )
    if done.limits_missing:
        names = _first_of(done.limits_missing[:NAMED], len(done.limits_missing))
        note(f"warning: jobs name limits that are not here and hold nothing back until they are made: {names}")
    if done.settings_left:
        note(f"{counted(done.settings_left, 'setting')} left out: this store has its own; take them with --settings")
    return 0


def _first_of(ids: "Sequence[str]", count: int) -> str:
    more = f" and {count - len(ids):,} more" if count > len(ids) else ""
    return safe(", ".join(ids)) + more


def _beside(done: "Imported") -> str:
    parts = [counted(count, noun) for count, noun in _named(done) if count]
    return f", with {' and '.join(parts)}" if parts else ""


def _named(done: "Imported") -> "tuple[tuple[int, str], ...]":
    small = ((done.queues, "queue"), (done.limits, "limit"), (done.schedules, "schedule"), (done.groups, "group"))
    return (*small, (done.settings, "setting"))


def _lines(source: str) -> "Iterator[bytes]":
    try:
        if source == "-":
            yield from read_lines(sys.stdin.buffer, MAX_EXPORT_LINE_BYTES, _HINT)
            return
        with open(source, "rb") as file:
            yield from read_lines(file, MAX_EXPORT_LINE_BYTES, _HINT)
    except OSError as error:
        raise BadInput(f"cannot read {source}: {error.strerror}") from None
