"""Acts: every verb on a job in every state, by name and among many; what is passed by, and what is on record."""

from contextlib import closing

import pytest

from queuectl.actions import acts, control, verbs
from queuectl.actions.acts import Act, act_on_each, act_on_many, choose
from queuectl.actions.connect import Target, connect
from queuectl.actions.edit import edit_act
from queuectl.actions.selection import Selection
from queuectl.actions.submit import submit
from queuectl.errors import BadInput, NotFound, Refused
from queuectl.model.edit import edit_from_fields
from queuectl.model.job import Job, JobSpec
from queuectl.model.states import FINAL, State
from queuectl.model.units import past_ms
from queuectl.store import audit, jobs
from queuectl.store.database import Database
from queuectl.store.jobs import Filter
from tests.actions.bells import Bell
from tests.store.rows import NOW, SECOND, FakeClock, add_job, add_worker, get_job, last_act

REFUSED, SAME, GONE = "refused", "same", "gone"
EVERYTHING = Selection()
RETAG = edit_act(edit_from_fields({"tags": ["t"]}, NOW))
REPRIORITISE = edit_act(edit_from_fields({"priority": 5}, NOW))

# What becomes of a job by an act: the state it is in after it, or one of the words above.
TABLE: dict[str, tuple[Act, dict[State, State | str]]] = {
    "cancel": (
        verbs.CANCEL,
        {
            **dict.fromkeys((State.PENDING, State.SCHEDULED, State.BLOCKED, State.FAILED), State.CANCELLED),
            State.PROCESSING: State.PROCESSING,
            **dict.fromkeys(FINAL, REFUSED),
        },
    ),
    "retry": (
        verbs.RETRY,
        {
            **dict.fromkeys((State.SCHEDULED, State.FAILED, *FINAL), State.PENDING),
            State.PENDING: SAME,
            **dict.fromkeys((State.BLOCKED, State.PROCESSING), REFUSED),
        },
    ),
    "delete": (verbs.DELETE, {**dict.fromkeys(State, GONE), State.PROCESSING: REFUSED}),
    "hold": (
        verbs.HOLD,
        {
            **dict.fromkeys(State, REFUSED),
            **dict.fromkeys((State.PENDING, State.SCHEDULED, State.FAILED, State.BLOCKED), State.BLOCKED),
        },
    ),
    "release": (verbs.RELEASE, dict.fromkeys(State, REFUSED)),
    "edit tags": (RETAG, {state: state for state in State}),
    "edit priority": (REPRIORITISE, {**{state: state for state in State}, State.PROCESSING: REFUSED}),
}


def after(db: Database, job: Job) -> State | str:
    """Say what became of a job."""
    now = db.read(lambda tx: jobs.get(tx, job.seq))
    if now is None:
        return GONE
    return SAME if now == job else now.state


def total(db: Database) -> int:
    """Return how many jobs there are."""
    return db.read(lambda tx: jobs.count_matching(tx, Filter()))


@pytest.mark.parametrize("verb", TABLE)
def test_an_act_by_name_does_to_each_state_what_the_table_says(db: Database, verb: str) -> None:
    act, table = TABLE[verb]
    add_worker(db)

    for state, wanted in table.items():
        job = add_job(db, state)
        if wanted == REFUSED:
            with pytest.raises(Refused) as refused:
                act_on_each(db, [job.id], act, who="me")
            assert refused.value.hint
        else:
            act_on_each(db, [job.id], act, who="me")

        assert after(db, job) == (SAME if wanted == REFUSED else wanted), f"{verb} {state}"


@pytest.mark.parametrize("verb", TABLE)
def test_an_act_on_many_passes_by_what_it_is_refused_for(db: Database, verb: str) -> None:
    act, table = TABLE[verb]
    add_worker(db)
    added = {state: add_job(db, state) for state in State}

    tally = act_on_many(db, choose(db, act, Selection(names=("1-99",))), who="me")

    applies = {state for state, wanted in table.items() if wanted not in (REFUSED, SAME)}
    assert tally.count == len(applies)
    assert tally.passed == dict.fromkeys(set(State) - applies, 1)
    for state, job in added.items():
        assert after(db, job) == (table[state] if state in applies else SAME), f"{verb} {state}"


@pytest.mark.parametrize("verb", TABLE)
def test_a_trial_says_the_same_and_changes_nothing(db: Database, verb: str) -> None:
    act, table = TABLE[verb]
    add_worker(db)
    fit = [state for state, wanted in table.items() if wanted != REFUSED]
    added = [add_job(db, state) for state in fit]
    if not added:
        added = [add_job(db, State.BLOCKED, held_at=NOW)]

    done = act_on_each(db, [job.id for job in added], act, who="me", is_trial=True)

    assert [one.job.seq for one in done] == [job.seq for job in added]
    assert [after(db, job) for job in added] == [SAME] * len(added)
    assert db.read(lambda tx: audit.newest(tx, 9)) == []


