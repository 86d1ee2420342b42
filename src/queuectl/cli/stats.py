"""queuectl stats: what came of the runs of the last hour, day or week, and how long jobs waited and ran."""

from queuectl.cli.store import open_store
from queuectl.cli.text import facts, note, print_json, safe, sparkline, table
from queuectl.errors import NotFound
from queuectl.model.stats import Range
from queuectl.model.statshapes import stats_shape
from queuectl.model.units import counted, local_text, rough_duration_text
from queuectl.model.verdict import Result
from queuectl.store import error_groups, queues, stats

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from queuectl.cli.parser import Args, Parser
    from queuectl.model.errorgroup import FailureGroup
    from queuectl.model.stats import Spread, Stats
    from queuectl.store.database import Tx

EXAMPLES = """\
  queuectl stats
  queuectl stats --range 7d --queue mail
  queuectl stats --range 24h --json
"""
MOST_FAILURES = 5


def add_arguments(parser: "Parser", _defaults: "Mapping[str, object]") -> None:
    """Declare the arguments."""
    parser.add_argument("--range", metavar="R", default=Range.HOUR.value, help="1h (default), 24h or 7d")
    parser.add_argument("--queue", metavar="NAME", help="only runs of this queue")
    parser.set_defaults(run=run)


def run(args: "Args") -> int:
    """Print the statistics of a range of time."""
    range_ = Range.read(args.range)

    def look(tx: "Tx") -> "tuple[Stats, list[FailureGroup]]":
        if args.queue is not None and queues.get(tx, args.queue) is None:
            raise NotFound(f"no queue {args.queue!r}", hint="list them with: queuectl queue list")
        return stats.stats(tx, range_, args.queue), error_groups.failing(tx, range_, args.queue)

    found, failing = open_store(args).read(look)
    if args.json:
        print_json(stats_shape(found, failing))
        return 0
    facts(_facts(found))
    if failing:
        print()
        rows = [(str(group.count), group.sample, safe(group.name)) for group in failing[:MOST_FAILURES]]
        table(("FAILED RUNS", "LAST JOB", "ERROR"), rows, right=("FAILED RUNS",))
    if len(failing) > MOST_FAILURES:
        note(f"{counted(len(failing) - MOST_FAILURES, 'more error')}; see them all with --json")
    return 0


def _facts(found: "Stats") -> "Iterator[tuple[str, str]]":
    total = found.total
    yield "Since", f"{local_text(found.span.since)}, {found.span.bucket_ms // 60_000} min a column"
    yield "Runs", _line([sum(bucket.counts.values()) for bucket in found.buckets])
    yield "Completed", _line([bucket.completed for bucket in found.buckets])
    yield "Failures", _line([bucket.failures for bucket in found.buckets])
    others = [(result, total.counts.get(result, 0)) for result in Result if result is not Result.COMPLETED]
    if said := ", ".join(f"{count:,} {result.replace('_', ' ')}" for result, count in others if count):
        yield "Not well", said
    yield "Wait", _spread_text(found.wait)
    yield "Run time", _spread_text(found.run_time)
    done = found.completed_today
    yield "Today", f"{done:,} {'job' if done == 1 else 'jobs'} completed since {local_text(found.today_since)}"


def _line(numbers: "Sequence[int]") -> str:
    return f"{sum(numbers):>9,}  {sparkline(numbers, len(numbers))}"


def _spread_text(spread: "Spread") -> str:
    if spread.p50_ms is None or spread.p95_ms is None or spread.max_ms is None:
        return "-"
    p50, p95, longest = map(rough_duration_text, (spread.p50_ms, spread.p95_ms, spread.max_ms))
    return f"p50 {p50}, p95 {p95}, at most {longest}"
