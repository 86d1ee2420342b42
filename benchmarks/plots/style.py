"""Style: what the plots share: colours that the colour-blind tell apart, spreads, scales and grid."""

import statistics
from collections.abc import Mapping, Sequence
from typing import Literal

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from benchmarks.bench import POSTGRES, SQLITE
from benchmarks.figures import Figure, Value

Figures = Mapping[str, Sequence[Figure]]
WIDTH = 7.2
"""Inches: on a page 900 pixels wide, letters of 9 points are 16 pixels high."""
SMALL = 8
"""Points of what stands within the axes."""
INK, GREY, PALE, GRID = "#333333", "#8a8f98", "#d3d6db", "#e6e8eb"
COLOURS = {SQLITE: "#0072b2", POSTGRES: "#d55e00"}
WIDTH_COLOURS = ("#00795a", "#c46a9b")
BUDGET_LINE = {"color": INK, "ls": (0, (4, 2)), "lw": 1.1}
STYLE = {
    "svg.hashsalt": "queuectl",
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "legend.frameon": False,
}


def found(figures: Figures, workload: str) -> list[Figure]:
    """Return the figures of a workload that are not missing."""
    return [figure for figure in figures.get(workload, ()) if not figure.is_missing]


def medians(samples: Sequence[Sequence[float]]) -> list[float]:
    """Return the median of each."""
    return [statistics.median(each) for each in samples]


def spreads(samples: Sequence[Sequence[float]]) -> tuple[list[float], list[float]]:
    """Return how far the lowest and the highest of each are from its median, as error bars take it."""
    below = [median - min(each) for median, each in zip(medians(samples), samples, strict=True)]
    above = [max(each) - median for median, each in zip(medians(samples), samples, strict=True)]
    return below, above


def spread_handle() -> Line2D:
    """Return the line of a legend that says what the thin lines are."""
    return Line2D([], [], color=INK, marker="|", ls="", ms=10, label="lowest to highest round")


def number_of(figure: Figure, name: str) -> float:
    """Return a number that a figure carries."""
    value: Value = figure.values[name]
    assert isinstance(value, int | float)
    return float(value)


def short(count: float) -> str:
    """Write a round number of jobs with few letters."""
    for size, letter in ((1_000_000, "M"), (1000, "k")):
        if count >= size:
            return f"{count / size:g}{letter}"
    return f"{count:g}"


def set_log(axes: Axes, along: Literal["x", "y"], ticks: Sequence[float], low: float, high: float) -> None:
    """Make an axis logarithmic between two values, with those of some ticks that lie within."""
    axis = {"x": axes.xaxis, "y": axes.yaxis}[along]
    axes.set(**{f"{along}scale": "log", f"{along}lim": (low, high)})
    within = [tick for tick in ticks if low <= tick <= high]
    axis.set_ticks(within, [f"{tick:,g}" for tick in within])
    axis.set_ticks([], minor=True)


def add_grid(axes: Axes, along: Literal["x", "y"]) -> None:
    """Draw the lines that a value is read off by."""
    axes.grid(axis=along, color=GRID, lw=0.7)