# Hold and release.


@pytest.mark.parametrize("state", [State.PENDING, State.SCHEDULED, State.FAILED])
def test_a_held_job_keeps_its_time_and_its_attempts(db: Database, state: State) -> None:
    db.read_clock = FakeClock()
    job = add_job(db, state, attempts=1)

    (done,) = control.hold(db, [job.id], who="me")

    held = get_job(db, job.seq)
    assert done.note == "held"
    assert (held.state, held.held_at, held.run_at, held.attempts) == (State.BLOCKED, NOW, job.run_at, 1)


def test_a_job_that_is_held_twice_is_held_since_the_first_time(db: Database) -> None:
    db.read_clock = FakeClock()
    job = add_job(db)
    control.hold(db, [job.id], who="me")
    db.read_clock = FakeClock(now=NOW + SECOND)

    (done,) = control.hold(db, [job.id], who="me")

    assert done.note == "is held already"
    assert get_job(db, job.seq).held_at == NOW


@pytest.mark.parametrize("late_ms, state", [(None, State.PENDING), (0, State.PENDING), (1, State.SCHEDULED)])
def test_a_released_job_is_ready_unless_its_time_is_still_to_come(
    db: Database, late_ms: int | None, state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    db.read_clock = FakeClock()
    run_at = None if late_ms is None else NOW + late_ms
    job = add_job(db, State.BLOCKED, held_at=NOW - SECOND, run_at=run_at)
    bell = Bell(db, monkeypatch)

    control.release(db, [job.id], who="me")

    released = get_job(db, job.seq)
    assert (released.state, released.held_at, released.run_at) == (state, None, run_at)
    assert bell.rings == 1


def test_a_job_that_was_told_to_run_now_and_then_held_runs_when_it_is_released(db: Database) -> None:
    job = add_job(db, State.SCHEDULED)
    control.retry(db, [job.id], who="me")
    control.hold(db, [job.id], who="me")

    control.release(db, [job.id], who="me")

    assert get_job(db, job.seq).state is State.PENDING


def test_a_held_job_is_not_retried_but_can_be_cancelled(db: Database) -> None:
    job = add_job(db, State.BLOCKED, held_at=NOW)

    with pytest.raises(Refused, match="is held") as refused:
        control.retry(db, [job.id], who="me")
    control.cancel(db, [job.id], who="me")

    assert f"queuectl release {job.id}" in refused.value.hint
    assert (get_job(db, job.seq).state, get_job(db, job.seq).held_at) == (State.CANCELLED, None)


@pytest.mark.parametrize("delay_ms", [None, 60_000])
def test_a_job_can_be_added_held(db: Database, delay_ms: int | None) -> None:
    db.read_clock = FakeClock()
    (job_id,) = submit(db, [JobSpec(command="true", hold=True, delay_ms=delay_ms)], who="me", environ={})

    job = get_job(db, int(job_id))
    assert (job.state, job.held_at, job.run_at) == (State.BLOCKED, NOW, delay_ms and NOW + delay_ms)
    control.release(db, [job_id], who="me")
    assert get_job(db, job.seq).state is (State.SCHEDULED if delay_ms else State.PENDING)


# Many at once.


def test_one_job_in_the_wrong_state_keeps_all_that_are_named_as_they_are(db: Database) -> None:
    fine, finished = add_job(db), add_job(db, State.COMPLETED)

    with pytest.raises(Refused, match="is completed already") as refused:
        control.hold(db, [fine.id, finished.id], who="me")

    assert "none of the 2 jobs was changed" in refused.value.hint
    assert after(db, fine) == SAME


def test_by_a_filter_that_names_no_state_only_what_failed_is_retried(db: Database) -> None:
    added = {state: add_job(db, state) for state in State}

    tally = act_on_many(db, choose(db, verbs.RETRY, EVERYTHING), who="me")

    assert tally.count == 2
    assert {state for state, job in added.items() if after(db, job) != SAME} == {State.FAILED, State.DEAD}


def test_by_a_filter_that_names_a_state_that_state_is_retried(db: Database) -> None:
    job = add_job(db, State.COMPLETED)

    tally = act_on_many(db, choose(db, verbs.RETRY, Selection(wanted=Filter(states=(State.COMPLETED,)))), who="me")

    assert (tally.count, after(db, job)) == (1, State.PENDING)


def test_jobs_that_come_after_the_choice_are_not_touched(db: Database) -> None:
    old = add_job(db)
    chosen = choose(db, verbs.CANCEL, EVERYTHING)
    new = add_job(db)

    act_on_many(db, chosen, who="me")

    assert (after(db, old), after(db, new)) == (State.CANCELLED, SAME)


def test_jobs_that_moved_on_since_the_choice_are_passed_by_or_gone(db: Database) -> None:
    finished, deleted, still = add_job(db, State.DEAD), add_job(db, State.DEAD), add_job(db, State.DEAD)
    chosen = choose(db, verbs.RETRY, Selection(wanted=Filter(states=(State.DEAD,))))
    control.retry(db, [finished.id], who="me")
    control.delete(db, [deleted.id], who="me")

    tally = act_on_many(db, chosen, who="me")

    assert (tally.count, tally.passed) == (1, {State.PENDING: 1})
    assert after(db, still) == State.PENDING


def test_many_jobs_are_changed_a_page_at_a_time_each_on_record(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acts, "PAGE", 3)
    for state in (State.PENDING, State.COMPLETED, State.PENDING, State.PENDING, State.PENDING):
        add_job(db, state, queue="mail")
    add_job(db)

    tally = act_on_many(db, choose(db, verbs.CANCEL, Selection(wanted=Filter(queue="mail"))), who="me")

    assert (tally.count, tally.passed) == (4, {State.COMPLETED: 1})
    rows = db.read(lambda tx: audit.newest(tx, 9))
    assert [(row.action, row.target, row.count) for row in rows] == [
        ("cancel", "5 to 5: --queue mail", 1),
        ("cancel", "1 to 4: --queue mail", 3),
    ]


def test_a_choice_says_how_many_of_which_kind_and_names_a_few(db: Database) -> None:
    for number in range(5):
        add_job(db, given_id=f"job{number}")
    add_job(db, State.SCHEDULED)
    add_job(db, State.DEAD)

    chosen = choose(db, verbs.CANCEL, EVERYTHING)

    assert chosen.counts == {State.PENDING: 5, State.SCHEDULED: 1}
    assert chosen.passed == {State.DEAD: 1}
    assert chosen.samples == ("job0", "job1", "job2")
    assert total(db) == 7


def test_a_range_that_names_no_job_is_not_found(db: Database) -> None:
    with pytest.raises(NotFound, match="4-9"):
        choose(db, verbs.CANCEL, Selection(names=("4-9",)))


def test_what_is_meant_is_on_record_in_the_words_of_the_command_line(db: Database) -> None:
    wanted = Filter(
        states=(State.DEAD, State.FAILED), queue="q", tags=("a", "b"), text="rm", error="7", since=5, ended_since=6
    )
    add_job(db, State.DEAD, queue="q", tags='["a", "b"]', command="rm x", error="exit code 7")

    act_on_many(db, choose(db, verbs.DELETE, Selection(names=("1-9",), wanted=wanted)), who="me")

    words = "1-9 --state dead,failed --queue q --tag a --tag b --command 'rm' --error '7'"
    words += " --since 1970-01-01T00:00:00.005Z --ended-since 1970-01-01T00:00:00.006Z"
    assert last_act(db) == ("me", "delete", f"1 to 1: {words}", 1)


def test_others_can_write_between_two_pages(db: Database, target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acts, "PAGE", 2)
    for _ in range(5):
        add_job(db)
    chosen = choose(db, verbs.CANCEL, EVERYTHING)
    added: list[Job] = []

    with closing(connect(target, is_patient=False)) as other:
        tally = act_on_many(db, chosen, who="me", sleep=lambda _: added.append(add_job(other)))

    assert tally.count == 5
    assert [get_job(db, job.seq).state for job in added] == [State.PENDING] * 2  # three pages


def test_what_is_on_record_says_from_when_to_when(db: Database) -> None:
    add_job(db)
    wanted = Selection(wanted=Filter(since=0, until=NOW))

    act_on_many(db, choose(db, verbs.CANCEL, wanted), who="me")

    _, _, which, count = last_act(db)
    assert which == "1 to 1: --since 1970-01-01T00:00:00.000Z --until 2027-01-15T08:00:00.000Z"
    assert count == 1
    assert past_ms("2027-01-15T08:00:00.000Z", NOW * 2) == NOW


@pytest.mark.parametrize("part", ["text", "error"])
def test_an_empty_text_is_no_filter(part: str) -> None:
    with pytest.raises(BadInput, match="empty text"):
        Filter(**{part: ""})  # type: ignore[arg-type]
