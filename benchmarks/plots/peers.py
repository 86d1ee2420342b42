"""The plot of the peers: the drains of each, with how durable it is, those of xargs being 1."""

import statistics

from matplotlib.axes import Axes
from matplotlib.container import BarContainer
from matplotlib.figure import Figure as Canvas

from benchmarks.figures import Figure
from benchmarks.peers.table import DRAINS, by_peer, numbers
from benchmarks.plots.style import INK, WIDTH_COLOURS, Figures, add_grid, found, medians, spread_handle, spreads

UNIT = "xargs"
BAR = 0.36


def draw(canvas: Canvas, figures: Figures) -> None:
    """Draw two bars for each peer, whole drains before pale ones without the time to the first command."""
    axes = canvas.subplots()
    peers = {
        name: [measures[drain] for drain in DRAINS]
        for name, measures in by_peer(found(figures, "peers")).items()
        if measures.keys() >= DRAINS.keys() and name != UNIT
    }
    ordered = sorted(peers.values(), key=lambda drains: drains[0].median)
    handles: list[BarContainer] = []
    for place, drain in enumerate(DRAINS):
        middles = [line + (0.5 - place) * BAR for line in range(len(ordered))]
        workers = f"{drain.split()[-1]} workers"
        handles += _draw_bars(axes, middles, [drains[place] for drains in ordered], WIDTH_COLOURS[place], workers)
    unit = axes.axvline(1, color=INK, lw=1.2, label="xargs -P as wide (nothing kept)")
    axes.set_yticks(range(len(ordered)), [_label(drains[0]) for drains in ordered], linespacing=1.05)
    axes.set_ylim(-0.6, len(ordered) - 0.4)
    axes.set_xlabel("commands per second, as a share of those of xargs -P as wide")
    canvas.suptitle("Drain of the same shell command, and what keeps the queue", size=11)
    add_grid(axes, "x")
    canvas.legend(handles=[*handles, unit, spread_handle()], loc="outside lower center", ncols=3)


def _draw_bars(axes: Axes, middles: list[float], drains: list[Figure], colour: str, workers: str) -> list[BarContainer]:
    """Draw whole drains over pale ones; return both for the legend."""
    running = [statistics.median(numbers(each, "running_ratios")) for each in drains]
    whole = [each.ratios for each in drains]
    pale = axes.barh(middles, running, height=BAR, color=colour, alpha=0.3, label=f"{workers}, once they run")
    errors = {"xerr": spreads(whole), "error_kw": {"lw": 0.9, "ecolor": INK}}
    full = axes.barh(middles, medians(whole), height=BAR, color=colour, label=f"{workers}, start-up too", **errors)
    return [full, pale]


def _label(drain: Figure) -> str:
    """Return the name of a peer with its durability below; older results do not have that."""
    return "\n".join(filter(None, (str(drain.values["peer"]), str(drain.values.get("durability_tag", "")))))
