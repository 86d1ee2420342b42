"""Retention: which jobs go and when, in what portions, with what they leave behind, and who is on record for it."""

import os
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from queuectl.actions import pace, upkeep
from queuectl.actions.connect import Target, connect
from queuectl.actions.submit import Fate, enter
from queuectl.actions.upkeep import Pruned, Rule, Upkeep
from queuectl.errors import BadInput
from queuectl.model.job import JobSpec
from queuectl.model.states import FINAL, State
from queuectl.model.units import DAY_MS, WEEK_MS
from queuectl.model.verdict import Outcome
from queuectl.settings import Settings, resolve
from queuectl.store import audit, config, jobs, removing, requests, watchers, workers
from queuectl.store.database import Database, Tx
from queuectl.system.home import log_path, stderr_path
from tests.store.rows import NOW, FakeClock, add_job, add_worker, claim_one, get_job, last_act, settle_run

if TYPE_CHECKING:
    from queuectl.store.dialect import SqlValue

WHO = "ann@here"
HOUR = 3_600_000


@pytest.fixture(autouse=True)
def _standing_clock(db: Database) -> None:
    db.read_clock = FakeClock()


def settings(**stored: str) -> Settings:
    """Return the settings with some of them stored."""
    return resolve(stored, {})[0]


def add_finished(db: Database, state: State, age_ms: int) -> int:
    """Write a job that was over so long ago, and return its number."""
    return add_job(db, state, finished_at=NOW - age_ms).seq


def left(db: Database) -> list[int]:
    """Return the numbers of the jobs that are there."""
    return sorted(job.seq for job in db.read(lambda tx: jobs.newest(tx, jobs.Filter(), 10_000)))


def prune(db: Database, **stored: str) -> Pruned:
    """Apply the settings."""
    return upkeep.prune(db, upkeep.retention(settings(**stored)), who=WHO)


@pytest.mark.parametrize("state", sorted(FINAL))
def test_each_final_state_has_a_retention_of_its_own(db: Database, state: State) -> None:
    old = {each: add_finished(db, each, 2 * HOUR) for each in sorted(FINAL)}
    off = {f"retention_{each}": "0" for each in FINAL}

    gone = prune(db, **{**off, f"retention_{state}": "1h"})

    assert gone == Pruned(**{state.value: 1})
    assert left(db) == sorted(seq for each, seq in old.items() if each is not state)


def test_by_default_dead_jobs_stay_and_the_others_go_after_a_week(db: Database) -> None:
    for state in FINAL:
        add_finished(db, state, WEEK_MS + 1)
    young = [add_finished(db, state, WEEK_MS) for state in FINAL]

    gone = prune(db)

    assert gone == Pruned(completed=1, cancelled=1)
    assert {get_job(db, seq).state for seq in left(db)} == FINAL
    assert set(young) < set(left(db))


def test_a_retention_of_0_keeps_for_ever(db: Database) -> None:
    add_finished(db, State.COMPLETED, 1000 * DAY_MS)

    assert prune(db, retention_completed="0", retention_cancelled="0") == Pruned()
    assert len(left(db)) == 1


@pytest.mark.parametrize("state", sorted(set(State) - FINAL))
def test_what_is_not_over_never_goes(db: Database, state: State) -> None:
    add_worker(db)
    seq = add_job(db, state, created_at=1, updated_at=1).seq

    prune(db, retention_completed="1s", retention_cancelled="1s", retention_dead="1s")

    assert left(db) == [seq]


def test_a_revived_job_stays(db: Database) -> None:
    from queuectl.actions import control

    seq = add_finished(db, State.COMPLETED, WEEK_MS * 2)
    control.retry(db, [str(seq)], who=WHO)

    assert prune(db) == Pruned()
    assert left(db) == [seq]


def test_a_dry_run_counts_what_would_go_and_changes_nothing(db: Database) -> None:
    for state, count in ((State.COMPLETED, 3), (State.CANCELLED, 2), (State.DEAD, 1)):
        for _ in range(count):
            add_finished(db, state, 2 * DAY_MS)
    add_finished(db, State.COMPLETED, HOUR)
    rules = upkeep.retention(settings(retention_completed="1d", retention_cancelled="1d", retention_dead="1d"))
    before = db.read(contents)

    counted = upkeep.count_expired(db, rules)

    assert counted == Pruned(completed=3, cancelled=2, dead=1)
    assert db.read(contents) == before
    assert upkeep.prune(db, rules, who=WHO) == counted


