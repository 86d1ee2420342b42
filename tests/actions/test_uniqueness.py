"""Unique keys: who has one and for how long, and what becomes of the second job that asks for it."""

from collections.abc import Callable

import pytest

from queuectl.actions import control
from queuectl.actions.submit import Entry, Fate, enter
from queuectl.actions.uniqueness import REPLACED_WORDS
from queuectl.actions.upkeep import prune, retention
from queuectl.errors import BadInput, Refused
from queuectl.model.after import EdgeState, Kind, Parent
from queuectl.model.job import Claim, Job, JobSpec
from queuectl.model.states import State
from queuectl.model.verdict import Outcome
from queuectl.settings import resolve
from queuectl.store import audit, edges, groups, jobs, unique_keys
from queuectl.store.database import Database
from tests.store.rows import NOW, FakeClock, add_worker, claim_one, get_job, settle_run

HOUR = 3_600_000


def spec(
    given_id: str | None = None, *, key: str | None = "k", on_conflict: str | None = None, **fields: object
) -> JobSpec:
    """Return a job with a key."""
    after = fields.pop("after", ())
    parents = tuple(Parent(kind=Kind.OK, id=name) for name in after)  # type: ignore[attr-defined]
    given = JobSpec(command="true", given_id=given_id, unique_key=key, on_conflict=on_conflict, after=parents)
    return given.replace(**{"max_retries": 0, **fields})


def hand_in(db: Database, *specs: JobSpec) -> list[Entry]:
    return enter(db, specs, who="me", environ={})


def add(db: Database, given: JobSpec) -> Job:
    [entry] = hand_in(db, given)
    assert entry.fate is Fate.ADDED
    return get_job(db, entry.seq)


def holder(db: Database, key: str = "k") -> int | None:
    return db.read(lambda tx: unique_keys.holder(tx, key))


def settle(db: Database, code: int) -> Claim:
    claim = claim_one(db)
    settle_run(db, claim, Outcome.exited(code))
    return claim


@pytest.fixture
def db(db: Database) -> Database:
    """A store with a worker, at a fixed time."""
    db.read_clock = FakeClock()
    add_worker(db)
    return db


def pending(db: Database) -> Job:
    return add(db, spec("first"))


def scheduled(db: Database) -> Job:
    return add(db, spec("first", delay_ms=HOUR))


def held(db: Database) -> Job:
    return add(db, spec("first", hold=True))


def waiting(db: Database) -> Job:
    add(db, spec("parent", key=None, hold=True))
    return add(db, spec("first", after=["parent"]))


def parked(db: Database) -> Job:
    add(db, spec("other", key=None, mutexes=("m",)))
    claim_one(db)
    return add(db, spec("first", mutexes=("m",)))


def failed(db: Database) -> Job:
    job = add(db, spec("first", max_retries=3))
    settle(db, 1)
    return job


def processing(db: Database) -> Job:
    job = add(db, spec("first"))
    claim_one(db)
    return job


def within_the_window(db: Database) -> Job:
    job = add(db, spec("first", unique_for_ms=HOUR))
    settle(db, 0)
    db.read_clock = FakeClock(now=NOW + HOUR - 1)
    return job


def running_beyond_the_window(db: Database) -> Job:
    job = add(db, spec("first", unique_for_ms=HOUR))
    claim_one(db)
    db.read_clock = FakeClock(now=NOW + 5 * HOUR)
    return job


HOLDERS: dict[str, tuple[Callable[[Database], Job], State]] = {
    "pending": (pending, State.PENDING),
    "scheduled": (scheduled, State.SCHEDULED),
    "held": (held, State.BLOCKED),
    "waiting": (waiting, State.BLOCKED),
    "parked": (parked, State.BLOCKED),
    "failed": (failed, State.FAILED),
    "processing": (processing, State.PROCESSING),
    "completed within the window": (within_the_window, State.COMPLETED),
    "running beyond the window": (running_beyond_the_window, State.PROCESSING),
}


