"""What people hand in: what becomes a job, and what is refused with a word on how to mend it."""

import json

import pytest

from queuectl.errors import BadInput, UnknownName
from queuectl.model.after import Kind, Parent
from queuectl.model.checks import MAX_COMMAND_BYTES, MAX_WORD_BYTES, check_command, check_given_id, check_name
from queuectl.model.fields import FIELDS, MAX_PRIORITY, MAX_RETRIES
from queuectl.model.job import JobSpec
from queuectl.model.spec import looks_like_json, spec_from_fields, spec_from_json

NOW = 1_800_000_000_000
EMPTY = JobSpec()


def read(**fields: object) -> JobSpec:
    """Read fields as JSON gives them, with a command unless there is one."""
    command = {} if "argv" in fields or "command" in fields else {"command": "true"}
    return spec_from_fields({**command, **fields}, NOW, EMPTY)


def test_a_json_job_with_every_field_is_read() -> None:
    fields = {
        "id": "job1", "command": "sleep 2", "queue": "mail", "priority": 5, "delay": "1m30s", "max_retries": 0,
        "timeout": 2.5, "backoff_strategy": "linear", "backoff_base": 3, "max_backoff_seconds": "5m",
        "backoff_jitter": 0.2, "job_retry_delay": 7, "cwd": "/srv", "env": {"A": "1"}, "tags": ["x", "y", "x"],
        "split_output": True, "hold": True, "needs": ["gpu", "linux"], "use": {"gpu": 1, "mem": "4G"}, "mutex": "db",
        "limits": ["api", "disk"], "deadline": "1h", "retry_on": [75, "timeout"], "no_retry_on": "2,126-127",
        "success_codes": "0,3", "snooze_codes": {"99": "5m"}, "memory": "512M", "cpu_seconds": 60, "nofile": 100,
        "file_size": "1K", "nice": 5, "umask": "027", "shell": "/bin/bash", "stdin": "/in", "secrets": ["KEY"],
        "at_most": "thumbs:5", "after": ["12", "any:nightly"], "on_dead_dependency": "keep", "unique": "sync 7",
        "unique_for": "6h", "on_conflict": "skip", "group": "thumbs", "max_failures": "10%",
        "on_group_done": "./mail.sh",
    }  # fmt: skip

    spec = spec_from_json(json.dumps(fields), NOW, EMPTY)

    assert {*fields, "argv", "run_at", "input"} == set(FIELDS)
    assert spec == JobSpec(
        given_id="job1", command="sleep 2", queue="mail", priority=5, delay_ms=90_000, max_retries=0, timeout_ms=2_500,
        backoff={"strategy": "linear", "base": 3.0, "max_ms": 300_000, "jitter": 0.2, "fixed_ms": 7_000},
        cwd="/srv", env={"A": "1"}, tags=("x", "y"), split_output=True, hold=True,
        needs=("gpu", "linux"), use={"gpu": 1, "mem": 4 << 30}, mutexes=("db",), limits=("api", "disk"),
        deadline_ms=3_600_000,
        policy={
            "retry_on": ["75", "timeout"], "no_retry_on": ["2", "126", "127"], "success_codes": [0, 3],
            "snooze_codes": {"99": 300_000},
        },
        launch={
            "memory_bytes": 512 << 20, "cpu_seconds": 60, "nofile": 100, "file_size_bytes": 1024, "nice": 5,
            "umask": 0o27, "shell": "/bin/bash", "stdin_file": "/in", "secrets": ["KEY"],
        },
        at_most=("thumbs:5",), after=(Parent(kind=Kind.OK, id="12"), Parent(kind=Kind.ANY, id="nightly")),
        on_dead="keep", unique_key="sync 7", unique_for_ms=6 * 3_600_000, on_conflict="skip", group="thumbs",
        max_failures="10%", on_group_done="./mail.sh",
    )  # fmt: skip


