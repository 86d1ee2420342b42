"""The checker finds each fault: one good story, and a broken one for every way in which the queue could fail it."""

from dataclasses import replace

import pytest

from tests.chaos.checker import RULES, Evidence, JobRow, Record, RunRow, check
from tests.chaos.figures import recoveries
from tests.chaos.ledger import Line, parsed
from tests.chaos.notes import Kill

# Job 1 succeeds, job 2 is lost with its worker w2 and then succeeds, job 3 fails twice and is dead, job 4 was a batch
# of one that somebody cancelled, job 5 was handed back and then timed out.
LEDGER = """\
10.00 1 1 w1 start
10.10 2 1 w2 start
10.50 1 1 w1 end 0
11.00 2 2 w1 start
11.20 2 2 w1 child
11.50 2 2 w1 end 0
12.00 3 1 w1 start
12.10 3 1 w1 end 7
12.50 3 2 w1 start
12.60 3 2 w1 end 7
13.00 5 1 w1 start
14.00 5 2 w3 start
"""
JOBS = (
    JobRow(id="1", state="completed", run=1, attempts=1, losses=0, max_retries=3),
    JobRow(id="2", state="completed", run=2, attempts=1, losses=1, max_retries=3),
    JobRow(id="3", state="dead", run=2, attempts=2, losses=0, max_retries=1),
    JobRow(id="4", state="cancelled", run=0, attempts=0, losses=0, max_retries=3, batch="batch-1"),
    JobRow(id="5", state="dead", run=2, attempts=1, losses=0, max_retries=0, has_timeout=True),
)
RUNS = (
    RunRow(job="1", run=1, attempt=1, worker="w1", outcome="exited", exit_code=0),
    RunRow(job="2", run=1, attempt=1, worker="w2", outcome="lost"),
    RunRow(job="2", run=2, attempt=1, worker="w1", outcome="exited", exit_code=0),
    RunRow(job="3", run=1, attempt=1, worker="w1", outcome="exited", exit_code=7),
    RunRow(job="3", run=2, attempt=2, worker="w1", outcome="exited", exit_code=7),
    RunRow(job="5", run=1, attempt=1, worker="w1", outcome="handed_back", finished_at=500),
    RunRow(job="5", run=2, attempt=1, worker="w3", outcome="timed_out"),
)
RECORD = Record(
    acknowledged=("1", "2", "3", "4", "5"),
    batches={"batch-1": 1, "batch-2": 4},
    cancelled={"4"},
    killed={"w2"},
    hand_backs=[(400, 600)],
)
GOOD = Evidence(lines=[parsed(line) for line in LEDGER.splitlines()], jobs=JOBS, runs=RUNS, record=RECORD)


def with_line(text: str, *, after: str | None = None) -> Evidence:
    """Return the good story with one line more, at the end or after another."""
    at = len(GOOD.lines) if after is None else GOOD.lines.index(parsed(after)) + 1
    return replace(GOOD, lines=[*GOOD.lines[:at], parsed(text), *GOOD.lines[at:]])


def without_line(text: str) -> Evidence:
    return replace(GOOD, lines=[line for line in GOOD.lines if line != parsed(text)])


def with_job(job_id: str, **changes: object) -> Evidence:
    """Return the good story with one job that the database describes otherwise."""
    return replace(GOOD, jobs=[replace(job, **changes) if job.id == job_id else job for job in JOBS])  # type: ignore[arg-type]


def with_run(job_id: str, run: int, **changes: object) -> Evidence:
    """Return the good story with one run that the database describes otherwise."""
    rows = [replace(row, **changes) if (row.job, row.run) == (job_id, run) else row for row in RUNS]  # type: ignore[arg-type]
    return replace(GOOD, runs=rows)


def without_run(job_id: str, run: int) -> Evidence:
    return replace(GOOD, runs=[row for row in RUNS if (row.job, row.run) != (job_id, run)])


def with_record(**changes: object) -> Evidence:
    return replace(GOOD, record=replace(RECORD, **changes))  # type: ignore[arg-type]