@pytest.mark.parametrize("who", HOLDERS)
def test_attach_gives_the_job_that_has_the_key_and_adds_nothing(db: Database, who: str) -> None:
    make, state = HOLDERS[who]
    first = make(db)
    before = db.read(lambda tx: jobs.count_matching(tx, jobs.Filter()))

    for given in (spec("second"), spec(on_conflict="attach")):
        [entry] = hand_in(db, given)
        assert (entry.seq, entry.id, entry.fate) == (first.seq, "first", Fate.ATTACHED)

    assert get_job(db, first.seq).state is state
    assert db.read(lambda tx: jobs.count_matching(tx, jobs.Filter())) == before


@pytest.mark.parametrize("who", HOLDERS)
def test_skip_adds_nothing(db: Database, who: str) -> None:
    make, state = HOLDERS[who]
    first = make(db)
    before = db.read(lambda tx: (jobs.count_matching(tx, jobs.Filter()), len(audit.newest(tx, 99))))

    [entry] = hand_in(db, spec("second", on_conflict="skip"))

    assert (entry.seq, entry.fate) == (first.seq, Fate.SKIPPED)
    assert get_job(db, first.seq).state is state
    assert db.read(lambda tx: (jobs.count_matching(tx, jobs.Filter()), len(audit.newest(tx, 99)))) == before


@pytest.mark.parametrize("who", HOLDERS)
def test_error_refuses_the_whole_batch(db: Database, who: str) -> None:
    make, state = HOLDERS[who]
    first = make(db)
    before = db.read(lambda tx: jobs.count_matching(tx, jobs.Filter()))

    with pytest.raises(Refused, match="job first has the key 'k'") as refused:
        hand_in(db, spec(key=None), spec("second", on_conflict="error"))

    assert "queuectl show first; nothing was added" in refused.value.hint
    assert get_job(db, first.seq).state is state
    assert db.read(lambda tx: jobs.count_matching(tx, jobs.Filter())) == before


@pytest.mark.parametrize("who", HOLDERS)
def test_replace_adds_the_job_and_ends_the_other_unless_it_has_ended(db: Database, who: str) -> None:
    make, state = HOLDERS[who]
    first = make(db)

    [entry] = hand_in(db, spec("second", on_conflict="replace"))

    second, old = get_job(db, entry.seq), get_job(db, first.seq)
    assert (entry.id, entry.fate, holder(db)) == ("second", Fate.ADDED, entry.seq)
    if state is State.PROCESSING:
        assert (old.state, old.cancel_requested) == (State.PROCESSING, 1)
        assert (second.state, second.waits_for) == (State.BLOCKED, 1)
    elif state is State.COMPLETED:
        assert (old.state, second.state) == (State.COMPLETED, State.PENDING)
    else:
        assert (old.state, old.error, second.state) == (State.CANCELLED, REPLACED_WORDS, State.PENDING)


def completed(db: Database) -> Job:
    job = add(db, spec("first"))
    settle(db, 0)
    return job


def dead(db: Database) -> Job:
    job = add(db, spec("first", unique_for_ms=HOUR))
    settle(db, 1)
    return job


def cancelled(db: Database) -> Job:
    job = add(db, spec("first", unique_for_ms=HOUR))
    control.cancel(db, ["first"], who="me")
    return job


def starved(db: Database) -> Job:
    add(db, spec("parent", key=None, hold=True))
    job = add(db, spec("first", after=["parent"]))
    control.cancel(db, ["parent"], who="me")
    return job


def deleted(db: Database) -> Job:
    job = add(db, spec("first"))
    control.delete(db, ["first"], who="me")
    return job


def deleted_within_the_window(db: Database) -> Job:
    job = within_the_window(db)
    control.delete(db, ["first"], who="me")
    return job


