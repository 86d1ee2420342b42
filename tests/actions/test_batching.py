"""Batches: what a file of jobs leaves in the store is what the same jobs leave when each is added as a whole."""

import pytest

from queuectl.actions.batching import enter_batch
from queuectl.actions.control import set_setting
from queuectl.actions.gatekeeping import set_queue
from queuectl.actions.submit import Added, Entry, Fate, enter, ids_of, notes_of
from queuectl.errors import BadInput, Refused
from queuectl.model.batch import Batch
from queuectl.model.job import Job, JobSpec
from queuectl.model.joblines import read_job_lines
from queuectl.model.states import State
from queuectl.store import audit, jobs
from queuectl.store.database import Database
from queuectl.store.sqlite import ROWS_AT_ONCE
from tests.actions.bells import Bell
from tests.store.rows import NOW, FakeClock, last_act

FULL = JobSpec(
    cwd="/srv", queue="mail", env={"A": "ü"}, tags=("x", "y"), needs=("gpu",), use={"mem": 5}, deadline_ms=60_000,
    policy={"success_codes": [0, 3]}, launch={"nice": 5}, backoff={"base": 3.0}, split_output=True, priority=4,
    max_retries=1, timeout_ms=500,
)  # fmt: skip
BASES = {
    "plain": JobSpec(cwd="/srv"),
    "no folder": JobSpec(),
    "in a queue with terms": JobSpec(queue="termed"),
    "full": FULL,
    "held": JobSpec(hold=True),
    "delayed": JobSpec(delay_ms=5_000),
    "due": JobSpec(run_at=NOW - 1),
    "in a group": JobSpec(group="g"),
    "with an empty input": JobSpec(input=b""),
}
FILES = {
    "lines": "echo 1\necho 'ü'\n",
    "JSON": '{"command": "a", "priority": 7, "timeout": 2}\n{"command": "b", "max_retries": 0, "cwd": "/tmp"}\n',
    "both": 'echo 1\n{"command": "b", "priority": 0}\n',
    "of other queues": '{"command": "a", "queue": "termed"}\n{"command": "b", "queue": "other", "tags": ["t"]}\n',
    "with words and waits": '{"argv": ["a", "b"]}\n{"command": "b", "delay": "1m", "hold": true}\n',
}


def batch_of(text: str, base: JobSpec | None = None) -> Batch:
    """Read a file."""
    return read_job_lines(text, NOW, base or JobSpec())


def put(db: Database, text: str, base: JobSpec | None = None) -> list[str]:
    """Add the jobs of a file as a person would."""
    return list(ids_of(enter_batch(db, batch_of(text, base), who="me@here", environ={})))


def all_jobs(db: Database) -> list[Job]:
    """Return all jobs, oldest first."""
    return db.read(lambda tx: jobs.newest(tx, jobs.Filter(), 1_000))[::-1]


@pytest.mark.parametrize("text", FILES.values(), ids=FILES)
@pytest.mark.parametrize("base", BASES.values(), ids=BASES)
def test_a_job_of_a_batch_is_stored_as_one_by_itself(db: Database, base: JobSpec, text: str) -> None:
    db.read_clock = FakeClock()
    set_setting(db, "max_retries", "9", who="me")
    set_queue(db, "termed", {"timeout": "7s", "priority": 3, "max_retries": 5}, who="me")

    ids = put(db, text, base)
    whole = enter(db, list(batch_of(text, base)), who="me@here", environ={})

    stored = [{**job.as_dict(), "seq": 0} for job in all_jobs(db)]
    assert stored[: len(ids)] == stored[len(ids) :]
    assert ids == [str(number) for number in range(1, len(whole) + 1)]


@pytest.mark.parametrize("count", [1, ROWS_AT_ONCE, ROWS_AT_ONCE + 1, 5 * ROWS_AT_ONCE])
def test_a_batch_is_stored_whole_and_in_order(db: Database, count: int) -> None:
    ids = put(db, "".join(f'{{"command": "echo {number}", "id": "job-{number}"}}\n' for number in range(count)))

    expected = [(f"job-{number}", f"echo {number}") for number in range(count)]
    assert ids == [job_id for job_id, _ in expected]
    assert [(job.id, job.command) for job in all_jobs(db)] == expected


def test_ids_may_be_given_to_some(db: Database) -> None:
    assert put(db, 'echo 1\n{"command": "a", "id": "job2"}\necho 3') == ["1", "job2", "3"]


def test_jobs_of_a_batch_that_share_a_mutex_or_a_key_know_of_each_other(db: Database) -> None:
    put(db, "echo 1\necho 2", JobSpec(mutexes=("m",)))
    ids = put(db, '{"command": "a", "unique": "k"}\n{"command": "b", "unique": "k"}\n{"command": "c", "after": ["1"]}')

    assert ids == ["3", "3", "4"]
    assert [(job.state, job.parked_for, job.waits_for) for job in all_jobs(db)] == [
        (State.PENDING, None, 0),
        (State.BLOCKED, "mutex:m", 0),
        (State.PENDING, None, 0),
        (State.BLOCKED, None, 1),
    ]


def test_an_id_that_is_taken_refuses_a_batch_and_leaves_nothing(db: Database) -> None:
    put(db, '{"command": "a", "id": "job1"}')

    with pytest.raises(Refused, match="job 'job1' exists already"):
        put(db, 'true\n{"command": "b", "id": "job1"}')

    assert [job.command for job in all_jobs(db)] == ["a"]


def test_an_id_that_is_given_twice_refuses_a_batch(db: Database) -> None:
    with pytest.raises(BadInput, match="id 'job1' is given twice"):
        put(db, '{"command": "a", "id": "job1"}\n{"command": "b", "id": "job1"}')

    assert all_jobs(db) == []


def test_a_batch_is_on_record_and_wakes_idle_workers_once(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    bell = Bell(db, monkeypatch)

    put(db, "echo 1\necho 2\necho 3")

    assert last_act(db) == ("me@here", "enqueue", "1 to 3", 3)
    assert bell.rings == 1


def test_an_empty_batch_is_no_act(db: Database) -> None:
    assert put(db, "# nothing\n") == []
    assert db.read(lambda tx: audit.newest(tx, 9)) == []


def test_entries_of_a_batch_are_those_of_jobs_added_one_by_one() -> None:
    added = Added(range(3, 6), ["3", "job4", "5"])

    whole = [Entry(seq=3, id="3"), Entry(seq=4, id="job4"), Entry(seq=5, id="5")]
    assert (list(added), added[-1], added[:2], len(added)) == (whole, whole[-1], whole[:2], 3)
    assert (ids_of(added), notes_of(added)) == (ids_of(whole), notes_of(whole))


def test_ids_leave_out_what_was_skipped_and_notes_what_says_nothing() -> None:
    entries = [Entry(seq=1, id="1", fate=Fate.SKIPPED, note="skipped"), Entry(seq=2, id="2")]

    assert (ids_of(entries), notes_of(entries)) == (["2"], ["skipped"])
