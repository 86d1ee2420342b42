"""Report: figures as tables, and the blocks of the documents that hold them."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import report
from benchmarks.budgets import DASHBOARD, FULL
from benchmarks.figures import Budget, Figure
from benchmarks.report import Result, documents, newest, page, summary, table, with_block, write_blocks
from benchmarks.workloads import MODULES, title, workload

DRAIN = Figure(
    what="drain, -n 2, SQLite",
    unit="x of xargs -P 2",
    ratios=[0.9, 1.1, 1.3],
    absolute=[2000.0],
    absolute_unit="jobs/s",
    budget=Budget(limit=1.0, is_more_better=True),
    is_headline=True,
)
ASIDE = Figure(what="drain, -n 8, SQLite", unit="x of xargs -P 8", ratios=[0.5], note="sh -c | cat")
RESULT = Result(
    version="1.2.3",
    commit="0123456789ab",
    measured_at="2026-01-02 03:04 UTC",
    seconds=61.4,
    machine={
        "cores": 2,
        "processor": "a processor",
        "kernel": "Linux 6",
        "python": "3.11",
        "sqlite": "3.54",
        "postgresql": "18",
        "file_system": "ext4",
        "sync_ms": 0.2,
    },
    durability={"xargs": "none"},
    figures={"drain": [DRAIN, ASIDE]},
)


def test_a_table_has_a_line_for_each_figure() -> None:
    lines = table([DRAIN, ASIDE]).splitlines()

    assert lines[2:] == [
        "| drain, -n 2, SQLite | 1.1 x of xargs -P 2 (0.9 to 1.3) | 2,000 jobs/s | at least 1x: met (2 of 3 within) |",
        "| drain, -n 8, SQLite | 0.5 x of xargs -P 8 | sh -c \\| cat |  |",
    ]


def test_the_summary_has_the_headlines_and_the_machine() -> None:
    text = summary(RESULT)

    assert DRAIN.what in text
    assert ASIDE.what not in text
    assert "ext4 with a sync in 0.2 ms" in text


SLOW = replace(DRAIN, what="drain, -n 4, SQLite", ratios=[0.7, 0.8, 0.9], is_headline=False)


@pytest.mark.parametrize("write", [summary, page])
def test_what_is_measured_says_when_and_at_which_commit(write: Callable[[Result], str]) -> None:
    assert "Measured on 2026-01-02 03:04 UTC at commit 0123456789ab (version 1.2.3)" in write(RESULT)


@pytest.mark.parametrize("write", [summary, page])
def test_every_missed_budget_comes_first_headline_or_not(write: Callable[[Result], str]) -> None:
    text = write(replace(RESULT, figures={"drain": [DRAIN, ASIDE, SLOW]}))

    assert "**Of 2 figures with a budget, 1 misses it:**" in text
    first, second = (text.index(f"| {figure.what} |") for figure in (SLOW, DRAIN))
    assert first < second
    assert "at least 1x: **missed** |" in text


def test_where_all_budgets_are_met_that_is_said() -> None:
    assert "All 1 figures with a budget are within it." in summary(RESULT)


@pytest.mark.parametrize(
    "kind, name", [(FULL, "README.md"), (FULL, "docs/performance.md"), (DASHBOARD, "docs/performance.md")]
)
def test_the_documents_show_the_newest_run_and_nothing_else(kind: str, name: str) -> None:
    text = (report.ROOT / name).read_text()

    written = text
    for mark, block in documents(kind, newest(kind))[name].items():
        written = with_block(written, mark, block)

    assert text == written, "write them again: python -m benchmarks.report"


def test_the_page_has_everything_under_the_heading_of_its_workload() -> None:
    text = page(RESULT, level=3)

    assert "### Drain\n\nLines of `:`" in text
    assert ASIDE.what in text
    assert "- xargs: none" in text


def test_a_plot_is_shown_where_it_was_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "RESULTS", tmp_path)

    before = page(RESULT, plots="../results/full-")
    (tmp_path / "full-drain.svg").touch()
    after = page(RESULT, plots="../results/full-")

    assert "![" not in before
    assert "![Drain](../results/full-drain.svg)" in after


def test_only_what_stands_between_the_marks_is_replaced() -> None:
    text = "# Title\n\n<!-- figures -->\nold\n<!-- /figures -->\n\nmore  \n"

    once = with_block(text, "figures", "new\n")

    assert once == "# Title\n\n<!-- figures -->\nnew\n<!-- /figures -->\n\nmore  \n"
    assert with_block(once, "figures", "new\n") == once


@pytest.mark.parametrize("text", ["nothing", "<!-- figures -->", "<!-- /figures --> then <!-- figures -->"])
def test_a_text_without_the_marks_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="figures"):
        with_block(text, "figures", "new")


def test_both_documents_have_the_marks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("README.md", "docs/performance.md")
    (tmp_path / "docs").mkdir()
    for document in names:
        (tmp_path / document).write_text((report.ROOT / document).read_text())
    monkeypatch.setattr(report, "ROOT", tmp_path)

    write_blocks(FULL, RESULT)

    assert all(DRAIN.what in (tmp_path / document).read_text() for document in names)


def test_a_broken_run_leaves_the_documents_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(report, "ROOT", tmp_path)  # where there are no documents to write

    write_blocks(FULL, replace(RESULT, broken=["drain"]))

    assert "keep their older figures: drain failed" in capsys.readouterr().out


def test_a_result_comes_back_from_json_as_it_was() -> None:
    assert Result.of_row(json.loads(json.dumps(RESULT.row()))) == RESULT


@pytest.mark.parametrize("name", MODULES)
def test_every_workload_can_be_called_and_says_what_it_measures(name: str) -> None:
    heading, story = title(name)

    assert callable(workload(name))
    assert heading
    assert story.endswith(".")
