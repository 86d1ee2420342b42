"""Export and import of jobs that run after each other, have keys and form groups: nothing is lost on the way."""

import json

import pytest

from queuectl.actions import control
from queuectl.actions.landing import Rules
from queuectl.actions.submit import Fate, enter, submit
from queuectl.errors import BadInput, Refused
from queuectl.model.after import EdgeState, Kind, Parent
from queuectl.model.job import Job, JobSpec
from queuectl.model.states import State
from queuectl.model.verdict import Outcome
from queuectl.store import edges, groups, jobs, unique_keys
from queuectl.store.database import Database
from tests.actions.moving import RENUMBER, SKIP, bring, lines_of
from tests.store.rows import NOW, FakeClock, add_worker, claim_one, get_job, settle_run

HOUR = 3_600_000
DONE, FAILED = State.COMPLETED, State.DEAD


def add(db: Database, *specs: JobSpec) -> list[Job]:
    """Add jobs in one batch and return them."""
    return [get_job(db, entry.seq) for entry in enter(db, specs, who="me", environ={})]


def a_job(given_id: str | None = None, *after: str, **fields: object) -> JobSpec:
    """Return a job that is to run after others: `a`, `any:b`."""
    parents = tuple(
        Parent(kind=Kind(kind or "ok"), id=name) for kind, _, name in (text.rpartition(":") for text in after)
    )
    return JobSpec(command="true", given_id=given_id, after=parents, max_retries=0, **fields)  # type: ignore[arg-type]


def end(db: Database, job: Job, state: State) -> None:
    """Let a job run and end so."""
    claim = claim_one(db)
    assert claim.job.seq == job.seq
    settle_run(db, claim, Outcome.exited(0 if state is DONE else 1))


def links(db: Database, job_id: str) -> dict[str, tuple[Kind, EdgeState]]:
    """Return what a job runs after, by what those are called."""
    seq = seq_of(db, job_id)
    return {link.id: (link.kind, link.edge_state) for link in db.read(lambda tx: edges.parents_of(tx, seq))}


def seq_of(db: Database, job_id: str) -> int:
    job = db.read(lambda tx: jobs.find(tx, job_id))
    assert job is not None
    return job.seq


def named(db: Database, job_id: str) -> Job:
    return get_job(db, seq_of(db, job_id))


@pytest.fixture
def db(db: Database) -> Database:
    """A store with a worker, at a fixed time."""
    db.read_clock = FakeClock()
    add_worker(db)
    return db


@pytest.fixture(autouse=True)
def at_the_same_time(other: Database) -> None:
    """Let both stores read the same clock."""
    other.read_clock = FakeClock()
    add_worker(other)


def fill(db: Database) -> None:
    """Add a graph with edges of every kind in every state, keys that are held and that expire, and groups."""
    done, dead, *_ = add(db, a_job("done"), a_job("dead"))
    end(db, done, DONE)
    end(db, dead, FAILED)
    add(
        db,
        a_job("child", "later", "done", "fail:dead"),
        a_job("later", "any:root"),
        a_job("root"),
        a_job("kept", "dead", on_dead="keep"),
        a_job("starved", "dead"),
        a_job("free", "any:dead", delay_ms=HOUR),
    )
    add(db, a_job("key-held", unique_key="held", hold=True), a_job("key-both", "root", unique_key="b", unique_for_ms=5))
    (window,) = add(db, a_job("key-window", unique_key="window", unique_for_ms=HOUR, priority=9))
    end(db, window, DONE)
    (again,) = add(db, a_job("key-again", unique_key="plain", priority=9))
    end(db, again, DONE)
    add(db, a_job("key-taker", unique_key="plain", hold=True))
    stopped = add(db, *(a_job(f"s{n}", group="stopped", max_failures="0", priority=5) for n in range(3)))
    end(db, stopped[0], FAILED)
    over = add(db, a_job("o1", group="over", on_group_done="echo over", priority=5))
    end(db, over[0], DONE)
    add(db, a_job("g1", group="open", on_group_done="echo open", max_failures="10%", hold=True))