def test_an_argument_vector_keeps_its_words() -> None:
    assert read(argv=["printf", "%s\n", "", "ü"]).argv == ("printf", "%s\n", "", "ü")


def test_a_time_is_read_relative_to_now() -> None:
    assert read(run_at="+90m").run_at == NOW + 90 * 60_000


def test_what_is_given_lies_over_the_base() -> None:
    base = JobSpec(queue="mail", priority=3, backoff={"base": 3.0}, tags=("a",))

    spec = spec_from_fields({"command": "true", "priority": 9, "backoff_jitter": 1}, NOW, base)

    assert (spec.queue, spec.priority, spec.tags) == ("mail", 9, ("a",))
    assert spec.backoff == {"base": 3.0, "jitter": 1.0}


def test_null_means_not_given() -> None:
    assert read(queue=None, id=None, timeout=None) == JobSpec(command="true")


@pytest.mark.parametrize(
    "word, is_json",
    [
        ('{"command": "true"}', True),
        ("{}", True),
        ('  {\n  "id": 1}', True),
        ("{ echo hi; }", False),
        ("{a,b}", False),
        ("echo {}", False),
        ("{", False),
        ("", False),
    ],
)
def test_a_json_job_begins_with_a_brace_and_a_quote(word: str, is_json: bool) -> None:
    assert looks_like_json(word) == is_json


@pytest.mark.parametrize(
    "text", ['{"command": ', "[1, 2]", '"true"', "5", '{"priority": NaN, "command": "x"}', "[" * 200_000]
)
def test_broken_json_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(BadInput, match="JSON") as refused:
        spec_from_json(text, NOW, EMPTY)

    assert '"command": "sleep 2"' in refused.value.hint


@pytest.mark.parametrize("name, near", [("comand", "command"), ("max_retry", "max_retries"), ("tag", "tags")])
def test_an_unknown_field_names_the_nearest(name: str, near: str) -> None:
    with pytest.raises(UnknownName, match=f"unknown field '{name}'; did you mean '{near}'"):
        read(**{name: "x"})


def test_an_unknown_field_without_a_near_one_lists_them_all() -> None:
    with pytest.raises(UnknownName) as refused:
        read(zzz=1)

    assert refused.value.hint == f"known: {', '.join(FIELDS)}"


@pytest.mark.parametrize("fields", [{}, {"id": "a"}, {"command": None}])
def test_a_job_without_a_command_is_refused(fields: dict[str, object]) -> None:
    with pytest.raises(BadInput, match="the job has no command"):
        spec_from_fields(fields, NOW, EMPTY)


def test_the_inner_objects_that_show_prints_are_read_as_well() -> None:
    flat = {"retry_on": ["75"], "snooze_codes": {"99": 300.0}, "nice": 5, "umask": "027", "backoff_base": 3.0}
    nested = {
        "policy": {"retry_on": ["75"], "snooze_codes": {"99": 300.0}},
        "launch": {"nice": 5, "umask": "027"},
        "backoff": {"backoff_base": 3.0},
    }

    assert read(**nested) == read(**flat)
    assert read(policy=None, launch=None, backoff=None) == JobSpec(command="true")
    with pytest.raises(UnknownName, match="unknown field of launch 'nicer'; did you mean 'nice'"):
        read(launch={"nicer": 5})
    with pytest.raises(BadInput, match="policy must be an object"):
        read(policy=["75"])


def test_a_code_that_is_no_success_may_be_retried_even_0() -> None:
    assert read(success_codes="3", retry_on="0").policy == {"success_codes": [3], "retry_on": ["0"]}


@pytest.mark.parametrize("field", ["mutex", "limits", "needs"])
def test_the_word_that_takes_names_back_is_no_name(field: str) -> None:
    with pytest.raises(BadInput, match="'none' would be no name"):
        read(**{field: ["a", "none"]})