def test_runs_and_output_files_go_with_their_job(db: Database, target: Target) -> None:
    paths = [Path(path(target.home, 1, 1)) for path in (log_path, stderr_path)]
    for path in paths:
        path.parent.mkdir(exist_ok=True)
        path.write_text("output")
    name, split = (str(path.relative_to(target.home.logs)) for path in paths)
    add_finished(db, State.COMPLETED, 2 * WEEK_MS)
    add_run(db, 1, output_file=name, stderr_file=split, stderr_tail=b"", stderr_bytes=6)

    prune(db)

    assert db.read(lambda tx: tx.rows("SELECT run FROM attempts")) == []
    assert os.listdir(paths[0].parent) == []


def test_many_go_in_portions_and_one_act_is_on_record(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upkeep, "BATCH", 10)
    for _ in range(35):
        add_finished(db, State.COMPLETED, 2 * WEEK_MS)
    portions: list[int] = []
    delete = removing.delete

    def counting(tx: Tx, seqs: list[int], *, frees_keys: bool) -> int:
        portions.append(len(seqs))
        return delete(tx, seqs, frees_keys=frees_keys)

    monkeypatch.setattr(removing, "delete", counting)

    gone = prune(db)

    assert gone.completed == 35
    assert [size for size in portions if size] == [10, 10, 10, 5]
    acts = db.read(lambda tx: audit.newest(tx, 10))
    assert [(act.who, act.action, act.count) for act in acts] == [(WHO, "prune", 35)]
    assert acts[0].target == "completed for 7d, cancelled for 7d"


def test_others_can_write_between_two_portions(db: Database, target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upkeep, "BATCH", 10)
    for _ in range(35):
        add_finished(db, State.COMPLETED, 2 * WEEK_MS)
    rests: list[float] = []
    added: list[int] = []

    with closing(connect(target, is_patient=False)) as other:

        def use_the_rest(seconds: float) -> None:
            rests.append(seconds)
            added.append(add_job(other).seq)

        upkeep.prune(db, upkeep.retention(settings()), who=WHO, sleep=use_the_rest)

    assert len(rests) == 3  # four portions
    assert all(pace.LEAST_S <= each <= pace.LONGEST_S for each in rests)
    assert left(db) == added


def test_a_supervisor_that_leaves_lets_others_write_between_two_portions(
    db: Database, target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upkeep, "BATCH", 2)
    monkeypatch.setattr(upkeep, "LAST_S", 60.0)
    for _ in range(5):
        add_finished(db, State.COMPLETED, 2 * WEEK_MS)
    rests: list[float] = []

    Upkeep(db, target.home, {}).finish(sleep=rests.append)

    assert left(db) == []
    assert len(rests) == 2  # three portions


def test_a_portion_is_shared_by_all_states(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upkeep, "BATCH", 3)
    for state in (State.COMPLETED, State.COMPLETED, State.CANCELLED, State.CANCELLED):
        add_finished(db, state, 2 * WEEK_MS)
    pruner = upkeep._Pruner(db, WHO)
    rules = upkeep.retention(settings())

    first, is_more = pruner.batch(lambda _: rules)

    assert (first, is_more) == (Pruned(completed=2, cancelled=1), True)


def test_a_call_that_finds_nothing_is_on_record_too(db: Database) -> None:
    prune(db)

    assert last_act(db) == (WHO, "prune", "completed for 7d, cancelled for 7d", 0)


@pytest.mark.parametrize("state", ["ended", "lost"])
def test_workers_that_ended_more_than_a_week_ago_are_forgotten(db: Database, state: str) -> None:
    for worker_id, age in (("old", WEEK_MS + 1), ("young", WEEK_MS - 1), ("holder", WEEK_MS + 1)):
        end_worker(db, worker_id, state, NOW - age)
    add_worker(db, "living")
    add_job(db, State.PROCESSING, worker_id="holder")
    counted = upkeep.count_expired(db, ())

    gone = prune(db)

    assert counted.workers == gone.workers == 1
    assert {worker.id for worker in db.read(lambda tx: workers.newest(tx, 10))} == {"young", "holder", "living"}


