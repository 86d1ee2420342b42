"""Dependencies: what the end of a job does to those that run after it, by kind and policy, and what undoes that."""

import re
from collections.abc import Callable
from itertools import pairwise, product
from typing import Any

import pytest

from queuectl.actions import control, verbs
from queuectl.actions.acts import act_on_each, act_on_many, choose
from queuectl.actions.deadlines import expire_overdue
from queuectl.actions.edit import edit
from queuectl.actions.selection import Selection
from queuectl.actions.submit import Fate
from queuectl.actions.upkeep import Rule, prune
from queuectl.errors import BadInput, NotFound, Refused
from queuectl.model.after import is_met
from queuectl.model.edit import edit_from_fields
from queuectl.model.states import FINAL, State
from queuectl.model.verdict import Outcome
from queuectl.store import edges, jobs, limits
from queuectl.store.database import Database, Tx
from queuectl.store.jobs import Filter
from tests.actions.graphing import (
    FAILED,
    OK,
    add,
    edges_of,
    is_ready,
    job_of,
    run,
    spec,
    start,
    state_of,
    states,
)
from tests.store.rows import NOW, SECOND, FakeClock, add_worker, settle_run

KINDS = ("ok", "any", "fail")
POLICIES = ("cancel", "keep", "run")
MINUTE = 60 * SECOND


@pytest.fixture
def worker(db: Database) -> Database:
    """A store with a worker, in which time stands still."""
    db.read_clock = FakeClock()
    add_worker(db)
    return db


def change(db: Database, job_id: str, **fields: object) -> None:
    edit(db, [job_id], edit_from_fields(fields, NOW), who="me")


def retry(db: Database, *job_ids: str) -> None:
    control.retry(db, job_ids, who="me")


def retry_with_dependents(db: Database, *job_ids: str) -> None:
    act_on_each(db, job_ids, verbs.RETRY_WITH_DEPENDENTS, who="me")


def end(db: Database, job_id: str, state: State) -> None:
    """Bring a ready job to a final state."""
    if state is State.CANCELLED:
        control.cancel(db, [job_id], who="me")
    else:
        run(db, job_id, outcome=OK if state is State.COMPLETED else FAILED)
    assert state_of(db, job_id) is state


def expected(kind: str, policy: str, state: State) -> tuple[State, str]:
    """Return what a child is, and what its edge is, when its one parent ended in a state."""
    if is_met(kind, state) or policy == "run":
        return State.PENDING, "satisfied"
    return (State.BLOCKED, "waiting") if policy == "keep" else (State.CANCELLED, "broken")


# How a parent ends, and what its child makes of it


@pytest.mark.parametrize("state", sorted(FINAL))
def test_the_end_of_a_parent_does_to_each_kind_of_child_what_its_policy_says(worker: Database, state: State) -> None:
    every = list(product(KINDS, POLICIES))
    children = [spec(f"{kind}-{policy}", f"{kind}:p", on_dead_dependency=policy) for kind, policy in every]
    add(worker, spec("p"), *children, spec("plain", "p"))
    assert states(worker, *(f"{kind}-{policy}" for kind, policy in every)).split() == ["blocked"] * len(every)

    end(worker, "p", state)

    for kind, policy in every:
        name = f"{kind}-{policy}"
        assert (state_of(worker, name), edges_of(worker, name)["p"]) == expected(kind, policy, state), name
    assert state_of(worker, "plain") is expected("ok", "cancel", state)[0]


@pytest.mark.parametrize("state", sorted(FINAL))
def test_a_parent_that_has_ended_already_does_the_same_at_once(worker: Database, state: State) -> None:
    add(worker, spec("p"))
    end(worker, "p", state)

    for kind, policy in product(KINDS, POLICIES):
        name = f"{kind}-{policy}"
        [entry] = add(worker, spec(name, f"{kind}:p", on_dead_dependency=policy))

        wanted = expected(kind, policy, state)
        assert (state_of(worker, name), edges_of(worker, name)["p"]) == wanted, name
        note = f"warning: job {name} is cancelled already: job p, which it was to run after, is {state}"
        assert (entry.fate, entry.note) == (Fate.ADDED, note if wanted[0] is State.CANCELLED else None), name


