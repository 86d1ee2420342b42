"""The Python face against real stores and real workers."""

import os
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from queuectl import BadInput, JobFailed, NotFound, Queue, Refused, State, WaitTimedOut
from queuectl.actions.connect import Target
from queuectl.store import audit
from tests.program import Cli


@pytest.fixture
def queue(target: Target, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Queue]:
    """A queue of each kind, found through the environment as a program would find it."""
    monkeypatch.setenv("QUEUECTL_HOME", target.home.root)
    if target.sqlite_path is None:
        monkeypatch.setenv("QUEUECTL_DATABASE_URL", target.url)
    monkeypatch.chdir(tmp_path)
    with Queue() as queue:
        yield queue


def test_a_job_is_added_run_and_read(queue: Queue, cli: Cli) -> None:
    job = queue.enqueue("echo hello; exit 3", priority=5, max_retries=0, tags=["a"], id="greet")
    assert (job.id, job.number, job.state, job.exit_code, job.priority) == ("greet", 1, State.PENDING, None, 5)
    cli.drain()

    assert job.wait() is job

    assert (job.state, job.exit_code, job.error, job.attempts) == (State.DEAD, 3, "exit code 3", 1)
    [run] = job.runs
    assert (run.number, run.attempt, run.outcome, run.exit_code, run.output_bytes) == (1, 1, "exited", 3, 6)
    assert job.finished_at is not None
    assert job.created_at <= run.started_at <= job.finished_at


def test_a_wait_returns_when_a_worker_has_ended_the_job(queue: Queue, cli: Cli) -> None:
    cli.ok("worker", "start", "-d")
    job = queue.enqueue("sleep 0.3")

    assert job.wait(timeout=30, check=True).state is State.COMPLETED


def test_words_are_run_without_a_shell(queue: Queue, cli: Cli) -> None:
    job = queue.enqueue(["touch", "two words; $(no shell)"])

    cli.drain()

    assert job.wait(check=True).command == "touch 'two words; $(no shell)'"
    assert Path("two words; $(no shell)").exists()


def test_python_types_stand_for_times_durations_and_folders(queue: Queue, tmp_path: Path) -> None:
    when = datetime.now(UTC) + timedelta(hours=2)

    at = queue.enqueue("true", run_at=when, timeout=timedelta(minutes=1), cwd=tmp_path)
    after = queue.enqueue("true", delay=timedelta(days=1))

    assert at.state is after.state is State.SCHEDULED
    assert at.run_at is not None
    assert after.run_at is not None
    assert abs(at.run_at - when) < timedelta(milliseconds=2)
    assert timedelta(hours=23) < after.run_at - datetime.now(UTC) < timedelta(hours=25)


def test_many_are_added_all_or_none(queue: Queue) -> None:
    jobs = queue.enqueue_many(["true", ["echo", "a b"], {"command": "false", "id": "third", "queue": "mail"}])

    assert [(job.id, job.command, job.queue) for job in jobs] == [
        ("1", "true", "default"),
        ("2", "echo 'a b'", "default"),
        ("third", "false", "mail"),
    ]
    with pytest.raises(Refused, match="'third' exists already"):
        queue.enqueue_many(["true", {"command": "true", "id": "third"}])
    with pytest.raises(BadInput, match="command is empty"):
        queue.enqueue_many(["true", " "])
    assert queue.count() == 3
    assert queue.enqueue_many([]) == []


