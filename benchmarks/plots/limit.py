"""The plot of the limit: where the time of one job goes, and that of xargs beside it."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from benchmarks.bench import SQLITE
from benchmarks.budgets import BUDGETS
from benchmarks.figures import Figure, number
from benchmarks.plots.style import (
    BUDGET_LINE,
    INK,
    SMALL,
    Figures,
    add_grid,
    found,
    number_of,
    spread_handle,
)
from benchmarks.workloads.core import BY_THE_HANDFUL
from benchmarks.workloads.limit import CPU, PYTHON, WALL, WIDTHS, C

LIMIT, XARGS, START = "#6b7078", "#b3b8bf", "#dfe7f3"
OWN_PARTS = {"claim + settle": "#0072b2", "rest of the worker": "#56b4e9"}
CLOCK = {"marker": "D", "ms": 4.5, "mfc": "white", "mec": INK, "ls": "", "color": INK}
BACKGROUND = {"color": "white", "pad": 0.5}
BELOW = 0.33
"""How far below the middle of a bar its time by the clock stands."""
HEADROOM = 1.2
"""Of the longest bar, so that what is written beside it has its place."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One bar: microseconds per command."""

    name: str
    limit_us: float
    """To start the command and wait for its end, without anything else."""
    parts: Sequence[tuple[float, str]]
    """What comes on top, each part with its colour."""
    start_us: float = 0
    """The start of the workers, spread over the jobs."""
    clock_us: float
    """The whole by the clock, times the cores."""
    beyond_us: Sequence[float]
    """What comes on top, round by round where that is known."""
    beyond_clock_us: Sequence[float]
    """The same by the clock."""


def draw(canvas: Canvas, figures: Figures) -> None:
    """Draw whole commands on the left; on the right, larger, what comes on top of starting them."""
    whole, beyond = canvas.subplots(1, 2, width_ratios=(3, 2), sharey=True)
    rows = [row for width in reversed(WIDTHS) for row in _rows(figures, width)]
    for place, row in enumerate(rows):
        _draw_whole(whole, place, row)
        _draw_beyond(beyond, place, row)
    whole.set_yticks(range(len(rows)), [row.name for row in rows])
    for axes in (whole, beyond):
        axes.set_xlim(0, axes.dataLim.x1 * HEADROOM)
        axes.set_xlabel("microseconds per command")
        add_grid(axes, "x")
    aim = beyond.axvline(BUDGETS["own share"].limit, label="queuectl: aim, at most", **BUDGET_LINE)
    beyond.tick_params(left=False)
    whole.set_title("the whole", loc="left")
    beyond.set_title("what is not the command itself", loc="left")
    canvas.suptitle("Where the time of one no-op job goes, on SQLite", size=11)
    canvas.legend(handles=[*_handles(_language(figures)), aim, spread_handle()], loc="outside lower center", ncols=3)


def _rows(figures: Figures, width: int) -> list[Row]:
    """Return xargs and queuectl with so many commands at once."""
    language = _language(figures)
    cpu, wall = (_share(figures, width, language, by) for by in (CPU, WALL))
    limit_us, job_us, store_us = number_of(cpu, "limit_us"), number_of(cpu, "job_us"), _store_us(figures)
    beyond_us = number_of(cpu, "xargs_us") - limit_us
    own_us = (store_us, max(0.0, job_us - limit_us - store_us))
    xargs = Row(
        name=f"xargs -P {width}",
        limit_us=limit_us,
        parts=[(beyond_us, XARGS)],
        clock_us=number_of(wall, "xargs_us"),
        beyond_us=[beyond_us],
        beyond_clock_us=[number_of(wall, "xargs_us") - number_of(wall, "limit_us")],
    )
    own = Row(
        name=f"queuectl,\n{width} worker{'s' * (width > 1)}",
        limit_us=limit_us,
        parts=list(zip(own_us, OWN_PARTS.values(), strict=True)),
        start_us=number_of(cpu, "start_us"),
        clock_us=number_of(wall, "job_us") + number_of(wall, "start_us"),
        beyond_us=cpu.absolute,
        beyond_clock_us=wall.absolute,
    )
    return [xargs, own]


def _language(figures: Figures) -> str:
    """Return what the limit was found with: C, unless there was no compiler."""
    return C if any(figure.values.get("language") == C for figure in found(figures, "limit")) else PYTHON


def _share(figures: Figures, width: int, language: str, by: str) -> Figure:
    wanted = {"language": language, "width": width, "by": by}
    return next(figure for figure in found(figures, "limit") if wanted.items() <= figure.values.items())


def _store_us(figures: Figures) -> float:
    handful = f"claim + settle {BY_THE_HANDFUL}, {SQLITE}"
    return next(number_of(figure, "cpu_us") for figure in found(figures, "core") if figure.what == handful)


def _draw_whole(axes: Axes, place: int, row: Row) -> None:
    end_us = _draw_parts(axes, place, 0, [(row.limit_us, LIMIT), *row.parts, (row.start_us, START)])
    text = {"color": "white", "size": SMALL, "ha": "center", "va": "center"}
    axes.text(row.limit_us / 2, place, f"{number(row.limit_us)} us", **text)
    axes.plot([row.clock_us], [place - BELOW], **CLOCK)
    _write_beside(axes, place, end_us, f"{number(end_us)} us")


def _draw_beyond(axes: Axes, place: int, row: Row) -> None:
    """Draw what comes on top twice: by CPU as a bar, and below it by the clock."""
    end_us = _draw_parts(axes, place, 0, row.parts)
    axes.hlines(place, min(row.beyond_us), max(row.beyond_us), color=INK, lw=0.9)
    axes.hlines(place - BELOW, min(row.beyond_clock_us), max(row.beyond_clock_us), color=INK, lw=0.9)
    axes.plot([statistics.median(row.beyond_clock_us)], [place - BELOW], **CLOCK)
    _write_beside(axes, place, max(end_us, *row.beyond_us), f"{number(statistics.median(row.beyond_us))} us")


def _draw_parts(axes: Axes, place: int, begin_us: float, parts: Sequence[tuple[float, str]]) -> float:
    """Draw the parts of a bar one after the other, and return where it ends."""
    for us, colour in parts:
        axes.barh(place, us, left=begin_us, height=0.45, color=colour, edgecolor="white", lw=0.5)
        begin_us += us
    return begin_us


def _write_beside(axes: Axes, place: int, at_us: float, text: str) -> None:
    axes.annotate(text, (at_us, place), (6, 0), textcoords="offset points", va="center", size=SMALL, bbox=BACKGROUND)


def _handles(language: str) -> list[Patch | Line2D]:
    return [
        Patch(color=LIMIT, label=f"the command, run from {language}"),
        *(Patch(color=colour, label=f"queuectl: {part}") for part, colour in OWN_PARTS.items()),
        Patch(color=START, label="queuectl: start-up of workers"),
        Patch(color=XARGS, label="xargs"),
        Line2D([], [], label="by the clock; bars: by CPU", **CLOCK),
    ]