@pytest.mark.parametrize("state", sorted(set(State) - FINAL))
def test_a_parent_in_any_other_state_is_waited_for_whatever_the_kind(worker: Database, state: State) -> None:
    fields: dict[State, dict[str, object]] = {
        State.SCHEDULED: {"delay": 60}, State.BLOCKED: {"hold": True}, State.FAILED: {"max_retries": 1},
    }  # fmt: skip
    add(worker, spec("p", **fields.get(state, {})))
    if state is State.FAILED:
        run(worker, "p", outcome=FAILED)
    if state is State.PROCESSING:
        start(worker, "p")
    assert state_of(worker, "p") is state

    add(worker, *(spec(kind, f"{kind}:p") for kind in KINDS))

    assert states(worker, *KINDS) == "blocked blocked blocked"
    assert not any(is_ready(worker, kind) for kind in KINDS)


def test_a_starved_job_says_which_one_took_it_along_and_takes_along_what_runs_after_it(worker: Database) -> None:
    add(worker, spec("p"), spec("c", "p"), spec("d", "c"), spec("e", "any:c"), spec("f", "fail:d"))

    run(worker, "p", outcome=FAILED)

    assert states(worker, "c", "d", "e", "f") == "cancelled cancelled pending pending"
    assert job_of(worker, "c").error == "job p, which it was to run after, is dead"
    assert job_of(worker, "d").error == "job c, which it was to run after, is cancelled"
    assert job_of(worker, "c").starved_at == job_of(worker, "c").finished_at == NOW


def test_a_run_that_fails_and_is_tried_again_has_not_ended(worker: Database) -> None:
    add(worker, spec("p", max_retries=1), spec("ok", "p"), spec("fail", "fail:p"))

    run(worker, "p", outcome=FAILED)
    between = states(worker, "p", "ok", "fail")
    worker.read_clock = FakeClock(now=NOW + MINUTE)
    run(worker, "p", outcome=OK)

    assert between == "failed blocked blocked"
    assert states(worker, "ok", "fail") == "pending cancelled"


# Shapes of graphs


def test_a_job_with_many_parents_runs_when_the_last_of_them_has_ended(worker: Database) -> None:
    names = [f"p{number}" for number in range(12)]
    add(worker, *(spec(name) for name in names), spec("all", names))

    run(worker, *names[:-1])
    before = is_ready(worker, "all")
    run(worker, names[-1])

    assert (before, is_ready(worker, "all")) == (False, True)


def test_kinds_may_be_mixed(worker: Database) -> None:
    add(worker, spec("a"), spec("b"), spec("c"), spec("d", "a,any:b,fail:c"))

    end(worker, "a", State.COMPLETED)
    end(worker, "b", State.CANCELLED)
    before = state_of(worker, "d")
    end(worker, "c", State.DEAD)

    assert (before, state_of(worker, "d")) == (State.BLOCKED, State.PENDING)


def test_one_broken_dependency_cancels_a_job_whatever_the_others_come_to(worker: Database) -> None:
    add(worker, spec("a"), spec("b"), spec("c", "a,b"))

    run(worker, "a", outcome=FAILED)
    run(worker, "b")

    assert state_of(worker, "c") is State.CANCELLED
    assert edges_of(worker, "c") == {"a": "broken", "b": "satisfied"}


def test_the_end_of_a_diamond_runs_once_after_both_sides(worker: Database) -> None:
    add(worker, spec("top"), spec("left", "top"), spec("right", "top"), spec("end", "left,right"))

    run(worker, "top", "left")
    before = state_of(worker, "end")
    run(worker, "right", "end")

    assert before is State.BLOCKED
    assert job_of(worker, "end").run == 1


def test_thousands_of_children_are_let_go_by_one_end(worker: Database) -> None:
    count = 2_500
    add(worker, spec("hub"), *(spec(f"c{n}", "hub", queue="many") for n in range(count)), spec("sad", "fail:hub"))

    run(worker, "hub")

    many = worker.read(lambda tx: jobs.count_matching(tx, Filter(states=(State.PENDING,), queue="many")))
    assert (many, state_of(worker, "sad")) == (count, State.CANCELLED)