def add_act(db: Database, age_ms: int) -> int:
    """Put an act of so long ago on record and return its number."""
    db.read_clock = FakeClock(now=NOW - age_ms)
    act_id = db.write(lambda tx: audit.record(tx, WHO, "enqueue", None, 1))
    db.read_clock = FakeClock()
    return act_id


def acts_left(db: Database) -> list[int]:
    """Return the numbers of what people did, oldest first, but for pruning itself."""
    return [act.id for act in reversed(db.read(lambda tx: audit.newest(tx, 1000))) if act.action != "prune"]


def test_acts_of_more_than_a_year_ago_are_forgotten_in_portions(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upkeep, "BATCH", 2)
    for _ in range(5):
        add_act(db, upkeep.KEEP_ACTS_MS + 1)
    young = [add_act(db, upkeep.KEEP_ACTS_MS), add_act(db, 0)]
    counted = upkeep.count_expired(db, ())
    portions: list[int] = []
    prune_acts = audit.prune

    def counting(tx: Tx, before: int, limit: int) -> int:
        portions.append(prune_acts(tx, before, limit))
        return portions[-1]

    monkeypatch.setattr(audit, "prune", counting)

    gone = prune(db)

    assert counted == gone == Pruned(acts=5)
    assert portions == [2, 2, 1]
    assert acts_left(db) == young


def test_a_supervisor_forgets_old_acts_too(db: Database, chores: "Chores") -> None:
    add_act(db, upkeep.KEEP_ACTS_MS + 1)
    young = add_act(db, 0)

    chores.prune()

    assert acts_left(db) == [young]


def test_numbers_of_forgotten_acts_are_not_given_out_again(db: Database) -> None:
    old = add_act(db, upkeep.KEEP_ACTS_MS + 1)

    db.write(lambda tx: audit.prune(tx, tx.now - upkeep.KEEP_ACTS_MS, 10))

    assert add_act(db, 0) > old


def test_those_who_stopped_watching_are_forgotten(db: Database) -> None:
    db.write(lambda tx: watchers.renew(tx, "gone"))
    db.read_clock = FakeClock(now=NOW + watchers.LEASE_MS)
    db.write(lambda tx: tx.changed("INSERT INTO watchers (id, expires_at) VALUES ('here', :at)", {"at": NOW * 2}))
    db.read_clock = FakeClock(now=NOW + watchers.LEASE_MS + 1)

    prune(db)

    assert db.read(lambda tx: tx.rows("SELECT id FROM watchers")) == [("here",)]


def test_answers_to_requests_are_forgotten_when_their_day_is_over(db: Database) -> None:
    for key, expires_at in (("old", NOW), ("young", NOW + 1)):
        db.write(lambda tx, key=key, at=expires_at: requests.take(tx, key, "f", at))  # type: ignore[misc]

    prune(db)

    assert db.read(lambda tx: tx.rows("SELECT key FROM requests")) == [("young",)]


