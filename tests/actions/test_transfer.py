"""Export and import: what goes out of one store comes into another as it was, or not at all."""

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from queuectl.actions import control
from queuectl.actions.connect import connect, locate
from queuectl.actions.exporting import export
from queuectl.actions.gatekeeping import set_limit, set_queue
from queuectl.actions.importing import Imported
from queuectl.actions.landing import Rules
from queuectl.actions.submit import submit
from queuectl.errors import BadInput, Refused
from queuectl.model.attempt import Attempt
from queuectl.model.job import Job, JobSpec
from queuectl.model.states import State
from queuectl.model.verdict import OutcomeKind
from queuectl.store import attempts, audit, claims, config, inputs, jobs, limits, queues, removing
from queuectl.store.database import Database, Tx
from queuectl.store.takers import Taker
from tests.actions.moving import AS_IT_IS, RENUMBER, SKIP, bring, lines_of
from tests.store.rows import add_job, add_worker, claim_one, get_job, get_runs

INPUTS = (b"", b"line\n", b"\xff\x00not text")


def add_run(db: Database, job: Job, run: int = 1, tail: bytes = b"", **changes: object) -> None:
    attempt = Attempt(
        job_seq=job.seq, run=run, attempt=1, worker_id="w1", host="here", started_at=5, finished_at=6,
        outcome=OutcomeKind.EXITED, exit_code=1, signal=None, error="exit code 1", cpu_ms=3, peak_memory_bytes=9,
        output_bytes=len(tail), output_file=None, output_tail=tail, stderr_bytes=None, stderr_file=None,
        stderr_tail=None, waited_ms=7, queue="mail",
    ).replace(outcome="exited", **changes)  # fmt: skip
    db.write(lambda tx: attempts.insert_as_they_are(tx, [attempt]))


def fill(db: Database) -> None:
    """Write a job in every state, with everything a row can hold, and what stands beside jobs."""
    for state in State:
        if state is not State.PROCESSING:
            add_job(db, state, queue="mail" if state is State.DEAD else "default", given_id=f"{state}-1")
    full = add_job(
        db, State.BLOCKED, held_at=7_000, split_output=1, timeout_ms=1_500, priority=-3, run=3, attempts=2, losses=1,
        backoff='{"strategy": "fixed", "base": 1.5, "max_ms": 10, "fixed_ms": 5, "jitter": 0.25}', cwd="/tmp/ü",
        env='{"A": "line\\none", "Ü": "ß"}', tags='["one", "two"]', argv='["printf", "a b", "\\u2028"]',
        error="exit code 1", exit_code=1, started_at=1, run_at=2,
    )  # fmt: skip
    add_run(db, full, 1, b"\xff\x00not text\n")
    add_run(db, full, 2, "ünïcode\r\n\x1b[31m\u2028".encode(), output_file=f"0/{full.seq}.2.log")
    add_run(db, full, 3, b"out", stderr_bytes=4, stderr_tail=b"\xfe", stderr_file=f"0/{full.seq}.3.err.log")
    control.set_setting(db, "max_retries", "7", who="me")
    control.pause_queue(db, "mail", who="me")
    settings = {"concurrency": 4, "rate": "10/m", "timeout": 90, "max_retries": 0, "priority": -1}
    set_queue(db, "mail", settings, who="me")
    db.write(lambda tx: queues.set_next_start(tx, "mail", 4_000_000_000_000))
    set_limit(db, "api", 0, who="me")
    specs = [JobSpec(command="cat", input=data, hold=True, limits=("api",), mutexes=("db",)) for data in INPUTS]
    submit(db, specs, who="me", environ={})


def test_what_comes_out_after_a_move_is_what_went_in_but_for_the_time(db: Database, other: Database) -> None:
    fill(db)
    gone = add_job(db)
    db.write(lambda tx: removing.delete(tx, [gone.seq]))  # its number is never given out again, there either
    before = lines_of(db)

    done = bring(other, before)

    assert lines_of(other)[1:] == before[1:]
    assert json.loads(lines_of(other)[0]) | {"exported_at": 0} == json.loads(before[0]) | {"exported_at": 0}
    assert done == Imported(
        jobs=11, runs=3, queues=2, limits=1, schedules=0, groups=0, settings=1, skipped=0, skipped_ids=(), moved=0,
        settings_left=0, waiting_again=0, limits_missing=(), held=0, held_ids=(),
    )  # fmt: skip
    assert submit(other, [JobSpec(command="true")], who="me", environ={}) == [str(gone.seq + 1)]


TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=30)
NAMES = TEXT.map(lambda name: "V" + name.replace("=", ""))
SPECS = st.builds(
    lambda command, argv, env, priority, tags, timeout_ms, split: JobSpec(
        command=None if argv else f"x{command}", argv=argv or None, env=env, priority=priority, tags=tuple(tags),
        timeout_ms=timeout_ms, split_output=split,
    ),
    TEXT, st.lists(TEXT, max_size=3).map(tuple), st.dictionaries(NAMES, TEXT),
    st.integers(-(10**9), 10**9), st.lists(st.sampled_from(["a", "b.c", "d-e"]), unique=True),
    st.none() | st.integers(0, 10**9), st.booleans(),
)  # fmt: skip


@hypothesis_settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(specs=st.lists(SPECS, min_size=1, max_size=5), tails=st.lists(st.binary(max_size=40), min_size=1, max_size=4))
def test_any_job_and_any_output_survives_a_move(
    specs: list[JobSpec], tails: list[bytes], db: Database, other: Database
) -> None:
    ids = submit(db, specs, who="me", environ={})
    job = get_job(db, int(ids[0]))
    db.dialect.script(f"UPDATE jobs SET run = {len(tails)} WHERE seq = {job.seq}")
    for number, tail in enumerate(tails, 1):
        add_run(db, job, number, tail)
    before = lines_of(db)

    bring(other, before)

    assert lines_of(other)[1:] == before[1:]
    assert [run.output_tail for run in get_runs(other, job.seq)] == tails
    for store in (db, other):
        store.write(lambda tx: removing.delete(tx, [int(job_id) for job_id in ids]))


