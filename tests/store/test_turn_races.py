"""A worker's turn reads the lanes first and claims last; what others do to a queue in between holds all the same."""

from collections.abc import Callable

import pytest

from queuectl.actions.connect import Target
from queuectl.actions.control import pause_queue
from queuectl.actions.gatekeeping import set_queue
from queuectl.actions.settle import Holder, Step, settle_and_claim
from queuectl.actions.submit import submit
from queuectl.model.attempt import Report
from queuectl.model.job import JobSpec
from queuectl.model.verdict import Outcome
from queuectl.store import groups
from queuectl.store.database import Database
from queuectl.store.takers import Taker
from tests.program import wait_for
from tests.store.racing import ON_POSTGRES, Side
from tests.store.rows import HOST, add_worker

HOLDER = Holder(taker=Taker(worker_id="w1"), host=HOST)


def turn_that_waits(
    db: Database, target: Target, monkeypatch: pytest.MonkeyPatch, meanwhile: Callable[[], object]
) -> Step:
    """Settle a job of a group that somebody holds, and do something to its queue before they let go."""
    add_worker(db)
    submit(db, [JobSpec(command="true", group="g", on_group_done="true", queue="slow")], who="me", environ={})
    (first,) = settle_and_claim(db, HOLDER, (), 1, {}).claimed
    submit(db, [JobSpec(command="true", queue="slow")] * 5, who="me", environ={})
    other = Side(target, lambda side: side.write(lambda tx: groups.hold(tx, ["g"])))
    done = Report(outcome=Outcome.exited(0))
    worker = Side(target, lambda side: settle_and_claim(side, HOLDER, [(first, done)], 4, {}))
    other.hold(monkeypatch)
    worker.start()
    wait_for(lambda: worker.is_waiting() or None, "the worker to wait")
    meanwhile()
    other.end()
    step: Step = worker.end()
    other.close()
    worker.close()
    return step


@ON_POSTGRES
def test_a_queue_that_is_paused_while_a_settle_waits_gives_nothing_to_the_claim_after_it(
    db: Database, target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = turn_that_waits(db, target, monkeypatch, lambda: pause_queue(db, "slow", who="me"))

    assert (len(step.settled), step.claimed) == (1, ())


@ON_POSTGRES
def test_a_queue_that_is_limited_while_a_settle_waits_gives_no_more_than_that(
    db: Database, target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = turn_that_waits(db, target, monkeypatch, lambda: set_queue(db, "slow", {"concurrency": 1}, who="me"))

    assert [claim.job.queue for claim in step.claimed].count("slow") == 1


def test_a_worker_with_many_slots_fills_them_all_at_once(db: Database) -> None:
    add_worker(db)
    submit(db, [JobSpec(command="true")] * 801, who="me", environ={})

    step = settle_and_claim(db, HOLDER, (), 800, {})

    assert [claim.job.seq for claim in step.claimed] == list(range(1, 801))
