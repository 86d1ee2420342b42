"""Control: what a person does to jobs, queues, settings and workers, what is refused, and what is on record."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from queuectl.actions import control
from queuectl.actions.acts import Done
from queuectl.actions.connect import Target
from queuectl.actions.control import (
    cancel,
    delete,
    pause_queue,
    purge_dead,
    purge_some_dead,
    resume_queue,
    retry,
    revive_all_dead,
    revive_dead,
    set_setting,
    stop_workers,
    unset_setting,
)
from queuectl.actions.settle import Holder, settle_and_claim
from queuectl.errors import BadInput, NotFound, Refused, UnknownName
from queuectl.model.attempt import Report
from queuectl.model.queue import Queue
from queuectl.model.states import FINAL, State
from queuectl.model.verdict import Outcome
from queuectl.store import audit, config, jobs, queues, workers
from queuectl.store.database import Database
from queuectl.store.jobs import Filter
from queuectl.store.takers import Taker
from queuectl.system.home import log_path
from tests.actions.bells import Bell
from tests.store.rows import (
    HOST,
    NOW,
    FakeClock,
    add_job,
    add_worker,
    claimed_job,
    get_job,
    get_runs,
    get_worker,
    last_act,
    settle_run,
)

JobAct = Callable[..., list[Done]]
WAITING = [State.PENDING, State.SCHEDULED, State.BLOCKED, State.FAILED]


# Cancel.


@pytest.mark.parametrize("state", WAITING)
def test_a_waiting_job_is_cancelled_at_once(db: Database, state: State, monkeypatch: pytest.MonkeyPatch) -> None:
    db.read_clock = FakeClock()
    job = add_job(db, state)
    bell = Bell(db, monkeypatch)

    (done,) = cancel(db, [job.id], who="me")

    after = get_job(db, job.seq)
    assert done.note == "cancelled"
    assert (after.state, after.finished_at, after.error) == (State.CANCELLED, NOW, "cancelled before it ran")
    assert bell.rings == 0


def test_a_running_job_is_marked_and_its_worker_woken(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    add_worker(db)
    job = add_job(db, State.PROCESSING)
    bell = Bell(db, monkeypatch)

    (done,) = cancel(db, [job.id], who="me")

    after = get_job(db, job.seq)
    assert done.note == "its worker is stopping it"
    assert (after.state, after.cancel_requested) == (State.PROCESSING, 1)
    assert bell.rings == 1


@pytest.mark.parametrize("state", sorted(FINAL))
def test_a_finished_job_cannot_be_cancelled(db: Database, state: State) -> None:
    job = add_job(db, state)

    with pytest.raises(Refused, match=f"job {job.id} is {state} already") as refused:
        cancel(db, [job.id], who="me")

    assert refused.value.exit_code == 6
    assert get_job(db, job.seq) == job


# Retry and revive.


@pytest.mark.parametrize("state", [State.SCHEDULED, State.FAILED])
def test_a_job_that_waits_for_its_time_runs_now_and_keeps_its_attempts(
    db: Database, state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = add_job(db, state, attempts=2)
    bell = Bell(db, monkeypatch)

    (done,) = retry(db, [job.id], who="me")

    after = get_job(db, job.seq)
    assert (done.note, bell.rings) == ("runs now", 1)
    assert (after.state, after.attempts) == (State.PENDING, 2)


@pytest.mark.parametrize("state", sorted(FINAL))
def test_a_finished_job_that_is_retried_has_a_fresh_life_with_its_history_kept(
    db: Database, state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim = claimed_job(db, max_retries=0)
    settle_run(db, claim, Outcome.exited(1))
    db.write(lambda tx: tx.changed("UPDATE jobs SET state = :state", {"state": state.value}))
    bell = Bell(db, monkeypatch)

    (done,) = retry(db, [claim.job.id], who="me")

    after = get_job(db, claim.job.seq)
    assert (done.note, bell.rings) == ("has a fresh life", 1)
    assert (after.state, after.attempts, after.run, after.finished_at) == (State.PENDING, 0, 1, None)
    assert len(get_runs(db, after.seq)) == 1


def test_a_ready_job_that_is_retried_stays_as_it_is(db: Database) -> None:
    job = add_job(db)

    (done,) = retry(db, [job.id], who="me")

    assert done.note == "is ready already"
    assert get_job(db, job.seq) == job


@pytest.mark.parametrize("state", [State.PROCESSING, State.BLOCKED])
def test_a_running_or_blocked_job_cannot_be_retried(db: Database, state: State) -> None:
    job = add_job(db, state)

    with pytest.raises(Refused) as refused:
        retry(db, [job.id], who="me")

    assert refused.value.exit_code == 6
    assert get_job(db, job.seq) == job


def test_a_dead_job_is_revived_from_the_dlq(db: Database) -> None:
    job = add_job(db, State.DEAD, attempts=4)

    revive_dead(db, [job.id], who="me")

    assert (get_job(db, job.seq).state, get_job(db, job.seq).attempts) == (State.PENDING, 0)
    assert last_act(db) == ("me", "dlq retry", job.id, 1)


@pytest.mark.parametrize("state", [state for state in State if state is not State.DEAD])
def test_a_job_that_is_not_dead_is_neither_revived_nor_purged_from_the_dlq(db: Database, state: State) -> None:
    job = add_job(db, state)

    for act in (revive_dead, purge_some_dead):
        with pytest.raises(Refused, match=f"not in the DLQ; it is {state}"):
            act(db, [job.id], who="me")

    assert get_job(db, job.seq) == job


@pytest.mark.parametrize("count", [0, 2, 3, 7])
def test_all_dead_jobs_are_revived_a_page_at_a_time(db: Database, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control, "PAGE", 3)
    dead = [add_job(db, State.DEAD).seq for _ in range(count)]
    other = add_job(db, State.CANCELLED)

    revived = revive_all_dead(db, Filter(), who="me")

    acts = db.read(lambda tx: audit.newest(tx, 9))
    assert revived == count
    assert {get_job(db, seq).state for seq in dead} <= {State.PENDING}
    assert get_job(db, other.seq) == other
    assert {(act.action, act.target) for act in acts} == {("dlq retry", "all")}
    assert sum(act.count for act in acts) == count


def test_dead_jobs_are_revived_by_queue_and_tag(db: Database) -> None:
    mail = add_job(db, State.DEAD, queue="mail", tags='["a_b"]')
    near = add_job(db, State.DEAD, queue="mail", tags='["axb"]')
    other = add_job(db, State.DEAD, queue="other", tags='["a_b"]')

    revived = revive_all_dead(db, Filter(queue="mail", tags=("a_b",)), who="me")

    states = [get_job(db, job.seq).state for job in (mail, near, other)]
    assert (revived, states) == (1, [State.PENDING, State.DEAD, State.DEAD])


# Delete and purge.


@pytest.mark.parametrize("state", [state for state in State if state is not State.PROCESSING])
def test_a_job_that_does_not_run_is_deleted_with_its_runs(db: Database, state: State) -> None:
    claim = claimed_job(db)
    settle_run(db, claim, Outcome.handed_back())
    db.write(lambda tx: tx.changed("DELETE FROM jobs"))
    job = add_job(db, state, seq=claim.job.seq)

    delete(db, [job.id], who="me")

    assert db.read(lambda tx: jobs.get(tx, job.seq)) is None
    assert db.read(lambda tx: tx.rows("SELECT 1 FROM attempts")) == []


def test_the_output_of_a_job_goes_with_it(db: Database, target: Target) -> None:
    claim = claimed_job(db)
    path = Path(log_path(target.home, claim.job.seq, 1))
    path.parent.mkdir()
    path.write_bytes(b"hello")
    report = Report(outcome=Outcome.exited(0), output_file=os.path.relpath(path, target.home.logs))
    settle_and_claim(db, Holder(taker=Taker(worker_id="w1"), host=HOST), [(claim, report)], 0, {})

    delete(db, [claim.job.id], who="me")

    assert not path.exists()


def test_the_output_of_a_job_stays_when_its_deletion_is_refused(db: Database, target: Target) -> None:
    claim = claimed_job(db)
    path = Path(log_path(target.home, claim.job.seq, 1))
    path.parent.mkdir()
    path.write_bytes(b"hello")
    report = Report(outcome=Outcome.exited(0), output_file=os.path.relpath(path, target.home.logs))
    settle_and_claim(db, Holder(taker=Taker(worker_id="w1"), host=HOST), [(claim, report)], 0, {})

    with pytest.raises(NotFound):
        delete(db, [claim.job.id, "nosuch"], who="me")

    assert path.exists()


def test_a_running_job_is_not_deleted(db: Database) -> None:
    job = add_job(db, State.PROCESSING)

    with pytest.raises(Refused, match="is running") as refused:
        delete(db, [job.id], who="me")

    assert f"queuectl cancel {job.id}" in refused.value.hint
    assert get_job(db, job.seq) == job


def test_the_dlq_is_purged_of_dead_jobs_alone(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control, "PAGE", 2)
    for state in State:
        add_job(db, state)
    for _ in range(4):
        add_job(db, State.DEAD)

    purged = purge_dead(db, Filter(), who="me")

    assert purged == 5
    assert db.read(lambda tx: jobs.count_matching(tx, Filter())) == len(State) - 1


def test_dead_jobs_are_purged_by_id(db: Database) -> None:
    first, second = add_job(db, State.DEAD), add_job(db, State.DEAD)

    purge_some_dead(db, [first.id], who="me")

    assert db.read(lambda tx: [job.seq for job in jobs.newest(tx, Filter(), 9)]) == [second.seq]
    assert last_act(db) == ("me", "dlq purge", first.id, 1)


# What holds for every act on jobs.


@pytest.mark.parametrize("act", [cancel, retry, delete, revive_dead, purge_some_dead])
@pytest.mark.parametrize("job_id", ["nosuch", "99", "9" * 30])
def test_an_act_on_a_job_that_is_not_there_says_so(db: Database, act: JobAct, job_id: str) -> None:
    with pytest.raises(NotFound, match=f"no job '{job_id}'") as missing:
        act(db, [job_id], who="me")

    assert missing.value.exit_code == 3


@pytest.mark.parametrize("act", [cancel, retry, delete, revive_dead, purge_some_dead])
def test_an_act_on_several_jobs_is_done_to_all_or_none(db: Database, act: JobAct) -> None:
    job = add_job(db, State.DEAD)
    waiting = add_job(db)

    with pytest.raises((NotFound, Refused)):
        act(db, [waiting.id, job.id, "nosuch"], who="me")

    assert [get_job(db, seq) for seq in (job.seq, waiting.seq)] == [job, waiting]
    assert db.read(lambda tx: audit.newest(tx, 9)) == []


def test_a_job_may_be_named_by_id_number_or_as_the_last(db: Database) -> None:
    named = [add_job(db, given_id=name) for name in ("job1", None, None)]

    done = cancel(db, ["job1", "2", "last"], who="me")

    assert [one.job.seq for one in done] == [job.seq for job in named]


def test_a_job_that_is_named_twice_is_acted_on_once(db: Database) -> None:
    job = add_job(db)

    done = cancel(db, [job.id, job.id], who="me")

    assert len(done) == 1


@pytest.mark.parametrize(
    "act, action, state",
    [(cancel, "cancel", State.PENDING), (retry, "retry", State.DEAD), (delete, "delete", State.DEAD)],
)
def test_an_act_is_on_record_with_who_what_and_how_many(db: Database, act: JobAct, action: str, state: State) -> None:
    ids = [add_job(db, state).id for _ in range(2)]

    act(db, ids, who="me@here")

    assert last_act(db) == ("me@here", action, ",".join(ids), 2)


# Queues.


def test_a_queue_is_paused_once_even_before_its_first_job(db: Database) -> None:
    db.read_clock = FakeClock()

    changed = [pause_queue(db, "mail", who="me") for _ in range(2)]

    queue = db.read(lambda tx: queues.get(tx, "mail"))
    assert changed == [True, False]
    assert queue == Queue(name="mail", paused_at=NOW, created_at=NOW)
    assert last_act(db) == ("me", "queue pause", "mail", 0)


def test_a_queue_is_resumed_once_and_wakes_idle_workers(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    pause_queue(db, "mail", who="me")
    bell = Bell(db, monkeypatch)

    changed = [resume_queue(db, "mail", who="me") for _ in range(2)]

    queue = db.read(lambda tx: queues.get(tx, "mail"))
    assert changed == [True, False]
    assert queue is not None
    assert queue.paused_at is None
    assert bell.rings >= 1
    assert last_act(db) == ("me", "queue resume", "mail", 0)


def test_a_queue_that_is_not_there_cannot_be_resumed(db: Database) -> None:
    with pytest.raises(NotFound, match="no queue 'nosuch'"):
        resume_queue(db, "nosuch", who="me")


# Settings.


def test_a_setting_is_stored_in_its_one_form_under_its_own_key(db: Database) -> None:
    assert set_setting(db, "Job-Timeout", "1h30m", who="me") == ("job_timeout", "5400")
    assert set_setting(db, "default-max-tries", "5", who="me") == ("max_retries", "4")
    assert db.read(config.stored) == {"job_timeout": "5400", "max_retries": "4"}
    assert last_act(db) == ("me", "config set", "max_retries=4", 1)


def test_a_setting_may_be_set_again_and_forgotten(db: Database) -> None:
    set_setting(db, "max_retries", "5", who="me")
    set_setting(db, "max_retries", "6", who="me")
    before = db.read(config.stored)

    forgotten = [unset_setting(db, "default-max-tries", who="me") for _ in range(2)]

    assert before == {"max_retries": "6"}
    assert forgotten == [True, False]
    assert db.read(config.stored) == {}
    assert last_act(db) == ("me", "config unset", "max_retries", 0)


@pytest.mark.parametrize(
    "name, text, error",
    [("max_retrys", "3", UnknownName), ("max_retries", "x", BadInput), ("lock_lease_seconds", "14", BadInput)],
)
def test_a_bad_setting_is_refused_and_not_stored(db: Database, name: str, text: str, error: type[BadInput]) -> None:
    with pytest.raises(error) as refused:
        set_setting(db, name, text, who="me")

    assert refused.value.exit_code == 2
    assert db.read(config.stored) == {}
    assert db.read(lambda tx: audit.newest(tx, 9)) == []


def test_a_setting_is_not_forgotten_when_another_needs_it(db: Database) -> None:
    set_setting(db, "lock_lease_seconds", "100", who="me")
    set_setting(db, "worker_heartbeat_interval", "40", who="me")

    with pytest.raises(BadInput, match="too short"):
        unset_setting(db, "lock_lease_seconds", who="me")

    assert db.read(config.stored)["lock_lease_seconds"] == "100"


# Workers.


def test_workers_are_told_to_stop_and_woken(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("w1", "w2", "w3-and-much-more"):
        add_worker(db, name)
    db.write(lambda tx: workers.end(tx, "w3-and-much-more"))
    bell = Bell(db, monkeypatch)

    told = stop_workers(db, ["w1", "w3-and-much-more"], stop=workers.DRAIN, who="me")

    assert (told, bell.rings) == (1, 1)
    assert [get_worker(db, name).stop for name in ("w1", "w2", "w3-and-much-more")] == ["drain", None, None]
    assert last_act(db) == ("me", "worker stop drain", "w1,w3-and", 1)


def test_a_worker_that_must_stop_now_is_not_told_to_take_its_time(db: Database) -> None:
    add_worker(db)
    stop_workers(db, ["w1"], stop=workers.NOW, who="me")

    stop_workers(db, ["w1"], stop=workers.DRAIN, who="me")

    assert get_worker(db).stop == "now"


def test_a_job_that_is_named_in_two_ways_is_acted_on_once(db: Database) -> None:
    job = add_job(db)

    done = control.cancel(db, [job.id, "last"], who="me")

    assert [act.job.seq for act in done] == [job.seq]
