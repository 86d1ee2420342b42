"""Rescue: jobs of a worker that died come back, uncharged; one that keeps killing its worker is buried."""

import os
import subprocess
from pathlib import Path

import pytest

from queuectl import clock
from queuectl.actions.connect import Target
from queuectl.actions.control import cancel
from queuectl.actions.liveness import store_mark
from queuectl.actions.rescue import Rescuer
from queuectl.model.attempt import Report
from queuectl.model.job import Job
from queuectl.model.states import State
from queuectl.model.verdict import Outcome, OutcomeKind
from queuectl.store import moves, workers
from queuectl.store.database import Database, Tx
from queuectl.system.home import log_path
from queuectl.system.host import host_name
from queuectl.system.liveness import Leader, LifeLock, Parting, note_parting
from tests.actions.bells import Bell
from tests.store.rows import (
    NOW,
    FakeClock,
    add_dead_worker,
    add_job,
    add_worker,
    claim_one,
    get_job,
    get_runs,
    get_worker,
)

HOUR = 3_600_000
LEASE_S = 60.0

on_postgres = pytest.mark.parametrize("target", ["postgres"], indirect=True)


class Clock:
    """A clock that goes on when told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        """Return what it shows."""
        return self.now


def rescue(db: Database, target: Target) -> list[str]:
    """Look once, as a supervisor that has just started does."""
    return Rescuer(db, target.home, {}).look()


def get_live(tx: Tx) -> workers.Worker:
    """Return the one worker that the database believes to be living."""
    (worker,) = workers.live(tx)
    return worker


@pytest.fixture
def boot_clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock leases are measured on, in the test's hand."""
    hand = Clock()
    monkeypatch.setattr(clock, "boot_s", hand)
    return hand