def pruned_within_the_window(db: Database) -> Job:
    job = add(db, spec("first", unique_for_ms=365 * 24 * HOUR))
    settle(db, 0)
    db.read_clock = FakeClock(now=NOW + 30 * 24 * HOUR)
    prune(db, retention(resolve({}, {})[0]), who="me")
    assert db.read(lambda tx: jobs.get(tx, job.seq)) is None
    return job


def after_the_window(db: Database) -> Job:
    job = within_the_window(db)
    db.read_clock = FakeClock(now=NOW + HOUR)
    return job


FREE = [
    completed, dead, cancelled, starved, deleted, deleted_within_the_window, after_the_window,
]  # fmt: skip


def test_a_job_that_was_pruned_within_its_window_stands_for_others_as_one_that_completed(db: Database) -> None:
    first = pruned_within_the_window(db)

    entries = hand_in(db, spec("second"), spec("child", key=None, after=["second"]))
    if_it_fails = spec("other", key=None).replace(after=(Parent(kind=Kind.FAIL, id="third"),))
    with pytest.raises(BadInput, match="stands for a job that completed"):
        hand_in(db, spec("third"), if_it_fails)

    assert [(entry.id, entry.fate, entry.is_removed) for entry in entries] == [
        (str(first.seq), Fate.ATTACHED, True),
        ("child", Fate.ADDED, False),
    ]
    assert get_job(db, entries[1].seq).state is State.PENDING


@pytest.mark.parametrize("policy", [None, "attach", "skip", "replace", "error"])
@pytest.mark.parametrize("make", FREE, ids=lambda make: make.__name__)
def test_a_key_that_nobody_has_is_taken_whatever_the_policy(
    db: Database, make: Callable[[Database], Job], policy: str | None
) -> None:
    make(db)

    [entry] = hand_in(db, spec("second", on_conflict=policy))

    assert (entry.id, entry.fate, holder(db)) == ("second", Fate.ADDED, entry.seq)


def test_the_one_that_replaces_a_running_job_runs_when_that_has_stopped_and_keeps_the_key(db: Database) -> None:
    add(db, spec("first"))
    claim = claim_one(db)
    [second] = hand_in(db, spec("second", on_conflict="replace"))

    settle_run(db, claim, Outcome.cancelled())

    assert get_job(db, second.seq).state is State.PENDING
    assert holder(db) == second.seq
    [third] = hand_in(db, spec("third"))
    assert (third.id, third.fate) == ("second", Fate.ATTACHED)


def test_one_that_replaces_the_replacement_waits_for_the_running_job_as_well(db: Database) -> None:
    add(db, spec("first"))
    claim = claim_one(db)
    hand_in(db, spec("second", on_conflict="replace"))

    [third] = hand_in(db, spec("third", on_conflict="replace"))

    assert get_job(db, third.seq).state is State.BLOCKED
    settle_run(db, claim, Outcome.cancelled())
    assert get_job(db, third.seq).state is State.PENDING


def test_two_keys_do_not_know_of_each_other(db: Database) -> None:
    fates = [entry.fate for entry in hand_in(db, spec(key="a"), spec(key="b"), spec(key="A"), spec(key="a "))]

    assert fates == [Fate.ADDED] * 4


# Several in one batch.


def test_of_a_batch_the_first_is_added_and_the_others_attach(db: Database) -> None:
    entries = hand_in(db, spec("a"), spec("b"), spec(key=None), spec("c", on_conflict="skip"))

    assert [(entry.id, entry.fate) for entry in entries] == [
        ("a", Fate.ADDED),
        ("a", Fate.ATTACHED),
        ("2", Fate.ADDED),
        ("a", Fate.SKIPPED),
    ]


def test_of_a_batch_the_last_that_replaces_is_added(db: Database) -> None:
    entries = hand_in(db, spec("a"), spec("b", on_conflict="replace"))

    assert [(entry.id, entry.fate) for entry in entries] == [("b", Fate.ATTACHED), ("b", Fate.ADDED)]
    assert db.read(lambda tx: jobs.find(tx, "a")) is None