@pytest.mark.parametrize(
    "fields, message",
    [
        ({"run_at": "now", "delay": 5}, "either run_at or delay"),
        ({"command": "true", "argv": ["true"]}, "either command"),
        ({"launch": {"nice": 5}, "nice": 6}, "nice is given twice: in launch and beside it"),
        ({"retry_on": "0"}, "exit code 0 is a success and in retry_on"),
        ({"no_retry_on": "0-3"}, "exit code 0 is a success and in no_retry_on"),
        ({"snooze_codes": "99:5m", "retry_on": "99"}, "exit code 99 is a snooze and in retry_on"),
        ({"snooze_codes": "99:5m", "no_retry_on": "64-99"}, "exit code 99 is a snooze and in no_retry_on"),
    ],
)
def test_two_ways_to_say_one_thing_are_refused(fields: dict[str, object], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        read(**fields)


@pytest.mark.parametrize(
    "name, value",
    [
        ("command", 5),
        ("command", ["a"]),
        ("command", True),
        ("id", 5),
        ("argv", "ls -l"),
        ("argv", []),
        ("argv", ["ls", 5]),
        ("queue", 5),
        ("priority", "high"),
        ("priority", 1.5),
        ("priority", True),
        ("run_at", 5),
        ("delay", []),
        ("delay", True),
        ("max_retries", "3.0"),
        ("timeout", {}),
        ("backoff_base", "two"),
        ("backoff_base", False),
        ("backoff_strategy", 1),
        ("cwd", 5),
        ("env", ["A=1"]),
        ("env", {"A": 1}),
        ("tags", "a,b"),
        ("tags", [5]),
    ],
)
def test_a_value_of_the_wrong_type_is_refused_and_named(name: str, value: object) -> None:
    with pytest.raises(BadInput, match=f"^{name.rstrip('s')}.* must be .*, not "):
        read(**{name: value})


@pytest.mark.parametrize(
    "name, value",
    [
        ("command", ""),
        ("command", " \n "),
        ("argv", [""]),
        ("priority", MAX_PRIORITY + 1),
        ("priority", -MAX_PRIORITY - 1),
        ("max_retries", -1),
        ("max_retries", MAX_RETRIES + 1),
        ("delay", -1),
        ("delay", 1e11),
        ("delay", float("nan")),
        ("delay", "soon"),
        ("timeout", "-5s"),
        ("backoff_base", -1),
        ("backoff_base", float("inf")),
        ("backoff_base", float("nan")),
        ("backoff_jitter", 1.1),
        ("cwd", "relative/path"),
        ("run_at", "someday"),
    ],
)
def test_a_value_out_of_range_is_refused(name: str, value: object) -> None:
    with pytest.raises(BadInput):
        read(**{name: value})


def test_an_unknown_strategy_names_the_nearest() -> None:
    with pytest.raises(UnknownName, match="did you mean 'exponential'"):
        read(backoff_strategy="exponentail")


@pytest.mark.parametrize("text", ["5", "+5", " 5 "])
def test_a_number_may_come_as_text_as_flags_give_it(text: str) -> None:
    assert read(priority=text).priority == 5


@pytest.mark.parametrize("name", ["a", "Job1", "1a", "a.b_c-d", "3-9a", "9", "last", "x" * 128])
def test_a_queue_or_tag_may_have_any_name_of_this_form(name: str) -> None:
    assert check_name("queue", name) == name


@pytest.mark.parametrize("name", ["", " ", "-a", ".a", "_a", "a b", "a/b", "ü", "a\n", "a\0", "x" * 129, "٣"])
def test_an_id_and_a_name_of_another_form_are_refused(name: str) -> None:
    with pytest.raises(BadInput):
        check_given_id("id", name)
    with pytest.raises(BadInput):
        check_name("queue", name)


@pytest.mark.parametrize("name", ["a", "Job1", "1a", "a.b_c-d", "3-9a", "3-", "lastly", "x" * 128])
def test_an_id_may_be_given(name: str) -> None:
    assert check_given_id("id", name) == name


@pytest.mark.parametrize("name", ["1", "007", "3-9", "last"])
def test_an_id_that_would_name_a_place_is_refused(name: str) -> None:
    with pytest.raises(BadInput, match="name jobs by their place") as refused:
        check_given_id("id", name)

    assert refused.value.hint == "add a letter"


@pytest.mark.parametrize(
    "fields",
    [
        {"command": "echo a\0b"},
        {"command": "echo ü\0"},
        {"argv": ["a", "b\0"]},
        {"cwd": "/a\0"},
        {"env": {"A": "\0"}},
        {"env": {"A\0": "1"}},
    ],
)
def test_a_nul_byte_is_refused_everywhere(fields: dict[str, object]) -> None:
    with pytest.raises(BadInput, match="NUL byte"):
        read(**fields)


@pytest.mark.parametrize("fields", [{"command": "echo \ud800"}, {"argv": ["\udcff"]}, {"env": {"A": "\ud800"}}])
def test_text_that_is_not_utf8_is_refused(fields: dict[str, object]) -> None:
    with pytest.raises(BadInput, match="not valid UTF-8"):
        read(**fields)


@pytest.mark.parametrize("name", ["", "A=B", "=", "QUEUECTL_HOME", "QUEUECTL_JOB_ID"])
def test_a_variable_that_no_command_could_have_is_refused(name: str) -> None:
    with pytest.raises(BadInput, match="env"):
        read(env={name: "1"})


def test_at_most_32_tags_are_taken() -> None:
    assert len(read(tags=[f"t{number}" for number in range(32)]).tags) == 32
    with pytest.raises(BadInput, match="33 tags; the limit is 32"):
        read(tags=[f"t{number}" for number in range(33)])


@pytest.mark.parametrize("letter", ["x", "ü"])
def test_a_command_of_a_mebibyte_is_the_largest(letter: str) -> None:
    largest = letter * (MAX_COMMAND_BYTES // len(letter.encode()))

    assert check_command("command", largest) == largest
    with pytest.raises(BadInput, match=f"limit is {MAX_COMMAND_BYTES}"):
        check_command("command", largest + "x")


@pytest.mark.parametrize("letter", ["x", "ü"])
def test_a_word_or_variable_is_shorter_than_the_kernel_takes(letter: str) -> None:
    word = letter * (MAX_WORD_BYTES // len(letter.encode()))

    assert read(argv=["echo", word]).argv == ("echo", word)
    with pytest.raises(BadInput, match="less than 128 KiB"):
        read(argv=["echo", word + letter])
    with pytest.raises(BadInput, match="less than 128 KiB"):
        read(env={"A": word})


def test_an_argument_vector_is_at_most_a_mebibyte() -> None:
    with pytest.raises(BadInput, match=f"more than {MAX_COMMAND_BYTES} bytes"):
        read(argv=["x" * 100_000] * 11)


def test_a_long_bad_value_is_shown_cut() -> None:
    with pytest.raises(BadInput) as refused:
        read(id="!" * 1000)

    assert len(refused.value.message) < 120


def test_a_time_given_on_top_takes_the_place_of_a_delay_below() -> None:
    spec = spec_from_fields({"run_at": "2030-01-01T00:00Z"}, NOW, JobSpec(command="true", delay_ms=5))

    assert spec.run_at is not None
    assert spec.delay_ms is None


def test_a_delay_given_on_top_takes_the_place_of_a_time_below() -> None:
    spec = spec_from_fields({"delay": 5}, NOW, JobSpec(command="true", run_at=5))

    assert (spec.run_at, spec.delay_ms) == (None, 5000)


def test_a_command_given_on_top_takes_the_place_of_an_argument_vector_below() -> None:
    spec = spec_from_fields({"command": "true"}, NOW, JobSpec(argv=("true",)))

    assert (spec.command, spec.argv) == ("true", None)
