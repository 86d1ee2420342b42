"""The lines of an export: each is read back as it was written, and what does not fit is refused with its line."""

import json
from typing import Any

import pytest

from queuectl.cli.lines import MAX_EXPORT_LINE_BYTES
from queuectl.errors import BadInput
from queuectl.model import transfer
from queuectl.model.attempt import Attempt
from queuectl.model.group import Group
from queuectl.model.job import Job
from queuectl.model.limits import Limit
from queuectl.model.lineformats import ADDED
from queuectl.model.linereading import Reader
from queuectl.model.queue import Queue
from queuectl.model.states import State
from queuectl.model.transfer import End, Extras, Header
from queuectl.model.verdict import OutcomeKind
from tests.model.jobs import a_job

Shape = dict[str, Any]
HEADER = transfer.header_shape(Header(format=4, version="0", exported_at=0, last_number=9))
WAITING = a_job(state=State.PENDING, worker_id=None, run=2)
BESIDE = Extras(job_seq=WAITING.seq)


def a_run(**changes: object) -> Attempt:
    run = Attempt(
        job_seq=7, run=1, attempt=1, worker_id="w1", host="here", started_at=1, finished_at=2,
        outcome=OutcomeKind.EXITED, exit_code=0, signal=None, error=None, cpu_ms=1, peak_memory_bytes=2,
        output_bytes=3, output_file=None, output_tail=b"", stderr_bytes=None, stderr_file=None, stderr_tail=None,
        waited_ms=None, queue="default",
    )  # fmt: skip
    return run.replace(**changes)


def job(**changes: object) -> Shape:
    return {**transfer.job_line_shape(WAITING, BESIDE), **changes}


def queue(**changes: object) -> Shape:
    return {**transfer.queue_shape(Queue(name="mail", paused_at=None, created_at=1)), **changes}


def limit(**changes: object) -> Shape:
    return {**transfer.limit_shape(Limit(name="api", slots=4, created_at=1)), **changes}


def run(**changes: object) -> Shape:
    return {**transfer.run_line_shape(a_run()), **changes}


def read(*shapes: Shape | str) -> None:
    """Read lines after a header, as one file."""
    reader = Reader()
    for number, shape in enumerate((HEADER, *shapes), 1):
        reader.read(number, shape if isinstance(shape, str) else json.dumps(shape))


def test_every_column_of_a_job_and_of_a_run_is_in_its_line() -> None:
    names = {
        "seq": "number", "given_id": "id", "worker_id": "worker", "job_seq": "job", "on_dead": "on_dead_dependency",
        "unique_key": "unique", "group_name": "group",
    }  # fmt: skip
    beside = {"type", "use", "mutex", "at_most", "input", "after", "unique_until"}

    followed = {"lane_id", "waits_for", "has_dependents"}  # they follow from the others
    job_names = {names.get(field, field) for field in Job.FIELDS if field not in followed}
    run_names = {names.get(field, field) for field in Attempt.FIELDS}

    assert job_names | beside == job().keys()
    assert {*Queue.FIELDS, "type", "rate"} - {"rate_count", "rate_period_ms"} == queue().keys()
    assert run_names | {"type"} == run().keys()


@pytest.mark.parametrize("name", ["0/7.1.log", "0/7.1.err.log", "0/7.1.log.2", "postgresql-0123456789ab/0/7.1.log"])
def test_every_name_an_output_file_may_have_is_taken(name: str) -> None:
    read(job(run=1), run(output_file=name))


@pytest.mark.parametrize("tail", [b"", b"text\n", "ü\u2028\x1b[0m\x00".encode(), b"\xff\xfe", b"\xed\xa0\x80"])
def test_a_tail_is_read_back_byte_by_byte(tail: bytes) -> None:
    written = transfer.run_line_shape(a_run(output_tail=tail, stderr_tail=tail, stderr_bytes=1))
    reader = Reader()
    reader.read(1, json.dumps(HEADER))
    reader.read(2, json.dumps(job()))

    found = reader.read(3, json.dumps(written, ensure_ascii=False))

    assert isinstance(found, Attempt)
    assert (found.output_tail, found.stderr_tail) == (tail, tail)


