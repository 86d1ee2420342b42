"""The plot of the long transaction: how claims slow down while a snapshot is held."""

import statistics

from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import StrMethodFormatter

from benchmarks.bench import POSTGRES
from benchmarks.figures import number
from benchmarks.peers.table import numbers
from benchmarks.plots.style import COLOURS, GREY, INK, Figures, add_grid, found
from benchmarks.workloads.long_transaction import STRIDE


def draw(canvas: Canvas, figures: Figures) -> None:
    """Draw the claims beside a held snapshot, and those that were measured in turns without one."""
    axes = canvas.subplots()
    (figure, *_) = found(figures, "long_transaction")
    jobs, held_us, free_us = (numbers(figure, name) for name in ("jobs", "held_us", "free_us"))
    without_us = statistics.median(free_us)
    held = f"a snapshot is held (each {STRIDE} jobs)"
    axes.plot(jobs, held_us, "o-", ms=3.5, lw=1.3, color=COLOURS[POSTGRES], label=held)
    axes.plot(numbers(figure, "free_jobs"), free_us, "s", ms=4.5, color=GREY, label="in turns, none is held")
    axes.axhline(without_us, color=GREY, lw=1, label=f"median of these, {number(without_us)} us")
    axes.annotate(
        f"{figure.ratio_text.partition(' of')[0]}, the last {len(figure.ratios)}",
        (jobs[-1], held_us[-1]),
        (6, -3),
        textcoords="offset points",
        color=INK,
        annotation_clip=False,
    )
    axes.set_xlabel("jobs claimed and settled since the snapshot was taken")
    axes.set_ylabel("microseconds per job")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0)
    axes.set_title("Claim + settle on PostgreSQL beside a transaction held open")
    add_grid(axes, "y")
    canvas.legend(loc="outside lower center", ncols=3)
