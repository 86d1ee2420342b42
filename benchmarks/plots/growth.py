"""The plot of growth: what each act costs beside more and more jobs."""

from collections.abc import Callable, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D
from matplotlib.transforms import ScaledTranslation

from benchmarks.bench import KINDS, POSTGRES, SQLITE
from benchmarks.figures import Figure
from benchmarks.plots.style import (
    BUDGET_LINE,
    COLOURS,
    SMALL,
    Figures,
    add_grid,
    found,
    medians,
    number_of,
    set_log,
    short,
    spread_handle,
    spreads,
)
from benchmarks.workloads.growth import DEPTH_SERIES

CANNOT_BE_TAKEN, READY = "other jobs, none of which can be taken", "jobs ready in the queue"
DEEP = "claim + settle from a deep queue"
STORE_SERIES = {"claim + settle": CANNOT_BE_TAKEN, DEPTH_SERIES: READY, "enqueue": CANNOT_BE_TAKEN}
COMMAND_SERIES = ("status --json", "list --json")
RATIO_TICKS = (0.1, 0.25, 0.5, 1, 2, 4, 8, 16)
US_TICKS = (10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000)
LEAST_RATIOS = (0.55, 1.8)
"""What the ratios are shown between at least, so that what hardly differs looks like it."""
ROOM = 1.2
ASIDE = {SQLITE: -2 / 72, POSTGRES: 2 / 72}
"""Inches that each database is moved by, so that spreads do not cover each other."""
MARKERS = {SQLITE: "o", POSTGRES: "s"}


def draw(canvas: Canvas, figures: Figures) -> None:
    """Draw a row for each act in the store, as ratio and in time, and one for the commands."""
    growth = found(figures, "growth")
    *rows, commands = canvas.subplots(len(STORE_SERIES) + 1, 2)
    for pair, (series, others) in zip(rows, STORE_SERIES.items(), strict=True):
        of_series = _of(growth, series)
        _draw_ratios(pair[0], of_series)
        _draw_us(pair[1], of_series)
        for axes in pair:
            axes.set_title(series.replace(DEPTH_SERIES, DEEP), loc="left")
            axes.set_xlabel(others)
    for axes, series in zip(commands, COMMAND_SERIES, strict=True):
        _draw_ms(axes, _of(growth, series))
        axes.set_title(series, loc="left")
        axes.set_xlabel("other jobs")
    canvas.legend(handles=_handles(), loc="outside lower center", ncols=4)


def _of(growth: Sequence[Figure], series: str) -> list[Figure]:
    return sorted(
        (figure for figure in growth if figure.values.get("series") == series), key=lambda each: number_of(each, "rows")
    )


def _draw_ratios(axes: Axes, figures: Sequence[Figure]) -> None:
    ratios = [ratio for figure in figures for ratio in figure.ratios] or [1]
    _draw_lines(axes, figures, lambda figure: figure.ratios)
    low, high = LEAST_RATIOS
    set_log(axes, "y", RATIO_TICKS, min(low, *ratios) / ROOM, max(high, *ratios) * ROOM)
    axes.set_ylabel("x of an empty queue")
    _draw_budget(axes, figures, "x")


def _draw_us(axes: Axes, figures: Sequence[Figure]) -> None:
    times = [us for figure in figures for us in figure.absolute] or [100]
    _draw_lines(axes, figures, lambda figure: figure.absolute)
    set_log(axes, "y", US_TICKS, min(times) / ROOM, max(times) * ROOM)
    axes.set_ylabel("microseconds")


def _draw_ms(axes: Axes, figures: Sequence[Figure]) -> None:
    _draw_lines(axes, figures, lambda figure: figure.absolute)
    _draw_budget(axes, figures, "ms")
    axes.set_ylim(0, max([*(ms for figure in figures for ms in figure.absolute), 200]) * ROOM)
    axes.set_ylabel("ms, start-up included")


def _draw_lines(axes: Axes, figures: Sequence[Figure], samples_of: Callable[[Figure], Sequence[float]]) -> None:
    """Draw medians and spreads of both databases over the steps that were measured."""
    steps = sorted({number_of(figure, "rows") for figure in figures})
    for kind in KINDS:
        of_kind = [figure for figure in figures if figure.values["kind"] == kind]
        samples = [samples_of(figure) for figure in of_kind]
        axes.errorbar(
            [number_of(figure, "rows") for figure in of_kind],
            medians(samples),
            yerr=spreads(samples),
            color=COLOURS[kind],
            marker=MARKERS[kind],
            ms=3.5,
            lw=1.3,
            elinewidth=0.9,
            capsize=2,
            transform=axes.transData + ScaledTranslation(ASIDE[kind], 0, axes.figure.dpi_scale_trans),
        )
    _set_steps(axes, steps)
    add_grid(axes, "y")


def _set_steps(axes: Axes, steps: Sequence[float]) -> None:
    """Make the axis logarithmic beyond its first step, with a tick for each."""
    first = min((step for step in steps if step), default=1)
    axes.set_xscale("symlog", linthresh=first, linscale=0.4)
    axes.set_xlim(-0.2 * first if 0 in steps else first / ROOM, max(steps, default=1) * ROOM)
    axes.set_xticks(steps, [short(step) for step in steps], size=SMALL)
    axes.set_xticks([], minor=True)


def _draw_budget(axes: Axes, figures: Sequence[Figure], unit: str) -> None:
    """Draw the line that the medians must not cross, as far as they are held to it."""
    judged = {number_of(figure, "rows"): figure.budget for figure in figures if figure.budget}
    if not judged:
        return
    last = max(judged)
    limit = judged[last].limit
    up_to = f", up to {short(last)} jobs" if last < number_of(figures[-1], "rows") else ""
    axes.plot([0, last], [limit, limit], **BUDGET_LINE)
    text = {"textcoords": "offset points", "ha": "right", "size": SMALL}
    axes.annotate(f"budget: {limit:g} {unit}{up_to}", (last, limit), (-7, 3), **text)


def _handles() -> list[Line2D]:
    sides = [Line2D([], [], color=COLOURS[kind], marker=MARKERS[kind], ms=3.5, lw=1.3, label=kind) for kind in KINDS]
    return [*sides, spread_handle(), Line2D([], [], label="budget of the median", **BUDGET_LINE)]
