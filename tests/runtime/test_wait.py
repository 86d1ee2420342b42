"""Waiting for jobs, from the inside: a revival, and a store that goes away meanwhile."""

import threading
from collections.abc import Sequence
from contextlib import closing

import pytest

from queuectl.actions import control
from queuectl.actions.connect import Target, connect
from queuectl.actions.submit import submit
from queuectl.errors import StoreUnreachable
from queuectl.model.job import JobSpec
from queuectl.model.states import State
from queuectl.runtime import wait
from queuectl.runtime.wait import wait_for_all
from queuectl.store import jobs
from queuectl.store.database import Tx


def submitted(target: Target, count: int) -> list[int]:
    with closing(connect(target)) as database:
        return [int(one) for one in submit(database, [JobSpec(command="true")] * count, who="me", environ={})]


def test_a_job_that_was_revived_while_others_ended_is_waited_for(target: Target) -> None:
    first, second = submitted(target, 2)
    with closing(connect(target)) as database, closing(connect(target)) as other:
        control.cancel(other, [str(first)], who="me")
        seen = threading.Event()
        states_of = jobs.states_by_number

        def look(tx: Tx, seqs: Sequence[int]) -> dict[int, State]:
            found = states_of(tx, seqs)
            if first not in seqs:
                seen.set()
            return found

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(jobs, "states_by_number", look)
            waiting = threading.Thread(target=lambda: results.append(wait_for_all(target, database, [first, second])))
            results: list[wait.Waited] = []
            waiting.start()
            assert seen.wait(100)
            control.retry(other, [str(first)], who="me")
            control.cancel(other, [str(second)], who="me")
            control.cancel(other, [str(first)], who="me")
            waiting.join(30)

    [waited] = results
    assert [job.state for job in waited.jobs] == [State.CANCELLED, State.CANCELLED]
    assert not waited.is_timed_out


def test_a_store_that_is_away_for_a_while_is_waited_for(target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    [seq] = submitted(target, 1)
    monkeypatch.setattr(wait, "TROUBLE_PAUSE_S", 0.01)
    troubles: list[str] = []
    with closing(connect(target)) as database:
        control.cancel(database, [str(seq)], who="me")
        states_of, failures = jobs.states_by_number, iter(range(3))

        def look(tx: Tx, seqs: Sequence[int]) -> dict[int, State]:
            if next(failures, None) is not None:
                raise StoreUnreachable("no answer")
            return states_of(tx, seqs)

        monkeypatch.setattr(jobs, "states_by_number", look)
        waited = wait_for_all(target, database, [seq], on_trouble=troubles.append)

    assert [job.state for job in waited.jobs] == [State.CANCELLED]
    assert troubles == ["no answer"]


def test_a_store_that_stays_away_is_an_error_at_the_end(target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    [seq] = submitted(target, 1)
    monkeypatch.setattr(wait, "TROUBLE_PAUSE_S", 0.01)

    def look(_tx: Tx, _seqs: Sequence[int]) -> dict[int, State]:
        raise StoreUnreachable("no answer")

    monkeypatch.setattr(jobs, "states_by_number", look)
    with closing(connect(target)) as database, pytest.raises(StoreUnreachable, match="no answer"):
        wait_for_all(target, database, [seq], timeout_s=0.05)