def test_a_graph_with_keys_and_groups_comes_out_as_it_went_in(db: Database, other: Database) -> None:
    fill(db)
    before = lines_of(db)

    done = bring(other, before)

    assert lines_of(other)[1:] == before[1:]
    assert (done.groups, done.held) == (3, 0)
    for job_id in ("child", "later", "root", "kept", "starved", "free", "key-both"):
        assert links(other, job_id) == links(db, job_id), job_id
        ours, theirs = named(db, job_id), named(other, job_id)
        assert theirs == ours.replace(lane_id=theirs.lane_id), job_id
    assert other.read(groups.all_groups) == db.read(groups.all_groups)
    for key in ("held", "b", "window", "plain"):
        holders = [store.read(lambda tx, key=key: unique_keys.holder(tx, key)) for store in (db, other)]  # type: ignore[misc]
        assert holders[0] == holders[1] is not None, key


def test_under_fresh_numbers_everybody_waits_for_the_same_jobs(db: Database, other: Database) -> None:
    submit(other, [JobSpec(command="own", queue="elsewhere")] * 5, who="me", environ={})
    fill(db)

    bring(other, lines_of(db), RENUMBER)

    for job_id in ("child", "later", "root", "kept", "starved", "free", "key-both"):
        assert links(other, job_id) == links(db, job_id), job_id
        ours, theirs = named(db, job_id), named(other, job_id)
        assert theirs == ours.replace(lane_id=theirs.lane_id, seq=theirs.seq), job_id
        assert theirs.seq != ours.seq
    assert other.read(lambda tx: unique_keys.holder(tx, "held")) == seq_of(other, "key-held")


def test_a_graph_that_moved_runs_on_in_its_order(db: Database, other: Database) -> None:
    add(db, a_job("end", "a", "b"), a_job("a"), a_job("b", "any:a"))
    bring(other, lines_of(db), RENUMBER)

    order = []
    for _ in range(3):
        claim = claim_one(other)
        order.append(claim.job.given_id)
        settle_run(other, claim, Outcome.exited(0))

    assert order == ["a", "b", "end"]


def test_a_job_that_waits_for_one_that_did_not_come_is_held(db: Database, other: Database) -> None:
    add(db, a_job("root", queue="left"), a_job("child", "root"), a_job("grandchild", "child"))
    wanted = jobs.Filter(queue="default")

    done = bring(other, lines_of(db, wanted))

    assert (done.held, done.held_ids) == (1, ("child",))
    child, grandchild = named(other, "child"), named(other, "grandchild")
    assert (child.state, child.held_at, child.waits_for) == (State.BLOCKED, NOW, 0)
    assert (grandchild.state, grandchild.held_at, grandchild.waits_for) == (State.BLOCKED, None, 1)
    control.release(other, ["child"], who="me")
    assert named(other, "child").state is State.PENDING


def test_a_satisfied_tie_to_a_job_that_did_not_come_is_dropped(db: Database, other: Database) -> None:
    (root,) = add(db, a_job("root", queue="left"))
    add(db, a_job("child", "root"))
    end(db, root, DONE)

    done = bring(other, lines_of(db, jobs.Filter(queue="default")))

    assert (named(other, "child").state, links(other, "child"), done.held) == (State.PENDING, {}, 0)


def test_a_starved_job_whose_parent_did_not_come_stays_cancelled_and_can_be_retried(
    db: Database, other: Database
) -> None:
    (root,) = add(db, a_job("root", queue="left"))
    add(db, a_job("child", "root"))
    end(db, root, FAILED)

    bring(other, lines_of(db, jobs.Filter(queue="default")))

    child = named(other, "child")
    assert (child.state, child.waits_for) == (State.CANCELLED, 0)
    control.retry(other, ["child"], who="me")
    assert named(other, "child").state is State.PENDING


def test_a_parent_that_was_being_stopped_starves_its_children_when_it_comes_in(db: Database, other: Database) -> None:
    add(db, a_job("root", group="g", on_group_done="echo over"), a_job("child", "root"), a_job("after", "any:root"))
    claim_one(db)
    control.cancel(db, ["root"], who="me")

    bring(other, lines_of(db))

    states = [named(other, job_id).state for job_id in ("root", "child", "after")]
    assert states == [State.CANCELLED, State.CANCELLED, State.PENDING]
    assert "which it was to run after, is cancelled" in (named(other, "child").error or "")
    [closing] = other.read(lambda tx: jobs.newest(tx, jobs.Filter(), 1))
    assert closing.command == "echo over"


