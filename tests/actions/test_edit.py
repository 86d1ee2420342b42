"""Edit: what may change of a job in which state, what else follows from it, and who is woken."""

import json
from collections.abc import Mapping

import pytest

from queuectl.actions import control
from queuectl.actions.acts import act_on_many, choose
from queuectl.actions.edit import edit, edit_act
from queuectl.actions.selection import Selection
from queuectl.errors import BadInput, Refused, UnknownName
from queuectl.model.edit import EDITABLE, Edit, edit_from_fields
from queuectl.model.fields import FIELDS
from queuectl.model.job import Job
from queuectl.model.states import FINAL, State
from queuectl.store import audit, limits, queues
from queuectl.store.database import Database
from tests.actions.bells import Bell
from tests.store.rows import NOW, SECOND, FakeClock, add_job, add_worker, get_job

WAITING = [State.PENDING, State.SCHEDULED, State.BLOCKED, State.FAILED]
MINUTE = 60 * SECOND
# A field of a job: the value given, and what its columns hold then.
FIELD_EDITS: dict[str, tuple[object, Mapping[str, object]]] = {
    "command": ("echo new", {"command": "echo new", "argv": None}),
    "argv": (["ls", "a b"], {"command": None, "argv": '["ls", "a b"]'}),
    "queue": ("mail", {"queue": "mail"}),
    "priority": (7, {"priority": 7}),
    "max_retries": (9, {"max_retries": 9}),
    "timeout": ("90s", {"timeout_ms": 90_000}),
    "backoff_strategy": ("linear", {"backoff": '{"base": 3.0, "strategy": "linear"}'}),
    "backoff_base": (5, {"backoff": '{"base": 5.0}'}),
    "max_backoff_seconds": ("1m", {"backoff": '{"base": 3.0, "max_ms": 60000}'}),
    "backoff_jitter": (0.5, {"backoff": '{"base": 3.0, "jitter": 0.5}'}),
    "job_retry_delay": ("7s", {"backoff": '{"base": 3.0, "fixed_ms": 7000}'}),
    "cwd": ("/srv", {"cwd": "/srv"}),
    "env": ({"B": "2"}, {"env": '{"A": "1", "B": "2"}'}),
    "tags": (["y", "x"], {"tags": '["x", "y"]'}),
    "split_output": (True, {"split_output": 1}),
    "needs": ("gpu", {"needs": '{"labels": ["gpu"], "use": {}}'}),
    "use": ({"gpu": 2}, {"needs": '{"labels": [], "use": {"gpu": 2}}'}),
    "mutex": ("db", {"limits": '["mutex:db"]'}),
    "limits": ("api", {"limits": '["limit:api"]'}),
    "at_most": ("thumbs:5", {"limits": '["at-most:thumbs:5"]'}),
    "on_dead_dependency": ("keep", {"on_dead": "keep"}),
    "deadline": ("1h", {"deadline_ms": 3_600_000}),
    "retry_on": ("75", {"policy": '{"retry_on": ["75"]}'}),
    "no_retry_on": ("2", {"policy": '{"no_retry_on": ["2"]}'}),
    "success_codes": ("0,3", {"policy": '{"success_codes": [0, 3]}'}),
    "snooze_codes": ("99:5m", {"policy": '{"snooze_codes": {"99": 300000}}'}),
    "memory": ("1K", {"launch": '{"memory_bytes": 1024}'}),
    "cpu_seconds": ("60", {"launch": '{"cpu_seconds": 60}'}),
    "nofile": ("100", {"launch": '{"nofile": 100}'}),
    "file_size": ("1K", {"launch": '{"file_size_bytes": 1024}'}),
    "nice": ("5", {"launch": '{"nice": 5}'}),
    "umask": ("027", {"launch": '{"umask": 23}'}),
    "shell": ("/bin/bash", {"launch": '{"shell": "/bin/bash"}'}),
    "stdin": ("/in", {"launch": '{"stdin_file": "/in"}'}),
    "secrets": ("KEY", {"launch": '{"secrets": ["KEY"]}'}),
}
TIMES = {"run_at", "delay"}
GRAPH = {"after"}
"""What is tried in test_dependencies.py: it changes other rows than its own."""
FIXED = {"id", "hold", "input", "unique", "unique_for", "on_conflict", "group", "max_failures", "on_group_done"}


