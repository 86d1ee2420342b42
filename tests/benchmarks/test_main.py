"""The program: what it refuses before it measures anything."""

import signal
import subprocess
import sys

import pytest

from benchmarks import __main__ as program
from benchmarks import machine, stores
from benchmarks.budgets import BUDGETS, DASHBOARD, FULL
from benchmarks.workloads import MODULES


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
