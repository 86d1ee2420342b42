"""Lanes: which a worker may take from, what it gets of its resources, and how queues share its time."""

import pytest

from queuectl.actions.disuse import forget_needs
from queuectl.actions.settle import settle
from queuectl.actions.submit import submit
from queuectl.errors import BadInput
from queuectl.model.attempt import Report
from queuectl.model.duty import read_duty
from queuectl.model.job import JobSpec
from queuectl.model.needs import Supply
from queuectl.model.states import State
from queuectl.model.verdict import Outcome
from queuectl.store import claims, lanes, limits, queues
from queuectl.store.database import Database
from queuectl.store.gates import UNITS_PATIENCE_MS
from queuectl.store.lanes import LONGEST_CLAIM_MS
from queuectl.store.parking import PATIENCE_MS
from queuectl.store.takers import Taker
from tests.store.rows import HOST, NOW, FakeClock, add_worker, get_job

SPEC = JobSpec(command="true")
TWO_GPUS = Supply(resources={"gpu": 2})


@pytest.fixture(autouse=True)
def _workers(db: Database) -> None:
    db.read_clock = FakeClock()
    for name in ("w1", "w2"):
        add_worker(db, name)


def add(db: Database, *specs: JobSpec) -> None:
    submit(db, specs, who="me", environ={})


def take(db: Database, taker: Taker, wanted: int = 1) -> list[int]:
    """Claim and return the numbers of what was taken."""
    return [claim.job.seq for claim in db.write(lambda tx: claims.claim(tx, taker, wanted)).claims]


def test_only_a_worker_with_every_label_takes_the_job(db: Database) -> None:
    add(db, SPEC.replace(needs=("gpu", "linux")))

    lacking = take(db, Taker(worker_id="w1", supply=Supply(labels=("gpu",))))
    having = take(db, Taker(worker_id="w2", supply=Supply(labels=("linux", "big", "gpu"))))

    assert (lacking, having) == ([], [1])


def test_a_job_that_nobody_can_take_keeps_no_other_waiting(db: Database) -> None:
    add(db, SPEC.replace(needs=("gpu",), priority=9), SPEC)

    assert take(db, Taker(worker_id="w1")) == [2]


def test_workers_that_share_resources_get_different_units(db: Database) -> None:
    db.write(lambda tx: tx.changed("UPDATE workers SET supervisor_id = 's'"))
    add(db, *[SPEC.replace(use={"gpu": 1})] * 3)

    taken = [take(db, Taker(worker_id=name, supply=TWO_GPUS, group="s")) for name in ("w1", "w2", "w1")]

    assert taken == [[1], [2], []]
    assert [get_job(db, seq).unit_map for seq in (1, 2)] == [{"gpu": [0]}, {"gpu": [1]}]


def test_what_a_dead_supervisor_s_workers_still_hold_is_not_given_again_on_their_host(db: Database) -> None:
    db.write(lambda tx: tx.changed("UPDATE workers SET supervisor_id = 'gone' WHERE id = 'w1'"))
    add(db, *[SPEC.replace(use={"gpu": 1})] * 3)
    take(db, Taker(worker_id="w1", supply=TWO_GPUS, group="gone"))

    taken = take(db, Taker(worker_id="w2", supply=TWO_GPUS, group="new"), 3)

    assert taken == [2]
    assert get_job(db, 2).unit_map == {"gpu": [1]}


def test_an_amount_is_shared_as_long_as_it_lasts(db: Database) -> None:
    add(db, *[SPEC.replace(use={"mem": 3 << 30})] * 3)

    taken = take(db, Taker(worker_id="w1", supply=Supply(resources={"mem": 8 << 30})), 3)

    assert taken == [1, 2]
    assert get_job(db, 1).unit_map == {"mem": 3 << 30}
    assert get_job(db, 3).state is State.PENDING


def test_one_that_wants_more_than_is_free_gets_it_before_others_once_it_has_waited(db: Database) -> None:
    taker = Taker(worker_id="w1", supply=TWO_GPUS)
    add(db, SPEC.replace(use={"gpu": 1}))
    take(db, taker)
    add(db, SPEC.replace(use={"gpu": 2}), SPEC.replace(use={"gpu": 1}), SPEC)

    db.read_clock = FakeClock(now=NOW + UNITS_PATIENCE_MS)
    late = take(db, taker, 2)

    assert late == [4]


def test_while_it_has_not_waited_long_others_pass_it(db: Database) -> None:
    taker = Taker(worker_id="w1", supply=TWO_GPUS)
    add(db, SPEC.replace(use={"gpu": 1}))
    take(db, taker)
    add(db, SPEC.replace(use={"gpu": 2}), SPEC.replace(use={"gpu": 1}))

    assert take(db, taker, 2) == [3]


