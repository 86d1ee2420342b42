"""Heartbeat and identity: a process is in the store while it lives, and learns when it was given up."""

import os
import select
import time
from collections.abc import Callable

import pytest

from queuectl import clock
from queuectl.actions.connect import Target
from queuectl.errors import StoreUnreachable
from queuectl.model.duty import Duty
from queuectl.runtime import heartbeat
from queuectl.runtime.heartbeat import Heartbeat
from queuectl.runtime.identity import Identity, new_id
from queuectl.runtime.loop import Loop
from queuectl.store import workers
from queuectl.store.database import Database, Tx
from queuectl.system.liveness import read_note
from tests.program import DEADLINE_S, wait_for


def registered(db: Database, target: Target) -> Identity:
    """Register this process as a worker."""
    target.home.make()
    return Identity(
        db,
        target.home,
        new_id(),
        kind=workers.WORKER,
        supervisor_id=None,
        duty=Duty(queues=("a",)),
        slots=3,
        lease_s=60,
    )


def row_of_tx(tx: Tx, identity: Identity) -> workers.Worker:
    row = workers.get(tx, identity.id)
    assert row is not None
    return row


def row_of(db: Database, identity: Identity) -> workers.Worker:
    return db.read(lambda tx: row_of_tx(tx, identity))


def test_a_registered_process_has_a_row_and_a_lock(db: Database, target: Target) -> None:
    identity = registered(db, target)

    row = row_of(db, identity)

    assert (row.state, row.pid, row.queue_list, row.slots) == ("live", os.getpid(), ["a"], 3)
    assert os.path.exists(row.lock_path)
    identity.end()


def test_the_end_closes_the_row_and_gives_the_lock_back(db: Database, target: Target) -> None:
    identity = registered(db, target)
    lock_path = row_of(db, identity).lock_path

    identity.end()

    row = row_of(db, identity)
    assert (row.state, row.ended_at is not None, os.path.exists(lock_path)) == ("ended", True, False)


def test_a_living_process_beats_from_the_start(db: Database, target: Target) -> None:
    identity = registered(db, target)
    beating = Heartbeat(target, identity, 0.05, 60, Loop())

    beating.start()
    wait_for(lambda: row_of(db, identity).beats >= 3 or None, "three beats")
    beating.stop()

    assert not beating.is_given_up
    identity.end()


def test_a_process_given_up_for_dead_learns_of_it(db: Database, target: Target) -> None:
    identity = registered(db, target)
    beating = Heartbeat(target, identity, 0.05, 60, Loop())
    beating.start()
    wait_for(lambda: row_of(db, identity).beats or None, "a beat")

    # One that beats in that moment is not given up.
    wait_for(lambda: db.write(lambda tx: workers.give_up(tx, row_of_tx(tx, identity))) or None, "it is given up")
    wait_for(lambda: beating.is_given_up or None, "the news")
    beating.stop()

    assert row_of(db, identity).state == "lost"
    identity.end()


def test_one_given_up_for_dead_is_woken_by_it(db: Database, target: Target) -> None:
    identity, loop = registered(db, target), Loop()
    beating = Heartbeat(target, identity, 0.05, 60, loop)
    beating.start()
    wait_for(lambda: row_of(db, identity).beats or None, "a beat")
    begun = time.monotonic()

    wait_for(lambda: db.write(lambda tx: workers.give_up(tx, row_of_tx(tx, identity))) or None, "it is given up")
    loop.turn(begun + DEADLINE_S)
    is_given_up, woken_s = beating.is_given_up, time.monotonic() - begun
    loop.turn(0)  # what rang is heard: it would keep the loop from ever waiting again
    beating.stop()

    assert is_given_up
    assert woken_s < DEADLINE_S
    assert select.select([loop.fileno()], [], [], 0)[0] == []
    identity.end()