@pytest.mark.parametrize(
    "shape, words",
    [
        ("{", "line 2: broken JSON at column 2"),
        ("[]", "not an object"),
        ("1", "not an object"),
        ({}, "no type"),
        ({"type": "jobb"}, "unknown type 'jobb'; did you mean 'job'"),
        (job(comand="true"), "unknown field of a job 'comand'; did you mean 'command'"),
        ({key: value for key, value in job().items() if key != "run_at"}, "the job has no run_at"),
        (job(state="complete"), "unknown state 'complete'; did you mean 'completed'"),
        (job(state="completed"), "job 7 is completed: a job has finished_at exactly when"),
        (job(finished_at="2026-01-01T00:00:00.000Z"), "job 7 is pending: a job has finished_at"),
        (job(state="scheduled"), "waits for a time and has no run_at"),
        (job(state="failed"), "waits for a time and has no run_at"),
        (job(state="processing"), "has a worker exactly when"),
        (job(worker="w1"), "has a worker exactly when"),
        (job(state="processing", worker="w1", run=0), "has run 0"),
        (job(cancel_requested=True), "is to be stopped"),
        (job(held_at="2026-01-01T00:00:00.000Z"), "is held and not blocked"),
        (job(command=None), "has either a command or an argv"),
        (job(argv=["true"]), "has either a command or an argv"),
        (job(command=""), "command is empty"),
        (job(command="a\0b"), "NUL"),
        (job(command="\ud800"), "not valid UTF-8"),
        (job(number=0), "number 0 is out of range"),
        (job(number=True), "number must be a whole number"),
        (job(number=10**16), "out of range"),
        (job(id="17"), "bad id '17'"),
        (job(queue="a b"), "bad queue"),
        (job(priority=10**10), "priority 10000000000 is out of range"),
        (job(priority="5"), "priority must be a whole number, not '5'"),
        (job(max_retries=-1), "max_retries -1 is out of range"),
        (job(run=2**31), "run 2147483648 is out of range"),
        (job(split_output=1), "split_output must be true or false"),
        (job(created_at="2026-01-01"), "created_at must be a time"),
        (job(created_at="2026-02-30T00:00:00.000Z"), "a time that exists"),
        (job(created_at="1969-12-31T23:59:59.999Z"), "before 1970"),
        (job(created_at=None), "created_at must be a time"),
        (job(env={"QUEUECTL_X": "1"}), "is set by queuectl itself"),
        (job(env=[]), "env must be an object"),
        (job(tags=["a b"]), "bad tag"),
        (job(cwd="here"), "absolute path"),
        (job(backoff={"bse": 1}), "did you mean 'base'"),
        (job(backoff={"jitter": 2}), "backoff jitter 2 is out of range"),
        (job(backoff={"strategy": "linea"}), "did you mean 'linear'"),
        (job(error=5), "error must be text"),
        (job(timeout_ms=-1), "timeout_ms -1 is out of range"),
        (run(), "a run of job 7 that does not follow it"),
        (queue(name="-x"), "bad name"),
        (queue(concurrency=0), "concurrency 0 is out of range"),
        (queue(rate="often"), "bad rate 'often'"),
        (queue(rate=5), "rate must be text"),
        (queue(timeout_ms="5m"), "timeout_ms must be a whole number"),
        ({key: value for key, value in queue().items() if key != "rate"}, "the queue has no rate"),
        (limit(slots=-1), "slots -1 is out of range"),
        (limit(name=""), "bad name"),
        (job(input="x"), "has an input exactly when"),
        (job(launch={"has_input": True}), "has an input exactly when"),
        (job(input={"base64": "!"}, launch={"has_input": True}), "input: bad base64"),
        (job(input=5), "input must be text or"),
        (HEADER, "a second header"),
        ({"type": "end", "jobs": 3, "runs": 0}, "says 3 jobs and 0 runs, but holds 0 and 0"),
    ],
)
def test_a_line_that_cannot_be_is_refused_with_its_number(shape: Shape | str, words: str) -> None:
    with pytest.raises(BadInput) as caught:
        read(shape)

    assert caught.value.message.startswith("line 2: ")
    assert words in caught.value.message
    assert caught.value.hint.endswith("nothing was written")