def test_queues_share_a_worker_by_weight_and_priority_decides_within_one(db: Database) -> None:
    add(db, *[SPEC.replace(queue="b")] * 4, *[SPEC.replace(queue="a")] * 4, SPEC.replace(queue="a", priority=5))
    duty = read_duty(["a:3", "b:1"])
    taker = Taker(worker_id="w1", queues=duty.queues, turns=duty.turns)

    order = []
    for _ in range(9):
        assert taker.turns is not None
        (seq,) = take(db, taker)
        order.append(get_job(db, seq))
        taker = taker.replace(turns=taker.turns.after([order[-1].queue]))

    assert [job.queue for job in order[:4]].count("b") == 1
    assert next(job for job in order if job.queue == "a").priority == 5
    assert [job.queue for job in order[-2:]] == ["b"] * 2


def test_without_weights_priority_alone_decides(db: Database) -> None:
    add(db, *[SPEC.replace(queue="b")] * 2, *[SPEC.replace(queue="a", priority=1)] * 2)

    assert take(db, Taker(worker_id="w1", queues=("a", "b")), 4) == [3, 4, 1, 2]


def test_a_limit_with_many_slots_is_filled_by_the_claims_that_follow(db: Database) -> None:
    db.write(lambda tx: limits.put(tx, "big", 450))
    add(db, *[SPEC.replace(limits=("big",))] * 500)

    taken = [len(take(db, Taker(worker_id="w1"), 100)) for _ in range(6)]

    assert taken == [100, 100, 100, 100, 50, 0]


def test_a_rate_lets_one_start_and_says_when_the_next_may(db: Database) -> None:
    add(db, SPEC, SPEC)
    db.write(lambda tx: queues.change(tx, "default", {"rate_count": 10, "rate_period_ms": 60_000}))

    first = db.write(lambda tx: claims.claim(tx, Taker(worker_id="w1"), 2))
    db.read_clock = FakeClock(now=NOW + 5_999)
    early = db.write(lambda tx: claims.claim(tx, Taker(worker_id="w2"), 2))
    db.read_clock = FakeClock(now=NOW + 6_000)
    due = db.write(lambda tx: claims.claim(tx, Taker(worker_id="w2"), 2))

    assert [len(taken.claims) for taken in (first, early, due)] == [1, 0, 1]
    assert (first.opens_at, early.opens_at) == (NOW + 6_000, NOW + 6_000)


def test_needs_that_no_job_has_any_more_are_forgotten(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queues, "MAX_NEEDS", 3)
    add(db, *(SPEC.replace(use={"mem": 2000 + number}) for number in range(3)))
    with pytest.raises(BadInput, match="3 different needs"):
        add(db, SPEC.replace(needs=("gpu",)))
    db.write(lambda tx: tx.changed("DELETE FROM jobs WHERE seq < 3"))

    spared, forgotten = forget_needs(db, spared=3), forget_needs(db, spared=0)
    add(db, SPEC.replace(needs=("gpu",)))

    assert (spared, forgotten) == (0, 2)
    assert len([lane for lane in db.read(lanes.all_lanes) if lane.needs]) == 2


def test_a_job_that_nobody_serves_keeps_no_other_from_a_free_mutex(db: Database) -> None:
    add(db, SPEC.replace(mutexes=("m",), queue="served"))
    taker = Taker(worker_id="w1", queues=("served",))
    db.write(lambda tx: tx.changed("UPDATE workers SET queues = '[\"served\"]'"))
    (claim,) = db.write(lambda tx: claims.claim(tx, taker, 1)).claims
    add(db, *(SPEC.replace(mutexes=("m",), needs=(f"label{number}",), priority=9) for number in range(20)))
    add(db, SPEC.replace(mutexes=("m",), queue="served"))

    db.write(lambda tx: settle(tx, claim, Report(outcome=Outcome.exited(0)), HOST, {}))

    assert take(db, taker) == [22]


def test_one_that_needs_two_limits_is_not_outrun_for_ever(db: Database) -> None:
    singles = [SPEC.replace(mutexes=(name,)) for name in "abababab"]
    add(db, *singles[:2])
    taker = Taker(worker_id="w1")
    running = list(db.write(lambda tx: claims.claim(tx, taker, 9)).claims)
    add(db, SPEC.replace(mutexes=("a", "b")), *singles[2:])

    started = []
    for turn in range(8):
        db.read_clock = FakeClock(now=NOW + PATIENCE_MS + turn)
        ended = running.pop(0)
        db.write(lambda tx, ended=ended: settle(tx, ended, Report(outcome=Outcome.exited(0)), HOST, {}))  # type: ignore[misc]
        taken = db.write(lambda tx: claims.claim(tx, taker, 1)).claims
        running += taken
        started += [claim.job.seq for claim in taken]

    assert started[:2].count(3) == 1
    assert sorted(started) == [3, 4, 5, 6, 7, 8, 9]


def test_a_clock_that_is_set_back_does_not_shut_a_queue_with_a_rate(db: Database) -> None:
    add(db, SPEC, SPEC)
    db.write(lambda tx: queues.change(tx, "default", {"rate_count": 10, "rate_period_ms": 60_000}))
    take(db, Taker(worker_id="w1"))

    db.read_clock = FakeClock(now=NOW - LONGEST_CLAIM_MS)
    waited = take(db, Taker(worker_id="w1"))
    db.read_clock = FakeClock(now=NOW - LONGEST_CLAIM_MS - 1)
    after = take(db, Taker(worker_id="w1"))

    assert (waited, after) == ([], [2])