def test_a_job_may_run_after_thousands(worker: Database) -> None:
    names = [f"p{number}" for number in range(1_500)]
    add(worker, *(spec(name, queue="many") for name in names), spec("all", names))

    control.cancel(worker, names[:-1], who="me")

    assert state_of(worker, "all") is State.CANCELLED
    assert list(edges_of(worker, "all").values()).count("broken") == len(names) - 1


# Batches


def test_jobs_of_a_batch_may_name_each_other_in_any_order(worker: Database) -> None:
    add(worker, spec("before"))

    add(worker, spec("c", ["b", "any:before"]), spec("b", "a"), spec("a"))

    assert (edges_of(worker, "c"), edges_of(worker, "b")) == ({"before": "waiting", "b": "waiting"}, {"a": "waiting"})
    assert states(worker, "a", "b", "c") == "pending blocked blocked"


def test_a_batch_after_a_dead_job_is_cancelled_down_to_its_last(worker: Database) -> None:
    add(worker, spec("p"))
    end(worker, "p", State.DEAD)

    add(worker, spec("c", "b"), spec("b", "p"), spec("other"))

    assert states(worker, "b", "c", "other") == "cancelled cancelled pending"


@pytest.mark.parametrize("length", [1, 2, 3, 11, 40])
def test_a_circle_in_a_batch_is_refused_and_shown(worker: Database, length: int) -> None:
    names = [f"j{number}" for number in range(length)]
    circle = [spec(name, after) for name, after in pairwise([*names, names[0]])]

    with pytest.raises(BadInput, match="in a circle") as caught:
        add(worker, spec("fine"), *circle, spec("behind", names[0]))

    shown = re.findall(r"j\d+", caught.value.message)
    assert (shown[0], shown[-1]) == ("j0", "j0")
    assert ("..." in caught.value.message) == (length > 11)
    assert "nothing was added" in caught.value.hint
    assert worker.read(jobs.has_any) is False


def test_a_job_that_is_not_there_refuses_the_batch(worker: Database) -> None:
    with pytest.raises(NotFound, match="no job 'nobody'"):
        add(worker, spec("a"), spec("b", "a,nobody"))

    assert worker.read(jobs.has_any) is False


def test_a_parent_named_twice_in_two_ways_is_one_or_refused(worker: Database) -> None:
    add(worker, spec("p"))
    number = job_of(worker, "p").seq

    add(worker, spec("c", ["p", number, "last"]))
    with pytest.raises(BadInput, match="same job"):
        add(worker, spec("d", f"any:p,{number}"))

    assert edges_of(worker, "c") == {"p": "waiting"}


# Parents that are gone


def test_of_a_parent_that_is_gone_only_its_end_is_known(worker: Database) -> None:
    add(worker, spec("p"))
    number = job_of(worker, "p").seq
    end(worker, "p", State.COMPLETED)
    control.delete(worker, ["p"], who="me")

    add(worker, spec("any", f"any:{number}"))

    assert state_of(worker, "any") is State.PENDING
    for kind in ("ok", "fail"):
        with pytest.raises(NotFound, match=f"job {number} is gone") as caught:
            add(worker, spec(kind, f"{kind}:{number}"))
        assert f"any:{number}" in caught.value.hint
    with pytest.raises(NotFound, match="no job 'p'"):
        add(worker, spec("named", "any:p"))
    with pytest.raises(NotFound, match="no job '99999'"):
        add(worker, spec("future", "any:99999"))


def parents(db: Database, job_id: str) -> list[tuple[str, str]]:
    """Return what a job runs after, each with how that must end."""
    seq = job_of(db, job_id).seq
    return [(link.id, link.kind.value) for link in db.read(lambda tx: edges.parents_of(tx, seq))]


def test_a_range_of_numbers_stands_for_the_jobs_that_have_them(worker: Database) -> None:
    add(worker, *(spec(name) for name in "abcd"))
    control.delete(worker, ["b"], who="me")

    add(worker, spec("c1", "1-3"), spec("c2", "any:3-9,1"))

    assert parents(worker, "c1") == [("a", "ok"), ("c", "ok")]
    assert parents(worker, "c2") == [("a", "ok"), ("c", "any"), ("d", "any")]