@pytest.mark.parametrize(
    "shapes, words",
    [
        ([job(), job()], "job 7 after job 7"),
        ([job(), job(number=3)], "job 3 after job 7"),
        ([job(id="x"), job(number=8, id="x")], "id 'x' is given twice"),
        ([job(), run(run=3)], "run 3 of job 7 is out of order"),
        ([job(), run(), run()], "run 1 of job 7 is out of order"),
        ([job(), run(job=8)], "a run of job 8 that does not follow it"),
        ([job(), run(outcome="exit")], "did you mean 'exited'"),
        ([job(), run(output_file="../../etc/passwd")], "bad output file"),
        ([job(), run(output_file="0/8.1.log")], "bad output file"),
        ([job(), run(output_file="../0/7.1.log")], "bad output file"),
        ([job(), run(output_file="a-1/../7.1.log")], "bad output file"),
        ([job(), run(output_file="0/7.1.log/../x")], "bad output file"),
        ([job(), run(stderr_file="/etc/passwd")], "bad output file"),
        ([job(), run(output_tail={"base64": "!"})], "bad base64"),
        ([job(), run(output_tail=5)], "output_tail must be text or"),
        ([job(), run(stderr_bytes=5)], "one of stderr_bytes and stderr_tail"),
        ([job(), {"type": "setting", "key": "shell", "value": "x"}], "a setting after the jobs"),
        ([job(), limit()], "a limit after the jobs"),
        ([limit(), limit()], "limit 'api' is given twice"),
        ([transfer.setting_shape("a", "b"), transfer.setting_shape("a", "c")], "setting 'a' is given twice"),
        ([{"type": "end", "jobs": 0, "runs": 0}, job()], "a job after the end"),
    ],
)
def test_lines_that_do_not_fit_each_other_are_refused(shapes: list[Shape], words: str) -> None:
    with pytest.raises(BadInput) as caught:
        read(*shapes)

    assert words in caught.value.message


def test_a_newer_format_is_refused_before_anything_else_of_it_is_read() -> None:
    with pytest.raises(BadInput, match=r"line 1: format 5 is newer than this queuectl knows \(4\)") as caught:
        Reader().read(1, '{"type": "header", "format": 5, "whatever": true}')

    assert "upgrade" in caught.value.hint


def test_a_file_without_a_header_is_refused() -> None:
    with pytest.raises(BadInput, match="line 1: a job before the header"):
        Reader().read(1, json.dumps(job()))


def test_nothing_at_all_is_no_export() -> None:
    with pytest.raises(BadInput, match="empty"):
        Reader().finish()


def test_the_end_is_known_when_it_was_read() -> None:
    reader = Reader()
    reader.read(1, json.dumps(HEADER))
    reader.read(2, json.dumps(transfer.end_shape(End(jobs=0, runs=0))))

    header, end = reader.finish()

    assert (header.last_number, end.jobs) == (9, 0)


def test_a_file_of_the_first_format_is_read_with_what_it_lacks_left_out() -> None:
    old_job = {name: value for name, value in job().items() if name not in ADDED["job"]}
    old_queue = {name: value for name, value in queue().items() if name not in ADDED["queue"]}
    reader = Reader()
    reader.read(1, json.dumps({**HEADER, "format": 1}))

    assert reader.read(2, json.dumps(old_queue)) == Queue(name="mail", paused_at=None, created_at=1)
    assert reader.read(3, json.dumps(old_job)) == WAITING.replace(lane_id=0)
    with pytest.raises(BadInput, match="the job has no command"):
        reader.read(4, json.dumps({name: value for name, value in old_job.items() if name != "command"}))


@pytest.mark.parametrize("rate", ["10/m", "5/s", "100/h", "3/10s", "7/1m30s", "1/2d", "1000/s"])
def test_a_rate_is_read_back_as_it_was_written(rate: str) -> None:
    reader = Reader()
    reader.read(1, json.dumps(HEADER))

    found = reader.read(2, json.dumps(queue(rate=rate)))

    assert isinstance(found, Queue)
    assert transfer.queue_shape(found)["rate"] == rate


