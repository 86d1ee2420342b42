"""The program: what it refuses before it measures anything."""

import signal
import subprocess
import sys

import pytest

from benchmarks import __main__ as program
from benchmarks import machine, stores
from benchmarks.budgets import BUDGETS, DASHBOARD, FULL
from benchmarks.report import ROOT
from benchmarks.workloads import MODULES
from tests.program import DEADLINE_S


class Begun(Exception):
    """Raised where measuring would begin."""


@pytest.fixture
def without_plots(monkeypatch: pytest.MonkeyPatch) -> None:
    def begin() -> None:
        raise Begun

    monkeypatch.setattr(program, "_can_draw", lambda: False)
    monkeypatch.setattr(machine, "commit", lambda _: "")
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    monkeypatch.setattr(subprocess, "run", lambda *_: None)
    monkeypatch.setattr(stores, "postgres_server", begin)


def test_a_whole_run_does_not_begin_where_no_plots_can_be_drawn(
    without_plots: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["benchmarks", "full"])

    assert program.main() == 2

    assert "pip install -e '.[dev]'" in capsys.readouterr().err


def test_a_part_is_measured_all_the_same(without_plots: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["benchmarks", "full", "--only", "core"])

    with pytest.raises(Begun):
        program.main()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_run_that_is_interrupted_clears_up_whatever_signal_follows(number: signal.Signals) -> None:
    code = """if True:
        import sys
        from benchmarks.__main__ import _leave_in_order
        _leave_in_order()
        try:
            print("begun", flush=True)
            sys.stdin.readline()
        finally:
            sys.stdin.readline()
            print("cleared", flush=True)
    """
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, text=True, **pipes) as process:  # type: ignore[call-overload]
        assert process.stdout.readline() == "begun\n"

        process.send_signal(number)
        assert process.stderr.readline() == "\n"
        said = process.stderr.readline()
        process.send_signal(signal.SIGINT)
        cleared, more = process.communicate("go on\n", timeout=DEADLINE_S)

    assert said == "interrupted: clearing up; nothing is written\n"
    assert (cleared, more, process.returncode) == ("cleared\n", "", 128 + number)


def test_the_whole_runs_measure_everything_once_and_judge_every_budget() -> None:
    full, dashboard = (program._chosen(size, []) for size in (FULL, DASHBOARD))

    assert sorted([*full, *dashboard]) == sorted(MODULES)
    assert {budget.run for budget in BUDGETS.values()} == {FULL, DASHBOARD}


def test_what_is_asked_for_is_measured_alone() -> None:
    assert program._chosen(FULL, [DASHBOARD, "core"]) == ["core", DASHBOARD]


def test_what_would_be_measured_is_said_before_anything_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["benchmarks", "full", "--names", "--only", "peers", "--only", "core"])

    assert program.main() == 0

    assert capsys.readouterr().out == "core peers\n"


def test_the_run_of_the_dashboard_measures_nothing_else(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["benchmarks", "dashboard", "--only", "core"])

    with pytest.raises(SystemExit) as refused:
        program.main()

    assert refused.value.code == 2
    assert "full --only core" in capsys.readouterr().err
