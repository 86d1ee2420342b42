"""Submit: one or thousands of jobs, all or none, each with a number that is never given out again."""

import psycopg
import pytest

from queuectl.actions.control import delete, set_setting
from queuectl.actions.submit import submit
from queuectl.errors import BadInput, CommitInDoubt, Refused
from queuectl.model.job import Job, JobSpec
from queuectl.model.states import State
from queuectl.store import audit, claims, jobs, queues
from queuectl.store.database import Database
from queuectl.store.sqlite import ROWS_AT_ONCE
from queuectl.store.takers import Taker
from tests.actions.bells import Begins, Bell
from tests.store.rows import NOW, FakeClock, last_act

TRUE = JobSpec(command="true")


def put(db: Database, *specs: JobSpec) -> list[str]:
    """Submit as a person would."""
    return submit(db, specs, who="me@here", environ={})


def found(db: Database, job_id: str) -> Job:
    """Return a job that must be there."""
    job = db.read(lambda tx: jobs.find(tx, job_id))
    assert job is not None
    return job


def test_jobs_get_consecutive_numbers(db: Database) -> None:
    assert put(db, TRUE, TRUE) + put(db, TRUE) == ["1", "2", "3"]


@pytest.mark.parametrize("count", [ROWS_AT_ONCE - 1, ROWS_AT_ONCE, ROWS_AT_ONCE + 1, 2 * ROWS_AT_ONCE + 1])
def test_a_batch_of_any_size_is_stored_whole_and_in_order(db: Database, count: int) -> None:
    ids = put(db, *(JobSpec(command=f"echo {number}") for number in range(count)))

    stored = db.read(lambda tx: jobs.newest(tx, jobs.Filter(), 1_000))
    assert [(job.id, job.command) for job in reversed(stored)] == [
        (job_id, f"echo {number}") for number, job_id in enumerate(ids)
    ]
    assert ids == [str(number) for number in range(1, count + 1)]


def test_a_given_id_is_the_id_and_the_job_has_a_number_all_the_same(db: Database) -> None:
    assert put(db, TRUE.replace(given_id="job1"), TRUE) == ["job1", "2"]
    assert found(db, "1") == found(db, "job1")


def test_a_number_is_not_given_out_again_after_the_newest_job_was_deleted(db: Database) -> None:
    put(db, TRUE, TRUE)
    delete(db, ["1", "2"], who="me")

    assert put(db, TRUE) == ["3"]


def test_a_job_is_stored_as_it_was_asked_for(db: Database) -> None:
    db.read_clock = FakeClock()
    spec = JobSpec(
        given_id="job1", argv=("printf", "ü %s", ""), queue="mail", priority=-4, max_retries=0, timeout_ms=1_500,
        backoff={"base": 3.0}, cwd="/srv", env={"NAME": "wört=1"}, tags=("x", "y"),
    )  # fmt: skip

    put(db, spec)

    job = found(db, "job1")
    assert (job.argv_list, job.env_map, job.tag_list) == (["printf", "ü %s", ""], {"NAME": "wört=1"}, ["x", "y"])
    assert (job.queue, job.priority, job.max_retries, job.timeout_ms, job.cwd) == ("mail", -4, 0, 1_500, "/srv")
    assert (job.state, job.attempts, job.run, job.created_at, job.command) == (State.PENDING, 0, 0, NOW, None)
    assert job.backoff == '{"base": 3.0}'


@pytest.mark.parametrize(
    "spec, state, run_at",
    [
        (TRUE, State.PENDING, None),
        (TRUE.replace(delay_ms=5_000), State.SCHEDULED, NOW + 5_000),
        (TRUE.replace(delay_ms=0), State.PENDING, NOW),
        (TRUE.replace(run_at=NOW + 1), State.SCHEDULED, NOW + 1),
        (TRUE.replace(run_at=NOW - 1), State.PENDING, NOW - 1),
    ],
)
def test_a_job_with_a_time_in_the_future_waits_for_it(
    db: Database, spec: JobSpec, state: State, run_at: int | None
) -> None:
    db.read_clock = FakeClock()

    put(db, spec)

    job = found(db, "last")
    assert (job.state, job.run_at) == (state, run_at)


def test_a_duplicate_id_refuses_the_whole_batch_and_leaves_nothing(db: Database) -> None:
    put(db, TRUE.replace(given_id="taken"))
    batch = [TRUE.replace(queue="new"), TRUE.replace(given_id="taken")]

    with pytest.raises(Refused, match="job 'taken' exists already") as refused:
        put(db, *batch)

    assert refused.value.exit_code == 6
    assert db.read(lambda tx: jobs.count_matching(tx, jobs.Filter())) == 1
    assert db.read(lambda tx: queues.get(tx, "new")) is None
    assert len(db.read(lambda tx: audit.newest(tx, 9))) == 1