def test_the_job_of_a_dead_worker_is_ready_again_and_not_charged(
    db: Database, target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = add_job(db)
    claim_one(db, add_dead_worker(db, target.home.run))
    bell = Bell(db, monkeypatch)

    (note,) = rescue(db, target)

    after = get_job(db, job.seq)
    assert (after.state, after.losses, after.attempts, after.worker_id) == (State.PENDING, 1, 0, None)
    assert "worker was lost; the job is pending now" in note
    assert get_worker(db).state == "lost"
    assert bell.rings == 1


def test_a_loss_is_a_run_on_record(db: Database, target: Target) -> None:
    job = add_job(db)
    claim_one(db, add_dead_worker(db, target.home.run))

    rescue(db, target)

    (run,) = get_runs(db, job.seq)
    assert (run.run, run.outcome, run.worker_id, run.host) == (1, OutcomeKind.LOST, "w1", host_name())


def test_what_a_lost_run_had_printed_is_kept(db: Database, target: Target) -> None:
    job = add_job(db)
    claim_one(db, add_dead_worker(db, target.home.run))
    path = Path(log_path(target.home, job.seq, 1))
    path.parent.mkdir()
    path.write_bytes(b"begin" + b"x" * 20_000 + b"end")

    Rescuer(db, target.home, {"QUEUECTL_OUTPUT_TAIL_BYTES": "1KiB"}).look()

    (run,) = get_runs(db, job.seq)
    assert (run.output_bytes, len(run.output_tail), run.output_tail[-4:]) == (20_008, 1_024, b"xend")
    assert run.output_file is not None
    assert Path(target.home.logs, run.output_file) == path


def test_what_a_lost_run_had_printed_into_two_streams_is_kept(db: Database, target: Target) -> None:
    job = add_job(db, split_output=1)
    claim_one(db, add_dead_worker(db, target.home.run))
    folder = Path(log_path(target.home, job.seq, 1)).parent
    folder.mkdir()
    (folder / f"{job.seq}.1.log").write_bytes(b"out")
    (folder / f"{job.seq}.1.err.log").write_bytes(b"err")
    (folder / f"{job.seq}.1.err.log.part.3.13").write_bytes(b"later")

    rescue(db, target)

    (run,) = get_runs(db, job.seq)
    assert (run.output_bytes, run.output_tail) == (3, b"out")
    assert (run.stderr_bytes, run.stderr_tail) == (18, b"err\n[queuectl: 10 bytes left out here]\nlater")
    assert run.stderr_file == os.path.relpath(folder / f"{job.seq}.1.err.log", target.home.logs)
    assert len(list(folder.iterdir())) == 2


def test_a_lost_run_of_a_job_with_two_streams_has_both_though_nothing_is_left_of_them(
    db: Database, target: Target
) -> None:
    job = add_job(db, split_output=1)
    claim_one(db, add_dead_worker(db, target.home.run))

    rescue(db, target)

    (run,) = get_runs(db, job.seq)
    assert (run.output_bytes, run.stderr_bytes, run.stderr_tail) == (0, 0, b"")


def test_the_lock_of_a_worker_that_was_given_up_is_removed(db: Database, target: Target) -> None:
    add_dead_worker(db, target.home.run)
    lock = Path(get_worker(db).lock_path)
    lock.touch()

    rescue(db, target)

    assert not lock.exists()


def test_the_second_loss_waits_and_the_third_buries(db: Database, target: Target) -> None:
    job = add_job(db)
    seen = []

    for turn, name in enumerate(("w1", "w2", "w3")):
        db.read_clock = FakeClock(now=NOW + turn * HOUR)
        db.write(moves.make_due)
        claim_one(db, add_dead_worker(db, target.home.run, name))
        rescue(db, target)
        after = get_job(db, job.seq)
        seen.append((after.state, after.run_at, after.losses, after.attempts))

    waited_for = NOW + HOUR + 4_000
    assert seen == [(State.PENDING, None, 1, 0), (State.FAILED, waited_for, 2, 0), (State.DEAD, waited_for, 3, 0)]
    assert get_job(db, job.seq).error == "its worker died 3 times while running it"


def test_a_lost_job_that_somebody_cancelled_is_not_run_again(db: Database, target: Target) -> None:
    job = add_job(db)
    claim_one(db, add_dead_worker(db, target.home.run))
    cancel(db, [job.id], who="me")

    rescue(db, target)

    assert (get_job(db, job.seq).state, get_job(db, job.seq).losses) == (State.CANCELLED, 1)


def test_a_living_worker_keeps_its_job(db: Database, target: Target) -> None:
    job = add_job(db)
    lock = LifeLock(target.home, "w1")
    claim_one(db, add_worker(db, lock_path=lock.path, host=host_name()))

    notes = rescue(db, target)

    assert (notes, get_worker(db).state) == ([], "live")
    assert get_job(db, job.seq).state is State.PROCESSING
    lock.release()


def test_a_rescue_that_was_cut_off_is_finished_by_the_next(db: Database, target: Target) -> None:
    jobs = [add_job(db) for _ in range(3)]
    add_dead_worker(db, target.home.run)
    for _ in jobs:
        claim_one(db)
    db.write(lambda tx: workers.give_up(tx, get_live(tx)))

    notes = rescue(db, target)

    assert len(notes) == 3
    assert {get_job(db, job.seq).state for job in jobs} == {State.PENDING}


def test_a_worker_that_ended_in_peace_and_still_holds_a_job_is_swept_too(db: Database, target: Target) -> None:
    job = add_job(db)
    claim_one(db, add_dead_worker(db, target.home.run))
    db.write(lambda tx: workers.end(tx, "w1"))

    rescue(db, target)

    assert get_job(db, job.seq).state is State.PENDING


def test_a_second_rescue_has_nothing_to_do(db: Database, target: Target) -> None:
    job = add_job(db)
    claim_one(db, add_dead_worker(db, target.home.run))
    rescue(db, target)

    assert rescue(db, target) == []
    assert get_job(db, job.seq).losses == 1


def far_worker(db: Database, target: Target) -> Job:
    """Let a worker out of sight hold a job: on another host, with a lock that cannot be reached from here."""
    job = add_job(db)
    claim_one(db, add_worker(db, lock_path=f"{target.home.run}/w1.lock", host="elsewhere", boot="far", namespace="far"))
    return job


def look_for(rescuer: Rescuer, boot_clock: Clock, seconds: float) -> list[str]:
    """Look once a second for so long; return what was noted."""
    notes = []
    for _ in range(round(seconds)):
        boot_clock.now += 1
        notes += rescuer.look()
    return notes


@on_postgres
def test_a_silent_worker_out_of_sight_is_given_up_when_its_lease_was_watched_to_the_end(
    db: Database, target: Target, boot_clock: Clock
) -> None:
    job = far_worker(db, target)
    rescuer = Rescuer(db, target.home, {})
    rescuer.look()

    early = look_for(rescuer, boot_clock, LEASE_S - 1)
    state = get_job(db, job.seq).state
    (note,) = look_for(rescuer, boot_clock, 1)

    assert (early, state) == ([], State.PROCESSING)
    assert (get_job(db, job.seq).state, get_job(db, job.seq).losses, get_worker(db).state) == (State.PENDING, 1, "lost")
    assert "worker was lost" in note


@on_postgres
def test_a_worker_out_of_sight_that_beats_is_never_given_up(db: Database, target: Target, boot_clock: Clock) -> None:
    job = far_worker(db, target)
    rescuer = Rescuer(db, target.home, {})

    for _ in range(10):
        look_for(rescuer, boot_clock, LEASE_S - 1)
        db.write(lambda tx: workers.beat(tx, "w1", 60_000))

    assert (get_job(db, job.seq).state, get_worker(db).state) == (State.PROCESSING, "live")


@on_postgres
def test_the_lease_is_the_one_the_worker_itself_stated(db: Database, target: Target, boot_clock: Clock) -> None:
    job = far_worker(db, target)
    db.write(lambda tx: workers.beat(tx, "w1", 7_000))
    rescuer = Rescuer(db, target.home, {})
    rescuer.look()

    look_for(rescuer, boot_clock, 7)

    assert get_job(db, job.seq).state is State.PENDING


@on_postgres
def test_silence_while_the_watcher_was_away_does_not_count(db: Database, target: Target, boot_clock: Clock) -> None:
    job = far_worker(db, target)
    rescuer = Rescuer(db, target.home, {})
    rescuer.look()

    boot_clock.now += 10 * LEASE_S
    rescuer.look()
    look_for(rescuer, boot_clock, LEASE_S - 1)
    state = get_job(db, job.seq).state
    look_for(rescuer, boot_clock, 1)

    assert (state, get_job(db, job.seq).state) == (State.PROCESSING, State.PENDING)


@on_postgres
def test_a_worker_that_beats_between_look_and_judgement_stays(db: Database, target: Target, boot_clock: Clock) -> None:
    job = far_worker(db, target)
    seen = get_worker(db)
    db.write(lambda tx: workers.beat(tx, "w1", 60_000))

    given_up = db.write(lambda tx: workers.give_up(tx, seen))

    assert not given_up
    assert (get_worker(db).state, get_job(db, job.seq).state) == ("live", State.PROCESSING)


@on_postgres
def test_what_another_host_gave_up_waits_for_the_lease_since_its_commands_may_still_be_ended_there(
    db: Database, target: Target, boot_clock: Clock
) -> None:
    job = far_worker(db, target)
    db.write(lambda tx: workers.give_up(tx, get_live(tx)))
    rescuer = Rescuer(db, target.home, {})
    rescuer.look()

    look_for(rescuer, boot_clock, LEASE_S - 1)
    state = get_job(db, job.seq).state
    look_for(rescuer, boot_clock, 1)

    assert (state, get_job(db, job.seq).state) == (State.PROCESSING, State.PENDING)


def test_a_dead_worker_in_another_container_of_this_host_waits_for_the_lease(
    db: Database, target: Target, boot_clock: Clock
) -> None:
    job = add_job(db)
    claim_one(db, add_dead_worker(db, target.home.run, namespace="another"))
    rescuer = Rescuer(db, target.home, {})
    rescuer.look()

    state = get_job(db, job.seq).state, get_worker(db).state
    look_for(rescuer, boot_clock, LEASE_S)

    assert state == (State.PROCESSING, "lost")
    assert get_job(db, job.seq).state is State.PENDING


def test_after_a_reboot_the_job_is_free_at_once_and_whoever_has_the_pid_now_lives_on(
    db: Database, target: Target
) -> None:
    innocent = subprocess.Popen(["sleep", "600"])
    job = add_job(db)
    claim_one(db, add_dead_worker(db, target.home.run, boot="the boot before"))

    rescue(db, target)
    is_alive = innocent.poll() is None
    innocent.kill()
    innocent.wait()

    assert (get_job(db, job.seq).state, is_alive) == (State.PENDING, True)


def test_a_worker_its_supervisor_had_to_end_hands_its_jobs_back_uncharged(db: Database, target: Target) -> None:
    job = add_job(db)
    claim_one(db, add_dead_worker(db, target.home.run))

    Rescuer(db, target.home, {}).look(pardoned={"w1"})

    after = get_job(db, job.seq)
    assert (after.state, after.losses, after.attempts) == (State.PENDING, 0, 0)
    assert get_runs(db, job.seq)[0].outcome is OutcomeKind.HANDED_BACK


@pytest.mark.parametrize(
    "why, said", [(Parting.ENDED, "could not renew its lease"), (Parting.LEFT, "told to stop while the store was away")]
)
def test_whoever_finds_a_worker_whose_death_is_no_crash_hands_its_jobs_back_and_says_why(
    db: Database, target: Target, why: Parting, said: str
) -> None:
    job = add_job(db)
    claim_one(db, add_dead_worker(db, target.home.run))
    note_parting(f"{target.home.run}/w1.lock", why)

    rescue(db, target)

    after = get_job(db, job.seq)
    assert (after.state, after.losses, after.attempts) == (State.PENDING, 0, 0)
    (run,) = get_runs(db, job.seq)
    assert run.outcome is OutcomeKind.HANDED_BACK
    assert said in str(run.error)


def test_nobody_removes_the_lock_of_one_that_another_has_given_up_and_not_rescued_yet(
    db: Database, target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = add_job(db)
    lock = dead_worker_with_notes(db, target)
    claim_one(db, "w1")
    os.close(lock._fd)
    note_parting(lock.path, Parting.ENDED)
    slow = Rescuer(db, target.home, {})
    give_up = slow._give_up

    def come_too_late(living: object, began: float, ended: float) -> object:
        db.write(lambda tx: workers.give_up(tx, get_live(tx)))  # by another, since this one has read who lives
        return give_up(living, began, ended)  # type: ignore[arg-type]

    monkeypatch.setattr(slow, "_give_up", come_too_late)
    slow.look()
    rescue(db, target)

    (run,) = get_runs(db, job.seq)
    assert (run.outcome, get_job(db, job.seq).losses) == (OutcomeKind.HANDED_BACK, 0)


def test_a_lock_left_over_by_nobody_is_removed(db: Database, target: Target) -> None:
    left = Path(add_lock(db, target, "killed-as-it-started"))
    held = LifeLock(target.home, "held")

    rescue(db, target)

    assert (left.exists(), Path(held.path).exists()) == (False, True)
    held.release()


def add_lock(db: Database, target: Target, worker_id: str) -> str:
    """Leave a lock that nobody holds, of a worker the database never heard of."""
    lock = LifeLock(target.home, worker_id, store_mark(db.dialect))
    os.close(lock._fd)
    return lock.path


@pytest.mark.parametrize("target", ["sqlite"], indirect=True)
def test_a_home_mounted_at_another_path_is_rescued_all_the_same(db: Database, target: Target) -> None:
    job = add_job(db)
    claim_one(db, add_dead_worker(db, target.home.run))
    db.write(lambda tx: tx.changed("UPDATE workers SET lock_path = '/elsewhere/run/w1.lock', pid = 1", {}))

    rescue(db, target)

    assert get_job(db, job.seq).state is State.PENDING


@on_postgres
def test_the_output_of_a_far_run_is_not_taken_from_a_file_of_this_host(
    db: Database, target: Target, boot_clock: Clock
) -> None:
    job = far_worker(db, target)
    path = Path(log_path(target.home, job.seq, 1))
    path.parent.mkdir()
    path.write_bytes(b"of another job of this host")
    rescuer = Rescuer(db, target.home, {})
    rescuer.look()

    look_for(rescuer, boot_clock, LEASE_S)

    (run,) = get_runs(db, job.seq)
    assert (run.outcome, run.output_file, run.output_tail) == (OutcomeKind.LOST, None, b"")


def dead_worker_with_notes(db: Database, target: Target) -> LifeLock:
    """Register a worker that writes its notes; it is dead once the lock is let go of."""
    path = os.path.join(target.home.run, "w1.lock")
    add_worker(db, lock_path=path, host=host_name())
    return LifeLock(target.home, "w1", store_mark(db.dialect))


def test_a_run_whose_end_was_noted_is_settled_as_it_ended_and_not_run_again(db: Database, target: Target) -> None:
    job = add_job(db)
    lock = dead_worker_with_notes(db, target)
    claim_one(db)
    lock.expect_ends()
    lock.note_start(Leader(seq=job.seq, run=1))
    cost = {"cpu_ms": 1, "peak_memory_bytes": 4096, "begun_s": 1.0, "ended_s": 2.0}
    report = Report(outcome=Outcome.exited(0), output_tail=b"done\n", output_bytes=5, **cost)  # type: ignore[arg-type]
    lock.note_outcome(job.seq, 1, report.as_note())
    os.close(lock._fd)

    (note,) = rescue(db, target)

    after = get_job(db, job.seq)
    (run,) = get_runs(db, job.seq)
    assert (after.state, after.losses, after.attempts) == (State.COMPLETED, 0, 1)
    assert (run.outcome, run.exit_code, run.output_tail) == (OutcomeKind.EXITED, 0, b"done\n")
    assert "had ended well" in note
    assert not [name for name in os.listdir(target.home.run) if name.startswith("w1")]


def test_a_job_in_the_hand_of_a_dead_worker_was_never_begun_and_waits_again(db: Database, target: Target) -> None:
    job = add_job(db)
    lock = dead_worker_with_notes(db, target)
    claim_one(db)
    lock.expect_ends()
    os.close(lock._fd)

    (note,) = rescue(db, target)

    after = get_job(db, job.seq)
    assert (after.state, after.losses, after.attempts) == (State.PENDING, 0, 0)
    assert get_runs(db, job.seq) == []
    assert "before it began it" in note


def test_one_cancelled_in_the_hand_of_a_dead_worker_is_cancelled(db: Database, target: Target) -> None:
    job = add_job(db)
    lock = dead_worker_with_notes(db, target)
    claim_one(db)
    lock.expect_ends()
    cancel(db, [str(job.seq)], who="me")
    os.close(lock._fd)

    rescue(db, target)

    assert get_job(db, job.seq).state is State.CANCELLED


@pytest.mark.parametrize("reason", ["begun", "no notes", "notes given up", "host started anew"])
def test_where_the_notes_do_not_say_that_it_never_began_it_is_lost(db: Database, target: Target, reason: str) -> None:
    job = add_job(db)
    lock = dead_worker_with_notes(db, target)
    claim_one(db)
    if reason != "no notes":
        lock.expect_ends()
    if reason == "begun":
        lock.note_start(Leader(seq=job.seq, run=1))
    if reason == "notes given up":
        lock._ends.remove()
    if reason == "host started anew":
        db.write(lambda tx: tx.changed("UPDATE workers SET boot_id = 'before'", {}))
    os.close(lock._fd)

    rescue(db, target)

    after = get_job(db, job.seq)
    assert (after.state, after.losses) == (State.PENDING, 1)
    assert [run.outcome for run in get_runs(db, job.seq)] == [OutcomeKind.LOST]
