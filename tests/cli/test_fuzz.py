"""Whatever is typed, piped or set: never a traceback, a documented exit code, words that name it, all or nothing.

More than the suite runs: FUZZ_EXAMPLES=20000 python -m pytest tests/cli/test_fuzz.py --timeout 3600
"""

import argparse
import gc
import io
import json
import os
import random
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from queuectl.actions.connect import connect, locate
from queuectl.cli import main as program
from queuectl.cli.parser import make_parser
from queuectl.errors import BadInput
from queuectl.model import units
from queuectl.model.checks import check_given_id
from queuectl.model.fields import FIELDS
from queuectl.model.job import JobSpec
from queuectl.model.spec import spec_from_fields, spec_from_json
from queuectl.settings import SETTINGS, parse, resolve, shown
from queuectl.store import jobs

EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", "0"))
NOW = 1_800_000_000_000
# What comes back at once, whatever stands behind it; the others stay, wait, or write where they are told.
QUICK = (
    "enqueue", "map", "list", "show", "why", "graph", "status", "stats", "logs", "cancel", "retry", "delete", "dlq",
    "queue", "limit", "config", "schedule", "token", "migrate",
)  # fmt: skip
STAYING = {"--follow", "-f", "--watch", "-w", "--wait", "--edit", "-e", "--db"}
DOCUMENTED = {0, 2, 3, 4, 6}


def examples(count: int) -> settings:
    """Run so many examples, always the same ones; as many as asked for, and others each time, when somebody asks."""
    return settings(
        max_examples=EXAMPLES or count,
        derandomize=not EXAMPLES,
        deadline=None,
        database=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
    )


scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(min_value=-(10**400), max_value=10**400)
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(
        ["", "\0", "\ud800", "\udcff", "1e99", "-1", "99999999999", "../x", "\x1b[2J", "now", "1h", "9" * 5000]
    )
)
anything = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
)
# A word of a command line: any bytes but NUL, which Python shows us as text with surrogates.
words = st.binary(max_size=30).map(lambda data: os.fsdecode(data.replace(b"\0", b"")))
plausible = st.sampled_from(
    ["1", "last", "job1", "default", "0", "-1", "1e99", "now", "1h", "yesterday", "dead", "a,b", "A=b", "true", "{}",
     '{"command": "true"}', '{"command": "true"', "[1]", "-", "--", "max_retries", "shell", "/bin/sh", "", " ", "*",
     ":::", "::::", "echo {.}",
     "../x", "\x1b]0;x\x07", "9" * 40, "max-retries", "default_max_tries", "3-9", "1-", "é", "\u202e"]
)  # fmt: skip


class Said(NamedTuple):
    """What came of a command line."""

    code: int
    out: str
    err: str


class Runner:
    """Runs the program in this process, on a home of its own."""

    def __init__(self, home: Path) -> None:
        self.target = locate(None, {"QUEUECTL_HOME": str(home)})
        self.environ = {**os.environ, "QUEUECTL_HOME": str(home)}
        self.folder = home.parent
        self.run(["status"])

    def run(self, argv: Sequence[str], stdin: bytes = b"", environ: Mapping[str, str] = {}) -> Said:
        """Run one command line, with streams as strict as those of a real process."""
        with _as_process({**self.environ, **environ}, stdin) as (out, err):
            try:
                code = program.main(argv)
            except SystemExit as left:  # --help
                code = int(str(left.code or 0))
            sys.stdout.flush()
            sys.stderr.flush()
            return Said(code, out.getvalue().decode(), err.getvalue().decode())

    def count(self) -> int:
        """Return how many jobs there are."""
        database = connect(self.target)
        try:
            return database.read(lambda tx: jobs.count_matching(tx, jobs.Filter()))
        finally:
            database.close()

    def check(self, argv: Sequence[str], stdin: bytes = b"", environ: Mapping[str, str] = {}) -> Said:
        """Run a command line that may be anything; what it says and leaves must be in order."""
        before = self.count()
        said = self.run(argv, stdin, environ)
        assert said.code in DOCUMENTED, (argv, said)
        assert "Traceback" not in said.err
        assert "internal error" not in said.err, (argv, said)
        if said.code:
            assert said.out == ""
            assert said.err.startswith("queuectl: ")
            assert len(said.err.splitlines()[0]) > len("queuectl: ") + 5, said.err
            assert self.count() == before
        assert not {char for char in said.out + said.err if not char.isprintable()} - set("\n"), said
        return said