BROKEN = {
    "an acknowledged job is missing": (
        with_record(acknowledged=("1", "9")),
        "acknowledged jobs are there: job 9",
    ),
    "a batch is half there": (
        with_record(batches={"batch-1": 2}),
        "batches are whole or absent: batch batch-1",
    ),
    "a job never ends": (with_job("4", state="pending"), "jobs are over: job 4"),
    "a job is left running": (with_job("1", state="processing"), "jobs are over: job 1"),
    "the lock of a job was held": (
        with_line("11.00 2 2 w1 overlap", after="10.50 1 1 w1 end 0"),
        "no two copies run at once: job 2 run 2",
    ),
    "an old run speaks after the next began": (
        with_line("11.10 2 1 w2 child", after="11.00 2 2 w1 start"),
        "no two copies run at once: job 2 run 1",
    ),
    "a run starts twice": (with_line("10.20 1 1 w1 start"), "a run starts once and in order: job 1 run 1"),
    "runs start out of order": (with_line("12.70 3 1 w1 start"), "a run starts once and in order: job 3 run 1"),
    "a run has no row": (without_run("2", 1), "every run is on record: job 2 run 1"),
    "a job that ran is not in the database": (
        with_line("15.00 9 1 w1 start"),
        "every run is on record: job 9 run 1",
    ),
    "another worker is on record": (with_run("1", 1, worker="w3"), "every run is on record: job 1 run 1"),
    "a row is missing among the runs": (without_run("3", 1), "run numbers have no gaps: job 3"),
    "a run number was skipped": (with_job("1", run=2), "run numbers have no gaps: job 1"),
    "a completed job never came to its end": (
        without_line("10.50 1 1 w1 end 0"),
        "exits are what the runs said: job 1 run 1",
    ),
    "another exit code is on record": (
        with_run("3", 1, exit_code=8),
        "exits are what the runs said: job 3 run 1",
    ),
    "a completed job failed": (with_job("3", state="completed"), "completed means its last run succeeded: job 3"),
    "a completed job never ran": (with_job("4", state="completed"), "completed means its last run succeeded: job 4"),
    "a job that succeeded is dead": (
        with_job("1", state="dead", max_retries=0),
        "completed means its last run succeeded: job 1",
    ),
    "a job runs again after success": (
        with_run("3", 1, exit_code=0),
        "nothing runs again after success: job 3 run 2",
    ),
    "an attempt was not counted": (with_job("3", attempts=1), "counters agree with the runs: job 3"),
    "a hand-back was charged": (with_job("5", attempts=2), "counters agree with the runs: job 5"),
    "a loss was not counted": (with_job("2", losses=0), "counters agree with the runs: job 2"),
    "a loss was charged": (with_job("2", attempts=2), "counters agree with the runs: job 2"),
    "a run has the wrong attempt": (with_run("2", 2, attempt=2), "counters agree with the runs: job 2 run 2"),
    "a job was buried too soon": (with_job("3", max_retries=5), "dead means out of tries: job 3"),
    "a job had too many tries": (with_job("3", max_retries=0), "dead means out of tries: job 3"),
    "a job was cancelled by nobody": (with_record(cancelled=()), "cancelled means somebody asked: job 4"),
    "a job starts before what it waits for": (
        with_job("1", parents=(("ok", "2"),)),
        "nothing starts before what it waits for: job 1 run 1",
    ),
    "a job was starved by one that completed": (
        replace(with_job("4", is_starved=True, parents=(("ok", "1"),)), record=with_record(cancelled=()).record),
        "cancelled means somebody asked: job 4",
    ),
    "a run was cancelled by nobody": (
        with_run("5", 2, outcome="cancelled"),
        "cancelled means somebody asked: job 5 run 2",
    ),
    "a living worker was given up": (with_record(killed=()), "lost means its worker was killed: job 2 run 1"),
    "a hand-back nobody asked for": (
        with_record(hand_backs=[(600, 900)]),
        "handed back means somebody said so: job 5 run 1",
    ),
    "a command was killed": (with_run("5", 2, outcome="killed"), "nothing else ends a run: job 5 run 2"),
    "a command did not start": (with_run("5", 2, outcome="not_started"), "nothing else ends a run: job 5 run 2"),
    "a timeout without one": (with_job("5", has_timeout=False), "nothing else ends a run: job 5 run 2"),
}


def test_a_good_story_has_no_violations() -> None:
    assert check(GOOD) == []


@pytest.mark.parametrize("parent", [("ok", "3"), ("fail", "1")])
def test_a_job_may_be_starved_by_one_that_ended_otherwise(parent: tuple[str, str]) -> None:
    story = replace(with_job("4", is_starved=True, parents=(parent,)), record=with_record(cancelled=()).record)

    assert check(story) == []


@pytest.mark.parametrize("evidence, expected", BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_story_is_found(evidence: Evidence, expected: str) -> None:
    found = [str(violation) for violation in check(evidence)]

    assert [text for text in found if text.startswith(f"{expected}:")] != [], found


def test_every_rule_is_broken_by_some_story() -> None:
    broken = {violation.rule for evidence, _ in BROKEN.values() for violation in check(evidence)}

    assert broken == {rule.__name__.replace("_", " ") for rule in RULES}


def test_a_run_under_way_needs_no_row() -> None:
    running = replace(with_job("1", state="processing", attempts=0), runs=without_run("1", 1).runs)

    assert [violation.rule for violation in check(running)] == ["jobs are over"]


def test_a_worker_that_its_own_job_killed_may_lose_it() -> None:
    killed_by_its_job = with_line("10.20 2 1 w2 kills", after="10.10 2 1 w2 start")

    assert check(replace(killed_by_its_job, record=replace(RECORD, killed=()))) == []


def test_a_revived_job_may_run_again_and_counts_anew() -> None:
    line, row = parsed("16.00 1 2 w1 start"), RunRow(job="1", run=2, attempt=1, worker="w4", outcome="lost")
    revived = Evidence(
        lines=[*GOOD.lines, replace(line, worker="w4")],
        jobs=[JobRow(id="1", state="cancelled", run=2, attempts=0, losses=1, max_retries=3), *JOBS[1:]],
        runs=[*RUNS, row],
        record=replace(RECORD, cancelled={"1", "4"}, revived={"1"}, killed={"w2", "w4"}),
    )

    assert check(revived) == []
    assert "nothing runs again after success" in {
        violation.rule for violation in check(replace(revived, record=replace(revived.record, revived=())))
    }


def test_a_hand_back_needs_no_order_where_workers_may_decide() -> None:
    assert check(with_record(hand_backs=None)) == []


def test_recovery_is_the_time_from_the_kill_to_the_next_start() -> None:
    kills = [Kill(worker="w2", at=10.4, fault="kill worker"), Kill(worker="w1", at=10.4, fault="kill everything")]

    assert [(round(seconds, 2), job) for seconds, job in recoveries(GOOD, kills)] == [
        (0.6, "job 2 run 1 killed at 10.40")
    ]


def test_a_line_of_the_ledger_is_read_as_it_was_written() -> None:
    assert parsed("12.10 named-3 2 w1 end 7") == Line(at=12.1, job="named-3", run=2, worker="w1", what="end", code=7)