def test_a_group_stands_for_the_jobs_it_has_by_then_and_those_of_the_same_batch(worker: Database) -> None:
    add(worker, spec("a", group="g"))

    add(worker, spec("end", "any:group:g"), spec("b", group="g"), spec("z", "group:g", group="g"))
    add(worker, spec("later", group="g"))

    assert parents(worker, "end") == [("a", "any"), ("b", "any"), ("z", "any")]
    assert parents(worker, "z") == [("a", "ok"), ("b", "ok")]
    run(worker, "a", "b", "z", "end")


@pytest.mark.parametrize(
    "after, error, told",
    [
        ("5-9", NotFound, "no job has a number in 5-9"),
        ("group:nobody", NotFound, "no job is of group 'nobody'"),
        ("9-5", BadInput, "ends before it begins"),
        ("1-1,any:1", BadInput, "1 and any:1 are the same job"),
    ],
)
def test_a_range_or_group_that_means_nobody_is_refused(
    worker: Database, after: str, error: type[Exception], told: str
) -> None:
    add(worker, spec("a"))

    with pytest.raises(error, match=told):
        add(worker, spec("c", after))

    assert worker.read(jobs.last_seq) == 1


def test_two_jobs_of_a_group_that_each_run_after_the_whole_of_it_are_a_circle(worker: Database) -> None:
    with pytest.raises(BadInput, match="circle: x -> y -> x"):
        add(worker, spec("x", "group:g", group="g"), spec("y", "group:g", group="g"))


def test_prune_keeps_a_parent_while_another_waits_for_it(worker: Database) -> None:
    rules = [Rule(state=state, older_than_ms=MINUTE) for state in sorted(FINAL)]
    add(worker, spec("met"), spec("p"), spec("c", "p,met", on_dead_dependency="keep"), spec("alone"))
    run(worker, "met", "alone")
    run(worker, "p", outcome=FAILED)
    worker.read_clock = FakeClock(now=NOW + 30 * 24 * 60 * MINUTE)

    prune(worker, rules, who="me")
    kept = worker.read(lambda tx: [jobs.find(tx, name) is not None for name in ("p", "c", "met", "alone")])
    control.cancel(worker, ["c"], who="me")
    worker.read_clock = FakeClock(now=NOW + 60 * 24 * 60 * MINUTE)
    prune(worker, rules, who="me")

    assert kept == [True, True, False, False]
    assert worker.read(jobs.has_any) is False


def test_a_job_that_another_waits_for_is_not_deleted_but_together_with_it(worker: Database) -> None:
    add(worker, spec("p"), spec("c", "p"), spec("d", "c"))

    with pytest.raises(Refused, match=r"wait.* for job p: c"):
        control.delete(worker, ["p"], who="me")
    with pytest.raises(Refused, match=r"wait.* for job"):
        control.delete(worker, ["p", "c"], who="me")
    assert states(worker, "p", "c", "d") == "pending blocked blocked"
    control.delete(worker, ["p", "c", "d"], who="me")

    assert worker.read(jobs.has_any) is False


def test_a_job_whose_parent_is_gone_is_not_revived_to_wait_for_ever(worker: Database) -> None:
    add(worker, spec("p"), spec("ok", "p"), spec("any", "any:p"))
    control.cancel(worker, ["ok", "any"], who="me")
    control.delete(worker, ["p"], who="me")

    retry(worker, "any")
    with pytest.raises(Refused, match="which is gone") as caught:
        retry(worker, "ok")

    assert (state_of(worker, "any"), state_of(worker, "ok")) == (State.PENDING, State.CANCELLED)
    assert "queuectl edit ok --after none" in caught.value.hint
    change(worker, "ok", after="none")
    retry(worker, "ok")
    assert is_ready(worker, "ok")


def test_a_starved_job_comes_back_to_wait_for_none_that_is_gone(worker: Database) -> None:
    add(worker, spec("gone"), spec("too"), spec("p"), spec("c", "any:gone,any:too,p"))
    end(worker, "p", State.DEAD)
    assert state_of(worker, "c") is State.CANCELLED
    control.delete(worker, ["gone", "too"], who="me")

    retry(worker, "p")

    assert (state_of(worker, "c"), job_of(worker, "c").waits_for) == (State.BLOCKED, 1)
    run(worker, "p")
    assert is_ready(worker, "c")


