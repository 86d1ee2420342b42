"""Runs that ended: the list holds just those that are counted, page by page, along the index."""

import random
from functools import partial

import pytest

from queuectl.model.errorgroup import group_name
from queuectl.model.states import State
from queuectl.model.stats import Range
from queuectl.model.verdict import FAILURES, Result
from queuectl.store import error_groups, runs, stats
from queuectl.store.database import Database
from queuectl.store.runs import Ended, place_of
from tests.store.rows import FakeClock, add_job
from tests.store.test_plans import plans_of
from tests.store.test_stats import NOW, record, some_runs


@pytest.mark.parametrize("queue", [None, "mail"])
@pytest.mark.parametrize("results", [(Result.COMPLETED,), FAILURES, tuple(Result)])
def test_pages_hold_every_run_that_is_meant_once_and_in_order(
    db: Database, results: tuple[Result, ...], queue: str | None
) -> None:
    known = some_runs(random.Random(7), 120, 4_000_000)
    for _ in known:
        add_job(db, State.COMPLETED)
    record(db, known)
    span = Range.HOUR.until(NOW)
    wanted = Ended(results=results, since=span.since, until=span.until, queue=queue)

    found: list[runs.Run] = []
    while more := db.read(partial(runs.page, wanted=wanted, limit=7, after=found[-1].place if found else None)):
        found += more

    meant = [
        run
        for run in known
        if run.result in results and span.since <= (run.finished_at or 0) < span.until and queue in (None, run.queue)
    ]
    assert [each.attempt for each in found] == sorted(meant, key=place_of, reverse=True)
    assert db.read(lambda tx: runs.count(tx, wanted)) == len(meant)


def test_a_group_of_failures_has_as_many_runs_as_its_list(db: Database) -> None:
    known = some_runs(random.Random(3), 200, 4_000_000)
    known = [
        run.replace(error=f"cannot enter /folder/{run.job_seq}") if run.result is Result.NOT_STARTED else run
        for run in known
    ]
    for _ in known:
        add_job(db, State.DEAD)
    record(db, known)

    for group in db.read(lambda tx: error_groups.failing(tx, Range.HOUR)):
        wanted = Ended(results=FAILURES, since=group.span.since, until=group.span.until, error=group.name)
        assert db.read(partial(runs.count, wanted=wanted)) == group.count
        listed = db.read(partial(runs.page, wanted=wanted, limit=500))
        assert len(listed) == group.count
        assert {group_name(each.attempt.error) for each in listed} == {group.name}


def test_runs_are_walked_along_their_index(db: Database) -> None:
    record(db, some_runs(random.Random(1), 200, 4_000_000))
    wanted = Ended(results=(Result.FAILED,), since=0, until=NOW, queue="mail")

    plans = plans_of(db, lambda tx: (runs.count(tx, wanted), runs.page(tx, wanted, 7, (NOW, 5, 1))))

    about_runs = [plan for plan in plans if "attempts" in plan]
    assert len(about_runs) >= 2
    for plan in about_runs:
        assert "attempts_ended" in plan
        assert "SCAN attempts" not in plan


def test_the_jobs_completed_today_are_counted_once_each(db: Database) -> None:
    db.read_clock = FakeClock(now=NOW)
    today = db.read(lambda tx: stats.stats(tx, Range.HOUR)).today_since
    for ended, queue in ((today - 1, "mail"), (today, "mail"), (today, "night"), (NOW, "mail")):
        add_job(db, State.COMPLETED, queue=queue, finished_at=ended)
    add_job(db, State.DEAD, queue="mail", finished_at=NOW)

    assert db.read(lambda tx: stats.stats(tx, Range.HOUR)).completed_today == 3
    assert db.read(lambda tx: stats.stats(tx, Range.HOUR, "mail")).completed_today == 2
