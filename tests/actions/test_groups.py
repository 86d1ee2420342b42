"""Groups: when the rest is cancelled, when all have ended, and what a retry of the whole does."""

import json
from collections.abc import Callable

import pytest

from queuectl.actions import acts, control, regroup, verbs
from queuectl.actions.deadlines import expire_overdue
from queuectl.actions.regroup import refuse_unknown_group, retry_group
from queuectl.actions.selection import Selection
from queuectl.actions.submit import submit
from queuectl.errors import NotFound, Refused
from queuectl.model.after import check_after
from queuectl.model.job import Job, JobSpec
from queuectl.model.states import State
from queuectl.model.verdict import Outcome
from queuectl.store import group_views, groups, jobs, moves
from queuectl.store.database import Database, Tx
from queuectl.store.jobs import Filter
from tests.store.rows import NOW, FakeClock, add_worker, claim_one, get_job, last_act, settle_run


def add(db: Database, number: int = 1, *, group: str = "g", **fields: object) -> list[int]:
    """Add jobs to a group, and return their numbers."""
    specs = [JobSpec(command="true", group=group, max_retries=0, **fields) for _ in range(number)]  # type: ignore[arg-type]
    return [int(each) for each in submit(db, specs, who="me", environ={})]


def end_next(db: Database, outcome: Outcome) -> int:
    """Let a worker claim the next job and end it so; return its number."""
    claim = claim_one(db)
    settle_run(db, claim, outcome)
    return claim.job.seq


def states(db: Database, group: str = "g") -> dict[str, int]:
    return {state.value: number for state, number in db.read(lambda tx: groups.counts(tx, group)).items()}


def hooks(db: Database) -> list[Job]:
    """Return the jobs that were added because a group had ended, oldest first."""
    found = db.read(lambda tx: jobs.newest(tx, Filter(text="echo over"), 100))
    return found[::-1]


def is_stopped(db: Database, group: str = "g") -> bool:
    found = db.read(lambda tx: groups.get(tx, group))
    return found is not None and found.stopped_at is not None


@pytest.mark.parametrize("most, may_die", [("2", 2), ("0", 0), ("10%", 2), ("19%", 3), ("0%", 0)])
def test_one_death_more_than_may_be_cancels_the_rest(db: Database, most: str, may_die: int) -> None:
    add_worker(db)
    add(db, 20, max_failures=most)

    for _ in range(may_die):
        end_next(db, Outcome.exited(1))
    before = states(db)
    end_next(db, Outcome.exited(1))

    assert before == ({"pending": 20 - may_die, "dead": may_die} if may_die else {"pending": 20})
    assert states(db) == {"dead": may_die + 1, "cancelled": 19 - may_die}
    assert is_stopped(db)


def test_those_that_run_are_asked_to_stop_and_what_ends_by_itself_keeps_its_end(db: Database) -> None:
    add_worker(db)
    add(db, 4, max_failures="0")
    running, quick = claim_one(db), claim_one(db)

    end_next(db, Outcome.exited(1))

    assert get_job(db, running.job.seq).cancel_requested
    settle_run(db, quick, Outcome.exited(0))
    settle_run(db, running, Outcome.cancelled())
    assert states(db) == {"completed": 1, "dead": 1, "cancelled": 2}


def test_completed_and_cancelled_jobs_are_no_failures(db: Database) -> None:
    add_worker(db)
    seqs = add(db, 5, max_failures="0")
    end_next(db, Outcome.exited(0))

    control.cancel(db, [str(seqs[1]), str(seqs[2])], who="me")

    assert states(db) == {"completed": 1, "cancelled": 2, "pending": 2}


def die_by_timeout(db: Database) -> None:
    end_next(db, Outcome.timed_out(after_ms=1000))


def die_by_loss(db: Database) -> None:
    for _ in range(3):
        db.write(lambda tx: tx.changed("UPDATE jobs SET state = 'pending', run_at = NULL WHERE state = 'failed'"))
        end_next(db, Outcome.lost())


def die_by_deadline(db: Database) -> None:
    db.read_clock = FakeClock(now=NOW + 10_000)
    expire_overdue(db)


@pytest.mark.parametrize("die", [die_by_timeout, die_by_loss, die_by_deadline])
def test_every_kind_of_death_counts(db: Database, die: Callable[[Database], None]) -> None:
    db.read_clock = FakeClock(now=NOW)
    add_worker(db)
    add(db, 1, max_failures="0", priority=1, deadline_ms=5_000 if die is die_by_deadline else None)
    add(db, 2)

    die(db)

    assert states(db) == {"dead": 1, "cancelled": 2}


def test_nothing_is_added_to_a_group_that_was_stopped_until_it_is_retried(db: Database) -> None:
    add_worker(db)
    add(db, 2, max_failures="0")
    end_next(db, Outcome.exited(1))

    with pytest.raises(Refused, match="group 'g' was stopped: more than 0") as refused:
        add(db, 1)
    assert "queuectl retry --group g" in refused.value.hint
    assert sum(states(db).values()) == 2

    retry_group(db, "g", who="me")
    add(db, 1)
    assert states(db) == {"pending": 3}