def test_with_dependents_none_waits_for_one_that_is_gone(worker: Database) -> None:
    add(worker, spec("gone"), spec("p"), spec("c", "any:gone,p"))
    run(worker, "p")
    control.cancel(worker, ["c"], who="me")
    control.delete(worker, ["gone"], who="me")

    retry_with_dependents(worker, "p")

    assert (state_of(worker, "c"), job_of(worker, "c").waits_for) == (State.BLOCKED, 1)
    run(worker, "p")
    assert is_ready(worker, "c")


# A parent that is revived


def test_a_parent_revived_before_its_child_runs_leaves_it_in_the_line(worker: Database) -> None:
    add(worker, spec("p"), spec("c", "p"))
    run(worker, "p")

    retry(worker, "p")

    assert is_ready(worker, "c")
    assert edges_of(worker, "c") == {"p": "satisfied"}


def test_a_parent_that_is_revived_and_ends_again_counts_once(worker: Database) -> None:
    add(worker, spec("p"), spec("q"), spec("c", "p,q"))

    run(worker, "p")
    retry(worker, "p")
    run(worker, "p")

    assert (state_of(worker, "c"), edges_of(worker, "c")) == (State.BLOCKED, {"p": "satisfied", "q": "waiting"})


@pytest.mark.parametrize("second", [OK, FAILED])
def test_a_parent_revived_while_its_child_runs_does_not_touch_it(worker: Database, second: Outcome) -> None:
    add(worker, spec("p"), spec("c", "p"))
    run(worker, "p")
    claim = start(worker, "c")

    retry(worker, "p")
    run(worker, "p", outcome=second)
    settle_run(worker, claim, OK)

    assert state_of(worker, "c") is State.COMPLETED


@pytest.mark.parametrize("second", [OK, FAILED])
def test_a_parent_revived_after_its_child_ran_does_not_touch_it(worker: Database, second: Outcome) -> None:
    add(worker, spec("p"), spec("c", "p"))
    run(worker, "p", "c")
    before = job_of(worker, "c")

    retry(worker, "p")
    run(worker, "p", outcome=second)

    assert job_of(worker, "c") == before


def test_a_revived_parent_brings_back_all_that_it_starved_near_and_far(worker: Database) -> None:
    add(worker, spec("p"), spec("c", "p"), spec("d", "c"), spec("e", "c,p"))
    run(worker, "p", outcome=FAILED)
    assert states(worker, "c", "d", "e") == "cancelled cancelled cancelled"

    retry(worker, "p")

    assert states(worker, "p", "c", "d", "e") == "pending blocked blocked blocked"
    assert (job_of(worker, "c").error, job_of(worker, "c").starved_at) == (None, None)
    run(worker, "p", "c", "d", "e")


def test_a_job_that_two_starved_comes_back_with_the_second(worker: Database) -> None:
    add(worker, spec("p"), spec("q"), spec("c", "p,q"))
    run(worker, "p", "q", outcome=FAILED)

    retry(worker, "p")
    after_one = state_of(worker, "c")
    retry(worker, "q")

    assert (after_one, state_of(worker, "c")) == (State.CANCELLED, State.BLOCKED)
    run(worker, "p", "q", "c")


def test_one_that_a_person_cancelled_does_not_come_back_with_its_parent(worker: Database) -> None:
    add(worker, spec("p"), spec("c", "p"))
    control.cancel(worker, ["c"], who="me")
    run(worker, "p", outcome=FAILED)

    retry(worker, "p")
    run(worker, "p")

    assert state_of(worker, "c") is State.CANCELLED
    retry(worker, "c")
    assert is_ready(worker, "c")


def test_a_kept_job_runs_when_its_parent_is_revived_and_completes(worker: Database) -> None:
    add(worker, spec("p"), spec("c", "p", on_dead_dependency="keep"))
    run(worker, "p", outcome=FAILED)
    assert state_of(worker, "c") is State.BLOCKED

    retry(worker, "p")
    run(worker, "p")

    assert is_ready(worker, "c")


def test_a_starved_job_alone_is_refused_with_what_to_do(worker: Database) -> None:
    add(worker, spec("p"), spec("c", "p"))
    run(worker, "p", outcome=FAILED)

    with pytest.raises(Refused, match="was to run after job p, which is dead") as caught:
        retry(worker, "c")

    assert "queuectl retry p" in caught.value.hint
    assert "queuectl edit c --after none" in caught.value.hint


