"""Policies and deadlines of jobs as workers and supervisors carry them out, on each database."""

import json

import pytest

from queuectl.actions import control
from queuectl.actions.deadlines import expire_overdue
from queuectl.actions.explain import cause
from queuectl.actions.settle import Holder, settle_and_claim
from queuectl.actions.submit import submit
from queuectl.model.attempt import Report
from queuectl.model.job import Claim, Job, JobSpec
from queuectl.model.states import State
from queuectl.model.verdict import Outcome
from queuectl.store import gates, jobs
from queuectl.store.database import Database
from queuectl.store.takers import Taker
from tests.actions.bells import Begins, Bell
from tests.store.rows import (
    HOST,
    NOW,
    FakeClock,
    add_job,
    add_worker,
    claim_one,
    claimed_job,
    get_job,
    get_runs,
    settle_run,
)

HOUR = 3_600_000
WAITING = [State.PENDING, State.SCHEDULED, State.BLOCKED, State.FAILED]


@pytest.fixture(autouse=True)
def _standing_clock(db: Database) -> None:
    db.read_clock = FakeClock()


def claimed_with(db: Database, **policy: object) -> Claim:
    """Add a worker and let it hold a job with a policy."""
    return claimed_job(db, policy=json.dumps(policy))


def added(db: Database, **fields: object) -> Job:
    """Add a job as people do, and return it."""
    spec = JobSpec(command="true").replace(**fields)
    [job_id] = submit(db, [spec], who="me", environ={})
    return get_job(db, int(job_id))


def take(db: Database) -> list[int]:
    """Let a worker look for work; return the numbers of what it took."""
    step = settle_and_claim(db, Holder(taker=Taker(worker_id="w1"), host=HOST), (), 1, {})
    return [claim.job.seq for claim in step.claimed]