def test_pages_leave_nothing_out_and_repeat_nothing(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("queuectl.actions.exporting.PAGE_JOBS", 2)
    monkeypatch.setattr("queuectl.actions.exporting.PAGE_RUNS", 2)
    added = [add_job(db, run=3) for _ in range(5)]
    for job in added[::2]:
        for run in (1, 2, 3):
            add_run(db, job, run)

    shapes = [json.loads(line) for line in lines_of(db)]

    assert [shape["number"] for shape in shapes if shape["type"] == "job"] == [job.seq for job in added]
    runs = [(shape["job"], shape["run"]) for shape in shapes if shape["type"] == "run"]
    assert runs == [(job.seq, run) for job in added[::2] for run in (1, 2, 3)]
    assert shapes[-1] == {"type": "end", "jobs": 5, "runs": 9}


@pytest.mark.parametrize(
    "wanted, ids",
    [
        (jobs.Filter(states=(State.DEAD, State.FAILED)), ["failed-1", "dead-1"]),
        (jobs.Filter(queue="mail"), ["dead-1"]),
        (jobs.Filter(tags=("two",)), ["8"]),
        (jobs.Filter(states=(State.DEAD,), queue="default"), []),
    ],
)
def test_a_filter_chooses_jobs_with_their_runs_and_nothing_beside(
    db: Database, wanted: jobs.Filter, ids: list[str]
) -> None:
    fill(db)

    shapes = [json.loads(line) for line in lines_of(db, wanted)]

    assert [shape["id"] or str(shape["number"]) for shape in shapes if shape["type"] == "job"] == ids
    assert {shape["type"] for shape in shapes} <= {"header", "job", "run", "end"}


def test_an_export_sees_one_moment(db: Database, target: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("queuectl.actions.exporting.PAGE_JOBS", 1)
    first, second = add_job(db), add_job(db)
    somebody_else = connect(target)  # type: ignore[arg-type]
    seen: list[object] = []

    def write(shape: dict[str, object]) -> None:
        if shape["type"] == "job" and not seen:
            somebody_else.write(lambda tx: removing.delete(tx, [second.seq]))
            submit(somebody_else, [JobSpec(command="true")], who="me", environ={})
        seen.append(shape.get("number"))

    export(db, jobs.Filter(states=(State.PENDING,)), write)
    somebody_else.close()

    assert [number for number in seen if number] == [first.seq, second.seq]


def test_a_job_that_ran_waits_again_with_its_run_number_and_no_loss(db: Database, other: Database) -> None:
    add_worker(db)
    add_job(db, run=4, attempts=1)
    claim_one(db)
    lines = lines_of(db)

    done = bring(other, lines)

    [job] = other.read(lambda tx: jobs.newest(tx, jobs.Filter(), 10))
    assert (job.state, job.run, job.attempts, job.losses, job.worker_id) == (State.PENDING, 5, 1, 0, None)
    assert done.waiting_again == 1
    add_worker(other)
    assert claim_one(other).job.run == 6


def test_a_job_that_was_being_stopped_is_cancelled(db: Database, other: Database) -> None:
    add_job(db, State.PROCESSING, cancel_requested=1)

    done = bring(other, lines_of(db))

    [job] = other.read(lambda tx: jobs.newest(tx, jobs.Filter(), 10))
    assert (job.state, job.cancel_requested, done.waiting_again) == (State.CANCELLED, 0, 0)
    assert job.finished_at is not None


def test_a_number_that_is_taken_refuses_all(db: Database) -> None:
    fill(db)
    before = lines_of(db)

    with pytest.raises(Refused, match=r"11 of the 11 jobs cannot come in: id 'pending-1' is taken, .* and 6 more"):
        bring(db, before)

    assert lines_of(db)[1:] == before[1:]


def test_an_id_that_is_taken_refuses_all_also_with_fresh_numbers(db: Database, other: Database) -> None:
    add_job(db)
    add_job(db, given_id="mine")
    lines = lines_of(db)
    db.write(lambda tx: removing.delete(tx, [1, 2]))
    add_job(db, given_id="mine")

    for rules in (AS_IT_IS, RENUMBER):
        with pytest.raises(Refused, match="1 of the 2 jobs cannot come in: id 'mine' is taken"):
            bring(db, lines, rules)

    assert db.read(lambda tx: jobs.count_matching(tx, jobs.Filter())) == 1


def test_fresh_numbers_follow_those_in_use_and_runs_go_with_their_jobs(db: Database, other: Database) -> None:
    add_job(other, given_id="own")
    job = add_job(db, given_id="far", run=1)
    add_run(db, job, 1, b"tail", output_file=f"0/{job.seq}.1.log")
    add_job(db)

    done = bring(other, lines_of(db), RENUMBER)

    found = other.read(lambda tx: jobs.newest(tx, jobs.Filter(), 10))
    assert [(each.seq, each.given_id) for each in found] == [(3, None), (2, "far"), (1, "own")]
    [run] = get_runs(other, 2)
    assert (run.output_tail, run.output_file) == (b"tail", None), "the file 0/1.1.log is that of job own"
    assert (done.jobs, done.runs) == (2, 1)
    assert submit(other, [JobSpec(command="true")], who="me", environ={}) == ["4"]


def test_jobs_that_exist_are_passed_by_with_their_runs(db: Database, other: Database) -> None:
    known = add_job(db, given_id="both", run=1)
    add_run(db, known)
    bring(other, lines_of(db))
    fresh = add_job(db, run=1)
    add_run(db, fresh)

    done = bring(other, lines_of(db), SKIP)

    assert (done.jobs, done.runs, done.skipped) == (1, 1, 1)
    assert [run.run for run in get_runs(other, fresh.seq)] == [1]
    assert lines_of(other)[1:] == lines_of(db)[1:]


def test_a_job_with_an_id_gets_a_fresh_number_where_its_own_is_taken(db: Database, other: Database) -> None:
    add_job(other, given_id="own")
    job = add_job(db, given_id="far", run=1)
    add_run(db, job, 1, b"tail")
    add_job(db, given_id="farther")

    done = bring(other, lines_of(db), SKIP)

    found = other.read(lambda tx: jobs.newest(tx, jobs.Filter(), 10))
    assert [(each.seq, each.given_id) for each in found] == [(3, "far"), (2, "farther"), (1, "own")]
    assert [run.output_tail for run in get_runs(other, 3)] == [b"tail"]
    assert (done.jobs, done.runs, done.skipped, done.moved) == (2, 1, 0, 1)
    assert other.read(lambda tx: audit.newest(tx, 1))[0].target == "2 to 3"


@pytest.mark.parametrize("own", [{"given_id": "own"}, {"command": "other"}, {"created_at": 5}])
def test_a_number_taken_by_another_job_refuses_all_also_when_passing_by(
    db: Database, other: Database, own: dict[str, object]
) -> None:
    add_job(db, created_at=4)
    add_job(other, **{"created_at": 4, **own})  # type: ignore[arg-type]

    by = "job 'own'" if "given_id" in own else "another job"
    with pytest.raises(Refused, match=rf"1 of the 1 jobs cannot come in: number 1 is taken \(by {by}\)") as caught:
        bring(other, lines_of(db), SKIP)

    assert caught.value.hint.startswith("--renumber")
    assert other.read(lambda tx: jobs.count_matching(tx, jobs.Filter())) == 1


def test_a_job_without_an_id_is_passed_by_when_it_is_the_same(db: Database, other: Database) -> None:
    add_job(db, argv='["printf", "a"]', command=None)
    add_job(db, State.PENDING)
    bring(other, lines_of(db))
    other.dialect.script("UPDATE jobs SET priority = 3")

    done = bring(other, lines_of(db), SKIP)

    assert (done.jobs, done.skipped, done.skipped_ids) == (0, 2, ("1", "2"))


def test_numbers_of_the_file_are_not_given_out_again(db: Database, other: Database) -> None:
    add_job(other)
    db.write(lambda tx: tx.dialect.begin_after("jobs", "seq", 1000))
    add_job(db)

    bring(other, lines_of(db))

    assert submit(other, [JobSpec(command="true")], who="me", environ={}) == ["1002"]


def test_a_job_added_while_an_import_is_under_way_gets_no_number_of_the_file(
    postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On PostgreSQL alone: SQLite has one writer. Fails without the `begin_after` before the import's transaction."""
    target = locate(None, {"QUEUECTL_HOME": str(tmp_path / "home"), "QUEUECTL_DATABASE_URL": postgres_url})
    importing, adding = connect(target), connect(target)
    add_job(importing)
    add_job(importing)
    lines = lines_of(importing)
    importing.write(lambda tx: removing.delete(tx, [1, 2]))
    importing.dialect.script("ALTER SEQUENCE jobs_seq_seq RESTART WITH 1")
    record = audit.record
    added: list[str] = []

    def add_meanwhile(tx: Tx, *words: object) -> None:
        record(tx, *words)  # type: ignore[arg-type]
        if not added:
            added.append("under way")
            added[:] = submit(adding, [JobSpec(command="true")], who="me", environ={})

    monkeypatch.setattr(audit, "record", add_meanwhile)
    bring(importing, lines)

    assert added == ["3"]
    assert [job.seq for job in importing.read(lambda tx: jobs.newest(tx, jobs.Filter(), 9))] == [3, 2, 1]
    importing.close()
    adding.close()


def test_numbers_passed_once_are_not_taken_back(db: Database) -> None:
    db.write(lambda tx: tx.dialect.begin_after("jobs", "seq", 50))
    db.write(lambda tx: tx.dialect.begin_after("jobs", "seq", 20))

    assert db.read(lambda tx: tx.dialect.last_number("jobs", "seq")) == 50
    assert submit(db, [JobSpec(command="true")], who="me", environ={}) == ["51"]


def test_settings_of_a_store_that_has_its_own_stay_unless_asked_for(db: Database, other: Database) -> None:
    control.set_setting(db, "max_retries", "7", who="me")
    control.set_setting(other, "shell", "/bin/bash", who="me")

    left = bring(other, lines_of(db))
    kept = other.read(config.stored)
    taken = bring(other, lines_of(db), Rules(settings=True))

    assert (left.settings, left.settings_left, kept) == (0, 1, {"shell": "/bin/bash"})
    assert (taken.settings, taken.settings_left) == (1, 0)
    assert other.read(config.stored) == {"shell": "/bin/bash", "max_retries": "7"}


def test_settings_that_do_not_fit_those_of_the_store_refuse_all(db: Database, other: Database) -> None:
    add_job(db)
    control.set_setting(db, "worker_heartbeat_interval", "20s", who="me")
    control.set_setting(other, "lock_lease_seconds", "30s", who="me")

    with pytest.raises(BadInput, match="too short"):
        bring(other, lines_of(db), Rules(settings=True))

    assert other.read(config.stored) == {"lock_lease_seconds": "30"}
    assert not other.read(jobs.has_any)


def test_a_queue_that_is_there_keeps_its_own_state(db: Database, other: Database) -> None:
    control.pause_queue(db, "mail", who="me")
    control.pause_queue(db, "new", who="me")
    add_job(other, queue="mail")

    done = bring(other, lines_of(db))

    assert {queue.name: bool(queue.paused_at) for queue in other.read(queues.all_queues)} == {
        "mail": False,
        "new": True,
    }
    assert done.queues == 1


def test_an_import_is_on_record_and_wakes_workers(db: Database, other: Database) -> None:
    control.set_setting(db, "max_retries", "7", who="me")
    add_job(db)
    add_job(db)
    rung: list[str] = []
    other._ring = lambda: rung.append("rung")

    bring(other, lines_of(db))

    acts = other.read(lambda tx: audit.newest(tx, 10))
    assert [(act.who, act.action, act.target, act.count) for act in acts] == [
        ("me", "import", "1 to 2", 2),
        ("me", "config set", "max_retries=7", 1),
    ]
    assert rung == ["rung"]


@pytest.mark.parametrize("cut", [1, 2, 3])
def test_a_file_that_was_cut_off_writes_nothing(db: Database, other: Database, cut: int) -> None:
    fill(db)

    with pytest.raises(BadInput, match="cut off"):
        bring(other, lines_of(db)[:-cut])

    assert not other.read(jobs.has_any)
    assert other.read(queues.all_queues) == []


def test_a_bad_last_line_writes_nothing(db: Database, other: Database) -> None:
    fill(db)
    lines = lines_of(db)
    lines[-2] = b'{"type": "run"'

    with pytest.raises(BadInput, match=f"line {len(lines) - 1}: broken JSON at column 15"):
        bring(other, lines)

    assert not other.read(jobs.has_any)
    assert other.read(config.stored) == {}


def test_inputs_follow_their_jobs_to_fresh_numbers(db: Database, other: Database) -> None:
    add_job(other)
    submit(db, [JobSpec(command="cat", input=data) for data in INPUTS], who="me", environ={})

    bring(other, lines_of(db), RENUMBER)

    assert [other.read(lambda tx, seq=seq: inputs.get(tx, seq)) for seq in (2, 3, 4)] == list(INPUTS)  # type: ignore[misc]


def test_a_limit_that_is_there_keeps_its_number(db: Database, other: Database) -> None:
    set_limit(db, "api", 4, who="me")
    set_limit(db, "new", 2, who="me")
    set_limit(other, "api", 1, who="me")

    done = bring(other, lines_of(db))

    assert done.limits == 1
    assert [(limit.name, limit.slots) for limit in other.read(limits.all_limits)] == [("api", 1), ("new", 2)]


def test_a_job_that_waited_for_a_limit_is_ready_and_runs_when_nobody_holds_it(db: Database, other: Database) -> None:
    """Whoever held it in the old store will not let it go in this one."""
    add_worker(db)
    submit(db, [JobSpec(command="true", mutexes=("db",))] * 3, who="me", environ={})
    held = claim_one(db).job
    [parked] = [seq for seq in (1, 2, 3) if get_job(db, seq).parked_for][:1]
    lines = [line for line in lines_of(db) if json.loads(line).get("number") in (None, parked)]
    lines[-1] = json.dumps({"type": "end", "jobs": 1, "runs": 0}).encode()

    bring(other, lines)

    assert parked != held.seq
    assert (get_job(other, parked).state, get_job(other, parked).parked_for) == (State.PENDING, None)
    add_worker(other)
    assert claim_one(other).job.seq == parked


def test_imported_jobs_keep_to_their_mutex(db: Database, other: Database) -> None:
    submit(db, [JobSpec(command="true", mutexes=("db",))] * 3, who="me", environ={})

    bring(other, lines_of(db))

    add_worker(other)
    taken = other.write(lambda tx: claims.claim(tx, Taker(worker_id="w1"), 5).claims)
    assert [claim.job.seq for claim in taken] == [1]
    assert [get_job(other, seq).state for seq in (2, 3)] == [State.BLOCKED, State.BLOCKED]


def test_limits_that_jobs_name_and_nobody_made_are_told(db: Database, other: Database) -> None:
    set_limit(db, "api", 4, who="me")
    submit(db, [JobSpec(command="true", limits=("api",))], who="me", environ={})

    done = bring(other, lines_of(db, jobs.Filter(states=(State.PENDING,))))

    assert (done.limits, done.limits_missing) == (0, ("api",))


def test_a_job_that_ran_has_no_units_any_more(db: Database, other: Database) -> None:
    add_worker(db)
    add_job(db, State.PROCESSING, needs='{"labels": [], "use": {"gpu": 1}}', units='{"gpu": [0]}')

    bring(other, lines_of(db))

    job = get_job(other, 1)
    assert (job.state, job.units, job.needs) == (State.PENDING, None, '{"labels": [], "use": {"gpu": 1}}')
