"""List jobs, newest first."""

from queuectl.actions.selection import filters, seq_of
from queuectl.cli.columns import AFTER, COLUMNS, DEFAULT_COLUMNS, RIGHT, Seen
from queuectl.cli.selection import add_filter, add_names, add_state, read_selection
from queuectl.cli.store import open_store
from queuectl.cli.text import note, print_json, table
from queuectl.errors import BadInput, UnknownName
from queuectl.model.after import parent_text
from queuectl.model.shapes import job_shape
from queuectl.store import edges, jobs
from queuectl.store.listing import Order, Sorting, page

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from queuectl.actions.selection import Selection
    from queuectl.cli.parser import Args, Parser
    from queuectl.model.job import Job
    from queuectl.store.database import Tx

DEFAULT_LIMIT = 50
MAX_LIMIT = 1_000_000
PARENTS_SHOWN = 3
EXAMPLES = """\
  queuectl list
  queuectl list 3-9 last
  queuectl list --state failed,dead --queue mail
  queuectl list --command rsync --error 'exit code 23' --since 2h
  queuectl list --tag newsletter --limit 10 --json
  queuectl list --state completed --sort finished --columns id,finished,took,command
  queuectl list --group scans --columns id,state,after,command
  queuectl list --before 1200
  queuectl list --state pending --limit 100000 -q | xargs queuectl cancel
"""


def add_arguments(parser: "Parser", _defaults: "Mapping[str, object]") -> None:
    """Declare the arguments."""
    add_names(parser)
    add_state(parser)
    add_filter(parser)
    parser.add_argument("--id", dest="more_ids", action="append", default=[], metavar="ID", help="the same as ID")
    parser.add_argument("--before", metavar="ID", help="only jobs older than this one")
    parser.add_argument(
        "--sort", metavar="ORDER", default=Order.ADDED.value, help=f"{', '.join(Order)}: newest or highest first"
    )
    parser.add_argument("-r", "--reverse", action="store_true", help="oldest or lowest first")
    parser.add_argument(
        "--columns", metavar="A,B", help=f"what to show of each, or 'all' (known: {', '.join(COLUMNS)})"
    )
    parser.add_argument("--limit", metavar="N", default=str(DEFAULT_LIMIT), help="at most so many (default: 50)")
    parser.add_argument("-q", "--quiet", action="store_true", help="print ids only")
    parser.set_defaults(run=run)


def run(args: "Args") -> int:
    """Print the first jobs that match."""
    args.ids += args.more_ids
    selection = read_selection(args)
    order, columns, limit = _read_order(args.sort), _read_columns(args), read_limit(args.limit)

    is_for_programs = args.json or args.quiet  # they count for themselves

    def look(tx: "Tx") -> "tuple[list[Job], int | None, Seen]":
        chosen = selection
        if args.before is not None:
            chosen = chosen.replace(wanted=chosen.wanted.replace(last=seq_of(tx, args.before) - 1))
        found, total = _first(tx, chosen, order, limit, is_reversed=args.reverse)
        if total is None and not is_for_programs:
            total = sum(jobs.count_matching(tx, part) for part in filters(tx, chosen))
        after = _parents(tx, found) if AFTER in columns and not is_for_programs else {}
        return found, total, Seen(now=tx.now, after=after)

    found, total, seen = open_store(args).read(look)
    left_out = total is None or total > len(found)
    if args.json:
        for job in found:
            print_json(job_shape(job))
    elif args.quiet:
        for job in found:
            print(job.id)
    elif found:
        _print_jobs(found, seen, columns)
    else:
        is_narrow = selection.names or selection.wanted != jobs.Filter() or args.before is not None
        note("no jobs match" if is_narrow else "no jobs yet; add one: queuectl enqueue 'echo hello'")
    if left_out:
        note(_footer(found, total, order, is_reversed=args.reverse))
    return 0


