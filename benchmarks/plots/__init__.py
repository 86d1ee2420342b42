"""Plots of a run as SVG, through matplotlib; the same figures give the same files. A module for each plot."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure as Canvas

from benchmarks.plots import drain, growth, limit, long_transaction, peers, pickup
from benchmarks.plots.style import STYLE, WIDTH, Figures, found


@dataclass(frozen=True, kw_only=True)
class Plot:
    """The plot of a workload."""

    draw: Callable[[Canvas, Figures], None]
    height: float = 4.2
    also_needs: str = ""
    """Another workload it shows figures of."""


PLOTS: Mapping[str, Plot] = {
    "drain": Plot(draw=drain.draw, height=4.6),
    "growth": Plot(draw=growth.draw, height=8.6),
    "limit": Plot(draw=limit.draw, also_needs="core"),
    "pickup": Plot(draw=pickup.draw),
    "long_transaction": Plot(draw=long_transaction.draw, height=3.6),
    "peers": Plot(draw=peers.draw, height=6.8),
}


def draw_all(figures: Figures, folder: Path, prefix: str) -> list[str]:
    """Draw whatever there are figures for; return the names of the files."""
    drawn: list[str] = []
    with mpl.rc_context(STYLE):
        for name, plot in PLOTS.items():
            if all(found(figures, needed) for needed in (name, plot.also_needs or name)):
                canvas = Canvas(figsize=(WIDTH, plot.height), layout="constrained")
                plot.draw(canvas, figures)
                drawn.append(f"{prefix}-{name}.svg")
                canvas.savefig(folder / drawn[-1], metadata={"Date": None})
    return drawn