def test_an_id_that_is_given_twice_in_a_batch_is_bad_input(db: Database) -> None:
    with pytest.raises(BadInput, match="id 'a' is given twice"):
        put(db, TRUE.replace(given_id="a"), TRUE, TRUE.replace(given_id="a"))

    assert db.read(lambda tx: jobs.count_matching(tx, jobs.Filter())) == 0


def test_the_id_of_a_deleted_job_is_free_again(db: Database) -> None:
    put(db, TRUE.replace(given_id="a"))
    delete(db, ["a"], who="me")

    assert put(db, TRUE.replace(given_id="a")) == ["a"]
    assert found(db, "a").seq == 2


@pytest.mark.parametrize("count", [3_000])
def test_thousands_of_jobs_are_written_in_one_transaction_in_order(
    db: Database, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    specs = [JobSpec(command=f"echo {number}", queue=f"q{number % 3}") for number in range(count)]
    begins = Begins(db, monkeypatch)

    ids = put(db, *specs)

    assert begins.count == 1
    assert ids == [str(number) for number in range(1, count + 1)]
    assert [found(db, ids[number]).command for number in (0, count - 1)] == ["echo 0", f"echo {count - 1}"]
    taken = db.write(lambda tx: claims.claim(tx, Taker(worker_id="w1"), 5).claims)
    assert [claim.job.command for claim in taken] == [f"echo {number}" for number in range(5)]


def test_thousands_of_given_ids_are_checked_too(db: Database) -> None:
    specs = [TRUE.replace(given_id=f"job-{number}x") for number in range(1_200)]
    put(db, specs[-1])

    with pytest.raises(Refused, match="job-1199x"):
        put(db, *specs)

    assert db.read(lambda tx: jobs.count_matching(tx, jobs.Filter())) == 1


def test_an_enqueue_is_on_record(db: Database) -> None:
    put(db, TRUE)
    one = last_act(db)
    put(db, TRUE, TRUE.replace(given_id="b"))

    assert one == ("me@here", "enqueue", "1", 1)
    assert last_act(db) == ("me@here", "enqueue", "2 to b", 2)


def test_no_jobs_are_no_act(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    bell = Bell(db, monkeypatch)

    assert put(db) == []
    assert bell.rings == 0
    assert db.read(lambda tx: audit.newest(tx, 9)) == []


def test_an_enqueue_wakes_idle_workers_once(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    bell = Bell(db, monkeypatch)

    put(db, TRUE, TRUE, TRUE)

    assert bell.rings == 1


def test_a_refused_enqueue_wakes_nobody(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    put(db, TRUE.replace(given_id="a"))
    bell = Bell(db, monkeypatch)

    with pytest.raises(Refused):
        put(db, TRUE.replace(given_id="a"))

    assert bell.rings == 0


def test_the_number_of_retries_is_fixed_at_enqueue_from_job_environment_or_database(db: Database) -> None:
    set_setting(db, "max_retries", "7", who="me")

    submit(db, [TRUE], who="me", environ={})
    submit(db, [TRUE], who="me", environ={"QUEUECTL_MAX_RETRIES": "8"})
    submit(db, [TRUE.replace(max_retries=0)], who="me", environ={"QUEUECTL_MAX_RETRIES": "8"})
    set_setting(db, "max_retries", "1", who="me")

    assert [found(db, job_id).max_retries for job_id in ("1", "2", "3")] == [7, 8, 0]


def break_commit(db: Database, monkeypatch: pytest.MonkeyPatch, *, is_made: bool) -> None:
    """Let the connection break at the next COMMIT, after or before the server has made it."""
    commit = db.dialect.commit

    def broken() -> None:
        monkeypatch.setattr(db.dialect, "commit", commit)
        if is_made:
            commit()
        db.dialect.close()
        raise psycopg.OperationalError("server closed the connection unexpectedly")

    monkeypatch.setattr(db.dialect, "commit", broken)


on_postgres = pytest.mark.parametrize("target", ["postgres"], indirect=True)


@on_postgres
def test_a_job_whose_commit_was_made_is_found_though_the_answer_was_lost(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(db, TRUE)
    break_commit(db, monkeypatch, is_made=True)

    ids = put(db, TRUE, TRUE.replace(given_id="named"))

    assert ids == ["2", "named"]
    assert [found(db, job_id).seq for job_id in ids] == [2, 3]


@on_postgres
def test_a_job_that_is_not_to_be_seen_after_a_lost_answer_may_still_come(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(db, TRUE)
    break_commit(db, monkeypatch, is_made=False)

    with pytest.raises(CommitInDoubt) as caught:
        put(db, TRUE.replace(given_id="named"))

    assert caught.value.exit_code == 5
    assert caught.value.hint == "named may have been added all the same; look before you repeat it: queuectl show named"
