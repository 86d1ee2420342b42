"""Secrets from the worker to the command: who gets them, who does not, and that nothing of them is kept."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from queuectl.actions.connect import Target, connect
from queuectl.model.verdict import OutcomeKind
from queuectl.runtime.environment import shared_variables
from tests.runtime.running import Bench

VALUE = "hunter2-correct-horse"
LAUNCH = {"secrets": ["API_KEY"]}


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """Somewhere to run commands, with one secret in its home."""
    bench = Bench(tmp_path / "home")
    put(bench, "API_KEY", VALUE)
    yield bench
    bench.close()


def put(bench: Bench, name: str, value: str, mode: int = 0o600) -> Path:
    """Write a secret into the home as its user does."""
    folder = Path(bench.home.secrets)
    folder.mkdir(mode=0o700, exist_ok=True)
    path = folder / name
    path.write_text(value + "\n")
    path.chmod(mode)
    return path


def traces_of(bench: Bench, value: str) -> list[str]:
    """Return the files of a home, but for the secrets themselves, that hold a value."""
    return [
        str(file)
        for file in Path(bench.home.root).rglob("*")
        if file.is_file() and file.parent.name != "secrets" and value.encode() in file.read_bytes()
    ]


class TestCommand:
    """One command with a secret."""

    def test_it_gets_the_value_as_a_variable(self, bench: Bench) -> None:
        report = bench.run(f'test "$API_KEY" = {VALUE} && printenv API_KEY | wc -c', launch=LAUNCH)

        assert (report.outcome.exit_code, report.output_tail) == (0, b"%d\n" % (len(VALUE) + 1))

    def test_without_naming_it_it_gets_none(self, bench: Bench) -> None:
        assert bench.run("echo ${API_KEY-none}").output_tail == b"none\n"

    def test_a_value_that_changed_counts_for_the_next_run(self, bench: Bench) -> None:
        put(bench, "API_KEY", "another")

        assert bench.run('test "$API_KEY" = another', launch=LAUNCH).outcome.exit_code == 0

    def test_what_it_prints_of_it_is_masked(self, bench: Bench) -> None:
        report = bench.run('echo "key: $API_KEY."; printf %s "$API_KEY"', launch=LAUNCH)

        assert (report.output_tail, report.output_bytes) == (b"key: ***.\n***", 13)

    def test_what_it_prints_in_two_writes_is_masked(self, bench: Bench, tmp_path: Path) -> None:
        line = (
            'echo begin; head=${API_KEY%???}; printf %s "$head"; '
            f'until [ -e {tmp_path}/go ]; do :; done; echo "${{API_KEY#"$head"}}"'
        )
        runner = bench.start(line, launch=LAUNCH)

        bench.turn_until(runner, lambda: bench.log(runner).exists())
        bench.turn_until(runner, lambda: runner._outputs[0]._taken == len("begin\n") + len(VALUE) - 3)
        seen = bench.log(runner).read_bytes()
        (tmp_path / "go").touch()
        report = bench.finish(runner)

        assert seen == b"begin\n"
        assert report.output_tail == bench.log(runner).read_bytes() == b"begin\n***\n"

    def test_both_streams_are_masked(self, bench: Bench) -> None:
        report = bench.run('echo "1 $API_KEY"; echo "2 $API_KEY" >&2', launch=LAUNCH, split_output=True)

        assert (report.output_tail, report.stderr_tail) == (b"1 ***\n", b"2 ***\n")

    def test_long_output_is_masked_in_file_and_tail(self, bench: Bench) -> None:
        runner = bench.start('seq 20000 | sed "s/$/ $API_KEY/"', launch=LAUNCH, max_output_bytes="64KiB")
        report = bench.finish(runner)

        shown = b"".join(b"%d ***\n" % number for number in range(1, 20001))
        assert report.output_bytes == len(shown)
        assert shown.endswith(report.output_tail)
        assert shown.startswith(bench.log(runner).read_bytes()[:30_000])
        assert not traces_of(bench, VALUE)

    def test_a_secret_that_is_missing_is_a_run_that_did_not_start(self, bench: Bench) -> None:
        outcome = bench.run("true", launch={"secrets": ["API_KEY", "OTHER"]}).outcome

        assert (outcome.kind, outcome.exit_code) == (OutcomeKind.NOT_STARTED, 126)
        assert f"secret OTHER: not found as variable QUEUECTL_SECRET_OTHER, {bench.home.secrets}/OTHER" in str(
            outcome.error
        )

    def test_a_secret_open_to_others_is_a_run_that_did_not_start(self, bench: Bench) -> None:
        path = put(bench, "API_KEY", VALUE, mode=0o644)

        outcome = bench.run("true", launch=LAUNCH).outcome

        assert str(outcome.error).endswith(f"(run: chmod 600 {path})")
        assert VALUE not in str(outcome.error)


def test_commands_inherit_no_secret_that_they_do_not_name(target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    connect(target).close()
    monkeypatch.setenv("QUEUECTL_SECRET_API_KEY", "hunter2")
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", "/run/credentials/queuectl.service")
    monkeypatch.setenv("COLOUR", "blue")

    env = shared_variables(target).with_own(b"")

    assert env[b"COLOUR"] == b"blue"
    assert not [name for name in env if b"SECRET" in name or name == b"CREDENTIALS_DIRECTORY"]
