"""Statistics: every figure is what a plain count of the records gives, on both databases."""

import math
import random

import pytest

from queuectl.errors import BadInput
from queuectl.model.attempt import Attempt
from queuectl.model.states import State
from queuectl.model.stats import BOUNDS_MS, Range, nearest_rank
from queuectl.model.verdict import FAILURES, OutcomeKind, Result
from queuectl.store import attempts, stats
from queuectl.store.database import Database
from tests.store.rows import FakeClock, add_job
from tests.store.test_plans import plans_of

NOW = 1_800_000_123_456
QUEUES = ("default", "mail", "reports")
ENDS = [
    *((kind, None if kind is OutcomeKind.EXITED else f"{kind}") for kind in OutcomeKind),
    (OutcomeKind.EXITED, "exit code 3"),
    (OutcomeKind.EXITED, "asked to run again later (exit code 9)"),
]


def a_run(seq: int, ended: int, **changes: object) -> Attempt:
    run = Attempt(
        job_seq=seq, run=1, attempt=1, worker_id="w1", host="here", started_at=ended - 10, finished_at=ended,
        outcome=OutcomeKind.EXITED, exit_code=0, signal=None, error=None, cpu_ms=1, peak_memory_bytes=2,
        output_bytes=0, output_file=None, output_tail=b"", stderr_bytes=None, stderr_file=None, stderr_tail=None,
        waited_ms=None, queue="default",
    )  # fmt: skip
    return run.replace(**changes)


def some_runs(dice: random.Random, count: int, back_ms: int) -> list[Attempt]:
    runs = []
    for seq in range(1, count + 1):
        kind, error = dice.choice(ENDS)
        ended = NOW - dice.randrange(-1_000, back_ms)
        runs.append(
            a_run(
                seq,
                ended,
                outcome=kind,
                error=error,
                started_at=ended - dice.choice((0, 1, dice.randrange(100), dice.randrange(10_000_000))),
                waited_ms=dice.choice((None, 0, dice.randrange(50), dice.randrange(9_000_000))),
                queue=dice.choice(QUEUES),
            )
        )
    return runs


def record(db: Database, runs: list[Attempt]) -> None:
    db.read_clock = FakeClock(now=NOW)
    db.write(lambda tx: attempts.insert_as_they_are(tx, runs))


def percentile(values: list[int], percent: int) -> int | None:
    """Return the smallest value that at least so many of a hundred do not exceed, by looking at each."""
    fit = (value for value in sorted(values) if sum(each <= value for each in values) * 100 >= percent * len(values))
    return next(fit, None)


@pytest.mark.parametrize(
    "range_, back_ms", [(Range.HOUR, 4_000_000), (Range.DAY, 90_000_000), (Range.WEEK, 700_000_000)]
)
@pytest.mark.parametrize("queue", [None, "mail"])
def test_every_figure_is_what_a_plain_count_gives(db: Database, range_: Range, back_ms: int, queue: str | None) -> None:
    runs = some_runs(random.Random(f"{range_}{queue}"), 500, back_ms)
    record(db, runs)

    found = db.read(lambda tx: stats.stats(tx, range_, queue))

    mine = [
        run
        for run in runs
        if run.finished_at is not None
        and found.span.since <= run.finished_at < found.span.until
        and queue in (None, run.queue)
    ]
    assert len(found.buckets) == range_.buckets
    for bucket in found.buckets:
        inside = [run for run in mine if bucket.at <= int(run.finished_at or 0) < bucket.at + range_.bucket_ms]
        assert bucket.counts == {
            result: number for result in Result if (number := sum(run.result is result for run in inside))
        }
    assert sum(found.total.counts.values()) == len(mine)
    assert found.total.completed == sum(run.result is Result.COMPLETED for run in mine)
    assert found.total.failures == sum(run.result in FAILURES for run in mine)
    waits = [run.waited_ms for run in mine if run.waited_ms is not None]
    times = [int(run.finished_at or 0) - run.started_at for run in mine]
    assert (found.wait.count, found.wait.p50_ms, found.wait.p95_ms) == (
        len(waits),
        percentile(waits, 50),
        percentile(waits, 95),
    )
    assert (found.run_time.count, found.run_time.p50_ms, found.run_time.p95_ms, found.run_time.max_ms) == (
        len(times),
        percentile(times, 50),
        percentile(times, 95),
        max(times),
    )