def change(**fields: object) -> Edit:
    """Read an edit as the command line does."""
    return edit_from_fields(fields, NOW)


def a_job(db: Database, state: State = State.PENDING, **columns: object) -> Job:
    """Add a job that has something of everything."""
    given = {"backoff": '{"base": 3.0}', "env": '{"A": "1"}', "tags": '["x"]', "timeout_ms": 1000, **columns}
    return add_job(db, state, **given)  # type: ignore[arg-type]


@pytest.mark.parametrize("state", [*WAITING, *sorted(FINAL)])
def test_every_field_of_a_job_that_is_not_running_can_be_changed_and_nothing_else_changes(
    db: Database, state: State
) -> None:
    db.read_clock = FakeClock()
    db.write(lambda tx: limits.put(tx, "api", 4))

    for field, (value, columns) in FIELD_EDITS.items():
        job = a_job(db, state)
        (done,) = edit(db, [job.id], change(**{field: value}), who="me")

        after = get_job(db, job.seq)
        lane = db.read(lambda tx, lane=(after.queue, after.needs or ""): queues.lane_of(tx, *lane))  # type: ignore[misc]
        # A deadline is counted from the time of the first run.
        dated = {"deadline_at": max(NOW, job.run_at or 0) + 3_600_000} if field == "deadline" else {}
        assert after == job.replace(**columns, **dated, lane_id=lane, updated_at=NOW), field
        assert (done.job, done.after) == (job, after), field


def test_every_field_is_tried_here() -> None:
    assert FIELD_EDITS.keys() | TIMES | GRAPH == set(EDITABLE)
    assert set(FIELDS) - set(EDITABLE) == FIXED


def test_of_a_running_job_the_tags_alone_can_change(db: Database) -> None:
    add_worker(db)
    job = a_job(db, State.PROCESSING)

    for field, value in {**{name: value for name, (value, _) in FIELD_EDITS.items()}, "delay": "1h"}.items():
        if field == "tags":
            continue
        with pytest.raises(Refused, match="only its tags can change now") as refused:
            edit(db, [job.id], change(**{field: value, "tags": ["z"]}), who="me")
        assert f"queuectl cancel {job.id}" in refused.value.hint
        assert get_job(db, job.seq) == job, field

    edit(db, [job.id], change(tags=["y"]), who="me")
    assert get_job(db, job.seq).tag_list == ["x", "y"]


@pytest.mark.parametrize("state", sorted(FINAL))
def test_a_finished_job_has_no_time_to_change(db: Database, state: State) -> None:
    job = add_job(db, state)

    with pytest.raises(Refused, match="waits for no time") as refused:
        edit(db, [job.id], change(delay="1h", priority=3), who="me")

    assert f"queuectl retry {job.id}" in refused.value.hint
    assert get_job(db, job.seq) == job


def test_a_dead_job_with_a_mended_command_runs_that_when_it_is_retried(db: Database) -> None:
    job = add_job(db, State.DEAD, command="ehco hi", attempts=4)

    edit(db, [job.id], change(command="echo hi", max_retries=1), who="me")
    control.retry(db, [job.id], who="me")

    after = get_job(db, job.seq)
    assert (after.state, after.command, after.max_retries, after.attempts) == (State.PENDING, "echo hi", 1, 0)


