"""Error groups: every dead job is in the one group that its error names, on both databases."""

import random
from collections import Counter
from functools import partial

import pytest

from queuectl.model.errorgroup import NO_ERROR, group_name
from queuectl.model.job import Job
from queuectl.model.states import State
from queuectl.model.stats import Range
from queuectl.model.verdict import FAILURES, OutcomeKind
from queuectl.store import attempts, error_groups
from queuectl.store.database import Database
from queuectl.store.jobs import Filter, count_matching
from tests.store.rows import FakeClock, add_job
from tests.store.test_stats import NOW, a_run, some_runs

ERRORS = (
    "exit code 1",
    "exit code 12",
    "timed out after 5 s",
    "timed out after 30 s",
    "not found: /opt/a",
    "not found: /opt/b/c",
    'it\'s "odd" :error; DROP %',
    None,
)


def bury_some(db: Database, count: int = 60) -> list[Job]:
    """Add dead jobs of several errors, queues and times, and some that are not dead."""
    db.read_clock = FakeClock(now=NOW)
    dice = random.Random(3)
    for error in ("exit code 1", None):
        add_job(db, State.COMPLETED, error=error)
        add_job(db, State.FAILED, error=error)
    return [
        add_job(
            db,
            State.DEAD,
            queue=dice.choice(("default", "mail")),
            error=dice.choice(ERRORS),
            finished_at=NOW - dice.randrange(200_000_000),
            given_id=None if number % 2 else f"dead-{number}",
        )
        for number in range(count)
    ]


def test_each_group_is_what_a_plain_count_gives(db: Database) -> None:
    dead = bury_some(db)

    found = db.read(error_groups.groups)

    assert {group.name: group.count for group in found} == Counter(group_name(job.error) for job in dead)
    assert [group.count for group in found] == sorted((group.count for group in found), reverse=True)
    for group in found:
        mine = [job for job in dead if group_name(job.error) == group.name]
        times = [job.finished_at or 0 for job in mine]
        assert (group.first_at, group.last_at) == (min(times), max(times))
        assert group.queues == Counter(job.queue for job in mine)
        assert set(group.errors) == {job.error or "" for job in mine}
        assert group.samples[0] == max(mine, key=lambda job: job.finished_at or 0).id
        assert set(group.samples) <= {job.id for job in mine}
        starts = group.span.starts
        assert group.deaths == tuple(sum(at <= time < at + group.span.bucket_ms for time in times) for at in starts)


def test_groups_can_be_narrowed_and_looked_at_over_another_range(db: Database) -> None:
    dead = bury_some(db)

    found = db.read(lambda tx: error_groups.groups(tx, Filter(queue="mail"), Range.WEEK))

    assert sum(group.count for group in found) == sum(job.queue == "mail" for job in dead)
    assert all(sum(group.deaths) == group.count for group in found)
    assert all(len(group.deaths) == Range.WEEK.buckets for group in found)


def test_one_group_is_found_by_its_name_alone(db: Database) -> None:
    bury_some(db)

    whole = db.read(lambda tx: error_groups.group(tx, "timed out after N s"))

    assert whole is not None
    assert set(whole.errors) == {"timed out after 5 s", "timed out after 30 s"}
    assert db.read(lambda tx: error_groups.group(tx, "timed out after 5 s")) is None
    assert db.read(lambda tx: error_groups.errors_of(tx, "nothing of the kind")) == []


def test_a_group_of_more_texts_than_a_statement_takes_is_one_group(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(error_groups, "ERRORS_AT_ONCE", 1)
    dead = bury_some(db)
    wanted = Filter(states=(State.DEAD,), error="timed out after N s")

    [found] = db.read(lambda tx: error_groups.groups_meant(tx, wanted))

    assert found.count == sum(group_name(job.error) == wanted.error for job in dead)
    assert found == db.read(lambda tx: error_groups.group(tx, "timed out after N s"))
    held = db.read(lambda tx: error_groups.groups_meant(tx, wanted.replace(error="timed out")))
    assert held == [found]


def test_samples_are_of_what_was_asked_for(db: Database) -> None:
    db.read_clock = FakeClock(now=NOW)
    for queue in ("mail", "default"):
        job = add_job(db, State.DEAD, queue=queue, given_id=f"of-{queue}", error="exit code 1", finished_at=NOW - 5)
        run = a_run(job.seq, NOW - 5, error="exit code 1", queue=queue)
        db.write(partial(attempts.insert_as_they_are, copies=[run]))

    [group] = db.read(lambda tx: error_groups.groups(tx, Filter(queue="mail")))
    [failing] = db.read(lambda tx: error_groups.failing(tx, Range.DAY, "mail"))

    assert (group.samples, failing.sample) == (("of-mail",), "of-mail")


def test_what_finds_a_group_finds_the_jobs_that_were_counted_and_no_others(db: Database) -> None:
    bury_some(db)
    groups = db.read(error_groups.groups)

    for group in groups:
        errors = db.read(partial(error_groups.errors_of, name=group.name))
        parts = error_groups.filters_of(Filter(), errors)

        assert sum(db.read(partial(count_matching, wanted=each)) for each in parts) == group.count
    assert NO_ERROR in {group.name for group in groups}


def test_more_texts_than_a_statement_takes_are_looked_for_in_parts() -> None:
    texts = [f"error of {number}" for number in range(error_groups.ERRORS_AT_ONCE + 1)]

    parts = error_groups.filters_of(Filter(queue="mail"), texts)

    assert [len(part.errors) for part in parts] == [error_groups.ERRORS_AT_ONCE, 1]
    assert sorted(text for part in parts for text in part.errors) == sorted(texts)
    assert all((part.queue, part.states) == ("mail", (State.DEAD,)) for part in parts)


def test_what_fails_most_is_counted_over_the_runs_of_a_range(db: Database) -> None:
    db.read_clock = FakeClock(now=NOW)
    jobs = [add_job(db, State.COMPLETED, given_id=f"job-{number}") for number in range(80)]
    runs = [
        run.replace(job_seq=job.seq) for job, run in zip(jobs, some_runs(random.Random(8), 80, 9_000_000), strict=True)
    ]
    db.write(lambda tx: attempts.insert_as_they_are(tx, runs))

    for queue in (None, "mail"):
        found = db.read(partial(error_groups.failing, range_=Range.HOUR, queue=queue))

        span = Range.HOUR.until(NOW)
        mine = [
            run
            for run in runs
            if run.result in FAILURES
            and span.since <= int(run.finished_at or 0) < span.until
            and queue in (None, run.queue)
        ]
        assert mine
        assert {group.name: group.count for group in found} == Counter(group_name(run.error) for run in mine)
        for group in found:
            last = max(int(run.finished_at or 0) for run in mine if group_name(run.error) == group.name)
            assert group.last_at == last
            assert group.sample in {f"job-{number}" for number in range(80)}


def test_a_run_that_failed_is_a_sample_of_its_group(db: Database) -> None:
    db.read_clock = FakeClock(now=NOW)
    job = add_job(db, State.DEAD, given_id="mine")
    run = a_run(job.seq, NOW - 5, outcome=OutcomeKind.TIMED_OUT, error="timed out after 9 s")
    db.write(lambda tx: attempts.insert_as_they_are(tx, [run]))

    [group] = db.read(lambda tx: error_groups.failing(tx, Range.DAY))

    assert (group.name, group.count, group.sample, group.error) == (
        "timed out after N s",
        1,
        "mine",
        "timed out after 9 s",
    )
