"""Look after dead jobs: those that used up their retries."""

import shlex

from queuectl.actions import control, error_groups
from queuectl.actions.shapes import canary_shape
from queuectl.cli import show
from queuectl.cli.acts import add_ids, confirm, report
from queuectl.cli.list import DEFAULT_LIMIT, read_limit
from queuectl.cli.parser import STANDS, add_verbs
from queuectl.cli.selection import add_filter, read_filter
from queuectl.cli.store import find_job, open_store, who
from queuectl.cli.text import moment, note, print_json, safe, sparkline, table, when
from queuectl.errors import BadInput, Refused
from queuectl.model.shapes import job_shape
from queuectl.model.states import State
from queuectl.model.stats import Range
from queuectl.model.statshapes import error_group_shape
from queuectl.model.units import counted
from queuectl.store import error_groups as grouping
from queuectl.store import jobs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from queuectl.cli.parser import Args, Parser
    from queuectl.model.errorgroup import ErrorGroup
    from queuectl.model.job import Job
    from queuectl.store.database import Tx

SPARKLINE = 24
_ERROR_HELP = "only jobs of this error, as `dlq groups` names it; else those whose error holds this text"

EXAMPLES = """\
  queuectl dlq list
  queuectl dlq show fail1
  queuectl dlq groups
  queuectl dlq retry fail1
  queuectl dlq retry --error 'exit code 23' --canary
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
            "groups": (
                "say what dead jobs died of: those whose errors say the same, together",
                "  queuectl dlq groups\n  queuectl dlq groups --queue mail --range 7d",
                run_groups,
            ),
            "retry": (
                "give dead jobs a fresh life: all retries again, history kept",
                "  queuectl dlq retry --all --yes\n  queuectl dlq retry --error 'exit code 23' --canary",
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
    add_filter(verbs["groups"], default=STANDS, error_help=_ERROR_HELP)
    verbs["groups"].add_argument(
        "--range", metavar="R", default=Range.DAY.value, help="deaths over time: 1h, 24h (default) or 7d"
    )
    for name in ("retry", "purge"):
        add_ids(verbs[name], nargs="*")
        add_filter(verbs[name], default=STANDS, error_help=_ERROR_HELP)
        verbs[name].add_argument("--all", action="store_true", help="all dead jobs (that match)")
        verbs[name].add_argument("--yes", action="store_true", help="do not ask before acting on several")
    verbs["retry"].add_argument(
        "--canary", action="store_true", help="only the one that died last, to see whether the cause is gone"
    )


def _add_list_options(parser: "Parser", *, stands: bool = False) -> None:
    add_filter(parser, default=STANDS if stands else None, error_help=_ERROR_HELP)
    limit = STANDS if stands else str(DEFAULT_LIMIT)
    parser.add_argument("--limit", metavar="N", default=limit, help="at most so many (default: 50)")


def run_list(args: "Args") -> int:
    """Print the dead jobs."""
    wanted, limit = _filter(args), read_limit(args.limit)

    def look(tx: "Tx") -> "tuple[list[Job], int]":
        return error_groups.latest(tx, wanted, limit + 1), tx.now

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


def run_groups(args: "Args") -> int:
    """Print what dead jobs died of."""
    wanted, range_ = _filter(args), Range.read(args.range)

    def look(tx: "Tx") -> "tuple[list[ErrorGroup], int]":
        return grouping.groups_meant(tx, wanted, range_), tx.now

    found, now = open_store(args).read(look)
    if args.json:
        for group in found:
            print_json(error_group_shape(group))
        return 0
    if not found:
        note("the dead letter queue is empty" if wanted == jobs.Filter(states=(State.DEAD,)) else "no dead job matches")
        return 0
    headers = ("JOBS", f"DEATHS IN {range_}", "LAST", "QUEUES", "SAMPLE", "ERROR", "MEANS")
    rows = [_group_row(group, now) for group in found]
    width = len(headers) if any(group.means for group in found) else len(headers) - 1
    table(headers[:width], [row[:width] for row in rows], right=("JOBS",))
    note(f"try one: queuectl dlq retry --error {shlex.quote(safe(found[0].name))} --canary")
    return 0


def _group_row(group: "ErrorGroup", now: int) -> tuple[str, ...]:
    queues = ", ".join(f"{name} {count}" for name, count in group.queues.items())
    return (
        str(group.count),
        sparkline(group.deaths, SPARKLINE),
        moment(group.last_at, now),
        queues,
        group.samples[0] if group.samples else "-",
        safe(group.name),
        group.means,
    )


def run_retry(args: "Args") -> int:
    """Revive dead jobs by id, all that match, or one of them."""
    database = open_store(args)
    if args.ids:
        _refuse_both(args)
        return report(args, control.revive_dead(database, args.ids, who=who()))
    if not args.all and args.error is None:
        raise BadInput("which jobs?", hint="give ids, an error as `queuectl dlq groups` names it, or --all")
    wanted = _filter(args)
    if args.canary:
        return _say_canary(args, error_groups.canary(database, wanted, who=who()))
    count = database.read(lambda tx: error_groups.count(tx, wanted))
    confirm(f"gives {counted(count, 'dead job')} a fresh life", is_sure=args.yes or count <= 1)
    return _say_count(args, error_groups.retry(database, wanted, who=who()), "given a fresh life")


def run_purge(args: "Args") -> int:
    """Remove dead jobs by id, or all that match."""
    database = open_store(args)
    if args.ids:
        _refuse_both(args)
        return report(args, control.purge_some_dead(database, args.ids, who=who()))
    wanted = _filter(args)
    count = database.read(lambda tx: error_groups.count(tx, wanted))
    confirm(f"removes {counted(count, 'dead job')} for good", is_sure=args.yes or count == 0)
    return _say_count(args, error_groups.purge(database, wanted, who=who()), "purged")


def _say_canary(args: "Args", canary: error_groups.Canary) -> int:
    if args.json:
        print_json(canary_shape(canary))
        return 0
    job = canary.done.job
    print(f"{job.id}: {canary.done.note}")
    note(f"watch it: queuectl wait {job.id}")
    if canary.rest:
        note(f"then the other {canary.rest}: {_rest_command(args)}")
    return 0


def _rest_command(args: "Args") -> str:
    """Return what gives all that were meant a fresh life."""
    options = {"queue": "--queue", "group": "--group", "text": "--command", "error": "--error"}
    words = [word for name, flag in options.items() if (value := getattr(args, name)) for word in (flag, value)]
    words += [word for tag in args.tag or () for word in ("--tag", tag)]
    for name in ("since", "until", "ended_since"):
        words += [f"--{name.replace('_', '-')}", value] if (value := getattr(args, name)) else []
    return shlex.join(["queuectl", "dlq", "retry", *(["--all"] if args.error is None else []), *words])


def _filter(args: "Args") -> jobs.Filter:
    return read_filter(args, (State.DEAD,))


def _refuse_both(args: "Args") -> None:
    if args.all or getattr(args, "canary", False) or _filter(args) != jobs.Filter(states=(State.DEAD,)):
        raise BadInput("give either ids or a filter, not both", hint="--all and --canary go with a filter")


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
