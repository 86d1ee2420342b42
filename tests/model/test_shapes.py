"""Jobs and runs as JSON: names and units as the command line and the API promise them."""

import json

from queuectl.model.attempt import Attempt
from queuectl.model.job import Job
from queuectl.model.shapes import attempt_shape, counts_shape, job_shape, time_shape
from queuectl.model.states import State
from queuectl.model.verdict import OutcomeKind
from tests.model.jobs import CREATED, a_job

ATTEMPT = Attempt(
    job_seq=7, run=2, attempt=1, worker_id="w1", host="here", started_at=CREATED, finished_at=CREATED + 1_500,
    outcome=OutcomeKind.EXITED, exit_code=3, signal=None, error="exit code 3", cpu_ms=12, peak_memory_bytes=4096,
    output_bytes=5, output_file=None, output_tail=b"caf\xc3\xa9\xff",
    stderr_bytes=None, stderr_file=None, stderr_tail=None, waited_ms=40, queue="default",
)  # fmt: skip


def test_a_job_has_these_names_and_no_others() -> None:
    assert list(job_shape(a_job())) == [
        "id", "number", "state", "command", "argv", "queue", "priority", "attempts", "max_retries", "losses", "run",
        "run_at", "created_at", "updated_at", "started_at", "finished_at", "exit_code", "error", "timeout", "backoff",
        "cwd", "env", "tags", "split_output", "held_at", "needs", "use", "mutex", "limits", "at_most",
        "policy", "launch", "deadline", "deadline_at", "parked_for", "waits_for_jobs", "on_dead_dependency",
        "unique", "unique_for", "group", "units", "worker", "cancel_requested",
    ]  # fmt: skip


def test_a_job_is_called_by_its_given_id_or_its_number() -> None:
    assert [job_shape(a_job(given_id=name))["id"] for name in ("job1", None)] == ["job1", "7"]


def test_times_are_iso_8601_in_utc() -> None:
    shape = job_shape(a_job())

    assert (shape["created_at"], shape["finished_at"]) == ("2026-05-28T20:26:40.123Z", None)
    assert time_shape(None) is None


def test_durations_are_in_seconds() -> None:
    assert job_shape(a_job(timeout_ms=1_500))["timeout"] == 1.5
    assert job_shape(a_job())["timeout"] is None


def test_what_is_stored_as_text_is_shown_as_what_it_is() -> None:
    job = a_job(command=None, argv='["echo", "a b"]', env='{"A": "1"}', tags='["x"]', cancel_requested=1)

    shape = job_shape(job)

    assert (shape["argv"], shape["command"]) == (["echo", "a b"], None)
    assert (shape["env"], shape["tags"], shape["cancel_requested"]) == ({"A": "1"}, ["x"], True)


def test_the_backoff_of_a_job_has_the_names_of_the_settings() -> None:
    own = {"strategy": "linear", "base": 3.0, "max_ms": 90_000, "jitter": 0.2, "fixed_ms": 700}

    shape = job_shape(a_job(backoff=json.dumps(own)))

    assert shape["backoff"] == {
        "backoff_strategy": "linear", "backoff_base": 3.0, "backoff_jitter": 0.2, "max_backoff_seconds": 90,
        "job_retry_delay": 0.7,
    }  # fmt: skip
    assert job_shape(a_job())["backoff"] is None


def test_a_command_is_shown_on_one_line_as_a_person_could_type_it() -> None:
    assert a_job(command="echo 'a b'").line == "echo 'a b'"
    assert a_job(command=None, argv='["echo", "a b", "$x"]').line == "echo 'a b' '$x'"


def test_a_run_has_its_outcome_and_its_output_as_text() -> None:
    shape = attempt_shape(ATTEMPT)

    assert (shape["outcome"], shape["exit_code"], shape["output_tail"]) == ("exited", 3, "café\ufffd")
    assert shape["finished_at"] == "2026-05-28T20:26:41.623Z"


def test_a_run_under_way_has_neither_end_nor_outcome() -> None:
    shape = attempt_shape(ATTEMPT.replace(finished_at=None, outcome=None))

    assert (shape["finished_at"], shape["outcome"]) == (None, None)


def test_counts_name_every_state() -> None:
    assert counts_shape({State.DEAD: 2}) == {**{state.value: 0 for state in State}, "dead": 2}


def test_a_job_from_a_row_has_a_state_and_not_a_text() -> None:
    row = list(a_job().replace(state="dead").as_dict().values())

    assert Job.of_row(row).state is State.DEAD


def test_a_run_from_a_row_has_an_outcome_and_not_a_text() -> None:
    row = list(ATTEMPT.replace(outcome="lost").as_dict().values())

    assert Attempt.of_row(row).outcome is OutcomeKind.LOST
