"""Jobs taken ahead of a slot: which may be, how they go back, and several short runs settled at once."""

import json

import pytest

from queuectl.actions.control import cancel
from queuectl.actions.gatekeeping import set_queue
from queuectl.actions.settle import Holder, Step, can_wait, rehearse, settle_and_claim
from queuectl.model.attempt import NOTED_OUTPUT_BYTES, Report
from queuectl.model.job import Claim
from queuectl.model.states import State
from queuectl.model.verdict import Outcome, OutcomeKind
from queuectl.store.database import Database, Tx
from queuectl.store.takers import Taker
from tests.store.racing import ON_POSTGRES
from tests.store.rows import HOST, NOW, FakeClock, add_job, add_worker, get_job, get_runs

HOLDER = Holder(taker=Taker(worker_id="w1"), host=HOST)
DONE = Report(
    outcome=Outcome.exited(0),
    output_tail=b"x\n",
    output_bytes=2,
    cpu_ms=3,
    peak_memory_bytes=4096,
    begun_s=100.0,
    ended_s=100.5,
)


def step(db: Database, free: int, ahead: int, **more: object) -> Step:
    """Let a worker look for work."""
    return settle_and_claim(db, HOLDER, (), free, {}, ahead=ahead, **more)  # type: ignore[arg-type]


def planned_once(db: Database, text: str) -> list[bool]:
    """Return of each statement that PostgreSQL keeps prepared for this connection whether it keeps its plan, too."""
    sql = "SELECT generic_plans > 0 FROM pg_prepared_statements WHERE position(:text IN statement) > 0"
    return [bool(kept) for (kept,) in db.read(lambda tx: tx.rows(sql, {"text": text}))]


def seqs(step: Step) -> list[int]:
    """Return the numbers of what was taken."""
    return [claim.job.seq for claim in step.claimed]


def test_more_are_taken_than_can_begin_in_the_order_of_the_line(db: Database) -> None:
    add_worker(db)
    jobs = [add_job(db, priority=priority).seq for priority in (0, 5, 0, 0)]

    taken = seqs(step(db, 1, 1))

    assert taken == [jobs[1], jobs[0]]
    assert get_job(db, jobs[2]).state is State.PENDING


def test_with_no_slot_free_the_next_ones_are_taken_all_the_same(db: Database) -> None:
    add_worker(db)
    jobs = [add_job(db).seq for _ in range(3)]

    assert seqs(step(db, 0, 2, is_idle=False)) == jobs[:2]


@ON_POSTGRES
@pytest.mark.parametrize("free, ahead, asked", [(1, 1, 2), (1, 5, 4), (3, 1, 4), (3, 40, 32), (5, 2, 5), (0, 6, 4)])
def test_a_server_is_asked_for_numbers_it_has_a_plan_for(db: Database, free: int, ahead: int, asked: int) -> None:
    add_worker(db)
    jobs = [add_job(db).seq for _ in range(50)]

    assert seqs(step(db, free, ahead, is_idle=False)) == jobs[:asked]


@ON_POSTGRES
def test_a_rehearsal_has_the_server_keep_its_plans_and_takes_nothing(db: Database) -> None:
    add_worker(db)
    job = add_job(db)

    rehearse(db, HOLDER, 1)

    assert (get_job(db, job.seq), get_runs(db, job.seq)) == (job, [])
    assert planned_once(db, "WITH head AS") == [True]
    assert planned_once(db, "PREPARE outset") == [True]


def test_one_that_was_given_up_has_nothing_to_rehearse(db: Database) -> None:
    rehearse(db, HOLDER, 1)

    assert step(db, 1, 0).is_alive is False


@pytest.mark.parametrize("columns", [{"losses": 1}, {"deadline_at": NOW + 1000, "deadline_ms": 1000}], ids=str)
def test_where_more_than_the_order_decides_nothing_is_taken_ahead(db: Database, columns: dict[str, int]) -> None:
    db.read_clock = FakeClock()
    add_worker(db)
    first, _, _ = add_job(db), add_job(db, **columns), add_job(db)  # type: ignore[arg-type]

    assert seqs(step(db, 1, 2)) == [first.seq]
    assert seqs(step(db, 0, 2, is_idle=False)) == []


def test_a_queue_that_lets_only_so_many_run_gives_nothing_ahead(db: Database) -> None:
    add_worker(db)
    jobs = [add_job(db).seq for _ in range(3)]
    set_queue(db, "default", {"concurrency": 2}, who="me")

    assert seqs(step(db, 1, 2)) == jobs[:1]


def test_one_that_was_never_begun_goes_back_as_if_nobody_had_taken_it(db: Database) -> None:
    add_worker(db)
    db.read_clock = FakeClock(now=NOW)
    jobs = [add_job(db, updated_at=NOW - 7000).seq for _ in range(2)]
    taken = step(db, 1, 1)
    db.read_clock = FakeClock(now=NOW + 40)

    after = step(db, 0, 0, returned=taken.claimed[1:])

    job = get_job(db, jobs[1])
    assert (job.state, job.attempts, job.losses, job.worker_id) == (State.PENDING, 0, 0, None)
    assert job.ready_at == NOW - 7000
    assert get_runs(db, jobs[1]) == []
    assert (after.settled, after.lost) == ((), ())
    assert seqs(step(db, 1, 0)) == [jobs[1]]
    assert get_job(db, jobs[1]).run == 1