def test_a_process_whose_main_loop_hangs_stops_beating(
    db: Database, target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heartbeat, "HUNG_AFTER_S", 0.3)
    identity, loop = registered(db, target), Loop()
    beating = Heartbeat(target, identity, 0.02, 60, loop)
    beating.start()

    def turn_and_look() -> int | None:
        loop.turn(0)  # the first beat may take longer than a loop may hang
        return row_of(db, identity).beats or None

    wait_for(turn_and_look, "a beat")
    wait_for(lambda: time.monotonic() - loop.turned_at > 0.5 or None, "the loop to hang")
    hung = row_of(db, identity).beats
    for _ in range(20):
        assert row_of(db, identity).beats == hung
    loop.turn(0)
    wait_for(lambda: row_of(db, identity).beats > hung or None, "another beat")
    beating.stop()

    assert not beating.is_given_up
    identity.end()


@pytest.mark.parametrize("target", ["postgres"], indirect=True)
def test_a_process_whose_lease_ran_out_does_not_beat_before_it_is_told_to(db: Database, target: Target) -> None:
    identity = registered(db, target)
    beating = Heartbeat(target, identity, 0.02, 60, Loop())
    beating.renewed_at -= 61

    beating.start()
    wait_for(lambda: beating.has_lapsed or None, "the lapse")
    before = row_of(db, identity).beats
    beating.resume()
    wait_for(lambda: beating.is_renewed or None, "the renewal")
    beating.stop()

    assert (before, row_of(db, identity).beats > 0) == (0, True)
    identity.end()


@pytest.mark.parametrize("target", ["sqlite"], indirect=True)
def test_on_sqlite_there_is_no_lease_to_run_out(db: Database, target: Target) -> None:
    identity = registered(db, target)
    beating = Heartbeat(target, identity, 0.02, 60, Loop())
    beating.renewed_at -= 100_000

    beating.start()
    wait_for(lambda: row_of(db, identity).beats or None, "a beat")
    beating.stop()

    assert not beating.has_lapsed
    identity.end()


def test_a_beat_states_the_lease_that_is_wanted_now(db: Database, target: Target) -> None:
    identity = registered(db, target)
    beating = Heartbeat(target, identity, 0.02, 60, Loop())
    beating.follow(0.02, 20)

    beating.start()
    wait_for(lambda: beating.lease_s == 20 or None, "the lease")
    beating.stop()

    assert row_of(db, identity).lease_ms == 20_000
    assert read_note(identity.lock.path).lease_s == 20
    identity.end()


@pytest.mark.parametrize("target", ["postgres"], indirect=True)
def test_a_shorter_lease_counts_though_the_answer_to_the_beat_that_stated_it_was_lost(
    db: Database, target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    identity = registered(db, target)
    beating = Heartbeat(target, identity, 60, 60, Loop())
    beating.follow(60, 15)
    write = Database.write

    def lose(database: Database, work: Callable[[Tx], bool]) -> bool:
        write(database, work)
        raise StoreUnreachable("the answer was lost")

    monkeypatch.setattr(Database, "write", lose)
    with pytest.raises(StoreUnreachable):
        beating._renew(db, clock.boot_s())
    monkeypatch.undo()

    assert (row_of(db, identity).lease_ms, beating.lease_s, read_note(identity.lock.path).lease_s) == (15_000, 15, 15)
    identity.end()


def test_an_error_nobody_thought_of_does_not_end_the_heartbeat(
    db: Database, target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    identity = registered(db, target)
    beating = Heartbeat(target, identity, 0.02, 60, Loop())
    renew, tries = beating._renew, [0]

    def fail_once(database: Database, begun: float) -> None:
        tries[0] += 1
        if tries[0] == 1:
            raise OSError("too many open files")
        renew(database, begun)

    monkeypatch.setattr(beating, "_renew", fail_once)
    beating.start()
    wait_for(lambda: row_of(db, identity).beats or None, "a beat")
    beating.stop()

    identity.end()


def test_a_process_that_cannot_register_leaves_no_lock(
    db: Database, target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise StoreUnreachable("away")

    monkeypatch.setattr(workers, "insert", refuse)
    with pytest.raises(StoreUnreachable):
        registered(db, target)

    assert [name for name in os.listdir(target.home.run) if name.endswith(".lock") and name != "setup.lock"] == []