class TestEnds:
    """What becomes of a run by the policy of its job."""

    def test_a_success_code_completes_the_job_and_its_run_has_no_error(self, db: Database) -> None:
        claim = claimed_with(db, success_codes=[0, 3])

        settle_run(db, claim, Outcome.exited(3))

        done = get_job(db, claim.job.seq)
        assert (done.state, done.exit_code, done.error, done.attempts) == (State.COMPLETED, 3, None, 1)
        assert [(run.exit_code, run.error) for run in get_runs(db, done.seq)] == [(3, None)]

    def test_exit_code_0_fails_when_it_is_no_success_code(self, db: Database) -> None:
        claim = claimed_with(db, success_codes=[3])

        settle_run(db, claim, Outcome.exited(0))

        failed = get_job(db, claim.job.seq)
        [run] = get_runs(db, failed.seq)
        assert (failed.state, failed.exit_code) == (State.FAILED, 0)
        assert failed.error == run.error == "exit code 0 (success codes: 3)"
        assert cause(failed, [run]) == "exit code 0 (success codes: 3); 3 runs left"

    def test_a_snoozed_job_runs_again_after_its_delay_and_is_not_charged(self, db: Database) -> None:
        claim = claimed_with(db, snooze_codes={"99": 300_000})

        settle_run(db, claim, Outcome.exited(99))
        snoozed = get_job(db, claim.job.seq)
        early = take(db)
        db.read_clock = FakeClock(now=NOW + 300_000)

        assert (snoozed.state, snoozed.attempts, snoozed.run_at) == (State.SCHEDULED, 0, NOW + 300_000)
        assert (snoozed.error, snoozed.exit_code) == ("asked to run again later (exit code 99)", 99)
        assert (early, take(db)) == ([], [claim.job.seq])
        assert [run.attempt for run in get_runs(db, claim.job.seq)] == [1, 1]

    def test_an_idle_worker_is_woken_to_learn_when_a_snooze_is_over(
        self, db: Database, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        claim = claimed_with(db, snooze_codes={"99": 300_000})
        bell = Bell(db, monkeypatch)
        ended = [(claim, Report(outcome=Outcome.exited(99)))]

        settle_and_claim(db, Holder(taker=Taker(worker_id="w1"), host=HOST), ended, 0, {})

        assert bell.rings == 1

    def test_a_snoozed_job_that_is_cancelled_meanwhile_is_cancelled(self, db: Database) -> None:
        claim = claimed_with(db, snooze_codes={"99": 300_000})
        control.cancel(db, [claim.job.id], who="me")

        settle_run(db, claim, Outcome.exited(99))

        assert get_job(db, claim.job.seq).state is State.CANCELLED

    @pytest.mark.parametrize(
        "policy, outcome, why",
        [
            ({"no_retry_on": ["2"]}, Outcome.exited(2), "exit code 2; not retried (no_retry_on)"),
            (
                {"retry_on": ["75", "timeout"]},
                Outcome.killed(11, "SIGSEGV"),
                "killed by SIGSEGV (signal 11); not retried (retry_on 75, timeout)",
            ),
            (
                {"no_retry_on": ["127"]},
                Outcome.exited(127),
                "exit code 127 (as a shell says: no such command); not retried (no_retry_on)",
            ),
            (
                {"no_retry_on": ["not_started"]},
                Outcome.not_started(127, "no such program: frob"),
                "it could not be started: no such program: frob; not retried (no_retry_on)",
            ),
        ],
    )
    def test_what_is_not_retried_is_buried_and_says_why(
        self, db: Database, policy: dict[str, object], outcome: Outcome, why: str
    ) -> None:
        claim = claimed_with(db, **policy)

        settle_run(db, claim, outcome)

        dead = get_job(db, claim.job.seq)
        assert (dead.state, dead.attempts) == (State.DEAD, 1)
        assert cause(dead, get_runs(db, dead.seq)) == why

    def test_what_a_policy_allows_is_retried(self, db: Database) -> None:
        claim = claimed_with(db, retry_on=["75", "timeout"], no_retry_on=["2"])

        settle_run(db, claim, Outcome.exited(75))

        assert get_job(db, claim.job.seq).state is State.FAILED

    def test_a_plain_success_reads_no_row(self, db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
        claim = claimed_job(db)
        monkeypatch.setattr(jobs, "get_for_update", None)

        settle_run(db, claim, Outcome.exited(0))

        assert get_job(db, claim.job.seq).state is State.COMPLETED


class TestDeadlines:
    """The time a job has in all, from when it was added or was to run first."""

    def test_it_is_counted_from_the_first_time_the_job_may_run(self, db: Database) -> None:
        now, later = added(db, deadline_ms=HOUR), added(db, deadline_ms=HOUR, run_at=NOW + 5 * HOUR)
        past = added(db, deadline_ms=HOUR, run_at=NOW - 5 * HOUR)

        assert [job.deadline_at for job in (now, later, past)] == [NOW + HOUR, NOW + 6 * HOUR, NOW + HOUR]

    def test_a_retry_that_comes_too_late_is_none(self, db: Database) -> None:
        add_worker(db)
        job = added(db, deadline_ms=3_000)
        settle_run(db, claim_one(db), Outcome.exited(1))
        db.read_clock = FakeClock(now=NOW + 2_000)
        take(db)

        settle_run(db, Claim(job=get_job(db, job.seq)), Outcome.exited(1))

        dead = get_job(db, job.seq)
        assert (dead.state, dead.attempts) == (State.DEAD, 2)
        assert cause(dead, get_runs(db, job.seq)) == "exit code 1; its deadline leaves no time for another run"

    def test_a_snooze_that_would_last_too_long_buries_the_job(self, db: Database) -> None:
        claim = claimed_job(db, policy='{"snooze_codes": {"99": 5000}}', deadline_ms=5_000, deadline_at=NOW + 5_000)

        settle_run(db, claim, Outcome.exited(99))

        dead = get_job(db, claim.job.seq)
        assert (dead.state, dead.attempts, dead.finished_at) == (State.DEAD, 0, NOW)
        assert dead.error == "asked to run again later (exit code 99); its deadline leaves no time for another run"

    @pytest.mark.parametrize("state", WAITING)
    def test_a_job_that_waits_is_buried_when_its_deadline_has_passed(self, db: Database, state: State) -> None:
        over = add_job(db, state, deadline_ms=HOUR, deadline_at=NOW)
        again = add_job(db, state, deadline_ms=HOUR, deadline_at=NOW - 1, run=1)
        others = [add_job(db, state, deadline_ms=HOUR, deadline_at=NOW + 1), add_job(db, state)]

        is_more = expire_overdue(db)

        dead = [get_job(db, job.seq) for job in (over, again)]
        assert [(job.state, job.finished_at, job.attempts) for job in dead] == [(State.DEAD, NOW, 0)] * 2
        assert [cause(job, []) for job in dead] == [
            "its deadline passed before it could run",
            "its deadline passed before it could run again",
        ]
        assert [get_job(db, job.seq) for job in others] == others
        assert not is_more

    @pytest.mark.parametrize("state", [State.PROCESSING, State.COMPLETED, State.DEAD, State.CANCELLED])
    def test_what_runs_or_is_over_is_left_alone(self, db: Database, state: State) -> None:
        job = add_job(db, state, deadline_ms=HOUR, deadline_at=NOW - HOUR)

        expire_overdue(db)

        assert get_job(db, job.seq) == job

    def test_a_hold_and_a_paused_queue_do_not_stop_the_clock(self, db: Database) -> None:
        add_worker(db)
        held, paused = added(db, deadline_ms=HOUR, hold=True), added(db, deadline_ms=HOUR, queue="slow")
        control.pause_queue(db, "slow", who="me")
        db.read_clock = FakeClock(now=NOW + HOUR)

        taken = take(db)
        expire_overdue(db)

        assert taken == []
        assert {get_job(db, job.seq).state for job in (held, paused)} == {State.DEAD}
        assert get_job(db, held.seq).held_at is None

    def test_a_claim_buries_what_is_over_and_takes_the_next(self, db: Database) -> None:
        add_worker(db)
        over, ready = added(db, deadline_ms=HOUR), added(db)
        db.read_clock = FakeClock(now=NOW + HOUR)

        assert take(db) == [ready.seq]
        assert get_job(db, over.seq).error == "its deadline passed before it could run"

    def test_a_claim_that_meets_many_that_are_over_leaves_the_rest_to_the_next(
        self, db: Database, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(gates, "ASIDE_AT_ONCE", 3)
        add_worker(db)
        over = [added(db, deadline_ms=HOUR).seq for _ in range(5)]
        ready = added(db)
        db.read_clock = FakeClock(now=NOW + HOUR)
        holder = Holder(taker=Taker(worker_id="w1"), host=HOST)

        first = settle_and_claim(db, holder, (), 1, {})
        between = [get_job(db, seq).state for seq in over]

        assert (first.claimed, first.is_cut_short) == ((), True)
        assert between == [State.DEAD] * 3 + [State.PENDING] * 2
        assert take(db) == [ready.seq]

    def test_many_go_in_portions(self, db: Database) -> None:
        over = [add_job(db, deadline_ms=HOUR, deadline_at=NOW - 5 + place).seq for place in range(5)]

        first = expire_overdue(db, 2)
        states = [get_job(db, seq).state for seq in over]

        assert (first, states) == (True, [State.DEAD] * 2 + [State.PENDING] * 3)
        assert [expire_overdue(db, 2), expire_overdue(db, 2), expire_overdue(db, 2)] == [True, False, False]

    def test_nothing_is_written_when_nothing_is_over(self, db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
        added(db, deadline_ms=HOUR)
        begins = Begins(db, monkeypatch)

        expire_overdue(db)

        assert (begins.count, begins.writes) == (1, 0)

    def test_who_waits_for_a_job_is_told_that_it_is_over(self, db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
        added(db, deadline_ms=HOUR)
        told: list[bool] = []
        monkeypatch.setattr(db, "_tell", lambda: told.append(True))

        expire_overdue(db)
        before = len(told)
        db.read_clock = FakeClock(now=NOW + HOUR)
        expire_overdue(db)

        assert (before, len(told)) == (0, 1)

    def test_one_that_held_a_place_lets_those_who_wait_for_its_mutex_go(self, db: Database) -> None:
        first = added(db, mutexes=("m",), deadline_ms=HOUR)
        second = added(db, mutexes=("m",))
        db.read_clock = FakeClock(now=NOW + HOUR)

        expire_overdue(db)

        assert get_job(db, first.seq).state is State.DEAD
        assert (second.state, get_job(db, second.seq).state) == (State.BLOCKED, State.PENDING)

    def test_a_fresh_life_has_a_fresh_deadline_and_a_retry_of_one_that_waits_has_none(self, db: Database) -> None:
        dead = add_job(db, State.DEAD, deadline_ms=HOUR, deadline_at=NOW - HOUR)
        waiting = add_job(db, State.FAILED, deadline_ms=HOUR, deadline_at=NOW + 5)

        control.retry(db, [dead.id, waiting.id], who="me")

        assert get_job(db, dead.seq).deadline_at == NOW + HOUR
        assert get_job(db, waiting.seq).deadline_at == NOW + 5