def test_one_that_was_cancelled_in_hand_is_cancelled_and_never_begins(db: Database) -> None:
    add_worker(db)
    jobs = [add_job(db).seq for _ in range(2)]
    taken = step(db, 1, 1)
    cancel(db, [str(jobs[1])], who="me")

    after = step(db, 0, 0, returned=taken.claimed[1:])

    assert [job.state for job in after.settled] == [State.CANCELLED]
    assert get_job(db, jobs[1]).state is State.CANCELLED


def test_several_short_runs_are_settled_at_once_each_with_its_record(db: Database) -> None:
    add_worker(db)
    jobs = [add_job(db, queue="q").seq for _ in range(4)]
    claims = step(db, 1, 3).claimed
    reports = [DONE.replace(output_tail=b"%d" % claim.job.seq) for claim in claims]

    after = settle_and_claim(db, HOLDER, list(zip(claims, reports, strict=True)), 0, {})

    assert sorted(job.seq for job in after.settled) == jobs
    for seq, settled in zip(jobs, sorted(after.settled, key=lambda job: job.seq), strict=True):
        assert settled == get_job(db, seq)
        assert (settled.state, settled.attempts, settled.exit_code) == (State.COMPLETED, 1, 0)
        (run,) = get_runs(db, seq)
        assert (run.run, run.outcome, run.exit_code, run.output_tail) == (1, OutcomeKind.EXITED, 0, b"%d" % seq)
        assert (run.cpu_ms, run.queue, run.worker_id, run.host, run.result) == (3, "q", "w1", HOST, "completed")


def test_among_several_a_claim_that_was_lost_and_one_others_wait_for_are_seen_to(db: Database) -> None:
    add_worker(db)
    add_worker(db, "w2")
    kept, lost, anothers, awaited = (add_job(db).seq for _ in range(4))
    claims = step(db, 1, 3).claimed
    child = add_job(db, State.BLOCKED, waits_for=1)

    def meanwhile(tx: Tx) -> None:
        tx.changed("UPDATE jobs SET run = run + 1 WHERE seq = :seq", {"seq": lost})
        tx.changed("UPDATE jobs SET worker_id = 'w2' WHERE seq = :seq", {"seq": anothers})  # put back, taken again
        tx.changed("UPDATE jobs SET has_dependents = 1 WHERE seq = :seq", {"seq": awaited})
        tx.insert("edges", {"child_seq": child.seq, "parent_seq": awaited, "kind": "ok", "state": "waiting"})

    db.write(meanwhile)

    after = settle_and_claim(db, HOLDER, [(claim, DONE) for claim in claims], 0, {})

    assert sorted(job.seq for job in after.settled) == [kept, awaited]
    assert [claim.job.seq for claim in after.lost] == [lost, anothers]
    for seq in (lost, anothers):
        assert get_job(db, seq).state is State.PROCESSING
        assert get_runs(db, seq)[:-1] == []
    assert get_job(db, child.seq).state is State.PENDING


@pytest.mark.parametrize(
    "report, columns, may_wait",
    [
        (DONE, {}, True),
        (DONE.replace(outcome=Outcome.exited(1)), {}, False),
        (DONE.replace(output_tail=b"x" * (NOTED_OUTPUT_BYTES + 1)), {}, False),
        (DONE.replace(output_file="1.1.log"), {}, False),
        (DONE.replace(stderr_bytes=0), {}, False),
        (DONE, {"has_dependents": 1}, False),
        (DONE, {"group_name": "g"}, False),
        (DONE, {"unique_key": "k"}, False),
        (DONE, {"limits": '["mutex:m"]'}, False),
        (DONE, {"policy": '{"success_codes": [0, 1]}'}, False),
    ],
)
def test_the_end_of_a_run_may_wait_where_nothing_follows_from_it(
    db: Database, report: Report, columns: dict[str, object], may_wait: bool
) -> None:
    job = add_job(db).replace(**columns)

    assert can_wait(Claim(job=job), report) is may_wait


def test_a_note_of_a_run_holds_all_there_is_to_say_of_it() -> None:
    report = DONE.replace(output_tail=bytes(range(256)), output_bytes=256)

    assert Report.of_note(json.loads(report.as_note())) == report
    assert Report.of_note(json.loads(DONE.replace(output_tail=b"").as_note())) == DONE.replace(output_tail=b"")


@pytest.mark.parametrize(
    "now_s, span",
    [
        (100.5, (9_500, 10_000)),  # settled as it ends
        (100.6, (9_400, 9_900)),  # a tenth of a second later
        (103.0, (9_000, 9_000)),  # no sooner than it was taken
        (99.0, (10_000, 10_000)),  # the host was started anew: no later than now
    ],
)
def test_a_run_is_on_record_for_when_it_ran_not_for_when_it_was_taken_and_settled(
    now_s: float, span: tuple[int, int]
) -> None:
    assert DONE.span(9_000, 10_000, now_s) == span
    # The next run of one that failed is reckoned from the settle.
    assert DONE.replace(outcome=Outcome.exited(1)).span(9_000, 10_000, now_s)[1] == 10_000
    assert Report(outcome=Outcome.lost()).span(9_000, 10_000, now_s) == (9_000, 10_000)