@pytest.mark.parametrize("data", [b"", b"text\n", b"\xff\x00\xfe", b"\x01" * (16 << 20)], ids=len)
def test_an_input_is_read_back_byte_by_byte(data: bytes) -> None:
    reader = Reader()
    reader.read(1, json.dumps(HEADER))

    beside = BESIDE.replace(input=data)
    line = json.dumps(transfer.job_line_shape(WAITING.replace(launch='{"has_input": true}'), beside))
    reader.read(2, line)

    assert len(line) < MAX_EXPORT_LINE_BYTES
    assert reader.extras == beside


def test_what_a_job_runs_after_and_the_time_of_its_key_are_read_back() -> None:
    beside = BESIDE.replace(
        after=((3, "ok", "satisfied"), (9, "any", "waiting"), (11, "fail", "broken")), unique_until=5
    )
    blocked = WAITING.replace(state=State.BLOCKED, unique_key="sync", unique_for_ms=5, on_dead="keep", group_name="g")
    reader = Reader()
    reader.read(1, json.dumps(HEADER))

    found = reader.read(2, json.dumps(transfer.job_line_shape(blocked, beside)))

    assert found == blocked.replace(lane_id=0, waits_for=2)
    assert (reader.extras, reader.parents, reader.waiting) == (beside, {3, 9, 11}, {"7": ["9", "11"]})


def group(**changes: object) -> Shape:
    given = Group(
        name="g", jobs=3, max_failures="10%", stopped_at=5, done_at=None, created_at=1,
        on_done='{"command": "true", "cwd": null, "queue": "default"}',
    )  # fmt: skip
    return {**transfer.group_shape(given), **changes}


def test_a_group_is_read_back() -> None:
    reader = Reader()
    reader.read(1, json.dumps(HEADER))

    found = reader.read(2, json.dumps(group()))

    assert isinstance(found, Group)
    assert transfer.group_shape(found) == group()


EDGE = {"job": 3, "kind": "ok", "state": "waiting"}
UNTIL = "2026-01-01T00:00:00.000Z"


@pytest.mark.parametrize(
    "shapes, words",
    [
        ([job(after=[EDGE])], "that waits for others is blocked"),
        ([job(after="3")], "after must be a list"),
        ([job(after=[3])], "an item of after must be an object with job, kind, state"),
        ([job(after=[{**EDGE, "kind": "okay"}])], "unknown after kind 'okay'"),
        ([job(after=[{**EDGE, "state": "done"}])], "unknown after state 'done'"),
        ([job(after=[{**EDGE, "job": 0}])], "after job 0 is out of range"),
        ([job(state="blocked", after=[EDGE, EDGE])], "after names job 3 twice"),
        ([job(state="blocked", after=[{**EDGE, "job": 7}])], "does not run after itself"),
        ([job(starved_at=UNTIL)], "has starved_at only when it is cancelled"),
        ([job(unique_for_ms=5)], "without a unique key has no times for it"),
        ([job(unique_until=UNTIL)], "without a unique key has no times for it"),
        ([job(unique_for_ms=0)], "unique_for_ms 0 is out of range"),
        ([job(unique="")], 'bad unique ""'),
        ([job(unique="a", unique_until=UNTIL, state="dead", finished_at=UNTIL)], "frees its unique key"),
        ([job(unique="a"), job(unique="a", number=8)], "two jobs have the key 'a', the second is job 8"),
        ([job(group="none")], "'none' would be no name"),
        ([job(on_dead_dependency="stop")], "unknown on_dead_dependency 'stop'"),
        ([group(), group()], "group 'g' is given twice"),
        ([job(), group()], "a group after the jobs"),
        ([group(on_done={"command": "true"})], "on_done must be an object with command, cwd, queue"),
        ([group(on_done={"command": "", "cwd": None, "queue": "default"})], "command is empty"),
        ([group(on_done={"command": "true", "cwd": "x", "queue": "default"})], "cwd must be an absolute path"),
        ([group(max_failures="1.5")], 'bad max_failures "1.5"'),
    ],
)
def test_ties_that_cannot_be_are_refused(shapes: list[Shape], words: str) -> None:
    with pytest.raises(BadInput) as refused:
        read(*shapes)

    assert words in refused.value.message


def test_of_jobs_with_one_key_those_that_ended_are_read() -> None:
    over = {"unique": "a", "state": "completed", "finished_at": UNTIL}

    read(job(number=1, **over), job(number=2, **over), job(number=3, unique="a"))
