"""Files of jobs: what most lines are taken for at a glance is what a close look at each would say."""

import json
from collections.abc import Callable, Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queuectl.errors import BadInput
from queuectl.model.checks import MAX_COMMAND_BYTES, check_command
from queuectl.model.fields import FIELDS
from queuectl.model.job import JobSpec
from queuectl.model.joblines import read_job_lines
from queuectl.model.spec import looks_like_json, refuse_almost_json, refuse_alone, spec_from_json

NOW = 1_800_000_000_000
BASES = (
    JobSpec(cwd="/srv"),
    JobSpec(cwd="/srv", run_at=NOW + 5, priority=3, tags=("x",), env={"KEY": "1"}),
    JobSpec(delay_ms=5, launch={"secrets": ["KEY"], "nice": 5}, policy={"retry_on": ["75"]}),
    JobSpec(on_dead="keep"),
    JobSpec(group="g", max_failures="3"),
)
COMMANDS: tuple[object, ...] = (
    "true",
    " sleep 2 ",
    "echo ü",
    "",
    " ",
    "\t",
    "a\0b",
    "{ ls; }",
    "#",
    "\ud800",
    "x" * 300_000,
    None,
    5,
    [],
)
VALUES: tuple[object, ...] = (
    None, True, False, 0, 1, -1, 1.0, 2.5, 10**12, "1", "1.0", "5m", "job1", "last", "3-9", "12", "ü", "\0", "", " ",
    "none", "/srv", "relative", "now", "+90m", "gpu=1", "a:5", "a,b", [], ["a", "b"], [1], {}, {"a": 1}, "keep", "10%",
)  # fmt: skip
SHELL_LINES = (
    "true",
    "echo 1",
    " indented",
    "\tindented",
    "trailing ",
    "echo ü",
    "echo \ud7ff",
    "# comment",
    "  # comment",
    "",
    " ",
    "\x1c",
    "\x85",
    "\u2003",
    "\u2003echo",
    "a\0b",
    "echo a\rb",
    "echo a\r",
    "\r",
    "{ ls; }",
    "{",
    "}",
    "[",
    "]",
    "},",
    "[ -f x ] && y",
    "[[ -f x ]] && y",
    '["a"]',
    "[{",
    "{'a': 1}",
    "{a: 1}",
    "{}",
    "{ }",
    "{}x",
    '{"',
    '{"command"}',
    '{"command": "a"} ',
    ' {"command": "a"}',
    '{"command": "a"}x',
    '{"command": "a"},{"command": "b"}',
    '{ "command" : "a" }',
    '{"command": "a", "command": "b"}',
    '{"command": "a", "priority": NaN}',
    '{"command": "a", "priority": ' + "9" * 5_000 + "}",
    '{"command": "a", "tags": ' + "[" * 100_000,
    '{"command": "a\t"}',
    "x" * (MAX_COMMAND_BYTES + 1),
    "é" * (MAX_COMMAND_BYTES // 2 + 1),
    "$(cat x)",
    "'quoted'",
    "~/run.sh",
    "./run.sh",
)


def one_by_one(text: str, base: JobSpec) -> list[JobSpec]:
    """Read a file of jobs with no short cut at all."""
    specs = []
    for number, line in enumerate((each.removesuffix("\r") for each in text.split("\n")), start=1):
        try:
            first = line.lstrip()[:1]
            if not first or first == "#":
                continue
            if looks_like_json(line):
                specs.append(spec_from_json(line, NOW, base, is_line=True))
                continue
            if first in "{[}]":
                refuse_almost_json(line)
            refuse_alone(base)
            specs.append(base.replace(command=check_command("command", line)))
        except BadInput as error:
            hint = f"{error.hint}; nothing was added" if error.hint else "nothing was added"
            raise BadInput(f"line {number}: {error.message}", hint=hint) from None
    return specs


def outcome(read: Callable[[], Iterable[JobSpec]]) -> object:
    """Return the jobs, written so that True is no 1, or the words in which they are refused."""
    try:
        return [repr(spec) for spec in read()]
    except BadInput as error:
        return type(error), error.message, error.hint


def assert_read_alike(text: str, base: JobSpec) -> None:
    """Read a file both ways; the jobs must be the same, or the refusal."""
    assert outcome(lambda: read_job_lines(text, NOW, base)) == outcome(lambda: one_by_one(text, base))


names = st.sampled_from([*FIELDS, "backoff", "nonsense"])
json_lines = st.builds(
    lambda command, fields: json.dumps({**({} if command == "" else {"command": command}), **fields}),
    st.sampled_from(COMMANDS),
    st.dictionaries(names, st.sampled_from(VALUES), max_size=3),
)
good_json_lines = st.builds(
    lambda number, queue, priority, timeout: json.dumps(
        {"id": f"job-{number}", "command": f"echo {number}", "queue": queue, "priority": priority, "timeout": timeout}
    ),
    st.integers(0, 99),
    st.sampled_from(["a", "b"]),
    st.sampled_from([None, 0, 1, "1", 5]),
    st.sampled_from([None, 60, 60.0, "60", "1m", 0.5]),
)
lines = st.one_of(st.sampled_from(SHELL_LINES), st.text(max_size=20), json_lines, good_json_lines)


@given(st.lists(lines, max_size=6), st.sampled_from(BASES))
def test_any_lines_are_read_as_one_by_one(found: list[str], base: JobSpec) -> None:
    assert_read_alike("\n".join(found), base)


@given(st.lists(good_json_lines, max_size=20), st.sampled_from(BASES))
def test_json_lines_that_repeat_values_are_read_as_one_by_one(found: list[str], base: JobSpec) -> None:
    assert_read_alike("\n".join(found), base)


@pytest.mark.parametrize("base", BASES, ids=range(len(BASES)))
@pytest.mark.parametrize("line", SHELL_LINES, ids=lambda line: repr(line[:20]))
def test_an_odd_line_is_read_as_by_itself(line: str, base: JobSpec) -> None:
    assert_read_alike(f"true\n{line}\ntrue", base)


@pytest.mark.parametrize("name", [*FIELDS, "backoff", "nonsense"])
def test_each_field_with_odd_values_is_read_as_by_itself(name: str) -> None:
    for base in BASES:
        for value in VALUES:
            one = json.dumps({"command": "true", name: value})
            assert_read_alike(f"{one}\n{one}", base)


def test_a_value_is_not_taken_for_another_that_equals_it() -> None:
    with pytest.raises(BadInput) as caught:
        read_job_lines('{"command": "a", "priority": 1}\n{"command": "a", "priority": true}', NOW, BASES[0])

    assert caught.value.message == "line 2: priority must be a whole number, not true"


def test_a_job_of_a_batch_is_made_when_it_is_looked_at() -> None:
    batch = read_job_lines('echo 1\n\n{"command": "echo 2", "priority": 5}\n', NOW, JobSpec(cwd="/srv"))

    one, two = JobSpec(cwd="/srv", command="echo 1"), JobSpec(cwd="/srv", command="echo 2", priority=5)
    assert (len(batch), batch[0], batch[-1], batch[1:], list(batch)) == (2, one, two, [two], [one, two])
    assert batch.names == {"command", "priority"}
    assert (batch.column("priority", 7), batch.given_ids) == ([7, 5], [None, None])