def test_a_child_waits_for_the_job_that_is_there_already(db: Database, other: Database) -> None:
    add(db, a_job("root"))
    bring(other, lines_of(db))
    add(db, a_job("child", "root"), a_job("free", "root", on_dead="run"))
    control.cancel(other, ["root"], who="me")

    done = bring(other, lines_of(db), SKIP)

    assert (done.jobs, done.skipped) == (2, 1)
    assert (named(other, "child").state, named(other, "free").state) == (State.CANCELLED, State.PENDING)
    control.retry(other, ["root"], who="me")
    assert (named(other, "child").state, named(other, "child").waits_for) == (State.BLOCKED, 1)


def test_a_key_that_is_taken_refuses_all_and_passing_by_leaves_it_to_its_owner(db: Database, other: Database) -> None:
    (owner,) = add(other, a_job("owner", unique_key="k", hold=True))
    add(db, a_job("mine", unique_key="k"), a_job("child", "mine"), a_job("x"))
    lines = lines_of(db)

    for rules in (Rules(), RENUMBER):
        with pytest.raises(Refused, match=r"key 'k' is taken|number 1 is taken") as refused:
            bring(other, lines, rules)
        assert "--skip-existing" in refused.value.hint
        assert other.read(lambda tx: jobs.count_matching(tx, jobs.Filter())) == 1

    done = bring(other, lines, Rules(skip_existing=True, renumber=True))

    assert (done.jobs, done.skipped, done.skipped_ids) == (2, 1, ("mine",))
    assert links(other, "child") == {"owner": (Kind.OK, EdgeState.WAITING)}
    assert other.read(lambda tx: unique_keys.holder(tx, "k")) == owner.seq


def test_a_finished_job_comes_in_without_its_key_where_that_is_taken(db: Database, other: Database) -> None:
    (mine,) = add(db, a_job("mine", unique_key="k", unique_for_ms=HOUR))
    end(db, mine, DONE)
    (owner,) = add(other, a_job("owner", unique_key="k"))

    bring(other, lines_of(db), RENUMBER)

    assert named(other, "mine").state is DONE
    assert other.read(lambda tx: unique_keys.holder(tx, "k")) == owner.seq


@pytest.mark.parametrize("later_ms, fate", [(HOUR - 1, Fate.ATTACHED), (HOUR, Fate.ADDED)])
def test_a_key_expires_at_the_time_it_would_have_expired_at(
    db: Database, other: Database, later_ms: int, fate: Fate
) -> None:
    (mine,) = add(db, a_job("mine", unique_key="k", unique_for_ms=HOUR))
    end(db, mine, DONE)
    bring(other, lines_of(db))

    other.read_clock = FakeClock(now=NOW + later_ms)
    [entry] = enter(other, [a_job(unique_key="k")], who="me", environ={})

    assert entry.fate is fate


def test_a_group_that_is_there_keeps_its_rules_and_counts_the_jobs_that_come(db: Database, other: Database) -> None:
    add(db, *(a_job(f"theirs{n}", group="g", max_failures="5") for n in range(3)))
    add(other, a_job("ours", group="g", max_failures="1", on_group_done="echo over", queue="own"))
    control.cancel(other, ["ours"], who="me")
    assert other.read(lambda tx: groups.get(tx, "g").done_at) is not None  # type: ignore[union-attr]

    done = bring(other, lines_of(db), RENUMBER)

    group = other.read(lambda tx: groups.get(tx, "g"))
    assert group is not None
    assert (group.jobs, group.max_failures, group.done_at, done.groups) == (4, "1", None, 0)


def test_a_group_whose_line_did_not_come_is_made_for_its_jobs(db: Database, other: Database) -> None:
    add(db, a_job("a", group="g"), a_job("b", group="g"))

    bring(other, lines_of(db, jobs.Filter(group="g")))

    group = other.read(lambda tx: groups.get(tx, "g"))
    assert group is not None
    assert (group.jobs, group.done_at) == (2, None)


def test_a_circle_in_a_file_is_refused(db: Database, other: Database) -> None:
    a, b = add(db, a_job("a", "b"), a_job("b"))
    lines = []
    for line in lines_of(db):
        shape = json.loads(line)
        if shape.get("id") == "b":
            shape |= {"state": "blocked", "after": [{"job": a.seq, "kind": "ok", "state": "waiting"}]}
        lines.append(json.dumps(shape).encode())

    with pytest.raises(BadInput, match=rf"in a circle: {a.seq} -> {b.seq} -> {a.seq}"):
        bring(other, lines)

    assert other.read(lambda tx: jobs.count_matching(tx, jobs.Filter())) == 0