def test_the_hook_is_added_once_when_the_last_has_ended_and_is_told_of_all(db: Database) -> None:
    add_worker(db)
    add(db, 3, on_group_done="echo over", queue="mail")
    end_next(db, Outcome.exited(0))
    control.cancel(db, ["2"], who="me")
    assert hooks(db) == []

    end_next(db, Outcome.exited(1))

    [hook] = hooks(db)
    assert hook.env_map == {
        "QUEUECTL_GROUP": "g",
        "QUEUECTL_GROUP_COMPLETED": "1",
        "QUEUECTL_GROUP_DEAD": "1",
        "QUEUECTL_GROUP_CANCELLED": "1",
    }
    assert (hook.state, hook.queue, hook.group_name) == (State.PENDING, "mail", None)
    assert last_act(db) == ("group", "enqueue", f"{hook.id} (all of group g have ended)", 1)


def last_is_cancelled(db: Database, seq: int) -> None:
    control.cancel(db, [str(seq)], who="me")


def last_is_deleted(db: Database, seq: int) -> None:
    control.delete(db, [str(seq)], who="me")


def last_expires(db: Database, seq: int) -> None:
    db.write(lambda tx: tx.changed("UPDATE jobs SET deadline_at = 1 WHERE seq = :seq", {"seq": seq}))
    expire_overdue(db)


@pytest.mark.parametrize("end", [last_is_cancelled, last_is_deleted, last_expires])
def test_the_hook_is_added_however_the_last_ends(db: Database, end: Callable[[Database, int], None]) -> None:
    add_worker(db)
    add(db, 1, on_group_done="echo over")
    [last] = add(db, 1, deadline_ms=3_600_000)
    end_next(db, Outcome.exited(0))

    end(db, last)

    assert len(hooks(db)) == 1


def test_the_hook_is_added_when_the_last_starves(db: Database) -> None:
    add_worker(db)
    submit(db, [JobSpec(command="false", given_id="parent", max_retries=0)], who="me", environ={})
    add(db, 1, on_group_done="echo over", after=check_after("after", "parent"))

    end_next(db, Outcome.exited(1))

    assert states(db) == {"cancelled": 1}
    assert len(hooks(db)) == 1


def test_a_group_that_is_stopped_has_its_hook_when_the_last_that_ran_has_ended(db: Database) -> None:
    add_worker(db)
    add(db, 3, max_failures="0", on_group_done="echo over")
    running = claim_one(db)
    end_next(db, Outcome.exited(1))
    assert hooks(db) == []

    settle_run(db, running, Outcome.cancelled())

    assert [hook.env_map["QUEUECTL_GROUP_CANCELLED"] for hook in hooks(db)] == ["2"]


def test_after_a_retry_the_hook_is_added_again(db: Database) -> None:
    add_worker(db)
    add(db, 1, on_group_done="echo over")
    end_next(db, Outcome.exited(1))

    done = retry_group(db, "g", who="me")
    db.write(lambda tx: tx.changed("UPDATE jobs SET priority = 1 WHERE group_name = 'g'"))
    end_next(db, Outcome.exited(0))

    assert done.retried == {State.DEAD: 1}
    assert [hook.env_map["QUEUECTL_GROUP_COMPLETED"] for hook in hooks(db)] == ["0", "1"]


def test_a_retry_of_the_group_gives_dead_and_cancelled_jobs_a_fresh_life_and_says_how_many(db: Database) -> None:
    add_worker(db)
    add(db, 6, max_failures="1")
    running = claim_one(db)
    end_next(db, Outcome.exited(0))
    end_next(db, Outcome.exited(1))
    end_next(db, Outcome.exited(1))

    done = retry_group(db, "g", who="me")

    assert (done.retried, done.refused, done.was_stopped) == ({State.DEAD: 2, State.CANCELLED: 2}, {}, True)
    assert (done.count, done.stopping) == (4, 1)
    assert get_job(db, running.job.seq).state is State.PROCESSING
    assert states(db) == {"pending": 4, "processing": 1, "completed": 1}
    assert last_act(db) == ("me", "retry", "3 to 6: --group g", 4)
    assert not is_stopped(db)


def test_a_retry_of_a_group_with_more_failed_jobs_than_were_agreed_to_is_refused(db: Database) -> None:
    add_worker(db)
    add(db, 2)
    end_next(db, Outcome.exited(1))
    end_next(db, Outcome.exited(1))

    with pytest.raises(Refused, match="2 jobs would be acted on, more than max 1"):
        retry_group(db, "g", who="me", most=1)

    assert states(db) == {"dead": 2}
    assert retry_group(db, "g", who="me", most=2).count == 2


