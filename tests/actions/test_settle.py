"""Settle and claim: what a worker writes in its one transaction, in which order it takes jobs, whom it wakes."""

import random

import pytest

from queuectl.actions.control import pause_queue, resume_queue, set_setting, stop_workers
from queuectl.actions.settle import Holder, Step, is_drained, settle_and_claim
from queuectl.actions.submit import submit
from queuectl.model.attempt import Report
from queuectl.model.job import Claim, JobSpec
from queuectl.model.states import State
from queuectl.model.verdict import Outcome, OutcomeKind
from queuectl.store import claims, workers
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


def take(db: Database, free: int = 1, *, queues: tuple[str, ...] | None = None) -> list[int]:
    """Let a worker with free slots look for work; return the numbers of what it took."""
    step = settle_and_claim(db, Holder(taker=Taker(worker_id="w1", queues=queues), host=HOST), (), free, {})
    return [claim.job.seq for claim in step.claimed]


def end(db: Database, claim: Claim, outcome: Outcome, *, free: int = 0) -> Step:
    """Let a worker settle a run and take the next."""
    holder = Holder(taker=Taker(worker_id="w1"), host=HOST)
    return settle_and_claim(db, holder, [(claim, Report(outcome=outcome))], free, {})


def test_higher_priority_comes_first_then_first_in_first_out_across_queues(db: Database) -> None:
    add_worker(db)
    wanted = [("a", 0), ("b", 5), ("c", 0), ("a", 5), ("b", -1), ("a", 0)]
    jobs = [add_job(db, queue=queue, priority=priority).seq for queue, priority in wanted]

    order = [take(db)[0] for _ in jobs]

    assert order == [jobs[place] for place in (1, 3, 0, 2, 5, 4)]


def test_several_jobs_taken_at_once_come_in_the_same_order(db: Database) -> None:
    add_worker(db)
    dice = random.Random(7)
    jobs = [add_job(db, queue=dice.choice("abcd"), priority=dice.randint(-2, 2)) for _ in range(40)]

    order = [seq for size in (1, 7, 2, 13, 17) for seq in take(db, size)]

    assert order == [job.seq for job in sorted(jobs, key=lambda job: (-job.priority, job.seq))]


def test_a_worker_takes_at_most_as_many_jobs_as_it_has_free_slots(db: Database) -> None:
    add_worker(db)
    for queue in "aabb":
        add_job(db, queue=queue)

    assert [len(take(db, free)) for free in (0, 1, 2, 9, 9)] == [0, 1, 2, 1, 0]


def test_a_paused_queue_hands_out_nothing_until_it_is_resumed(db: Database) -> None:
    add_worker(db)
    paused, other = add_job(db, queue="paused", priority=9).seq, add_job(db, queue="other").seq
    pause_queue(db, "paused", who="me")

    before = take(db, 5)
    resume_queue(db, "paused", who="me")

    assert (before, take(db, 5)) == ([other], [paused])


def test_a_worker_takes_jobs_of_its_own_queues_alone(db: Database) -> None:
    add_worker(db)
    jobs = {queue: add_job(db, queue=queue).seq for queue in "abc"}

    assert take(db, 5, queues=("a", "c", "nosuch")) == [jobs["a"], jobs["c"]]
    assert take(db, 5, queues=("nosuch",)) == []


def test_a_job_whose_time_has_come_is_taken_in_its_place_of_the_order(db: Database) -> None:
    db.read_clock = FakeClock()
    add_worker(db)
    due = add_job(db, State.FAILED, run_at=NOW).seq
    ready = add_job(db).seq
    future = add_job(db, State.SCHEDULED, run_at=NOW + 1).seq

    taken = take(db, 5)
    db.read_clock = FakeClock(now=NOW + 1)

    assert taken == [due, ready]
    assert take(db, 5) == [future]


def test_a_worker_with_slots_left_learns_when_the_next_job_is_due(db: Database) -> None:
    db.read_clock = FakeClock()
    add_worker(db)
    add_job(db, State.SCHEDULED, run_at=NOW + 7_000)
    add_job(db, State.FAILED, run_at=NOW + 5_000)
    add_job(db)

    holder = Holder(taker=Taker(worker_id="w1"), host=HOST)
    full = settle_and_claim(db, holder, (), 1, {})
    idle = settle_and_claim(db, holder, (), 1, {})

    assert (full.next_run_at, idle.next_run_at, idle.now) == (None, NOW + 5_000, NOW)


