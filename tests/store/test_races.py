"""Two connections race, one of them held inside its open transaction; each guard is shown to be needed.

PostgreSQL has a guard in each statement. SQLite has one for all of them: BEGIN IMMEDIATE makes the second wait.
"""

from collections.abc import Callable
from itertools import count

import pytest

from queuectl import clock
from queuectl.actions.connect import Target
from queuectl.actions.control import cancel, hold, release
from queuectl.actions.edit import edit
from queuectl.actions.rescue import Rescuer
from queuectl.actions.settle import Holder, Step, settle_and_claim
from queuectl.actions.submit import submit
from queuectl.errors import Refused, StoreBusy
from queuectl.model.attempt import Report
from queuectl.model.edit import edit_from_fields
from queuectl.model.job import Claim, Job, JobSpec
from queuectl.model.states import MOVES, Move, State
from queuectl.model.verdict import SUCCESS, Outcome, Verdict
from queuectl.store import jobs, moves, queues, workers
from queuectl.store.database import Database, Tx
from queuectl.store.postgres import PostgresDialect
from queuectl.store.sqlite import SqliteDialect
from queuectl.store.takers import Taker
from tests.store.racing import ON_POSTGRES, Race
from tests.store.rows import (
    HOST,
    add_dead_worker,
    add_job,
    add_worker,
    claim_one,
    claimed_job,
    get_job,
    get_runs,
    get_worker,
    recorded,
    settle_run,
)

ON_SQLITE = pytest.mark.parametrize("target", ["sqlite"], indirect=True)
CANCELLED = Verdict(move=Move.STOP, state=State.CANCELLED)
OTHER_RUNS = count(1000)