@contextmanager
def _as_process(environ: Mapping[str, str], stdin: bytes) -> Iterator[tuple[io.BytesIO, io.BytesIO]]:
    """Give the program streams and an environment of its own, and put ours back."""
    streams, kept = (sys.stdin, sys.stdout, sys.stderr), dict(os.environ)
    out, err = io.BytesIO(), io.BytesIO()
    sys.stdin = io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8", errors="surrogateescape")
    sys.stdout = io.TextIOWrapper(out, encoding="utf-8", errors="strict", write_through=True)
    sys.stderr = io.TextIOWrapper(err, encoding="utf-8", errors="backslashreplace", write_through=True)
    os.environ.clear()
    os.environ.update(environ)
    try:
        yield out, err
    finally:
        sys.stdin, sys.stdout, sys.stderr = streams
        os.environ.clear()
        os.environ.update(kept)


@pytest.fixture
def runner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Runner:
    """The program in this process, in a folder where nothing is."""
    monkeypatch.chdir(tmp_path)
    return Runner(tmp_path / "home")


def refusal(work: Callable[[], object]) -> str | None:
    """Return what bad input was told, in so many words that somebody reads them; None when it was good."""
    try:
        work()
    except BadInput as error:
        told = error.message
    else:
        return None
    assert 5 < len(told) < 2000
    return told


@examples(150)
@given(st.dictionaries(st.sampled_from(list(FIELDS)) | st.text(max_size=5), anything, max_size=5))
def test_any_fields_are_a_job_or_bad_input_that_names_something(fields: dict[str, object]) -> None:
    refusal(lambda: spec_from_fields(fields, NOW, JobSpec(cwd="/")))


@examples(200)
@given(st.text(max_size=60) | anything.map(json.dumps))
def test_any_text_as_json_is_a_job_or_bad_input(text: str) -> None:
    refusal(lambda: spec_from_json(text, NOW, JobSpec(cwd="/")))


@pytest.mark.parametrize(
    "text",
    [
        '{"a":' * 100_000,
        '{"command": ' + "[" * 900 + "]" * 900 + "}",
        '{"command": ' + "[" * 5000 + "]" * 5000 + "}",
        '{"priority": ' + "9" * 5000 + "}",
        '{"priority": ' + "9" * 4000 + "}",
        '{"timeout": ' + "9" * 4000 + "}",
        '{"backoff_base": ' + "9" * 4000 + "}",
        '{"env": {"' + "x" * 100_000 + '": 1}}',
        '{"' + "x" * 100_000 + '": 1}',
        '{"queue": "' + "x" * 100_000 + '"}',
        '{"delay": "' + "9" * 100_000 + '"}',
        '{"run_at": "' + "9" * 100_000 + '"}',
        '{"priority": 1e999}',
        '{"priority": -0.0}',
    ],
    ids=lambda text: f"{text[:15]} {len(text)}",
)
def test_what_is_deep_or_huge_is_bad_input_in_a_few_words(runner: Runner, text: str) -> None:
    said = runner.check(["enqueue", "--from", "-"], stdin=text.encode())

    assert said.code == 2
    assert len(said.err) < 1000


@examples(200)
@given(data=st.binary(max_size=200) | st.lists(st.binary(max_size=20) | plausible.map(os.fsencode)).map(b"\n".join))
def test_any_bytes_as_a_batch_add_all_or_nothing(runner: Runner, data: bytes) -> None:
    before = runner.count()

    said = runner.check(["enqueue", "--from", "-"], stdin=data)

    if said.code == 0:
        assert runner.count() == before + len(said.out.split())


@examples(150)
@given(
    job=st.dictionaries(st.sampled_from(list(FIELDS)), anything, max_size=3),
    place=st.integers(min_value=0, max_value=3),
)
def test_one_odd_job_among_good_ones_adds_all_or_nothing(runner: Runner, job: dict[str, object], place: int) -> None:
    lines = ["true", '{"command": "true"}', "echo x"]
    lines.insert(place, json.dumps({"command": "true", **job}))
    before = runner.count()

    said = runner.check(["enqueue", "--from", "-"], stdin="\n".join(lines).encode("utf-8", "surrogatepass"))

    assert runner.count() == before + (4 if said.code == 0 else 0)
    if said.code == 2:
        assert f"line {place + 1}: " in said.err


