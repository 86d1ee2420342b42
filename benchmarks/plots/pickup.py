"""The plot of the pick-ups: how many of the jobs had begun after how long."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D

from benchmarks.bench import KINDS
from benchmarks.budgets import BUDGETS
from benchmarks.figures import Figure
from benchmarks.peers.table import numbers
from benchmarks.plots.style import COLOURS, GREY, INK, SMALL, Figures, add_grid, found, set_log

DASHES: tuple[str | tuple[int, tuple[float, ...]], ...] = ("-", (0, (5, 1.5)), (0, (1, 1.2)))
MS_TICKS = (0.2, 0.5, 1, 2, 3, 5, 10, 20, 50, 100)
LEAST_MS = (0.4, 14)
SHARES = {"pick-up p50": 0.5, "pick-up p95": 0.95}
"""The budgets, and what share of the jobs must have begun by then."""
BUDGET_MARK = {"color": INK, "lw": 2.5}
MARK = 0.07
"""How far the mark of a budget reaches to both sides."""


def draw(canvas: Canvas, figures: Figures) -> None:
    """Draw a curve for each case on each database, and one of spawning the same command without a queue."""
    axes = canvas.subplots()
    sampled = [each for each in (*found(figures, "pickup"), *found(figures, "idle")) if "samples_ms" in each.values]
    cases = list(dict.fromkeys(_case(figure) for figure in sampled))
    for figure in sampled:
        samples, dashes = numbers(figure, "samples_ms"), DASHES[cases.index(_case(figure)) % len(DASHES)]
        axes.ecdf(samples, color=COLOURS[_kind(figure)], ls=dashes, lw=1.6)
    often = [figure for figure in sampled if _case(figure) == cases[0]]
    bare_ms = [ms for figure in often for ms in numbers(figure, "bare_ms")]
    axes.ecdf(bare_ms, color=GREY, lw=1.6)
    slowest = max(ms for figure in sampled for ms in numbers(figure, "samples_ms"))
    set_log(axes, "x", MS_TICKS, min(LEAST_MS[0], *bare_ms), max(LEAST_MS[1], slowest * 1.1))
    axes.set_ylim(0, 1.03)
    axes.set_yticks([0, 0.25, 0.5, 0.75, 0.95], ["0", "25 %", "50 %", "75 %", "95 %"])
    for name, share in SHARES.items():
        _draw_budget(axes, name, share)
    axes.set_xlabel("milliseconds from the call that adds a job to the first act of its command")
    axes.set_ylabel("share of the jobs begun")
    axes.set_title("Pick-up of a new job")
    add_grid(axes, "y")
    canvas.legend(handles=_handles(sampled, cases), loc="outside lower center", ncols=2)


def _kind(figure: Figure) -> str:
    return next(kind for kind in KINDS if kind in figure.what)


def _case(figure: Figure) -> str:
    """Return what a pick-up is of, however many samples and whatever the database."""
    return figure.what.partition(f", {_kind(figure)}")[0].removeprefix("pick-up ")


def _draw_budget(axes: Axes, name: str, share: float) -> None:
    """Mark the point that the curves must pass on the left."""
    limit_ms = BUDGETS[name].limit
    low, high = share - MARK, min(1.0, share + MARK)
    axes.plot([limit_ms, limit_ms], [low, high], **BUDGET_MARK)
    text = {"textcoords": "offset points", "ha": "center", "va": "top", "size": SMALL}
    axes.annotate(f"{name.partition(' ')[2]}: {limit_ms:g} ms", (limit_ms, low), (0, -3), **text)


def _handles(sampled: Sequence[Figure], cases: Sequence[str]) -> list[Line2D]:
    """Return the legend: a colour for each database, dashes for each case, and which of them has no budget."""
    colours = [Line2D([], [], color=COLOURS[kind], lw=3, label=kind) for kind in KINDS]
    bare = Line2D([], [], color=GREY, lw=3, label="a bare spawn, no queue")
    budget = Line2D([], [], label="budget: at most", **BUDGET_MARK)
    labels = {_case(figure): _label(figure) for figure in sampled}
    dashes = [
        Line2D([], [], color=INK, lw=1.6, ls=ls, label=labels[case]) for case, ls in zip(cases, DASHES, strict=False)
    ]
    return [*colours, bare, budget, *dashes]


def _label(figure: Figure) -> str:
    count = len(numbers(figure, "samples_ms"))
    return f"{_case(figure)} ({count} jobs{'' if figure.budget else ', no budget'})"