@pytest.fixture
def without_begin_immediate(monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite with its guard removed: a transaction takes the write lock only when it first writes."""

    def begin(self: SqliteDialect, *, writing: bool) -> int:
        self.rows("BEGIN", {})
        return clock.wall_ms()

    monkeypatch.setattr(SqliteDialect, "begin", begin)


def claim(worker_id: str) -> Callable[[Database], Step]:
    """An idle worker takes one job."""
    return lambda db: settle_and_claim(db, Holder(taker=Taker(worker_id=worker_id), host=HOST), (), 1, {})


def put(job_id: str) -> Callable[[Database], list[str]]:
    """A person submits a job."""
    return lambda db: submit(db, [JobSpec(given_id=job_id, command="true")], who="me", environ={})


def settle(held: Claim, outcome: Outcome) -> Callable[[Database], Job | None]:
    """A run is settled, whoever settles it."""
    return lambda db: settle_run(db, held, outcome)


def ask_to_cancel(job_id: str) -> Callable[[Database], str]:
    """A person cancels a job and reads what is said."""
    return lambda db: cancel(db, [job_id], who="me")[0].note


def ask_to_hold(job_id: str) -> Callable[[Database], str]:
    """A person holds a job and reads what is said."""
    return lambda db: hold(db, [job_id], who="me")[0].note


def ask_to_release(job_id: str) -> Callable[[Database], str]:
    """A person releases a job and reads what is said."""
    return lambda db: release(db, [job_id], who="me")[0].note


def ask_to_edit(job_id: str) -> Callable[[Database], str]:
    """A person gives a job another command and reads what is said."""
    return lambda db: edit(db, [job_id], edit_from_fields({"command": "echo new"}, 0), who="me")[0].note


def claimed_command(db: Database, seq: int) -> str | None:
    """Let the worker claim the job, unless it has, and return what it runs."""
    if get_job(db, seq).state is State.PENDING:
        claim_one(db)
    return get_job(db, seq).command


def give_up(target: Target) -> Callable[[Database], list[str]]:
    """A supervisor finds a worker dead and takes back its jobs."""
    return lambda db: Rescuer(db, target.home, {}).look()


# Claim against claim.


def test_two_workers_that_claim_at_once_take_two_jobs(db: Database, race: Race) -> None:
    add_workers(db)
    ready = [add_job(db), add_job(db)]

    first, second = race(claim("w1"), claim("w2"))

    assert [step.claimed[0].job.seq for step in (first, second)] == [job.seq for job in ready]
    assert [get_job(db, job.seq).worker_id for job in ready] == ["w1", "w2"]


def test_a_claim_waits_for_another_on_sqlite_and_passes_it_by_on_postgres(db: Database, race: Race) -> None:
    add_workers(db)
    add_job(db)
    add_job(db)

    race(claim("w1"), claim("w2"))

    assert race.did_second_wait == (db.dialect.name == "sqlite")


def test_of_two_workers_that_claim_the_last_job_at_once_one_goes_without(db: Database, race: Race) -> None:
    add_workers(db)
    job = add_job(db)

    first, second = race(claim("w1"), claim("w2"))

    assert (len(first.claimed), len(second.claimed)) == (1, 0)
    assert get_job(db, job.seq).worker_id == "w1"


def test_two_workers_that_find_the_same_job_due_run_it_once(db: Database, race: Race) -> None:
    add_workers(db)
    job = add_job(db, State.FAILED, run_at=1)

    first, second = race(claim("w1"), claim("w2"))

    assert (len(first.claimed), len(second.claimed)) == (1, 0)
    assert get_job(db, job.seq).run == 1


@ON_POSTGRES
def test_without_the_guard_skip_locked_the_second_of_two_claims_fails(
    db: Database, race: Race, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_workers(db)
    add_job(db)
    monkeypatch.setattr(PostgresDialect, "skip_locked", "")

    with pytest.raises(AssertionError, match="0 of 1 jobs"):
        race(claim("w1"), claim("w2"))


@ON_SQLITE
@pytest.mark.usefixtures("without_begin_immediate")
def test_without_the_guard_begin_immediate_the_second_claim_fails_half_way(db: Database, race: Race) -> None:
    add_workers(db)
    add_job(db)
    add_job(db)

    with pytest.raises(StoreBusy):
        race(claim("w1"), claim("w2"))


# Submit against submit.


def test_of_two_that_submit_the_same_id_at_once_the_second_is_refused(db: Database, race: Race) -> None:
    first = put("job1")

    with pytest.raises(Refused, match="exists"):
        race(first, put("job1"))

    assert db.read(lambda tx: jobs.count_matching(tx, jobs.Filter())) == 1


def test_two_that_submit_to_a_new_queue_at_once_both_succeed(db: Database, race: Race) -> None:
    first, second = race(put("job1"), put("job2"))

    assert (first, second) == (["job1"], ["job2"])
    assert len(db.read(queues.all_queues)) == 1


# Settle against settle.


def test_of_two_settles_of_one_run_the_second_changes_nothing(db: Database, race: Race) -> None:
    held = claimed_job(db)

    first, second = race(settle(held, Outcome.exited(0)), settle(held, Outcome.exited(1)))

    assert race.did_second_wait
    assert first is not None
    assert second is None
    assert get_job(db, held.job.seq) == first
    assert [run.exit_code for run in get_runs(db, held.job.seq)] == [0]


def test_a_settle_that_comes_while_the_job_is_taken_again_changes_nothing(db: Database, race: Race) -> None:
    held = claimed_job(db)
    settle_run(db, held, Outcome.handed_back())

    step, late = race(claim("w1"), settle(held, Outcome.exited(0)))

    assert late is None
    assert get_job(db, held.job.seq) == step.claimed[0].job


def test_a_settle_that_comes_after_the_job_was_taken_again_changes_nothing(db: Database) -> None:
    held = claimed_job(db)
    settle_run(db, held, Outcome.handed_back())
    again = claim_one(db)

    late = settle_run(db, held, Outcome.exited(0))

    assert late is None
    assert get_job(db, held.job.seq) == again.job


def test_without_the_guard_of_state_and_worker_the_second_settle_overwrites_the_first(
    db: Database, race: Race, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Either of `state = 'processing'` and `worker_id = :worker_id` would do: a settled row has no worker."""
    held = claimed_job(db)
    remove_from_fence(monkeypatch, "state = 'processing' AND", "AND worker_id = :worker_id")

    first, second = race(by_store(held, SUCCESS), by_store(held, CANCELLED))

    assert first is not None
    assert second is not None
    assert get_job(db, held.job.seq).state is State.CANCELLED


def test_without_the_guard_of_the_run_number_a_late_settle_ends_the_next_run_of_the_same_worker(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = claimed_job(db)
    settle_run(db, held, Outcome.handed_back())
    claim_one(db)
    remove_from_fence(monkeypatch, "AND run = :run")

    late = by_store(held, SUCCESS)(db)

    assert late is not None
    assert get_job(db, held.job.seq).state is State.COMPLETED


def test_without_the_guard_of_run_and_worker_a_late_settle_ends_the_run_of_another_worker(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Either would do: a run number names one claim, and so one worker. The run number alone is needed above."""
    held = claimed_job(db)
    settle_run(db, held, Outcome.handed_back())
    claim_one(db, add_worker(db, "w2"))
    remove_from_fence(monkeypatch, "AND run = :run", "AND worker_id = :worker_id")

    late = by_store(held, SUCCESS)(db)

    assert late is not None
    assert get_job(db, held.job.seq).state is State.COMPLETED


# Cancel against settle.


def test_a_cancel_that_comes_while_a_failure_is_settled_cancels_the_retry(db: Database, race: Race) -> None:
    held = claimed_job(db)

    _, said = race(settle(held, Outcome.exited(1)), ask_to_cancel(held.job.id))

    assert race.did_second_wait
    assert said == "cancelled"
    assert get_job(db, held.job.seq).state is State.CANCELLED


def test_a_failure_that_is_settled_while_a_cancel_comes_is_not_retried(db: Database, race: Race) -> None:
    held = claimed_job(db)

    said, settled = race(ask_to_cancel(held.job.id), settle(held, Outcome.exited(1)))

    assert race.did_second_wait
    assert said == "its worker is stopping it"
    assert settled is not None
    assert (settled.state, settled.attempts) == (State.CANCELLED, 1)
    assert get_job(db, held.job.seq) == settled


def test_a_success_that_is_settled_while_a_cancel_comes_stays_a_success(db: Database, race: Race) -> None:
    held = claimed_job(db)

    race(ask_to_cancel(held.job.id), settle(held, Outcome.exited(0)))

    assert get_job(db, held.job.seq).state is State.COMPLETED
    assert get_job(db, held.job.seq).cancel_requested == 0


def test_a_cancel_that_comes_while_the_job_is_claimed_reaches_its_worker(db: Database, race: Race) -> None:
    add_worker(db)
    job = add_job(db)

    _, said = race(claim("w1"), ask_to_cancel(job.id))

    assert said == "its worker is stopping it"
    assert get_job(db, job.seq).cancel_requested == 1


@ON_POSTGRES
def test_without_the_guard_for_update_a_cancel_that_comes_second_is_promised_and_forgotten(
    db: Database, race: Race, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = claimed_job(db)
    monkeypatch.setattr(PostgresDialect, "for_update", "")

    _, said = race(settle(held, Outcome.exited(1)), ask_to_cancel(held.job.id))

    job = get_job(db, held.job.seq)
    assert said == "its worker is stopping it"
    assert (job.state, job.cancel_requested) == (State.FAILED, 0)


@ON_POSTGRES
def test_without_the_guard_for_update_a_cancel_that_comes_first_is_overwritten_by_a_retry(
    db: Database, race: Race, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = claimed_job(db)
    monkeypatch.setattr(PostgresDialect, "for_update", "")

    race(ask_to_cancel(held.job.id), settle(held, Outcome.exited(1)))

    job = get_job(db, held.job.seq)
    assert (job.state, job.cancel_requested) == (State.FAILED, 0)


@ON_SQLITE
@pytest.mark.usefixtures("without_begin_immediate")
def test_without_the_guard_begin_immediate_a_cancel_that_comes_second_fails_half_way(db: Database, race: Race) -> None:
    held = claimed_job(db)

    with pytest.raises(StoreBusy):
        race(settle(held, Outcome.exited(1)), ask_to_cancel(held.job.id))


@ON_SQLITE
@pytest.mark.usefixtures("without_begin_immediate")
def test_without_the_guard_begin_immediate_a_settle_that_comes_second_fails_half_way(db: Database, race: Race) -> None:
    held = claimed_job(db)

    with pytest.raises(StoreBusy):
        race(ask_to_cancel(held.job.id), settle(held, Outcome.exited(1)))


def test_a_move_out_of_waiting_changes_nothing_once_the_job_is_running(db: Database, race: Race) -> None:
    add_worker(db)
    job = add_job(db)

    _, moved = race(claim("w1"), by_move(Move.HOLD, job.seq))

    assert race.did_second_wait
    assert moved is None
    assert get_job(db, job.seq).state is State.PROCESSING


def test_a_cancel_that_comes_while_the_job_is_buried_changes_nothing(db: Database, race: Race) -> None:
    job = add_job(db)

    _, moved = race(by_move(Move.EXPIRE, job.seq), by_move(Move.CANCEL, job.seq))

    assert moved is None
    assert get_job(db, job.seq).state is State.DEAD


def test_without_the_guard_of_the_source_states_a_cancel_takes_a_job_out_of_the_dlq(
    db: Database, race: Race, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The guard is `state IN (...)` in moves.move."""
    job = add_job(db)
    monkeypatch.setattr(moves, "MOVES", {**MOVES, Move.CANCEL: (frozenset(State), frozenset({State.CANCELLED}))})

    _, moved = race(by_move(Move.EXPIRE, job.seq), by_move(Move.CANCEL, job.seq))

    assert moved is not None
    assert get_job(db, job.seq).state is State.CANCELLED


# Hold and edit against claim.


def test_a_job_that_is_held_while_a_worker_looks_is_not_claimed(db: Database, race: Race) -> None:
    add_worker(db)
    job = add_job(db)

    said, step = race(ask_to_hold(job.id), claim("w1"))

    assert (said, step.claimed) == ("held", ())
    assert get_job(db, job.seq).state is State.BLOCKED


def test_a_job_that_is_claimed_while_a_person_holds_it_runs_and_the_hold_is_refused(db: Database, race: Race) -> None:
    add_worker(db)
    job = add_job(db)

    with pytest.raises(Refused, match="is running and cannot be held"):
        race(claim("w1"), ask_to_hold(job.id))

    assert race.did_second_wait
    assert (get_job(db, job.seq).state, get_job(db, job.seq).held_at) == (State.PROCESSING, None)


def test_a_job_that_is_edited_while_a_worker_looks_is_claimed_as_edited_or_not_yet(db: Database, race: Race) -> None:
    add_worker(db)
    job = add_job(db, command="echo old")

    _, step = race(ask_to_edit(job.id), claim("w1"))

    assert [held.job.command for held in step.claimed] == (["echo new"] if db.dialect.name == "sqlite" else [])
    assert claimed_command(db, job.seq) == "echo new"


def test_a_job_that_is_claimed_while_a_person_edits_it_runs_as_it_was(db: Database, race: Race) -> None:
    add_worker(db)
    job = add_job(db, command="echo old")

    with pytest.raises(Refused, match="only its tags can change now"):
        race(claim("w1"), ask_to_edit(job.id))

    assert race.did_second_wait
    assert get_job(db, job.seq).command == "echo old"


@ON_POSTGRES
def test_without_the_guard_for_update_an_edit_is_promised_to_a_job_that_runs_already(
    db: Database, race: Race, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_worker(db)
    job = add_job(db, command="echo old")
    monkeypatch.setattr(PostgresDialect, "for_update", "")

    _, said = race(claim("w1"), ask_to_edit(job.id))

    assert said == "edited"
    assert get_job(db, job.seq).command == "echo old"


@ON_SQLITE
@pytest.mark.usefixtures("without_begin_immediate")
def test_without_the_guard_begin_immediate_a_hold_that_comes_second_fails_half_way(db: Database, race: Race) -> None:
    add_worker(db)
    job = add_job(db)

    with pytest.raises(StoreBusy):
        race(claim("w1"), ask_to_hold(job.id))


def test_of_two_that_release_a_job_at_once_the_second_is_refused(db: Database, race: Race) -> None:
    job = add_job(db, State.BLOCKED, held_at=1)

    with pytest.raises(Refused, match="is not held; it is pending"):
        race(ask_to_release(job.id), ask_to_release(job.id))

    assert get_job(db, job.seq).state is State.PENDING


# A claim against its worker being given up.


def test_a_rescue_waits_for_the_claim_of_the_worker_it_gives_up_and_frees_the_job(
    db: Database, race: Race, target: Target
) -> None:
    add_dead_worker(db, target.home.run)
    job = add_job(db)

    step, notes = race(claim("w1"), give_up(target))

    assert race.did_second_wait
    assert (len(step.claimed), len(notes)) == (1, 1)
    assert (get_job(db, job.seq).state, get_job(db, job.seq).losses) == (State.PENDING, 1)


def test_a_worker_that_is_being_given_up_claims_nothing(db: Database, race: Race) -> None:
    add_worker(db)
    job = add_job(db)

    _, step = race(end_worker("w1"), claim("w1"))

    assert race.did_second_wait
    assert (step.is_alive, step.claimed) == (False, ())
    assert get_job(db, job.seq).state is State.PENDING


def test_a_worker_that_is_being_given_up_settles_nothing(db: Database, race: Race) -> None:
    held = claimed_job(db)
    ended = [(held, Report(outcome=Outcome.exited(0)))]

    _, step = race(
        end_worker("w1"),
        lambda db: settle_and_claim(db, Holder(taker=Taker(worker_id="w1"), host=HOST), ended, 1, {}),
    )

    assert (step.is_alive, step.settled, step.lost) == (False, (), (held,))
    assert get_job(db, held.job.seq) == held.job


@ON_POSTGRES
def test_without_the_guard_for_share_a_claim_that_commits_after_the_rescue_leaves_its_job_with_a_lost_worker(
    db: Database, race: Race, target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_dead_worker(db, target.home.run)
    job = add_job(db)
    monkeypatch.setattr(PostgresDialect, "for_share", "")

    _, notes = race(claim("w1"), give_up(target))

    assert notes == []
    assert (get_job(db, job.seq).state, get_worker(db).state) == (State.PROCESSING, "lost")


@ON_POSTGRES
def test_without_the_guard_for_share_a_worker_that_is_being_given_up_still_claims(
    db: Database, race: Race, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_worker(db)
    job = add_job(db)
    monkeypatch.setattr(PostgresDialect, "for_share", "")

    race(end_worker("w1"), claim("w1"))

    assert (get_job(db, job.seq).state, get_worker(db).state) == (State.PROCESSING, "lost")


@ON_SQLITE
@pytest.mark.usefixtures("without_begin_immediate")
def test_without_the_guard_begin_immediate_a_claim_fails_half_way_while_its_worker_is_given_up(
    db: Database, race: Race
) -> None:
    add_worker(db)
    add_job(db)

    with pytest.raises(StoreBusy):
        race(end_worker("w1"), claim("w1"))


def test_two_rescues_at_once_count_one_loss(db: Database, race: Race, target: Target) -> None:
    add_dead_worker(db, target.home.run)
    job = add_job(db)
    held = claim_one(db)
    db.write(lambda tx: workers.give_up(tx, get_live(tx, "w1")))

    race(settle(held, Outcome.lost()), give_up(target))

    assert get_job(db, job.seq).losses == 1
    assert len(get_runs(db, job.seq)) == 1


def add_workers(db: Database) -> None:
    """Register two workers."""
    add_worker(db, "w1")
    add_worker(db, "w2")


def remove_from_fence(monkeypatch: pytest.MonkeyPatch, *guards: str) -> None:
    """Let jobs be settled by statements that lack some of their guards."""
    for name in ("_SETTLE_ALONE", "_SETTLE_WITH_OTHERS"):
        text: str = getattr(moves, name)
        for guard in guards:
            assert guard in text
            text = text.replace(guard, "")
        monkeypatch.setattr(moves, name, text)


def by_store(held: Claim, verdict: Verdict) -> Callable[[Database], Job | None]:
    """Settle by the store alone: the key of the attempts is a guard too, and would hide what the fence is for."""
    return lambda db: db.write(lambda tx: moves.settle(tx, held, verdict, None, recorded(held, next(OTHER_RUNS))))


def by_move(move: Move, seq: int) -> Callable[[Database], Job | None]:
    """Move a job that no worker should hold."""
    (to,) = MOVES[move][1]
    return lambda db: db.write(lambda tx: moves.move(tx, move, seq, to))


def get_live(tx: Tx, worker_id: str) -> workers.Worker:
    """Return a worker that must be there."""
    worker = workers.get(tx, worker_id)
    assert worker is not None
    return worker


def end_worker(worker_id: str) -> Callable[[Database], bool]:
    """A worker's row is closed for good, as the first step of a rescue."""
    return lambda db: db.write(lambda tx: workers.give_up(tx, get_live(tx, worker_id)))