def test_a_retry_of_a_group_is_one_transaction_however_many_pages(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(regroup, "PAGE", 2)
    add_worker(db)
    add(db, 5, max_failures="0", on_group_done="echo over")
    end_next(db, Outcome.exited(1))
    before, hooks_before = states(db), len(hooks(db))
    revive = moves.revive
    calls: list[int] = []

    def dying_in_the_middle(tx: Tx, seqs: list[int]) -> int:
        calls.append(len(seqs))
        if len(calls) == 2:
            raise KeyboardInterrupt
        return revive(tx, seqs)

    monkeypatch.setattr(moves, "revive", dying_in_the_middle)
    with pytest.raises(KeyboardInterrupt):
        retry_group(db, "g", who="me")
    assert (states(db), is_stopped(db)) == (before, True)
    monkeypatch.setattr(moves, "revive", revive)

    assert retry_group(db, "g", who="me").count == 5
    assert (states(db), is_stopped(db), len(hooks(db))) == ({"pending": 5}, False, hooks_before)


def test_a_retry_lifts_the_stop_of_a_group_none_of_whose_failures_is_left(db: Database) -> None:
    add_worker(db)
    add(db, 3, max_failures="0")
    end_next(db, Outcome.exited(0))
    end_next(db, Outcome.exited(1))
    control.delete(db, ["2", "3"], who="me")

    done = retry_group(db, "g", who="me")

    assert (done.count, done.was_stopped) == (0, True)
    assert add(db, 1) == [4]


def test_a_group_that_lost_its_last_job_is_forgotten_with_its_stop(db: Database) -> None:
    add_worker(db)
    add(db, 2, max_failures="0")
    end_next(db, Outcome.exited(1))

    control.delete(db, ["1", "2"], who="me")

    assert db.read(lambda tx: groups.get(tx, "g")) is None
    assert add(db, 1) == [3]


def test_jobs_that_run_after_each_other_come_back_in_whatever_order_they_were_added(db: Database) -> None:
    add_worker(db)
    specs = [
        JobSpec(command="true", group="g", given_id="c", after=check_after("after", "b")),
        JobSpec(command="true", group="g", given_id="b", after=check_after("after", "a")),
        JobSpec(command="true", group="g", given_id="a", max_retries=0, max_failures="0"),
    ]
    submit(db, specs, who="me", environ={})
    end_next(db, Outcome.exited(1))
    assert states(db) == {"dead": 1, "cancelled": 2}

    done = retry_group(db, "g", who="me")

    assert (done.count, done.refused) == (3, {})
    assert states(db) == {"pending": 1, "blocked": 2}


def test_a_job_whose_key_another_has_stays_and_is_counted(db: Database) -> None:
    [first] = add(db, 1, unique_key="k")
    control.cancel(db, [str(first)], who="me")
    submit(db, [JobSpec(command="true", unique_key="k")], who="me", environ={})

    done = retry_group(db, "g", who="me")

    assert (done.count, done.refused) == (0, {State.CANCELLED: 1})


def test_a_cancel_of_a_group_leaves_what_has_ended(db: Database) -> None:
    add_worker(db)
    add(db, 3)
    end_next(db, Outcome.exited(0))
    add(db, 2, group="other")

    chosen = acts.choose(db, verbs.CANCEL, Selection(wanted=Filter(group="g")))
    tally = acts.act_on_many(db, chosen, who="me")

    assert (tally.count, tally.passed) == (2, {State.COMPLETED: 1})
    assert states(db, "other") == {"pending": 2}


def test_a_group_nobody_knows_is_named_with_the_nearest_one(db: Database) -> None:
    with pytest.raises(NotFound, match=r"no group 'nightly'$"):
        db.read(lambda tx: refuse_unknown_group(tx, "nightly"))
    add(db, 1, group="nightly")

    with pytest.raises(NotFound, match="no group 'nightl'; did you mean 'nightly'"):
        retry_group(db, "nightl", who="me")
    db.read(lambda tx: refuse_unknown_group(tx, "nightly"))


def test_failures_of_the_same_error_are_one_and_the_dead_come_first(db: Database) -> None:
    add_worker(db)
    add(db, 8)
    for code in (7, 7, 7, 7, 9):
        end_next(db, Outcome.exited(code))
    control.cancel(db, ["6", "7", "8"], who="me")

    found = db.read(lambda tx: group_views.failures(tx, "g"))

    assert [(each.state, each.error, each.count, [job.seq for job in each.samples]) for each in found] == [
        (State.DEAD, "exit code 7", 4, [1, 2, 3]),
        (State.DEAD, "exit code 9", 1, [5]),
        (State.CANCELLED, "cancelled before it ran", 3, [6, 7, 8]),
    ]


def test_a_view_of_a_group_knows_how_quickly_it_goes_on(db: Database) -> None:
    db.read_clock = FakeClock(now=NOW)
    add_worker(db)
    add(db, 10, max_failures="20%", on_group_done="echo over")
    first = claim_one(db)
    db.read_clock = FakeClock(now=NOW + 4_000)
    settle_run(db, first, Outcome.exited(0))
    end_next(db, Outcome.exited(1))

    view = db.read(lambda tx: group_views.view(tx, "g"))

    assert view is not None
    assert (view.total, view.ended, view.failed, view.may_fail, view.is_over) == (10, 2, 1, 2, False)
    assert (view.per_s, view.left_ms, view.took_ms) == (0.5, 16_000, None)
    assert view.closing_command == "echo over"
    assert json.loads(view.group.on_done or "")["queue"] == "default"