@pytest.mark.parametrize("names", [("p", "c"), ("c", "p")])
def test_parent_and_child_may_be_retried_together_in_any_order(worker: Database, names: tuple[str, str]) -> None:
    add(worker, spec("p"), spec("c", "p"))
    run(worker, "p", outcome=FAILED)

    retry(worker, *names)

    assert states(worker, "p", "c") == "pending blocked"


def test_retry_by_a_filter_brings_back_whole_graphs(worker: Database) -> None:
    add(worker, spec("p"), spec("c", "p"), spec("d", "c"))
    run(worker, "p", outcome=FAILED)
    wanted = Selection(wanted=Filter(states=(State.DEAD, State.CANCELLED)))

    act_on_many(worker, choose(worker, verbs.RETRY, wanted), who="me")

    assert states(worker, "p", "c", "d") == "pending blocked blocked"


@pytest.mark.parametrize("again", [retry, retry_with_dependents])
def test_a_revival_reads_each_dependency_a_few_times_however_many_lead_to_one_job(
    worker: Database, monkeypatch: pytest.MonkeyPatch, again: Callable[..., None]
) -> None:
    names = [f"m{number}" for number in range(300)]
    add(worker, spec("hub"), *(spec(name, "hub", queue="many") for name in names), spec("join", names))
    run(worker, "hub", outcome=FAILED)
    read, rows = 0, Tx.rows

    def counting(tx: Tx, *words: Any) -> list[Any]:  # noqa: ANN401 - whatever it is asked
        nonlocal read
        found = rows(tx, *words)
        read += len(found)
        return found

    monkeypatch.setattr(Tx, "rows", counting)
    again(worker, "hub")

    assert states(worker, "hub", "m0", "m299", "join") == "pending blocked blocked blocked"
    assert read < 20 * len(names)


# Retry with dependents


def test_with_dependents_a_chain_runs_again_in_its_order(worker: Database) -> None:
    add(worker, spec("a"), spec("b", "a"), spec("c", "b"))
    run(worker, "a", "b", "c")

    retry_with_dependents(worker, "a")

    assert states(worker, "a", "b", "c") == "pending blocked blocked"
    run(worker, "a", "b", "c")
    assert [job_of(worker, name).run for name in "abc"] == [2, 2, 2]


def test_with_dependents_of_the_middle_leaves_what_is_above_and_beside_it(worker: Database) -> None:
    add(worker, spec("top"), spec("left", "top"), spec("right", "top"), spec("end", "left,right"))
    run(worker, "top", "left", "right", "end")

    retry_with_dependents(worker, "left")

    assert states(worker, "top", "left", "right", "end") == "completed pending completed blocked"
    assert edges_of(worker, "end") == {"left": "waiting", "right": "satisfied"}
    run(worker, "left", "end")


def test_with_dependents_takes_ready_scheduled_and_held_ones_out_of_the_line_again(worker: Database) -> None:
    children = ("ready", "later", "held")
    add(worker, spec("a"), spec("ready", "a"), spec("later", "a", delay=60), spec("held", "a", hold=True))
    run(worker, "a")
    assert states(worker, *children) == "pending scheduled blocked"

    retry_with_dependents(worker, "a")

    assert states(worker, *children) == "blocked blocked blocked"
    assert not any(is_ready(worker, name) for name in children)
    control.release(worker, ["held"], who="me")
    run(worker, "a")
    assert states(worker, *children) == "pending scheduled pending"


def test_with_dependents_takes_a_parked_one_out_of_its_line_too(worker: Database) -> None:
    add(worker, spec("a"), spec("holder", mutex="m"), spec("c", "a", mutex="m"))
    claim = start(worker, "holder")
    run(worker, "a")
    assert not is_ready(worker, "c")

    retry_with_dependents(worker, "a")
    settle_run(worker, claim, OK)

    assert not is_ready(worker, "c")
    run(worker, "a", "c")


def test_a_running_dependent_refuses_it_and_nothing_changes(worker: Database) -> None:
    add(worker, spec("a"), spec("b", "a"), spec("c", "b"), spec("d", "a"))
    run(worker, "a", "b", "d")
    start(worker, "c")

    with pytest.raises(Refused, match="1 dependent runs just now: c"):
        retry_with_dependents(worker, "a")

    assert states(worker, "a", "b", "c", "d") == "completed completed processing completed"