@examples(200)
@given(st.text(max_size=20) | st.from_regex(r"[0-9a-z.:+ -]{0,20}"))
def test_any_duration_time_size_or_id_is_read_or_bad_input(text: str) -> None:
    refusal(lambda: units.duration_ms(text))
    refusal(lambda: units.size_bytes(text))
    refusal(lambda: units.time_ms(text, NOW))
    refusal(lambda: check_given_id("id", text))


@examples(200)
@given(key=st.sampled_from([*SETTINGS, "default_max_tries"]), text=st.text(max_size=20) | plausible)
def test_any_setting_is_read_back_as_it_is_shown_or_is_bad_input(key: str, text: str) -> None:
    told = refusal(lambda: parse(key, text))

    if told is None:
        name, value = parse(key, text)
        assert parse(name, shown(name, value)) == (name, value)
    else:
        assert told.startswith(f"{key}: ")


@examples(150)
@given(
    stored=st.dictionaries(st.sampled_from(list(SETTINGS)), plausible, max_size=3),
    environ=st.dictionaries(st.sampled_from([f"QUEUECTL_{key.upper()}" for key in SETTINGS]), plausible, max_size=2),
)
def test_any_settings_resolve_or_are_bad_input(stored: dict[str, str], environ: dict[str, str]) -> None:
    refusal(lambda: resolve(stored, environ))


@examples(100)
@given(
    key=st.sampled_from(list(SETTINGS)) | words,
    value=words | plausible,
    variable=st.sampled_from(list(SETTINGS)),
    text=words | plausible,
)
def test_any_setting_set_or_in_the_environment_is_taken_or_refused(
    runner: Runner, key: str, value: str, variable: str, text: str
) -> None:
    runner.check(["config", "set", key, value])
    environ = {f"QUEUECTL_{variable.upper()}": text}
    runner.check(["config", "get", variable], environ=environ)
    runner.check(["enqueue", "true"], environ=environ)
    runner.check(["config", "unset", key])

    assert runner.run(["config", "list"]).code == 0


def _flags(name: str) -> list[str]:
    """Return the flags and verbs of a command, without those that make it stay."""
    from importlib import import_module

    module = import_module(f"queuectl.cli.{program.COMMANDS[name][0]}")
    parsers: list[argparse.ArgumentParser] = [make_parser(name, module, {"db": None, "json": False})]
    found: set[str] = set()
    for parser in parsers:
        for action in parser._actions:
            found |= set(action.option_strings)
            if isinstance(action, argparse._SubParsersAction):
                parsers += [one for one in action.choices.values() if one not in parsers]
                found |= set(action.choices)
    return sorted(found - STAYING)


@examples(250)
@given(data=st.data())
def test_any_words_after_any_command_are_obeyed_or_refused(runner: Runner, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(QUICK))
    after = data.draw(st.lists(st.sampled_from(_flags(name)) | plausible | words, max_size=6))
    before = data.draw(st.lists(st.sampled_from(["--json", "--jsn", "--db="]), max_size=1))

    runner.check([*before, name, *(word for word in after if word not in STAYING)])


@examples(100)
@given(argv=st.lists(words.filter(lambda word: word not in ("worker", "run", "wait", "serve")), max_size=4))
def test_any_words_at_all_are_refused_or_obeyed(runner: Runner, argv: list[str]) -> None:
    runner.check(argv)


def test_running_in_one_process_leaves_nothing_behind(runner: Runner) -> None:
    def state() -> tuple[object, ...]:
        gc.collect()
        mask = os.umask(0o077)
        os.umask(mask)
        handlers = tuple(signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE))
        return sorted(os.listdir("/proc/self/fd")), dict(os.environ), os.getcwd(), mask, handlers, sys.argv[:]

    lines = [
        ["enqueue", "true"],
        ["enqueue", "{"],
        ["list"],
        ["show", "x"],
        ["config", "set", "a", "b"],
        ["x"],
        ["dlq"],
    ]
    for line in lines:
        runner.check(line)
    before = state()

    for _ in range(20):
        for line in random.Random(1).sample(lines, len(lines)):
            runner.check(line)

    assert state() == before
