"""Plots: what stands in them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from benchmarks.bench import SQLITE
from benchmarks.budgets import BUDGETS, FULL
from benchmarks.figures import Figure
from benchmarks.peers.lineup import OWN_SQLITE
from benchmarks.plots import PLOTS, draw_all
from benchmarks.plots.style import number_of, short
from benchmarks.report import newest
from benchmarks.workloads.growth import COMMANDS, MILLION

Figures = Mapping[str, Sequence[Figure]]


@pytest.fixture(scope="module")
def figures() -> Figures:
    """Give those of the newest whole run."""
    return newest(FULL).figures


def texts(figures: Figures, name: str, folder: Path) -> list[str]:
    """Draw everything and return what is written in one of the plots."""
    draw_all(figures, folder, "new")
    root = ElementTree.parse(folder / f"new-{name}.svg").getroot()
    return [
        text for each in root.iter("{http://www.w3.org/2000/svg}text") if (text := "".join(each.itertext()).strip())
    ]


def test_every_plot_of_a_whole_run_is_drawn_and_always_the_same(figures: Figures, tmp_path: Path) -> None:
    draw_all(figures, tmp_path, "one")
    draw_all(figures, tmp_path, "other")

    drawn = {name: (tmp_path / f"one-{name}.svg").read_bytes() for name in PLOTS}
    assert drawn == {name: (tmp_path / f"other-{name}.svg").read_bytes() for name in PLOTS}


def test_nothing_is_drawn_of_what_was_not_measured(tmp_path: Path) -> None:
    draw_all({"drain": [Figure.missing("drain", "it failed")]}, tmp_path, "one")

    assert list(tmp_path.iterdir()) == []


def test_each_line_of_the_pick_ups_is_named_once_and_so_are_the_budgets(figures: Figures, tmp_path: Path) -> None:
    written = texts(figures, "pickup", tmp_path)

    assert len(set(written)) == len(written)
    budgets = {f"{percent}: {BUDGETS[f'pick-up {percent}'].limit:g} ms" for percent in ("p50", "p95")}
    assert {"a bare spawn, no queue", *budgets} <= set(written)


def test_the_budget_of_status_ends_where_it_is_no_longer_judged(figures: Figures, tmp_path: Path) -> None:
    budget = f"budget: {BUDGETS['status'].limit:g} ms, up to {short(MILLION)} jobs"

    assert texts(figures, "growth", tmp_path).count(budget) == len(COMMANDS)


def test_growth_has_a_tick_for_every_step(figures: Figures, tmp_path: Path) -> None:
    steps = {short(number_of(each, "rows")) for each in figures["growth"] if "rows" in each.values}

    assert steps <= set(texts(figures, "growth", tmp_path))


def test_each_peer_is_named_with_its_durability_where_the_result_has_it(figures: Figures, tmp_path: Path) -> None:
    tag = {"durability_tag": OWN_SQLITE.durability_tag}
    tagged = [replace(each, values={**each.values, **tag}) for each in figures["peers"] if "peer" in each.values]
    bare = [
        replace(each, values={name: value for name, value in each.values.items() if name not in tag}) for each in tagged
    ]

    assert OWN_SQLITE.durability_tag in texts({"peers": tagged}, "peers", tmp_path)
    assert OWN_SQLITE.name in texts({"peers": bare}, "peers", tmp_path)


def test_what_one_database_or_no_compiler_gave_is_drawn_too(figures: Figures, tmp_path: Path) -> None:
    few = {name: [each for each in found if SQLITE in each.what] for name, found in figures.items()}
    few["limit"] = [each for each in figures["limit"] if each.values["language"] != "C"]

    assert "the command, run from Python" in texts(few, "limit", tmp_path)
    assert (tmp_path / "new-growth.svg").exists()