def _print_jobs(found: "list[Job]", seen: Seen, columns: "Sequence[str]") -> None:
    """Print jobs as a table."""
    headers = [name.upper() for name in columns]
    table(
        headers,
        ([COLUMNS[name](job, seen) for name in columns] for job in found),
        right=[name.upper() for name in columns if name in RIGHT],
    )


def read_limit(text: str, flag: str = "--limit") -> int:
    """Read how many rows or lines a person wants."""
    if not (text.isascii() and text.isdigit() and 1 <= int(text[:9]) <= MAX_LIMIT):
        raise BadInput(f"bad {flag} {text!r}", hint=f"give a whole number from 1 to {MAX_LIMIT}")
    return int(text)


def _first(
    tx: "Tx", selection: "Selection", order: Order, limit: int, *, is_reversed: bool
) -> "tuple[list[Job], int | None]":
    """Return the first jobs of an order, and how many there are; None where more are left and nobody has counted."""
    sorting = Sorting(order=order, is_reversed=is_reversed)
    found = page(tx, filters(tx, selection), sorting, limit + 1)
    return found[:limit], None if len(found) > limit else len(found)


def _parents(tx: "Tx", found: "list[Job]") -> dict[int, str]:
    """Return by the number of a job what it runs after, as `--after` takes it; of many the first few."""
    parents: dict[int, list[edges.Edge]] = {}
    for edge in sorted(edges.between(tx, [job.seq for job in found]), key=lambda each: each.parent_seq):
        parents.setdefault(edge.child_seq, []).append(edge)
    first = {edge.parent_seq for of_one in parents.values() for edge in of_one[:PARENTS_SHOWN]}
    ids = {job.seq: job.id for job in jobs.by_seqs(tx, sorted(first))}
    return {seq: _parents_text(of_one, ids) for seq, of_one in parents.items()}


def _parents_text(of_one: "list[edges.Edge]", ids: "Mapping[int, str]") -> str:
    shown = of_one[:PARENTS_SHOWN]
    text = ",".join(parent_text(edge.kind, ids.get(edge.parent_seq, str(edge.parent_seq))) for edge in shown)
    return f"{text} and {len(of_one) - len(shown):,} more" if len(of_one) > len(shown) else text


def _footer(found: "list[Job]", total: int | None, order: Order, *, is_reversed: bool) -> str:
    """Say how much is not shown and how to see it."""
    which = f"by {order}" if order is not Order.ADDED else "the oldest" if is_reversed else "the newest"
    if total is None:
        jobs_shown = f"{len(found):,} job{'' if len(found) == 1 else 's'}"
        text = f"only {jobs_shown} shown, {which}; see more with --limit {min(len(found) * 10, MAX_LIMIT)}"
    else:
        more = min(total, MAX_LIMIT)
        text = f"{len(found):,} of {total:,} matching jobs shown, {which}; see more with --limit {more}"
    if order is Order.ADDED and not is_reversed:
        text += f", or older ones with: --before {found[-1].id}"
    return text


def _read_order(text: str) -> Order:
    if text not in list(Order):
        raise UnknownName.among("order", text, list(Order))
    return Order(text)


def _read_columns(args: "Args") -> "Sequence[str]":
    if args.columns is None:
        return DEFAULT_COLUMNS
    if args.json or args.quiet:
        raise BadInput(
            f"--columns is for the table, not for {'--json' if args.json else '--quiet'}",
            hint="pick fields of the JSON with: queuectl list --json | jq '{id, state}'",
        )
    names = [name.strip().lower().replace("-", "_") for name in args.columns.split(",") if name.strip()]
    if names == ["all"]:
        return list(COLUMNS)
    if not names:
        raise BadInput("--columns names no column", hint=f"known: {', '.join(COLUMNS)}")
    for name in names:
        if name not in COLUMNS:
            raise UnknownName.among("column", name, list(COLUMNS))
    return list(dict.fromkeys(names))
