"""Look after dead jobs: those that used up their retries."""

from queuectl.actions import control
from queuectl.cli import show
from queuectl.cli.acts import add_ids, confirm, report
from queuectl.cli.list import DEFAULT_LIMIT, read_limit
from queuectl.cli.parser import STANDS, add_verbs
from queuectl.cli.selection import add_filter, read_filter
from queuectl.cli.store import find_job, open_store, who
from queuectl.cli.text import note, print_json, safe, when
from queuectl.errors import BadInput, Refused
from queuectl.model.shapes import job_shape
from queuectl.model.states import State
from queuectl.model.units import counted
from queuectl.store import jobs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from queuectl.cli.parser import Args, Parser
    from queuectl.model.job import Job
    from queuectl.store.database import Tx

EXAMPLES = """\
  queuectl dlq list
  queuectl dlq show fail1
  queuectl dlq retry fail1
  queuectl dlq retry --all --yes
  queuectl dlq purge --yes
"""


def add_arguments(parser: "Parser", _defaults: "Mapping[str, object]") -> None:
    """Declare the verbs and their arguments."""
    verbs = add_verbs(
        parser,
        {
            "list": ("list dead jobs, the latest death first", "  queuectl dlq list --queue mail", run_list),
            "show": ("show one dead job and its runs", "  queuectl dlq show fail1", run_show),
            "retry": (
                "give dead jobs a fresh life: all retries again, history kept",
                "  queuectl dlq retry --all --yes",
                run_retry,
            ),
            "purge": (
                "remove dead jobs for good",
                "  queuectl dlq purge 12\n  queuectl dlq purge --yes",
                run_purge,
            ),
        },
        default="list",
    )
    _add_list_options(parser)
    _add_list_options(verbs["list"], stands=True)
    verbs["show"].add_argument("id", metavar="ID", help="the job")
    for name in ("retry", "purge"):
        add_ids(verbs[name], nargs="*")
        add_filter(verbs[name], default=STANDS)
        verbs[name].add_argument("--all", action="store_true", help="all dead jobs (that match)")
        verbs[name].add_argument("--yes", action="store_true", help="do not ask before acting on several")


def _add_list_options(parser: "Parser", *, stands: bool = False) -> None:
    add_filter(parser, default=STANDS if stands else None)
    limit = STANDS if stands else str(DEFAULT_LIMIT)
    parser.add_argument("--limit", metavar="N", default=limit, help="at most so many (default: 50)")


def run_list(args: "Args") -> int:
    """Print the dead jobs."""
    wanted, limit = _filter(args), read_limit(args.limit)

    def look(tx: "Tx") -> "tuple[list[Job], int]":
        return jobs.latest_dead(tx, wanted, limit + 1), tx.now

    found, now = open_store(args).read(look)
    for job in found[:limit]:
        if args.json:
            print_json(job_shape(job))
        else:
            _print_dead(job, now)
    if not found and not args.json:
        note("the dead letter queue is empty")
    if len(found) > limit:
        note(f"the latest {limit} are shown; see more with --limit {limit * 10}")
    return 0


def run_show(args: "Args") -> int:
    """Print one dead job."""
    job = open_store(args).read(lambda tx: find_job(tx, args.id))
    if job.state is not State.DEAD:
        raise Refused(f"job {job.id} is not in the DLQ; it is {job.state}", hint=f"see it with: queuectl show {job.id}")
    return show.show(args, [args.id])


def run_retry(args: "Args") -> int:
    """Revive dead jobs by id, or all that match."""
    database = open_store(args)
    if args.ids:
        _refuse_both(args)
        return report(args, control.revive_dead(database, args.ids, who=who()))
    if not args.all:
        raise BadInput("which jobs?", hint="give ids, or --all")
    count = database.read(lambda tx: jobs.count_matching(tx, _filter(args)))
    confirm(f"gives {counted(count, 'dead job')} a fresh life", is_sure=args.yes or count <= 1)
    return _say_count(args, control.revive_all_dead(database, _filter(args), who=who()), "given a fresh life")


def run_purge(args: "Args") -> int:
    """Remove dead jobs by id, or all that match."""
    database = open_store(args)
    if args.ids:
        _refuse_both(args)
        return report(args, control.purge_some_dead(database, args.ids, who=who()))
    count = database.read(lambda tx: jobs.count_matching(tx, _filter(args)))
    confirm(f"removes {counted(count, 'dead job')} for good", is_sure=args.yes or count == 0)
    return _say_count(args, control.purge_dead(database, _filter(args), who=who()), "purged")


def _filter(args: "Args") -> jobs.Filter:
    return read_filter(args, (State.DEAD,))


def _refuse_both(args: "Args") -> None:
    if args.all or _filter(args) != jobs.Filter(states=(State.DEAD,)):
        raise BadInput("give either ids or a filter, not both")


def _say_count(args: "Args", count: int, verb: str) -> int:
    if args.json:
        print_json({"count": count})
    else:
        print(f"{counted(count, 'job')} {verb}")
    return 0


def _print_dead(job: "Job", now: int) -> None:
    print(job.id)
    print(f"  Command:  {safe(job.line)}")
    print(f"  Attempts: {job.attempts}/{job.max_retries}")
    if job.losses:
        print(f"  Lost:     {counted(job.losses, 'run')}, each with its worker")
    print(f"  Error:    {safe(job.error or '-')}")
    print(f"  Died:     {when(job.finished_at, now)}")
