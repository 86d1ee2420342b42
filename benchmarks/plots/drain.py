"""The plot of the drains: the rates of every way to drain, those of xargs beside them."""

import statistics
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D
from matplotlib.ticker import StrMethodFormatter

from benchmarks.bench import KINDS, SQLITE
from benchmarks.figures import Figure
from benchmarks.peers.table import numbers
from benchmarks.plots.style import COLOURS, GREY, INK, SMALL, Figures, add_grid, found, medians, spread_handle, spreads

BAR = 0.29
FOOT = (0, 4)
"""Points above the foot of a bar, where its ratio stands."""


def draw(canvas: Canvas, figures: Figures) -> None:
    """Draw a bar for each database in each way, with its ratio to xargs and its budget."""
    axes = canvas.subplots()
    drains = found(figures, "drain")
    ways = sorted({str(figure.values["flags"]) for figure in drains}, key=lambda way: ("-j" in way, way))
    units = [figure for figure in drains if figure.values["kind"] == SQLITE]
    _draw_bars(axes, _places(units, ways, -BAR), [numbers(each, "unit_rates") for each in units], GREY, "xargs -P")
    for kind, aside in zip(KINDS, (0, BAR), strict=True):
        of_kind = [figure for figure in drains if figure.values["kind"] == kind]
        places = _places(of_kind, ways, aside)
        _draw_bars(axes, places, [each.absolute for each in of_kind], COLOURS[kind], f"queuectl, {kind}")
        for place, figure in zip(places, of_kind, strict=True):
            _add_ratio(axes, place, figure)
            _draw_budget(axes, place, figure)
    axes.set_xticks(range(len(ways)), [_name(way) for way in ways])
    axes.set_ylabel("commands per second")
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.set_title("Drain of no-op commands, start-up included; in the bars: x of xargs -P as wide")
    add_grid(axes, "y")
    budget = Line2D([], [], color=INK, lw=2, label="budget: at least so many")
    canvas.legend(
        handles=[*axes.get_legend_handles_labels()[0], budget, spread_handle()], loc="outside lower center", ncols=3
    )


def _places(figures: Sequence[Figure], ways: Sequence[str], aside: float) -> list[float]:
    return [ways.index(str(figure.values["flags"])) + aside for figure in figures]


def _name(way: str) -> str:
    """Say how many workers there are, or how many slots one has."""
    flag, count = way.split()
    return f"1 worker\n{way}" if flag == "-j" else f"{count} worker{'s' * (count != '1')}"


def _draw_bars(
    axes: Axes, places: Sequence[float], samples: Sequence[Sequence[float]], colour: str, label: str
) -> None:
    errors = {"yerr": spreads(samples), "error_kw": {"lw": 0.9, "ecolor": INK}}
    axes.bar(places, medians(samples), width=BAR - 0.02, color=colour, label=label, **errors)


def _add_ratio(axes: Axes, place: float, figure: Figure) -> None:
    text = {"color": "white", "size": SMALL, "ha": "center", "rotation": 90, "textcoords": "offset points"}
    axes.annotate(f"{figure.median:.2f} x", (place, 0), FOOT, **text)


def _draw_budget(axes: Axes, place: float, figure: Figure) -> None:
    """Mark how high a bar must reach."""
    if figure.budget is not None:
        rate = figure.budget.limit * statistics.median(numbers(figure, "unit_rates"))
        axes.hlines(rate, place - BAR / 2, place + BAR / 2, color=INK, lw=2)