def test_a_batch_with_one_key_twice_and_error_is_refused(db: Database) -> None:
    with pytest.raises(Refused, match="two of these jobs have the key 'k'"):
        hand_in(db, spec(), spec(on_conflict="error"))

    assert db.read(lambda tx: jobs.count_matching(tx, jobs.Filter())) == 0


def parents_of(db: Database, seq: int) -> dict[str, EdgeState]:
    return {link.id: link.edge_state for link in db.read(lambda tx: edges.parents_of(tx, seq))}


@pytest.mark.parametrize("policy", ["attach", "skip"])
def test_who_runs_after_a_job_that_is_not_added_runs_after_the_one_that_stands_for_it(
    db: Database, policy: str
) -> None:
    add(db, spec("first"))

    *_, child = hand_in(db, spec("second", on_conflict=policy), spec("child", key=None, after=["second"]))

    assert parents_of(db, child.seq) == {"first": EdgeState.WAITING}


def test_who_runs_after_a_twin_of_its_batch_runs_after_the_one_that_stands_for_it(db: Database) -> None:
    *_, child = hand_in(db, spec("a"), spec("b"), spec("child", key=None, after=["a", "b"]))

    assert parents_of(db, child.seq) == {"a": EdgeState.WAITING}


def test_who_runs_after_a_job_that_attached_to_one_that_completed_is_ready(db: Database) -> None:
    within_the_window(db)

    *_, child = hand_in(db, spec("second"), spec("child", key=None, after=["second"]))

    assert get_job(db, child.seq).state is State.PENDING


def test_a_job_that_attaches_does_not_count_in_its_group(db: Database) -> None:
    add(db, spec("first", group="g"))

    hand_in(db, spec("second", group="g"))

    group = db.read(lambda tx: groups.get(tx, "g"))
    assert group is not None
    assert group.jobs == 1


def test_an_id_that_is_taken_does_not_matter_to_a_job_that_attaches(db: Database) -> None:
    add(db, spec("nightly"))

    [entry] = hand_in(db, spec("nightly"))

    assert (entry.id, entry.fate) == ("nightly", Fate.ATTACHED)


# Revival.


@pytest.mark.parametrize("make", [completed, dead, cancelled], ids=lambda make: make.__name__)
def test_a_revival_takes_the_key_again(db: Database, make: Callable[[Database], Job]) -> None:
    first = make(db)

    control.retry(db, ["first"], who="me")

    assert holder(db) == first.seq
    [entry] = hand_in(db, spec())
    assert entry.fate is Fate.ATTACHED


@pytest.mark.parametrize("make", [completed, dead, cancelled], ids=lambda make: make.__name__)
def test_a_revival_is_refused_while_another_has_the_key(db: Database, make: Callable[[Database], Job]) -> None:
    first = make(db)
    add(db, spec("second"))
    before = get_job(db, first.seq)

    with pytest.raises(Refused, match="job second has the key 'k' of job first now") as refused:
        control.retry(db, ["first"], who="me")

    assert "queuectl wait second" in refused.value.hint
    assert get_job(db, first.seq) == before
    control.cancel(db, ["second"], who="me")
    control.retry(db, ["first"], who="me")
    assert holder(db) == first.seq


def test_a_completed_job_with_a_window_is_retried_within_it(db: Database) -> None:
    first = within_the_window(db)

    control.retry(db, ["first"], who="me")

    assert (holder(db), get_job(db, first.seq).state) == (first.seq, State.PENDING)


def test_of_a_starved_job_that_lost_its_key_nothing_comes_back_with_its_parent(db: Database) -> None:
    first = starved(db)
    add(db, spec("second"))

    control.retry(db, ["parent"], who="me")

    assert get_job(db, first.seq).state is State.CANCELLED