def test_the_settle_of_the_last_job_and_the_claim_of_the_next_share_one_transaction(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = claimed_job(db)
    second = add_job(db)
    begins = Begins(db, monkeypatch)

    step = end(db, first, Outcome.exited(0), free=1)

    assert begins.count == 1
    assert [job.state for job in step.settled] == [State.COMPLETED]
    assert [claim.job.seq for claim in step.claimed] == [second.seq]


def test_a_run_is_on_record_with_what_it_cost_and_printed(db: Database) -> None:
    db.read_clock = FakeClock()
    claim = claimed_job(db)
    db.read_clock = FakeClock(now=NOW + 1_500)
    report = Report(
        outcome=Outcome.exited(3), cpu_ms=12, peak_memory_bytes=4096, output_bytes=9, output_file="/x/1.1.log",
        output_tail=b"caf\xff\x00",
    )  # fmt: skip

    settle_and_claim(db, Holder(taker=Taker(worker_id="w1"), host=HOST), [(claim, report)], 0, {})

    (run,) = get_runs(db, claim.job.seq)
    assert (run.run, run.attempt, run.worker_id, run.host) == (1, 1, "w1", HOST)
    assert (run.started_at, run.finished_at, run.outcome) == (NOW, NOW + 1_500, OutcomeKind.EXITED)
    assert (run.exit_code, run.error, run.cpu_ms, run.peak_memory_bytes) == (3, "exit code 3", 12, 4096)
    assert (run.output_bytes, run.output_file, run.output_tail) == (9, "/x/1.1.log", b"caf\xff\x00")


def test_a_run_under_way_is_the_last_of_the_runs(db: Database) -> None:
    claim = claimed_job(db)
    end(db, claim, Outcome.handed_back())
    claim_one(db)

    runs = get_runs(db, claim.job.seq)

    assert [(run.run, run.outcome) for run in runs] == [(1, OutcomeKind.HANDED_BACK), (2, None)]
    assert runs[1].host == HOST


def test_three_retries_run_at_0_2_6_and_14_seconds_and_then_the_job_is_dead(db: Database) -> None:
    db.read_clock = FakeClock()
    add_worker(db)
    job = add_job(db, max_retries=3)
    starts = []

    while taken := take(db):
        starts.append(get_job(db, taken[0]).started_at)
        (settled,) = end(db, Claim(job=get_job(db, job.seq)), Outcome.exited(1)).settled
        if settled.state is State.FAILED:
            assert settled.run_at is not None
            db.read_clock = FakeClock(now=settled.run_at)

    dead = get_job(db, job.seq)
    assert starts == [NOW, NOW + 2_000, NOW + 6_000, NOW + 14_000]
    assert (dead.state, dead.attempts, dead.max_retries, dead.exit_code) == (State.DEAD, 4, 3, 1)
    assert [run.attempt for run in get_runs(db, job.seq)] == [1, 2, 3, 4]


def test_the_backoff_is_that_of_the_settings_in_force_when_the_run_is_judged(db: Database) -> None:
    db.read_clock = FakeClock()
    claim = claimed_job(db, max_retries=500, attempts=2)
    set_setting(db, "backoff_base", "10", who="me")

    (settled,) = end(db, claim, Outcome.exited(1)).settled

    assert settled.run_at == NOW + 300_000


def test_the_environment_of_the_worker_overrides_the_stored_backoff(db: Database) -> None:
    db.read_clock = FakeClock()
    claim = claimed_job(db)
    ended = [(claim, Report(outcome=Outcome.exited(1)))]
    environ = {"QUEUECTL_BACKOFF_STRATEGY": "fixed", "QUEUECTL_JOB_RETRY_DELAY": "9"}

    step = settle_and_claim(db, Holder(taker=Taker(worker_id="w1"), host=HOST), ended, 0, environ)

    assert step.settled[0].run_at == NOW + 9_000


def test_the_backoff_of_the_job_wins_over_the_settings(db: Database) -> None:
    db.read_clock = FakeClock()
    claim = claimed_job(db, backoff='{"base": 7.0}')

    (settled,) = end(db, claim, Outcome.exited(1)).settled

    assert settled.run_at == NOW + 7_000


def test_a_job_that_is_handed_back_is_not_charged_and_ready_at_once(db: Database) -> None:
    claim = claimed_job(db)

    (settled,) = end(db, claim, Outcome.handed_back()).settled

    assert (settled.state, settled.attempts, settled.losses) == (State.PENDING, 0, 0)
    assert get_job(db, claim.job.seq) == settled


def test_a_lost_claim_writes_nothing(db: Database) -> None:
    claim = claimed_job(db)
    settle_run(db, claim, Outcome.lost())
    before = get_job(db, claim.job.seq)

    step = end(db, claim, Outcome.exited(0))

    assert (step.is_alive, step.settled, step.lost) == (True, (), (claim,))
    assert get_job(db, claim.job.seq) == before
    assert [run.outcome for run in get_runs(db, claim.job.seq)] == [OutcomeKind.LOST]


@pytest.mark.parametrize("outcome", [Outcome.exited(0), Outcome.exited(1)], ids=["success", "failure"])
def test_the_settle_of_a_deleted_job_is_a_lost_claim(db: Database, outcome: Outcome) -> None:
    claim = claimed_job(db)
    db.write(lambda tx: tx.changed("DELETE FROM jobs"))

    step = end(db, claim, outcome)

    assert (step.settled, step.lost) == ((), (claim,))
    assert db.read(lambda tx: tx.rows("SELECT 1 FROM attempts")) == []


def test_a_worker_that_was_given_up_writes_nothing_and_claims_nothing(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim = claimed_job(db)
    other = add_job(db)
    due = add_job(db, State.FAILED, run_at=1)
    db.write(lambda tx: workers.end(tx, "w1"))
    bell = Bell(db, monkeypatch)

    step = end(db, claim, Outcome.exited(1), free=5)

    assert (step.is_alive, step.settled, step.claimed, step.lost) == (False, (), (), (claim,))
    assert [get_job(db, job.seq) for job in (claim.job, other, due)] == [claim.job, other, due]
    assert get_runs(db, claim.job.seq)[0].outcome is None
    assert bell.rings == 0


def test_a_worker_that_nobody_registered_claims_nothing(db: Database) -> None:
    add_job(db)

    step = settle_and_claim(db, Holder(taker=Taker(worker_id="nobody"), host=HOST), (), 1, {})

    assert (step.is_alive, step.claimed) == (False, ())


@pytest.mark.parametrize("stop", [workers.DRAIN, workers.NOW])
def test_a_worker_that_is_told_to_stop_settles_and_takes_nothing(db: Database, stop: str) -> None:
    claim = claimed_job(db)
    add_job(db)
    stop_workers(db, ["w1"], stop=stop, who="me")

    step = end(db, claim, Outcome.exited(0), free=1)

    assert (step.stop, step.claimed) == (stop, ())
    assert [job.state for job in step.settled] == [State.COMPLETED]


@pytest.mark.parametrize(
    "outcome, max_retries, rings",
    [
        (Outcome.exited(0), 3, 0),
        (Outcome.exited(1), 3, 1),
        (Outcome.exited(1), 0, 0),
        (Outcome.timed_out(1_000), 3, 1),
        (Outcome.cancelled(), 3, 0),
        (Outcome.handed_back(), 3, 1),
    ],
    ids=["success", "retry", "dead", "timeout", "cancelled", "handed back"],
)
def test_a_settle_wakes_idle_workers_when_the_job_will_run_again(
    db: Database, outcome: Outcome, max_retries: int, rings: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim = claimed_job(db, max_retries=max_retries)
    bell = Bell(db, monkeypatch)

    end(db, claim, outcome)

    assert bell.rings == rings


def test_a_claim_wakes_others_only_when_more_became_due_than_it_takes(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_worker(db)
    bell = Bell(db, monkeypatch)
    rings = []

    for due, ready in ((0, 0), (0, 2), (1, 0), (2, 0)):
        for _ in range(due):
            add_job(db, State.FAILED, run_at=1)
        for _ in range(ready):
            add_job(db)
        bell.taken()
        take(db, 1)
        rings.append(bell.taken())
        take(db, 9)

    assert rings == [0, 0, 0, 1]


@pytest.mark.parametrize(
    "state, is_done",
    [
        (State.PENDING, False),
        (State.PROCESSING, False),
        (State.FAILED, False),
        (State.SCHEDULED, True),
        (State.BLOCKED, True),
        (State.COMPLETED, True),
        (State.DEAD, True),
        (State.CANCELLED, True),
    ],
)
def test_a_worker_is_drained_when_nothing_is_ready_runs_or_waits_for_a_retry(
    db: Database, state: State, is_done: bool
) -> None:
    add_job(db, state, queue="mail")

    assert is_drained(db, Holder(taker=Taker(worker_id="w1"), host=HOST)) == is_done
    assert is_drained(db, Holder(taker=Taker(worker_id="w1", queues=("mail",)), host=HOST)) == is_done
    assert is_drained(db, Holder(taker=Taker(worker_id="w1", queues=("other",)), host=HOST))


def test_jobs_of_a_paused_queue_do_not_keep_a_worker(db: Database) -> None:
    add_job(db, queue="paused")
    pause_queue(db, "paused", who="me")

    assert is_drained(db, Holder(taker=Taker(worker_id="w1"), host=HOST))


def test_a_store_without_queues_is_drained(db: Database) -> None:
    assert is_drained(db, Holder(taker=Taker(worker_id="w1"), host=HOST))


def test_a_worker_can_serve_more_than_500_queues(db: Database) -> None:
    add_worker(db)
    submit(db, [JobSpec(command="true", queue=f"q{number}") for number in range(600)], who="me", environ={})

    claimed = db.write(lambda tx: claims.claim(tx, Taker(worker_id="w1"), 3).claims)

    assert [claim.job.seq for claim in claimed] == [1, 2, 3]