def test_with_dependents_brings_back_starved_ones_and_fails_for_one_that_another_starved(worker: Database) -> None:
    add(worker, spec("p"), spec("q"), spec("c", "p"), spec("d", "p,q"))
    run(worker, "p", "q", outcome=FAILED)

    with pytest.raises(Refused, match="job d was to run after job q, which is dead"):
        retry_with_dependents(worker, "p")
    before = states(worker, "p", "c", "d")
    retry(worker, "q")
    retry_with_dependents(worker, "p")

    assert before == "dead cancelled cancelled"
    assert states(worker, "p", "q", "c", "d") == "pending pending blocked blocked"


def test_with_dependents_of_two_roots_that_one_job_runs_after(worker: Database) -> None:
    add(worker, spec("p"), spec("q"), spec("d", "p,q"))
    run(worker, "p", "q", outcome=FAILED)

    retry_with_dependents(worker, "p", "q")

    assert states(worker, "p", "q", "d") == "pending pending blocked"
    run(worker, "p", "q", "d")


def test_with_dependents_by_a_filter_leaves_those_as_they_are_for_which_it_is_refused(worker: Database) -> None:
    add(worker, spec("gone"), spec("p", "gone"), spec("c", "p"))
    run(worker, "gone", "p", "c")
    add(worker, spec("dead"))
    run(worker, "dead", outcome=FAILED)
    change(worker, "p", after="dead")
    wanted = Selection(names=(f"{job_of(worker, 'p').seq}-{job_of(worker, 'p').seq}",))

    tally = act_on_many(worker, choose(worker, verbs.RETRY_WITH_DEPENDENTS, wanted), who="me")

    assert (tally.count, states(worker, "p", "c")) == (0, "completed completed")


def test_with_dependents_of_parent_and_child_at_once_runs_each_once(worker: Database) -> None:
    add(worker, spec("a"), spec("b", "a"), spec("c", "b"))
    run(worker, "a", "b", "c")

    retry_with_dependents(worker, "b", "a")

    assert states(worker, "a", "b", "c") == "pending blocked blocked"


# Editing


@pytest.mark.parametrize("length", [1, 2, 3, 20])
def test_a_circle_made_by_an_edit_is_refused_and_shown(worker: Database, length: int) -> None:
    names = [f"j{number}" for number in range(length)]
    add(worker, spec("j0"), *(spec(after, before) for before, after in pairwise(names)))

    with pytest.raises(BadInput, match="in a circle") as caught:
        change(worker, "j0", after=names[-1])

    shown = re.findall(r"j\d+", caught.value.message)
    assert (shown[0], shown[-1]) == ("j0", "j0")
    assert shown[1] == names[-1]
    assert edges_of(worker, "j0") == {}


def test_after_none_lets_a_job_go(worker: Database) -> None:
    add(worker, spec("p"), spec("c", "p"))

    change(worker, "c", after="none")

    assert is_ready(worker, "c")
    run(worker, "p", outcome=FAILED)
    assert state_of(worker, "c") is State.PENDING


def test_an_edit_lets_a_job_wait_for_others_instead_whatever_it_waited_for(worker: Database) -> None:
    add(worker, spec("done"), spec("open"), spec("blocked", "open"), spec("ready"), spec("later", delay=60))
    add(worker, spec("held", hold=True), spec("wall"))
    run(worker, "done")

    for name in ("blocked", "ready", "later", "held"):
        change(worker, name, after="done,wall")
        assert (state_of(worker, name), is_ready(worker, name)) == (State.BLOCKED, False), name
        assert edges_of(worker, name) == {"done": "satisfied", "wall": "waiting"}

    run(worker, "wall")
    assert states(worker, "blocked", "ready", "later", "held") == "pending pending scheduled blocked"