@pytest.mark.parametrize("count", [1, 2, 3, 10, 19, 20, 21, 100])
def test_percentiles_are_the_nearest_rank_however_few_runs_there_are(db: Database, count: int) -> None:
    record(db, [a_run(seq, NOW, waited_ms=seq * 7, started_at=NOW - seq) for seq in range(1, count + 1)])

    found = db.read(lambda tx: stats.stats(tx, Range.HOUR))

    assert found.wait.p50_ms == math.ceil(count / 2) * 7
    assert found.wait.p95_ms == nearest_rank(count, 95) * 7
    assert found.run_time.p95_ms == math.ceil(count * 95 / 100)


def test_a_store_without_runs_has_empty_buckets_and_no_percentiles(db: Database) -> None:
    db.read_clock = FakeClock(now=NOW)

    found = db.read(lambda tx: stats.stats(tx, Range.DAY))

    assert len(found.buckets) == 48
    assert not any(bucket.counts for bucket in found.buckets)
    assert (found.wait.count, found.wait.p50_ms, found.run_time.max_ms) == (0, None, None)


@pytest.mark.parametrize("range_", Range)
def test_a_range_begins_with_a_whole_bucket_and_ends_with_the_one_that_is_now(db: Database, range_: Range) -> None:
    span = range_.until(NOW)
    edges = [span.since - 1, span.since, span.since + span.bucket_ms - 1, span.since + span.bucket_ms]
    record(db, [a_run(seq, at) for seq, at in enumerate([*edges, span.until - 1, span.until], 1)])

    found = db.read(lambda tx: stats.stats(tx, range_))

    assert span.since % span.bucket_ms == 0
    assert span.until - span.bucket_ms <= NOW < span.until
    assert [bucket.completed for bucket in found.buckets] == [2, 1, *(0 for _ in range(range_.buckets - 3)), 1]


def test_an_unknown_range_is_refused_with_those_there_are() -> None:
    with pytest.raises(BadInput, match="bad range '2h'") as caught:
        Range.read("2h")

    assert "24h" in caught.value.hint


def test_totals_count_all_runs_and_their_parts_add_up(db: Database) -> None:
    runs = some_runs(random.Random(5), 300, 50_000_000)
    record(db, runs)

    whole = db.read(stats.totals)
    past = db.read(lambda tx: stats.totals(tx, until=NOW - 20_000_000))
    rest = db.read(lambda tx: stats.totals(tx, since=NOW - 20_000_000))

    times = [int(run.finished_at or 0) - run.started_at for run in runs]
    waits = [run.waited_ms for run in runs if run.waited_ms is not None]
    assert whole.counts == {result: n for result in Result if (n := sum(run.result is result for run in runs))}
    assert whole.run_time.at_most == tuple(sum(time <= bound for time in times) for bound in BOUNDS_MS)
    assert (whole.run_time.count, whole.run_time.sum_ms) == (len(times), sum(times))
    assert whole.wait.at_most == tuple(sum(wait <= bound for wait in waits) for bound in BOUNDS_MS)
    assert (whole.wait.count, whole.wait.sum_ms) == (len(waits), sum(waits))
    for result in Result:
        assert past.counts.get(result, 0) + rest.counts.get(result, 0) == whole.counts.get(result, 0)
    assert past.wait.sum_ms + rest.wait.sum_ms == whole.wait.sum_ms


def test_a_queue_knows_what_waits_in_it_and_what_came_of_its_last_hour(db: Database) -> None:
    record(db, [a_run(1, NOW - 3_600_000, queue="mail"), a_run(2, NOW - 3_600_001, queue="mail")])
    first = add_job(db, State.PENDING, queue="mail", priority=-5)
    add_job(db, State.PENDING, queue="mail", priority=9)
    add_job(db, State.DEAD, queue="idle")

    figures = {each.queue: each for each in db.read(stats.queue_figures)}

    assert figures["mail"].counts[State.PENDING] == 2
    assert figures["mail"].oldest is not None
    assert figures["mail"].oldest.seq == first.seq
    assert figures["mail"].last_hour.counts == {Result.COMPLETED: 1}
    assert (figures["idle"].oldest, figures["idle"].last_hour.counts) == (None, {})


def test_no_run_itself_is_read_for_the_figures_of_a_range(db: Database) -> None:
    record(db, some_runs(random.Random(1), 2_000, 700_000_000))

    plans = plans_of(db, lambda tx: stats.stats(tx, Range.WEEK))

    about_runs = [plan for plan in plans if "attempts" in plan]
    assert about_runs
    for plan in about_runs:
        assert "Seq Scan on attempts" not in plan
        assert "attempts_ended" in plan  # PostgreSQL reads it alone once the table was vacuumed
        if db.dialect.name == "sqlite":
            assert plan.count("COVERING INDEX attempts_ended") == plan.count(" attempts ")
            assert "TEMP B-TREE" not in plan
