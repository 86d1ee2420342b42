"""Watching for changes: woken by whoever changes a job, on both databases, and never kept waiting for ever."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from queuectl.actions import control
from queuectl.actions.connect import Target, connect
from queuectl.actions.settle import Holder, settle_and_claim
from queuectl.actions.submit import submit
from queuectl.model.job import JobSpec
from queuectl.runtime import bell, watch
from queuectl.runtime.watch import Watch
from queuectl.store.database import Database
from queuectl.store.postgres import PostgresDialect
from queuectl.store.takers import Taker
from tests.store.rows import add_worker

ENOUGH_S = 120.0


@pytest.fixture(autouse=True)
def _no_net_below(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nothing but a ring end a wait."""
    monkeypatch.setattr(bell, "NET_POLL_S", ENOUGH_S)
    monkeypatch.setattr(bell.NotifyBell, "poll_s", ENOUGH_S)
    monkeypatch.setattr(watch, "FIRST_LOOKS_S", ())


@contextmanager
def opened(target: Target) -> Iterator[Database]:
    database = connect(target)
    try:
        yield database
    finally:
        database.close()


def submit_one(database: Database) -> None:
    submit(database, [JobSpec(command="true")], who="me", environ={})


def claim_one(database: Database) -> None:
    add_worker(database, "w1")
    step = settle_and_claim(database, Holder(taker=Taker(worker_id="w1"), host="here"), [], 1, {})
    assert step.claimed


def cancel_one(database: Database) -> None:
    control.cancel(database, ["last"], who="me")


@pytest.mark.parametrize("change", [submit_one, claim_one, cancel_one])
def test_a_watcher_is_woken_when_a_job_changes(target: Target, change: Callable[[Database], None]) -> None:
    with opened(target) as database, opened(target) as other:
        submit_one(other)
        with Watch(target, database) as watching:
            change(other)

            began = time.monotonic()
            is_changed = watching.wait(began + ENOUGH_S)

            assert is_changed
            assert time.monotonic() - began < ENOUGH_S / 2


def test_a_watcher_that_sleeps_already_is_woken(target: Target) -> None:
    with opened(target) as database, Watch(target, database) as watching:
        done = threading.Event()

        def submit_later() -> None:
            with opened(target) as other:
                done.wait(0.1)
                submit_one(other)

        thread = threading.Thread(target=submit_later)
        thread.start()
        began = time.monotonic()
        watching.wait(began + ENOUGH_S)
        thread.join()

        assert time.monotonic() - began < ENOUGH_S / 2


def test_a_watcher_wakes_at_the_time_it_names(target: Target) -> None:
    with opened(target) as database, Watch(target, database) as watching:
        began = time.monotonic()
        is_changed = watching.wait(began + 0.05)

        assert not is_changed
        assert time.monotonic() - began < ENOUGH_S / 2


def test_short_waits_do_not_put_off_the_look_that_nobody_rings_for(
    target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "FIRST_LOOKS_S", (0.2,))
    with opened(target) as database, Watch(target, database) as watching:
        began = time.monotonic()
        while not watching.wait(time.monotonic() + 0.01):
            assert time.monotonic() - began < ENOUGH_S / 2


def test_a_watcher_leaves_no_row_behind(target: Target) -> None:
    with opened(target) as database:
        with Watch(target, database):
            pass

        assert database.read(lambda tx: tx.rows("SELECT id FROM watchers")) == []


@pytest.mark.parametrize("target", ["postgres"], indirect=True)
def test_watches_on_one_connection_do_not_pile_up(target: Target) -> None:
    with opened(target) as database:
        assert isinstance(database.dialect, PostgresDialect)
        for _ in range(3):
            with Watch(target, database):
                pass

        channels = database.read(lambda tx: tx.rows("SELECT pg_listening_channels()"))
        assert (len(database.dialect.connection._notify_handlers), channels) == (0, [])