@pytest.mark.parametrize("name", ["ready", "later", "blocked"])
def test_an_edit_to_run_after_a_dead_one_cancels_as_an_enqueue_does(worker: Database, name: str) -> None:
    add(worker, spec("dead"), spec("p"), spec("ready"), spec("later", delay=60), spec("blocked", "p"))
    run(worker, "dead", outcome=FAILED)

    change(worker, name, after="dead")

    assert (state_of(worker, name), edges_of(worker, name)) == (State.CANCELLED, {"dead": "broken"})
    retry(worker, "dead")
    assert state_of(worker, name) is State.BLOCKED


def test_a_parked_job_that_is_to_wait_for_another_leaves_its_line(worker: Database) -> None:
    add(worker, spec("p"), spec("holder", mutex="m"), spec("c", mutex="m"))
    claim = start(worker, "holder")
    assert not is_ready(worker, "c")

    change(worker, "c", after="p")
    settle_run(worker, claim, OK)

    assert not is_ready(worker, "c")
    run(worker, "p", "c")


def test_a_kept_job_can_be_told_otherwise(worker: Database) -> None:
    add(worker, spec("p"), *(spec(name, "p", on_dead_dependency="keep") for name in ("a", "b")))
    run(worker, "p", outcome=FAILED)

    change(worker, "a", on_dead_dependency="run")
    change(worker, "b", on_dead_dependency="cancel")

    assert states(worker, "a", "b") == "pending cancelled"


# With times, limits, holds and deadlines


def test_a_job_with_a_time_and_a_parent_waits_for_both(worker: Database) -> None:
    add(worker, spec("p"), spec("late", "p", delay=60), spec("past", "p", run_at="2020-01-01T00:00:00Z"))

    run(worker, "p")
    after = states(worker, "late", "past")
    worker.read_clock = FakeClock(now=NOW + MINUTE)

    assert after == "scheduled pending"
    run(worker, "late")


def test_a_job_whose_time_comes_before_its_parent_ends_goes_on_waiting(worker: Database) -> None:
    add(worker, spec("p"), spec("c", "p", delay=60))

    worker.read_clock = FakeClock(now=NOW + 2 * MINUTE)
    before = is_ready(worker, "c")
    run(worker, "p")

    assert (before, is_ready(worker, "c")) == (False, True)


def test_a_starved_job_that_comes_back_keeps_its_time(worker: Database) -> None:
    add(worker, spec("p"), spec("c", "p", delay=60))
    run(worker, "p", outcome=FAILED)

    retry(worker, "p")
    run(worker, "p")

    assert (state_of(worker, "c"), job_of(worker, "c").run_at) == (State.SCHEDULED, NOW + MINUTE)


def test_a_job_with_a_limit_and_a_parent_waits_for_both(worker: Database) -> None:
    worker.write(lambda tx: limits.put(tx, "api", 1))
    add(worker, spec("p"), spec("holder", limits="api"), spec("c", "p", limits="api"))
    claim = start(worker, "holder")

    run(worker, "p")
    while_taken = is_ready(worker, "c")
    settle_run(worker, claim, OK)

    assert while_taken is False
    run(worker, "c")


def test_a_held_job_with_a_parent_waits_for_both_in_either_order(worker: Database) -> None:
    add(worker, spec("p"), spec("first", "p", hold=True), spec("second", "p"))
    control.hold(worker, ["second"], who="me")

    control.release(worker, ["first"], who="me")
    before = states(worker, "first", "second")
    run(worker, "p")
    between = states(worker, "first", "second")
    control.release(worker, ["second"], who="me")

    assert (before, between) == ("blocked blocked", "pending blocked")
    assert is_ready(worker, "second")


def test_a_deadline_buries_a_job_that_waits_for_others_and_takes_along_what_runs_after_it(worker: Database) -> None:
    add(worker, spec("p"), spec("c", "p", deadline=60), spec("d", "c"), spec("e", "fail:c"))
    worker.read_clock = FakeClock(now=NOW + 2 * MINUTE)

    expire_overdue(worker)

    assert states(worker, "p", "c", "d", "e") == "pending dead cancelled pending"
    run(worker, "p")
    assert state_of(worker, "c") is State.DEAD


def test_a_retry_cannot_hurry_a_job_that_waits_for_others(worker: Database) -> None:
    add(worker, spec("p"), spec("c", "p"))

    with pytest.raises(Refused, match="job c is blocked: it waits for 1 other job") as caught:
        retry(worker, "c")

    assert caught.value.hint == "see: queuectl why c"