@pytest.mark.parametrize(
    "state, held_at, delay_ms, wanted",
    [
        (State.PENDING, None, MINUTE, (State.SCHEDULED, NOW + MINUTE)),
        (State.PENDING, None, 0, (State.PENDING, None)),
        (State.SCHEDULED, None, MINUTE * 9, (State.SCHEDULED, NOW + MINUTE * 9)),
        (State.SCHEDULED, None, 0, (State.PENDING, NOW)),
        (State.FAILED, None, MINUTE * 9, (State.SCHEDULED, NOW + MINUTE * 9)),
        (State.FAILED, None, 0, (State.PENDING, NOW)),
        (State.BLOCKED, NOW, MINUTE, (State.BLOCKED, NOW + MINUTE)),
        (State.BLOCKED, NOW, 0, (State.BLOCKED, NOW)),
    ],
)
def test_a_time_moves_a_waiting_job_to_where_it_belongs(
    db: Database,
    state: State,
    held_at: int | None,
    delay_ms: int,
    wanted: tuple[State, int | None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    db.read_clock = FakeClock()
    job = add_job(db, state, held_at=held_at, attempts=1)
    bell = Bell(db, monkeypatch)

    (done,) = edit(db, [job.id], change(delay=f"{delay_ms}ms", priority=5), who="me")

    after = get_job(db, job.seq)
    assert (after.state, after.run_at) == wanted
    assert (after.held_at, after.attempts, after.priority) == (held_at, 1, 5)
    assert done.after == after
    assert bell.rings == 1


def test_a_time_that_is_past_means_now(db: Database) -> None:
    db.read_clock = FakeClock()
    job = add_job(db, State.SCHEDULED)

    edit(db, [job.id], change(run_at="2020-01-01T00:00:00Z"), who="me")

    assert get_job(db, job.seq).state is State.PENDING


def test_a_new_queue_has_a_lane_that_workers_are_woken_for(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    job = add_job(db)
    bell = Bell(db, monkeypatch)

    edit(db, [job.id], change(queue="never-seen"), who="me")

    after = get_job(db, job.seq)
    assert after.lane_id == db.read(lambda tx: queues.lane_of(tx, "never-seen")) != job.lane_id
    assert bell.rings == 1


def test_tags_and_variables_can_be_taken_away(db: Database) -> None:
    job = add_job(db, tags='["a", "b", "c"]', env='{"A": "1", "B": "2"}')

    less = edit_from_fields({"tags": ["d"]}, NOW, untags=["b"], unset_env=["A", "nowhere"])
    edit(db, [job.id], less, who="me")
    assert (get_job(db, job.seq).tag_list, get_job(db, job.seq).env_map) == (["a", "c", "d"], {"B": "2"})

    edit(db, [job.id], edit_from_fields({"tags": ["e"]}, NOW, has_no_tags=True, unset_env=["B"]), who="me")
    assert (get_job(db, job.seq).tags, get_job(db, job.seq).env) == ('["e"]', None)

    edit(db, [job.id], edit_from_fields({}, NOW, has_no_tags=True), who="me")
    assert get_job(db, job.seq).tags is None


def test_a_timeout_can_be_none_or_the_default(db: Database) -> None:
    job = add_job(db, timeout_ms=5)

    edit(db, [job.id], change(timeout="0"), who="me")
    assert get_job(db, job.seq).timeout_ms == 0

    edit(db, [job.id], change(timeout="default"), who="me")
    assert get_job(db, job.seq).timeout_ms is None


def test_an_edit_that_changes_nothing_says_so_and_touches_nothing(db: Database) -> None:
    job = add_job(db, priority=5)

    (done,) = edit(db, [job.id], change(priority=5), who="me")

    assert done.note == "is so already"
    assert get_job(db, job.seq) == job


def test_several_jobs_are_edited_all_or_none(db: Database) -> None:
    add_worker(db)
    fine, running = add_job(db), add_job(db, State.PROCESSING)

    with pytest.raises(Refused, match=f"job {running.id} is running"):
        edit(db, [fine.id, running.id], change(queue="new"), who="me")

    assert get_job(db, fine.seq) == fine
    assert db.read(lambda tx: queues.get(tx, "new")) is None


def test_too_many_tags_are_refused(db: Database) -> None:
    job = add_job(db, tags='["x"]')

    with pytest.raises(BadInput, match="33 tags; the limit is 32"):
        edit(db, [job.id], change(tags=[f"t{number}" for number in range(32)]), who="me")


def test_of_many_a_job_that_would_have_too_many_tags_is_passed_by(db: Database) -> None:
    full = add_job(db, tags=json.dumps([f"t{number}" for number in range(32)]))
    fine = add_job(db)

    tally = act_on_many(db, choose(db, edit_act(change(tags=["more"])), Selection(names=("1-9",))), who="me")

    assert (tally.count, tally.passed) == (1, {State.PENDING: 1})
    assert (get_job(db, full.seq), get_job(db, fine.seq).tag_list) == (full, ["more"])


@pytest.mark.parametrize(
    "fields, error",
    [
        ({}, BadInput),
        ({"priority": None}, BadInput),
        ({"id": "other"}, UnknownName),
        ({"hold": True}, UnknownName),
        ({"priorty": 3}, UnknownName),
        ({"priority": "high"}, BadInput),
        ({"delay": "1h", "run_at": "now"}, BadInput),
        ({"command": "true", "argv": ["true"]}, BadInput),
        ({"command": " "}, BadInput),
        ({"queue": "a b"}, BadInput),
        ({"timeout": "defaults"}, BadInput),
    ],
)
def test_a_bad_edit_is_refused(fields: dict[str, object], error: type[BadInput]) -> None:
    with pytest.raises(error):
        edit_from_fields(fields, NOW)


def test_what_changed_is_on_record_with_its_values_but_for_secrets(db: Database) -> None:
    add_job(db, priority=1)
    add_job(db, priority=2)
    change = edit_from_fields({"priority": 5, "queue": "mail", "command": "curl -u me:secret", "env": {"A": "s"}}, 0)

    edit(db, ["1", "2"], change, who="me")

    [act] = db.read(lambda tx: audit.newest(tx, 1, action="edit"))
    assert act.target == "1,2 (priority various -> 5, queue default -> mail, command, env)"


HOUR = 3_600_000


@pytest.mark.parametrize(
    "columns, fields, expected",
    [
        ({}, {"deadline": "1h"}, NOW + HOUR),
        ({"run_at": NOW + 9 * HOUR}, {"deadline": "1h"}, NOW + 10 * HOUR),
        ({"run": 1, "run_at": NOW + 9 * HOUR}, {"deadline": "1h"}, NOW + HOUR),
        ({"deadline_ms": 5, "deadline_at": NOW + 1}, {"deadline": "1h"}, NOW + HOUR),
        ({"deadline_ms": HOUR, "deadline_at": NOW + 1}, {"delay": "2h"}, NOW + 3 * HOUR),
        ({"deadline_ms": HOUR, "deadline_at": NOW + 1}, {"delay": "2h", "deadline": "2h"}, NOW + 4 * HOUR),
        ({"deadline_ms": HOUR, "deadline_at": NOW + 1, "run": 1}, {"delay": "2h"}, NOW + 1),
        ({"deadline_ms": HOUR, "deadline_at": NOW + 1}, {"priority": 5}, NOW + 1),
        ({"deadline_ms": HOUR, "deadline_at": NOW + 1}, {"deadline": "none"}, None),
    ],
)
def test_a_deadline_counts_from_when_it_is_given_or_from_the_first_run(
    db: Database, columns: dict[str, int], fields: dict[str, object], expected: int | None
) -> None:
    db.read_clock = FakeClock()
    job = add_job(db, State.FAILED, created_at=NOW - 5 * HOUR, **{"run_at": NOW, **columns})  # type: ignore[arg-type]

    edit(db, [job.id], change(**fields), who="me")

    assert get_job(db, job.seq).deadline_at == expected


def test_a_limit_that_nobody_made_is_refused(db: Database) -> None:
    db.write(lambda tx: limits.put(tx, "api", 4))
    job = add_job(db)

    with pytest.raises(BadInput, match="no limit 'apii'") as refused:
        edit(db, [job.id], change(limits="apii"), who="me")

    assert refused.value.hint == "make it with: queuectl limit set apii 4; nothing was changed"
    assert get_job(db, job.seq) == job


def test_a_policy_that_says_two_things_of_one_end_is_refused(db: Database) -> None:
    job = add_job(db, policy='{"no_retry_on": ["2"], "success_codes": [0, 3]}')

    for fields in ({"retry_on": "2,75"}, {"snooze_codes": "3:5m"}):
        with pytest.raises(BadInput):
            edit(db, [job.id], change(**fields), who="me")

    assert get_job(db, job.seq) == job
