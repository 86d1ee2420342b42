"""Gatekeeping: what is set for queues and limits is in force for the next claim, on record, and refused in time."""

from collections.abc import Iterator

import pytest

from queuectl.actions import control
from queuectl.actions.connect import Target
from queuectl.actions.gatekeeping import QueueSet, delete_limit, delete_queue, set_limit, set_queue
from queuectl.actions.submit import submit
from queuectl.errors import BadInput, NotFound, Refused
from queuectl.model.job import JobSpec
from queuectl.model.states import FINAL, State
from queuectl.model.verdict import Outcome
from queuectl.store import claims, lanes, limits, overview, queues
from queuectl.store.database import Database
from queuectl.store.takers import Taker
from tests.actions.bells import Bell
from tests.store.racing import ON_POSTGRES, Race
from tests.store.rows import (
    NOW,
    SECOND,
    FakeClock,
    add_job,
    add_worker,
    claim_one,
    get_job,
    last_act,
    settle_run,
)

TRUE = JobSpec(command="true")
LIMITED = JobSpec(command="true", limits=("api",))


@pytest.fixture
def race(target: Target, monkeypatch: pytest.MonkeyPatch) -> Iterator[Race]:
    race = Race(target, monkeypatch)
    yield race
    race.close()


def put(db: Database, *specs: JobSpec) -> list[str]:
    return submit(db, specs, who="me", environ={})


def take(db: Database, wanted: int = 10) -> list[int]:
    """Return the numbers of the jobs that a worker may start now."""
    taken = db.write(lambda tx: claims.claim(tx, Taker(worker_id="w1"), wanted).claims)
    return [claim.job.seq for claim in taken]


def configure(db: Database, name: str = "default", **fields: object) -> QueueSet:
    return set_queue(db, name, fields, who="me")


# Queues.


def test_a_concurrency_is_in_force_for_the_next_claim_and_so_is_its_end(db: Database) -> None:
    add_worker(db)
    put(db, *[TRUE] * 5)

    configure(db, concurrency=2)
    assert take(db) == [1, 2]
    configure(db, concurrency=3)
    assert take(db) == [3]
    configure(db, concurrency=1)
    assert take(db) == []
    configure(db, concurrency=None)
    assert take(db) == [4, 5]


def test_a_rate_is_in_force_for_the_next_claim_and_a_new_one_forgets_what_the_old_forbade(db: Database) -> None:
    db.read_clock = FakeClock()
    add_worker(db)
    put(db, *[TRUE] * 5)

    configure(db, rate="10/m")
    assert (take(db), take(db)) == ([1], [])
    configure(db, rate="20/m")
    assert (take(db), take(db)) == ([2], [])
    db.read_clock = FakeClock(now=NOW + 3 * SECOND)
    assert take(db) == [3]
    configure(db, rate="none")
    assert take(db) == [4, 5]


def test_setting_the_rate_it_has_lets_no_job_start_early(db: Database) -> None:
    db.read_clock = FakeClock()
    add_worker(db)
    put(db, TRUE, TRUE)
    configure(db, rate="10/m")
    take(db)

    configure(db, rate="10/m", concurrency=5)

    assert take(db) == []


