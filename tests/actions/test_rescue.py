"""Rescue: jobs of a worker that died come back, uncharged; one that keeps killing its worker is buried."""

from pathlib import Path

import pytest

from queuectl.actions.connect import Target
from queuectl.actions.control import cancel
from queuectl.actions.rescue import dead_here, rescue
from queuectl.model.states import State
from queuectl.model.verdict import OutcomeKind
from queuectl.store import moves, workers
from queuectl.store.database import Database
from queuectl.system.home import log_path
from queuectl.system.host import host_name
from queuectl.system.liveness import LifeLock
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


def test_the_job_of_a_dead_worker_is_ready_again_and_not_charged(
    db: Database, target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = add_job(db)
    claim_one(db, add_dead_worker(db, target.home.run))
    bell = Bell(db, monkeypatch)

    (note,) = rescue(db, target.home, {})

    after = get_job(db, job.seq)
    assert (after.state, after.losses, after.attempts, after.worker_id) == (State.PENDING, 1, 0, None)
    assert "its worker was lost" in note
    assert get_worker(db).state == "lost"
    assert bell.rings == 1


def test_a_loss_is_a_run_on_record(db: Database, target: Target) -> None:
    job = add_job(db)
    claim_one(db, add_dead_worker(db, target.home.run))

    rescue(db, target.home, {})

    (run,) = get_runs(db, job.seq)
    assert (run.run, run.outcome, run.worker_id, run.host) == (1, OutcomeKind.LOST, "w1", host_name())


def test_what_a_lost_run_had_printed_is_kept(db: Database, target: Target) -> None:
    job = add_job(db)
    claim_one(db, add_dead_worker(db, target.home.run))
    path = Path(log_path(target.home, job.seq, 1))
    path.parent.mkdir()
    path.write_bytes(b"begin" + b"x" * 20_000 + b"end")

    rescue(db, target.home, {"QUEUECTL_OUTPUT_TAIL_BYTES": "1KiB"})

    (run,) = get_runs(db, job.seq)
    assert (run.output_bytes, len(run.output_tail), run.output_tail[-4:]) == (20_008, 1_024, b"xend")
    assert run.output_file is not None
    assert Path(target.home.logs, run.output_file) == path


def test_the_lock_of_a_worker_that_was_given_up_is_removed(db: Database, target: Target) -> None:
    add_dead_worker(db, target.home.run)
    lock = Path(get_worker(db).lock_path)
    lock.touch()

    rescue(db, target.home, {})

    assert not lock.exists()


def test_the_second_loss_waits_and_the_third_buries(db: Database, target: Target) -> None:
    job = add_job(db)
    seen = []

    for turn, name in enumerate(("w1", "w2", "w3")):
        db.read_clock = FakeClock(now=NOW + turn * HOUR)
        db.write(moves.make_due)
        claim_one(db, add_dead_worker(db, target.home.run, name))
        rescue(db, target.home, {})
        after = get_job(db, job.seq)
        seen.append((after.state, after.run_at, after.losses, after.attempts))

    waited_for = NOW + HOUR + 4_000
    assert seen == [(State.PENDING, None, 1, 0), (State.FAILED, waited_for, 2, 0), (State.DEAD, waited_for, 3, 0)]
    assert get_job(db, job.seq).error == "its worker died 3 times while running it"


def test_a_lost_job_that_somebody_cancelled_is_not_run_again(db: Database, target: Target) -> None:
    job = add_job(db)
    claim_one(db, add_dead_worker(db, target.home.run))
    cancel(db, [job.id], who="me")

    rescue(db, target.home, {})

    assert (get_job(db, job.seq).state, get_job(db, job.seq).losses) == (State.CANCELLED, 1)


def test_a_living_worker_keeps_its_job(db: Database, target: Target) -> None:
    job = add_job(db)
    lock = LifeLock(target.home, "w1")
    claim_one(db, add_worker(db, lock_path=lock.path, host=host_name()))

    notes = rescue(db, target.home, {})

    assert (notes, dead_here(db)) == ([], [])
    assert get_job(db, job.seq).state is State.PROCESSING
    lock.release()


def test_a_worker_of_another_host_is_left_alone(db: Database, target: Target) -> None:
    job = add_job(db)
    claim_one(db, add_worker(db, lock_path=f"{target.home.run}/w1.lock", host="elsewhere"))

    notes = rescue(db, target.home, {})

    assert notes == []
    assert (get_job(db, job.seq).state, get_worker(db).state) == (State.PROCESSING, "live")


def test_a_rescue_that_was_cut_off_is_finished_by_the_next(db: Database, target: Target) -> None:
    jobs = [add_job(db) for _ in range(3)]
    add_dead_worker(db, target.home.run)
    for _ in jobs:
        claim_one(db)
    db.write(lambda tx: workers.end(tx, "w1", workers.LOST))

    notes = rescue(db, target.home, {})

    assert len(notes) == 3
    assert {get_job(db, job.seq).state for job in jobs} == {State.PENDING}


def test_a_worker_that_ended_in_peace_and_still_holds_a_job_is_swept_too(db: Database, target: Target) -> None:
    job = add_job(db)
    claim_one(db, add_dead_worker(db, target.home.run))
    db.write(lambda tx: workers.end(tx, "w1"))

    rescue(db, target.home, {})

    assert get_job(db, job.seq).state is State.PENDING


def test_a_second_rescue_has_nothing_to_do(db: Database, target: Target) -> None:
    job = add_job(db)
    claim_one(db, add_dead_worker(db, target.home.run))
    rescue(db, target.home, {})

    assert rescue(db, target.home, {}) == []
    assert get_job(db, job.seq).losses == 1