@pytest.mark.parametrize(
    "options, message",
    [
        ({"priority": "high"}, "priority"),
        ({"queue": "../x"}, "bad queue"),
        ({"prioritty": 1}, "did you mean 'priority'"),
        ({"timeout": -1}, "timeout"),
    ],
)
def test_what_cannot_be_a_job_is_refused(queue: Queue, options: dict[str, object], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        queue.enqueue("true", **options)  # type: ignore[arg-type]

    assert queue.count() == 0


def test_jobs_are_gone_through_newest_first_page_by_page(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("queuectl.api.queue.PAGE", 2)
    queue.enqueue_many([{"command": f"echo {n}", "tags": ["even"] if n % 2 == 0 else []} for n in range(1, 8)])

    walk = queue.jobs()
    first = next(walk)
    queue.enqueue("echo new")

    assert [first.id, *(job.id for job in walk)] == ["7", "6", "5", "4", "3", "2", "1"]
    assert [job.id for job in queue.jobs(tags=["even"])] == ["6", "4", "2"]
    assert [job.id for job in queue.jobs(command="echo 3")] == ["3"]
    assert queue.count(states=["pending"], since="1h") == 8
    assert queue.count(until=timedelta(hours=1)) == 0
    assert queue.count(queue="mail") == 0


def test_an_unknown_state_is_refused_with_the_nearest(queue: Queue) -> None:
    with pytest.raises(BadInput, match="did you mean 'pending'"):
        list(queue.jobs(states=["pendign"]))


def test_a_job_is_cancelled_retried_and_deleted(queue: Queue) -> None:
    job = queue.enqueue("true")

    assert job.cancel().state is State.CANCELLED
    assert job.retry().state is State.PENDING
    job.delete()

    with pytest.raises(NotFound):
        job.refresh()
    with pytest.raises(NotFound):
        queue.job(job.number)


def test_a_job_is_found_by_id_number_and_last(queue: Queue) -> None:
    job = queue.enqueue("true", id="one")

    assert queue.job("one") == queue.job(1) == queue.job("last") == job
    assert len({queue.job("one"), job}) == 1


def test_a_wait_ends_at_its_time(queue: Queue) -> None:
    job = queue.enqueue("true")

    with pytest.raises(WaitTimedOut, match="1 job not over in time: 1"):
        job.wait(timeout=0.1)


def test_a_failure_is_raised_when_asked_for(queue: Queue) -> None:
    job = queue.enqueue("true").cancel()

    with pytest.raises(JobFailed, match="job 1 is cancelled"):
        job.wait(check=True)


def test_several_are_waited_for_all_or_any(queue: Queue, cli: Cli) -> None:
    done, never = queue.enqueue("true"), queue.enqueue("true", delay="1h")
    cli.drain()

    assert queue.wait_any(done, never) == [done]
    with pytest.raises(WaitTimedOut):
        queue.wait(done, never.id, timeout=0.1)


def test_a_wait_in_one_thread_hears_of_what_another_does(queue: Queue) -> None:
    job = queue.enqueue("true")

    def cancel() -> None:
        with Queue() as own:
            own.job(job.number).cancel()

    thread = threading.Thread(target=cancel)
    thread.start()

    assert job.wait(timeout=100).state is State.CANCELLED
    thread.join()


def test_where_no_worker_is_run_does_it_itself(queue: Queue) -> None:
    job = queue.run("exit 4")

    assert (job.state, job.exit_code, job.max_retries) == (State.DEAD, 4, 0)


def test_a_run_that_takes_too_long_is_not_waited_for(queue: Queue) -> None:
    with pytest.raises(WaitTimedOut):
        queue.run("until test -e go; do sleep 0.02; done", wait_timeout=0.5)

    job = queue.job("last")
    assert job.state in (State.PENDING, State.PROCESSING)
    Path("go").touch()
    assert job.wait(timeout=60).state is State.COMPLETED


def test_run_leaves_the_other_jobs_alone(queue: Queue) -> None:
    waiting = queue.enqueue("true", priority=100)

    queue.run("true")

    assert waiting.state is State.PENDING


def test_a_queue_is_paused_and_resumed_and_settings_are_set(queue: Queue, cli: Cli) -> None:
    job = queue.enqueue("true")
    queue.pause("default")
    cli.drain()
    assert job.state is State.PENDING

    queue.resume("default")
    queue.set("max_retries", 7)

    assert queue.settings()["max_retries"] == 7
    assert queue.enqueue("true").max_retries == 7
    assert queue.counts()[State.PENDING] == 2
    with pytest.raises(BadInput, match="unknown setting 'max_retry'"):
        queue.set("max_retry", 1)


def test_a_store_is_named_by_url_or_home(tmp_path: Path) -> None:
    with Queue(home=tmp_path / "home") as first, Queue(f"sqlite://{tmp_path}/other.db") as second:
        first.enqueue("true")

        assert (first.count(), second.count()) == (1, 0)
    assert os.path.exists(tmp_path / "home" / "queue.db")


def test_acts_are_on_record(queue: Queue) -> None:
    queue.enqueue("true").cancel()

    acts = queue._database.read(lambda tx: audit.newest(tx, 10))

    assert [act.action for act in acts] == ["cancel", "enqueue"]


def test_output_is_read_whole_by_run_and_by_stream(queue: Queue, cli: Cli) -> None:
    shaky = queue.enqueue('echo "run $QUEUECTL_RUN"; test "$QUEUECTL_RUN" = 2', backoff_base=0.05)
    split = queue.enqueue("echo out; printf '\\377' >&2", split_output=True)
    unrun = queue.enqueue("true", delay="1h")
    cli.drain()

    assert shaky.output() == "run 2\n"
    assert shaky.output(run=1) == "run 1\n"
    assert (split.output(stream="stdout"), split.output_bytes(stream="stderr")) == ("out\n", b"\xff")
    assert unrun.output() == ""
    with pytest.raises(NotFound, match="has no run 9"):
        shaky.output(run=9)
    with pytest.raises(BadInput, match="unknown stream 'sdtout'"):
        split.output(stream="sdtout")


def test_output_is_followed_until_the_job_ends(queue: Queue, cli: Cli) -> None:
    cli.ok("worker", "start", "-d")
    job = queue.enqueue('echo "run $QUEUECTL_RUN"; test "$QUEUECTL_RUN" = 2', backoff_base=0.05)

    assert b"".join(job.follow()) == b"run 1\nrun 2\n"


def test_a_dead_job_is_edited_and_retried(queue: Queue, cli: Cli) -> None:
    job = queue.enqueue("false", max_retries=0, tags=["a"])
    cli.drain()

    job.edit(command="true", priority=7, tags=["b"], untags=["a"], timeout=timedelta(seconds=90)).retry()
    cli.drain()

    assert (job.state, job.command, job.priority, job.refresh().tags) == (State.COMPLETED, "true", 7, ["b"])
    with pytest.raises(BadInput, match="nothing to change"):
        job.edit()


def test_a_job_is_held_and_released(queue: Queue) -> None:
    job = queue.enqueue("true", hold=True)

    assert job.state is State.BLOCKED
    assert job.release().state is State.PENDING
    assert job.hold().state is State.BLOCKED


def test_many_jobs_are_changed_by_name_by_range_and_by_choice(queue: Queue) -> None:
    queue.enqueue_many([{"command": f"echo {n}", "tags": ["x"] if n > 3 else []} for n in range(1, 7)])

    assert queue.hold("1-2") == 2
    assert queue.release(1, 2) == 2
    assert queue.cancel(tags=["x"]) == 3
    assert queue.retry(states=["cancelled"], command="echo 4") == 1
    assert queue.delete("last", 1) == 2
    with pytest.raises(Refused):
        queue.cancel(2, 5)
    with pytest.raises(BadInput, match="which jobs"):
        queue.delete()
    assert queue.counts()[State.PENDING] == 3


def test_the_store_is_pruned_backed_up_and_restored(queue: Queue, tmp_path: Path) -> None:
    queue.enqueue("true").cancel()
    queue.enqueue("true")
    queue.set("retention_cancelled", "1ms")

    assert queue.backup(tmp_path / "copy.db") == 2
    assert queue.prune(dry_run=True) == 1
    assert queue.prune() == 1
    assert queue.restore(tmp_path / "copy.db") == 2

    assert queue.count() == 2


def test_jobs_move_to_another_store(queue: Queue, tmp_path: Path) -> None:
    queue.enqueue_many(["true", "echo \u00fc"])
    with open(tmp_path / "jobs.jsonl", "w") as file:
        assert queue.export(file) == 2

    with Queue(home=tmp_path / "other") as other, open(tmp_path / "jobs.jsonl") as file:
        assert other.import_(file) == 2

        assert [job.command for job in other.jobs()] == ["echo \u00fc", "true"]


def test_doctor_and_audit_answer(queue: Queue) -> None:
    queue.enqueue("true")

    assert {"level", "what", "mend"} <= set(queue.doctor()[0].FIELDS)
    assert [(act.action, act.count) for act in queue.audit(1)] == [("enqueue", 1)]
    assert queue.audit(action="cancel") == []


def test_a_queue_is_configured_seen_and_deleted(queue: Queue) -> None:
    made = queue.configure("mail", concurrency=4, rate="10/m", timeout=timedelta(minutes=5), max_retries=0, priority=3)
    changed = queue.configure("mail", rate=None)

    assert (made.name, made.concurrency, made.rate, made.timeout) == ("mail", 4, "10/m", 300.0)
    assert (changed.rate, changed.concurrency, changed.is_paused) == (None, 4, False)
    job = queue.enqueue("true", queue="mail")
    assert (job.max_retries, job.priority) == (0, 3)
    assert queue.queue("mail").counts[State.PENDING] == 1
    with pytest.raises(Refused, match="queue mail holds 1 job"):
        queue.delete_queue("mail")
    job.delete()
    queue.delete_queue("mail")
    assert queue.queues() == []
    with pytest.raises(NotFound, match="no queue 'mail'"):
        queue.queue("mail")
    with pytest.raises(BadInput, match="concurrency 0"):
        queue.configure("mail", concurrency=0)
    with pytest.raises(AttributeError, match="frozen"):
        made.concurrency = 5  # type: ignore[misc]


def test_limits_are_set_seen_and_deleted(queue: Queue) -> None:
    queue.set_limit("api", 0)
    [job] = queue.enqueue_many([{"command": "true", "limits": ["api"], "mutex": "db"}])

    seen = [(each.kind, each.name, each.slots, each.held, each.waiting) for each in queue.limits()]
    assert seen == [("limit", "api", 0, 0, 1)]
    assert queue.job(job.id).state is State.BLOCKED
    queue.set_limit("api", 1)
    assert queue.job(job.id).state is State.PENDING
    with pytest.raises(Refused, match="limit api is named by jobs"):
        queue.delete_limit("api")
    job.cancel()
    queue.delete_limit("api")
    assert queue.limits() == []
    with pytest.raises(BadInput, match="slots -1 is out of range"):
        queue.set_limit("api", -1)


def test_held_and_parked_jobs_are_told_apart_and_counted(queue: Queue) -> None:
    held = queue.enqueue("true", hold=True)
    ready, parked = (queue.enqueue("true", mutex=["db"]) for _ in range(2))

    assert list(queue.jobs(states=["held"])) == [held]
    assert list(queue.jobs(states=["parked"])) == [parked]
    assert {job.number for job in queue.jobs(states=["held", "pending"])} == {held.number, ready.number}
    assert [queue.count(states=[name]) for name in ("held", "parked", "blocked", "running")] == [1, 1, 2, 0]
    assert queue.cancel(states=["parked"]) == 1
    assert (held.state, parked.state) == (State.BLOCKED, State.CANCELLED)


def test_a_job_says_why_it_waits_with_every_gate_and_its_place(queue: Queue) -> None:
    queue.set_limit("api", 0)
    job = queue.enqueue("true", limits=["api"])

    found = job.why()

    assert (found.summary, found.waits_for) == ("waits for limit api: 0 of 0 taken", "limit api: 0 of 0 taken")
    assert found.remedy == "queuectl limit set api 1"
    assert (found.place, found.line) == (1, "limit api")
    shut = {gate.name: gate for gate in found.gates if not gate.is_open}
    assert list(shut) == ["limit api", "worker", "slot"]
    assert (shut["limit api"].what, shut["limit api"].ends) == ("0 of 0 taken", None)
    job.delete()
    with pytest.raises(NotFound):
        job.why()


def test_a_job_that_is_over_has_no_gates(queue: Queue) -> None:
    job = queue.enqueue("true").cancel()

    found = job.why()

    assert found.summary.startswith("ended at ")
    assert (found.gates, found.place, found.waits_for) == ((), None, None)


def test_a_job_whose_key_another_has_is_that_one(queue: Queue) -> None:
    first = queue.enqueue("true", unique="k", unique_for=timedelta(hours=1), id="first")

    again = queue.enqueue("true", unique="k")
    skipped = queue.enqueue("true", unique="k", on_conflict="skip")
    many = queue.enqueue_many([{"command": "true", "unique": "k"}, "true"])

    assert again == skipped == first == many[0]
    assert [job.is_new for job in (first, again, skipped, *many, queue.job("first"))] == [
        True, False, False, False, True, False,
    ]  # fmt: skip
    with pytest.raises(Refused, match="job first has the key 'k'"):
        queue.enqueue("true", unique="k", on_conflict="error")
    assert queue.enqueue("true", unique="k", on_conflict="replace").is_new
    assert first.state is State.CANCELLED