def test_a_person_may_prune_beyond_the_settings(db: Database) -> None:
    old, young = add_finished(db, State.DEAD, 2 * HOUR), add_finished(db, State.DEAD, HOUR // 2)
    kept = add_finished(db, State.COMPLETED, 2 * HOUR)
    rules = upkeep.chosen_rules(settings(), (State.DEAD,), HOUR)

    upkeep.prune(db, rules, who=WHO)

    assert left(db) == [young, kept]
    assert old not in left(db)


def test_a_state_alone_means_its_retention() -> None:
    assert upkeep.chosen_rules(settings(), (State.CANCELLED,), None) == (
        Rule(state=State.CANCELLED, older_than_ms=WEEK_MS),
    )


@pytest.mark.parametrize(
    "states, older_than_ms, message",
    [
        ((), HOUR, "which jobs"),
        ((State.COMPLETED,), 0, "0 is no age"),
        ((State.PENDING,), HOUR, "pending jobs are not over"),
        ((State.DEAD,), None, "kept for ever"),
        ((State.COMPLETED, State.DEAD), None, "dead jobs are kept for ever"),
    ],
)
def test_what_is_not_clear_is_refused(states: tuple[State, ...], older_than_ms: int | None, message: str) -> None:
    with pytest.raises(BadInput, match=message) as refused:
        upkeep.chosen_rules(settings(), states, older_than_ms)

    assert refused.value.hint


class Chores:
    """The chores of a supervisor, each done when the test says so."""

    def __init__(self, db: Database, target: Target) -> None:
        self._upkeep = Upkeep(db, target.home, {})

    def prune(self) -> float:
        """Do one step of pruning and return the pause after it."""
        return self._upkeep._prune()

    def every_chore_once(self) -> None:
        """Do what is due until each chore was done."""
        done: set[Callable[[], float]] = set()
        chores = self._upkeep._chores
        while len(done) < len(chores):
            before = dict(chores)
            self._upkeep.step()
            done |= {chore for chore, due in chores.items() if due != before[chore]}


@pytest.fixture
def chores(db: Database, target: Target) -> Chores:
    """The chores of a supervisor on the store."""
    return Chores(db, target)


def test_a_supervisor_prunes_one_portion_at_a_time_by_the_stored_settings(
    db: Database, chores: Chores, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upkeep, "BATCH", 2)
    db.write(lambda tx: config.put(tx, "retention_dead", "1h"))
    for _ in range(3):
        add_finished(db, State.DEAD, 2 * HOUR)

    pauses = [chores.prune()]
    between = len(left(db))
    pauses.append(chores.prune())

    assert (between, left(db)) == (1, [])
    assert pauses[0] < 1 < 50 < pauses[1]


def test_what_supervisors_prune_is_one_act_an_hour_and_none_when_nothing_went(db: Database, chores: Chores) -> None:
    chores.prune()
    quiet = db.read(lambda tx: audit.newest(tx, 10))
    for hours in (0.0, 0.5, 1.5):
        add_finished(db, State.COMPLETED, 2 * WEEK_MS)
        db.read_clock = FakeClock(now=NOW + int(hours * HOUR))
        chores.prune()

    acts = db.read(lambda tx: audit.newest(tx, 10))

    assert quiet == []
    assert [(act.who, act.action, act.count) for act in acts] == [("queuectl", "prune", 1), ("queuectl", "prune", 2)]


def test_every_chore_has_its_turn(db: Database, chores: Chores) -> None:
    add_finished(db, State.COMPLETED, 2 * WEEK_MS)

    chores.every_chore_once()

    assert left(db) == []


def test_a_supervisor_buries_what_is_past_its_deadline_within_a_second_or_two(db: Database, chores: Chores) -> None:
    over = add_job(db, deadline_ms=HOUR, deadline_at=NOW)

    chores.every_chore_once()

    assert get_job(db, over.seq).state is State.DEAD
    assert upkeep.EXPIRE_EVERY_S <= 1


def end_worker(db: Database, worker_id: str, state: str, ended_at: int) -> None:
    """Write a worker that is no more."""
    add_worker(db, worker_id)
    db.write(
        lambda tx: tx.changed(
            "UPDATE workers SET state = :state, ended_at = :at WHERE id = :id",
            {"state": state, "at": ended_at, "id": worker_id},
        )
    )


def add_run(db: Database, seq: int, **columns: "SqlValue") -> None:
    """Write a run of a job that ended."""
    values: dict[str, SqlValue] = {
        "job_seq": seq, "run": 1, "attempt": 1, "worker_id": "w1", "host": "here", "started_at": 1, "finished_at": 2,
        "outcome": "exited", "exit_code": 0, "output_bytes": 6, "output_tail": b"output", **columns,
    }  # fmt: skip
    db.write(lambda tx: tx.insert_many("attempts", list(values), [tuple(values.values())]))


def contents(tx: Tx) -> list[object]:
    """Return all there is of jobs and acts."""
    return [sorted(tx.rows(f"SELECT * FROM {table}"), key=repr) for table in ("jobs", "audit", "workers")]


def test_a_key_keeps_others_away_until_it_expires_though_its_job_was_pruned(db: Database) -> None:
    spec = JobSpec(command="true", unique_key="sync", unique_for_ms=30 * DAY_MS)
    add_worker(db)
    [first] = enter(db, [spec], who=WHO, environ={})
    settle_run(db, claim_one(db), Outcome.exited(0))
    db.read_clock = FakeClock(now=NOW + 8 * DAY_MS)
    prune(db)

    [second] = enter(db, [spec], who=WHO, environ={})

    assert left(db) == []
    assert (second.seq, second.fate) == (first.seq, Fate.ATTACHED)
    assert second.note == "job 1 (removed by now) has the key 'sync'; it stands for this one"
    db.read_clock = FakeClock(now=NOW + 30 * DAY_MS)
    assert enter(db, [spec], who=WHO, environ={})[0].fate is Fate.ADDED