def test_setting_says_what_differs_is_on_record_and_wakes_idle_workers(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    bell = Bell(db, monkeypatch)

    made = configure(db, "mail", concurrency=4, rate="10/m", timeout="90s")
    assert (made.is_new, bell.taken()) == (True, 1)
    assert made.changes == {"concurrency": (None, 4), "rate": (None, "10/m"), "timeout": (None, 90.0)}
    assert last_act(db)[1:] == (
        "queue set", "mail (concurrency none -> 4, rate none -> 10/m, timeout none -> 1m30s)", 1
    )  # fmt: skip

    changed = configure(db, "mail", concurrency=2, rate=None, max_retries=0)
    assert (changed.is_new, bell.taken()) == (False, 1)
    assert changed.changes == {"concurrency": (4, 2), "rate": ("10/m", None), "max_retries": (None, 0)}
    assert last_act(db)[2] == "mail (concurrency 4 -> 2, rate 10/m -> none, max_retries none -> 0)"

    same = configure(db, "mail", concurrency=2)
    assert (same.changes, bell.taken(), last_act(db)) == ({}, 0, ("me", "queue set", "mail", 0))


def test_what_cannot_be_set_makes_no_queue(db: Database) -> None:
    for fields in ({}, {"concurrency": 0}, {"concurrency": 3, "rate": "often"}):
        with pytest.raises(BadInput):
            set_queue(db, "mail", fields, who="me")

    assert db.read(lambda tx: queues.get(tx, "mail")) is None


@ON_POSTGRES
def test_a_claim_under_way_cannot_write_the_next_start_of_a_rate_that_was_replaced(
    target: Target, db: Database, race: Race
) -> None:
    """Guard: the lock of the queue in set_queue."""
    add_worker(db)
    put(db, TRUE, TRUE)
    configure(db, rate="1/d")

    race(take, lambda other: configure(other, rate="1000/s"))

    assert race.did_second_wait
    assert take(db) == [2]


# What a job gets from its queue.


def test_a_job_gets_what_it_does_not_say_from_its_queue_when_it_is_added(db: Database) -> None:
    put(db, TRUE)
    configure(db, timeout="5m", max_retries=7, priority=3)
    put(db, TRUE, TRUE.replace(queue="other"))
    configure(db, timeout=None, max_retries=None, priority=None)
    put(db, TRUE)

    got = [(job.timeout_ms, job.max_retries, job.priority) for job in (get_job(db, seq) for seq in (1, 2, 3, 4))]

    assert got == [(None, 3, 0), (300_000, 7, 3), (None, 3, 0), (None, 3, 0)]


def test_a_zero_is_said_by_a_job_and_by_a_queue_alike(db: Database) -> None:
    configure(db, timeout="5m", max_retries=7, priority=3)
    configure(db, "zero", timeout=0, max_retries=0, priority=0)
    control.set_setting(db, "job_timeout", "60", who="me")

    put(db, TRUE.replace(timeout_ms=0, max_retries=0, priority=0), TRUE.replace(queue="zero"))

    got = [(job.timeout_ms, job.max_retries, job.priority) for job in (get_job(db, seq) for seq in (1, 2))]
    assert got == [(0, 0, 0), (0, 0, 0)]


# Deleting queues.


def test_an_empty_queue_goes_with_its_lanes_and_what_was_set_for_it(db: Database) -> None:
    job = int(put(db, TRUE.replace(queue="mail", needs=("gpu",)))[0])
    configure(db, "mail", concurrency=1)
    control.delete(db, [str(job)], who="me")

    delete_queue(db, "mail", who="me")

    assert db.read(lambda tx: (queues.get(tx, "mail"), lanes.lanes_of(tx, ["mail"]))) == (None, [])
    assert last_act(db) == ("me", "queue delete", "mail", 1)
    add_worker(db)
    put(db, TRUE.replace(queue="mail"), TRUE.replace(queue="mail"))
    assert take(db) == [job + 1, job + 2]


@pytest.mark.parametrize("state", State)
def test_a_queue_that_holds_a_job_in_any_state_stays(db: Database, state: State) -> None:
    add_job(db, state, queue="mail")

    with pytest.raises(Refused, match=f"queue mail holds 1 job: 1 {state}") as refused:
        delete_queue(db, "mail", who="me")

    assert refused.value.hint.startswith("remove them: queuectl delete --queue mail")
    assert db.read(lambda tx: queues.get(tx, "mail")) is not None


def test_a_queue_that_is_not_there_is_not_found_and_the_nearest_named(db: Database) -> None:
    configure(db, "mail", concurrency=1)

    with pytest.raises(NotFound, match="no queue 'mial'; did you mean 'mail'"):
        delete_queue(db, "mial", who="me")


@ON_POSTGRES
def test_a_queue_a_job_is_just_being_added_to_stays(target: Target, db: Database, race: Race) -> None:
    """Guard: keep_out in delete_queue; without it the job stands in a lane that is gone, and never runs."""
    configure(db, "mail", concurrency=5)

    def delete(other: Database) -> str:
        try:
            delete_queue(other, "mail", who="me")
        except Refused as error:
            return error.message
        return "deleted"

    _, said = race(lambda other: put(other, TRUE.replace(queue="mail")), delete)

    assert (race.did_second_wait, said) == (True, "queue mail holds 1 job: 1 pending")
    add_worker(db)
    assert take(db) == [1]


@ON_POSTGRES
def test_a_job_added_while_its_queue_is_being_deleted_makes_it_anew(
    target: Target, db: Database, race: Race, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(db, "mail", concurrency=5)

    def delete(other: Database) -> None:
        monkeypatch.setattr(other, "read", lambda _look: None)  # so that its one commit is that of the deletion
        delete_queue(other, "mail", who="me")

    race(delete, lambda other: put(other, TRUE.replace(queue="mail")))

    queue = db.read(lambda tx: queues.get(tx, "mail"))
    assert queue is not None
    assert (race.did_second_wait, queue.concurrency) == (True, None)
    add_worker(db)
    assert take(db) == [1]


# Limits.


def test_a_limit_is_made_raised_and_lowered_with_effect_at_once(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    add_worker(db)
    assert set_limit(db, "api", 1, who="me").before is None
    put(db, *[LIMITED] * 6)
    bell = Bell(db, monkeypatch)
    assert take(db) == [1]

    raised = set_limit(db, "api", 3, who="me")
    assert (raised.before, raised.slots, raised.released, bell.taken()) == (1, 3, 2, 1)
    assert last_act(db) == ("me", "limit set", "api 1 -> 3", 1)
    assert take(db) == [2, 3]

    lowered = set_limit(db, "api", 1, who="me")
    assert (lowered.released, get_job(db, 3).state) == (0, State.PROCESSING)
    assert take(db) == []


def test_nothing_with_a_limit_of_zero_starts_until_it_is_raised(db: Database) -> None:
    add_worker(db)
    set_limit(db, "api", 0, who="me")
    put(db, LIMITED, LIMITED, TRUE)

    assert take(db) == [3]
    assert set_limit(db, "api", 5, who="me").released == 2
    assert take(db) == [1, 2]


@pytest.mark.parametrize("slots", [-1, 10**7, "many", 1.5, True, None])
def test_a_bad_number_of_slots_makes_no_limit(db: Database, slots: object) -> None:
    with pytest.raises(BadInput, match="slots"):
        set_limit(db, "api", slots, who="me")

    assert db.read(limits.all_limits) == []


@pytest.mark.parametrize("state", [state for state in State if state not in FINAL])
def test_a_limit_that_a_job_names_which_is_not_over_stays(db: Database, state: State) -> None:
    set_limit(db, "api", 1, who="me")
    job = add_job(db, state, limits='["limit:api", "mutex:db"]')

    with pytest.raises(Refused, match=f"limit api is named by jobs that are not over: {job.seq}$"):
        delete_limit(db, "api", who="me")

    assert db.read(lambda tx: limits.get(tx, "api")) is not None


def test_a_limit_goes_when_the_jobs_that_name_it_are_over(db: Database) -> None:
    set_limit(db, "api", 1, who="me")
    set_limit(db, "ap", 1, who="me")
    add_job(db, State.DEAD, limits='["limit:api"]')
    add_job(db, State.PENDING, limits='["limit:apis", "mutex:api"]')

    delete_limit(db, "api", who="me")

    assert [limit.name for limit in db.read(limits.all_limits)] == ["ap"]
    assert last_act(db) == ("me", "limit delete", "api", 1)


def test_a_limit_that_is_not_there_is_not_found(db: Database) -> None:
    with pytest.raises(NotFound, match="no limit 'api'"):
        delete_limit(db, "api", who="me")


@ON_POSTGRES
def test_a_limit_a_job_that_is_just_being_added_names_stays(target: Target, db: Database, race: Race) -> None:
    """Guard: the lock of the limit in delete_limit."""
    set_limit(db, "api", 1, who="me")

    def delete(other: Database) -> str:
        try:
            delete_limit(other, "api", who="me")
        except Refused as error:
            return error.message
        return "deleted"

    _, said = race(lambda other: put(other, LIMITED), delete)

    assert (race.did_second_wait, said) == (True, "limit api is named by jobs that are not over: 1")


@ON_POSTGRES
def test_a_job_that_names_a_limit_which_is_just_being_deleted_is_refused(
    target: Target, db: Database, race: Race
) -> None:
    """Guard: submit looks for the limit after it has locked it."""
    set_limit(db, "api", 1, who="me")

    def add(other: Database) -> str:
        try:
            put(other, LIMITED)
        except BadInput as error:
            return error.message
        return "added"

    _, said = race(lambda other: delete_limit(other, "api", who="me"), add)

    assert (race.did_second_wait, said) == (True, "no limit 'api'")


# What is seen of them.


def test_a_limit_is_seen_with_who_holds_it_and_who_is_next(db: Database) -> None:
    add_worker(db)
    set_limit(db, "api", 2, who="me")
    put(db, *[LIMITED] * 3, LIMITED.replace(priority=5, queue="mail"), TRUE.replace(mutexes=("db",)))
    put(db, TRUE.replace(mutexes=("db",)))
    assert take(db) == [4, 1, 5]

    view = db.read(lambda tx: overview.limit(tx, "limit:api"))
    assert view is not None
    assert (view.kind, view.slots, view.held, view.waiting) == ("limit", 2, 2, 2)
    assert sorted(job.id for job in view.holders) == ["1", "4"]
    assert view.next == ("2", "3")
    mutex = db.read(lambda tx: overview.limit(tx, "mutex:db"))
    assert mutex is not None
    assert ([job.id for job in mutex.holders], mutex.next, mutex.slots) == (["5"], ("6",), 1)
    seen = [(each.kind, each.name, each.slots, each.held, each.waiting) for each in db.read(overview.all_limits)]
    assert seen == [("limit", "api", 2, 2, 2), ("mutex", "db", 1, 1, 1)]


def test_a_mutex_that_is_free_is_not_listed(db: Database) -> None:
    add_worker(db)
    put(db, TRUE.replace(mutexes=("db",)))
    settle_run(db, claim_one(db), Outcome.exited(0))

    assert db.read(overview.all_limits) == []
    assert db.read(lambda tx: overview.limit(tx, "limit:db")) is None


def test_a_queue_is_seen_with_what_is_in_it(db: Database) -> None:
    db.read_clock = FakeClock()
    add_worker(db)
    put(db, TRUE, TRUE.replace(priority=9, needs=("gpu",)), TRUE.replace(priority=9), TRUE.replace(queue="other"))
    configure(db, concurrency=1)
    assert take(db, 1) == [3]

    view = db.read(lambda tx: overview.queue(tx, "default"))

    assert view is not None
    assert (view.running, view.counts) == (1, {State.PENDING: 2, State.PROCESSING: 1})
    assert [(lane.needs.labels, lane.ready) for lane in view.lanes] == [((), 1), (("gpu",), 1)]
    assert view.oldest is not None
    assert view.oldest.id == "1"
    assert db.read(lambda tx: overview.queue(tx, "nosuch")) is None


def oldest_of(db: Database) -> int | None:
    """Return the number of the job that has been ready for longest."""
    job = db.read(lambda tx: overview.oldest_by_queue(tx, ["default"])).get("default")
    return None if job is None else job.seq


def test_the_oldest_ready_job_is_the_one_that_has_been_ready_for_longest(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(overview, "RETRIED_PAGE", 2)
    assert oldest_of(db) is None

    retried = [add_job(db, created_at=10, updated_at=900) for _ in range(5)]
    assert oldest_of(db) == retried[0].seq

    longest = add_job(db, created_at=20, updated_at=90)
    for created_at, updated_at in ((100, 100), (30, 95), (200, 50)):
        add_job(db, created_at=created_at, updated_at=updated_at)
    assert oldest_of(db) == longest.seq

    urgent = add_job(db, priority=7, created_at=80, updated_at=80)
    low = add_job(db, priority=-7, created_at=40, updated_at=70)
    assert oldest_of(db) == low.seq
    db.write(lambda tx: tx.changed("DELETE FROM jobs WHERE seq = :seq", {"seq": low.seq}))
    assert oldest_of(db) == urgent.seq


def test_of_very_many_retried_jobs_the_first_is_the_oldest(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overview, "RETRIED_PAGE", 2)
    monkeypatch.setattr(overview, "MOST_RETRIED", 4)
    retried = [add_job(db, created_at=10, updated_at=900) for _ in range(9)]

    assert oldest_of(db) == retried[0].seq
