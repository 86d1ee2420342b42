"""Plots of a run as SVG, through matplotlib; the same figures give the same files."""

import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from benchmarks.bench import KINDS, SQLITE
from benchmarks.budgets import BUDGETS
from benchmarks.figures import Figure, Value
from benchmarks.peers.table import DRAINS, by_peer, numbers
from benchmarks.workloads.core import BY_THE_HANDFUL
from benchmarks.workloads.growth import DEPTH_SERIES

Figures = Mapping[str, Sequence[Figure]]
COLOURS = {"xargs": "#8a8f98", "SQLite": "#2f6db5", "PostgreSQL": "#c8643c", "bare": "#8a8f98"}
WIDTH_COLOURS = ("#3b7a57", "#8a6fb0")
PARTS = ("#8a8f98", "#b9bec7", "#2f6db5", "#7aa7d9", "#d9dde3")
STYLE = {
    "svg.hashsalt": "queuectl",
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
}


def draw_all(figures: Figures, folder: Path, prefix: str) -> None:
    """Draw whatever there are figures for."""
    with mpl.rc_context(STYLE):
        for name, draw in PLOTS.items():
            if _is_there(figures, name) and _is_there(figures, ALSO_NEEDS.get(name, name)):
                canvas = Canvas(figsize=(7.2, 4.0), layout="constrained")
                draw(canvas, figures)
                canvas.savefig(folder / f"{prefix}-{name}.svg", metadata={"Date": None})


def _is_there(figures: Figures, name: str) -> bool:
    return any(not figure.is_missing for figure in figures.get(name, ()))


def draw_drain(canvas: Canvas, figures: Figures) -> None:
    """Draw the rates of every way to drain as bars, those of xargs beside them."""
    axes = canvas.subplots()
    found = [figure for figure in figures["drain"] if not figure.is_missing]
    ways = sorted({str(figure.values["flags"]) for figure in found}, key=lambda way: ("-j" in way, way))
    for place, side in enumerate(("xargs", *KINDS)):
        of_side = [figure for figure in found if figure.values["kind"] == (SQLITE if side == "xargs" else side)]
        rates = [_list(figure.values["unit_rates"]) if side == "xargs" else figure.absolute for figure in of_side]
        medians = [statistics.median(each) for each in rates]
        spread = [
            [median - min(each) for median, each in zip(medians, rates, strict=True)],
            [max(each) - median for median, each in zip(medians, rates, strict=True)],
        ]
        middles = [ways.index(str(figure.values["flags"])) + (place - 1) * 0.27 for figure in of_side]
        axes.bar(middles, medians, width=0.25, yerr=spread, color=COLOURS[side], label=side, error_kw={"lw": 0.8})
    axes.set_xticks(range(len(ways)), [f"worker start\n{way}" for way in ways])
    axes.set_ylabel("commands per second")
    axes.set_title("Drain of no-op commands, start-up included (xargs -P as wide)")
    _finish(axes, columns=3)


def draw_growth(canvas: Canvas, figures: Figures) -> None:
    """Draw what each act costs beside more and more jobs."""
    found = [figure for figure in figures["growth"] if not figure.is_missing]
    for axes, names in zip(canvas.subplots(1, 2), (STORE_SERIES, COMMAND_SERIES), strict=True):
        for name, line in names.items():
            for kind in KINDS:
                points = sorted(
                    (float(str(figure.values["rows"])), statistics.median(figure.absolute))
                    for figure in found
                    if figure.values.get("series") == name and figure.values["kind"] == kind
                )
                if points:
                    drawn = {"color": COLOURS[kind], "ms": 3, "lw": 1.2}
                    axes.plot(*zip(*points, strict=True), line, label=f"{name}, {kind}", **drawn)
        axes.set_xscale("symlog", linthresh=10_000)
        axes.set_xlabel("other jobs in the store")
    store, commands = canvas.axes
    store.set_yscale("log")
    store.set_ylim(10, max(10_000, store.get_ylim()[1]))  # nothing that was measured lies beyond the plot
    store.set_ylabel("microseconds each")
    commands.axhline(BUDGETS["status"].limit, color=COLOURS["bare"], ls=":", lw=1)
    commands.set_ylim(bottom=0)
    commands.set_ylabel("milliseconds, start-up included")
    for axes in canvas.axes:
        _finish(axes, columns=1)
    canvas.suptitle("Cost beside other jobs: over, not to run now, or ready")


def draw_job_time(canvas: Canvas, figures: Figures) -> None:
    """Draw where the CPU time of one job goes, and that of xargs beside it."""
    axes = canvas.subplots()
    handful = f"claim + settle {BY_THE_HANDFUL}, {SQLITE}"
    store_us = next(_number(each.values["cpu_us"]) for each in figures["core"] if each.what == handful)
    rows: dict[str, list[float]] = {}
    for width in (2, 1):
        shares = {
            str(each.values["language"]): each.values
            for each in figures["limit"]
            if each.values.get("by") == "CPU" and each.values["width"] == width
        }
        python = shares["Python"]
        c_us = _number(shares.get("C", python)["limit_us"])
        python_us, job_us = _number(python["limit_us"]), _number(python["job_us"])
        rest_us = max(0.0, job_us - python_us - store_us)
        rows[f"xargs -P {width}"] = [c_us, _number(python["xargs_us"]) - c_us, 0, 0, 0]
        own = [c_us, python_us - c_us, store_us, rest_us, _number(python["start_us"])]
        rows[f"queuectl, {width} worker{'s' * (width > 1)}"] = own
    left = [0.0] * len(rows)
    for place, part in enumerate(PART_NAMES):
        widths = [each[place] for each in rows.values()]
        axes.barh(list(rows), widths, left=left, color=PARTS[place], label=part, height=0.6, edgecolor="white")
        left = [so_far + each for so_far, each in zip(left, widths, strict=True)]
    axes.set_xlabel("microseconds of CPU per no-op command, on SQLite")
    axes.set_title("Where the time of one job goes")
    _finish(axes, along="x")


def draw_pickup(canvas: Canvas, figures: Figures) -> None:
    """Draw how many of the jobs had begun after how long."""
    axes = canvas.subplots()
    for figure in (*figures["pickup"], *figures.get("idle", ())):
        if "samples_ms" not in figure.values:
            continue
        kind = next(kind for kind in KINDS if kind in figure.what)
        is_late = "after" in figure.what
        label = figure.what.removesuffix(", p50").removeprefix("pick-up ")
        samples = _list(figure.values["samples_ms"])
        axes.ecdf(samples, color=COLOURS[kind], ls="--" if is_late else "-", label=label, lw=1.2)
        if kind == SQLITE and not is_late:
            axes.ecdf(_list(figure.values["bare_ms"]), color=COLOURS["bare"], label="a bare spawn", lw=1.2)
    axes.set_xlabel("milliseconds from the call that adds a job to the first act of its command")
    axes.set_ylabel("share of jobs begun")
    axes.set_xlim(left=0)
    axes.set_title("Pick-up of a new job by an idle worker")
    _finish(axes)


def draw_long_transaction(canvas: Canvas, figures: Figures) -> None:
    """Draw how claims slow down while a snapshot is held."""
    axes = canvas.subplots()
    values = figures["long_transaction"][0].values
    for side, jobs, colour, label in (
        ("held_us", "jobs", COLOURS["PostgreSQL"], "a snapshot is held"),
        ("free_us", "free_jobs", COLOURS["bare"], "none is held"),
    ):
        axes.plot(_list(values[jobs]), _list(values[side]), "o-", ms=3, lw=1.2, color=colour, label=label)
    axes.set_xlabel("jobs claimed and settled since the snapshot was taken")
    axes.set_ylabel("microseconds each")
    axes.set_ylim(bottom=0)
    axes.set_title("Claim + settle on PostgreSQL beside a transaction held open")
    _finish(axes)


def draw_peers(canvas: Canvas, figures: Figures) -> None:
    """Draw the drains of every peer as bars, xargs being 1; whole ones, and without the time to the first command."""
    axes = canvas.subplots()
    drains = {
        name: [measures[drain] for drain in sorted(PEER_DRAINS)]
        for name, measures in by_peer(figures["peers"]).items()
        if measures.keys() >= PEER_DRAINS and name != "xargs"
    }
    ordered = sorted(drains, key=lambda name: drains[name][0].median)
    for place, drain in enumerate(sorted(PEER_DRAINS)):
        found = [drains[name][place] for name in ordered]
        running = [statistics.median(numbers(each, "running_ratios")) for each in found]
        whole = [each.median for each in found]
        spread = [
            [each.median - min(each.ratios) for each in found],
            [max(each.ratios) - each.median for each in found],
        ]
        middles = [line + (0.2 if place == 0 else -0.2) for line in range(len(ordered))]
        colour = WIDTH_COLOURS[place]
        axes.barh(middles, running, height=0.38, color=colour, alpha=0.3)
        axes.barh(
            middles,
            whole,
            height=0.38,
            xerr=spread,
            color=colour,
            label=f"{drain.split()[-1]} workers",
            error_kw={"lw": 0.8},
        )
    axes.axvline(1, color=COLOURS["xargs"], lw=1)
    axes.set_yticks(range(len(ordered)), ordered)
    axes.set_xlabel("x of xargs -P as wide; pale: without the time to the first command")
    axes.set_title("Drain of the same shell command")
    _finish(axes, along="x")
    axes.legend(loc="lower right", frameon=False)


STORE_SERIES = {"claim + settle": "o-", "enqueue": "s--", DEPTH_SERIES: "^:"}
COMMAND_SERIES = {"status --json": "o-", "list --json": "s--"}
PART_NAMES = (
    "start and run of /bin/sh (from C)",
    "the same from another program",
    "claim + settle in SQLite",
    "the rest of the worker",
    "start-up, spread over the jobs",
)
Draw = Callable[[Canvas, Figures], None]
PLOTS: Mapping[str, Draw] = {
    "drain": draw_drain,
    "growth": draw_growth,
    "limit": draw_job_time,
    "pickup": draw_pickup,
    "long_transaction": draw_long_transaction,
    "peers": draw_peers,
}
"""The plot of a workload."""
PEER_DRAINS = DRAINS.keys()
ALSO_NEEDS = {"limit": "core"}


def _finish(axes: Axes, along: Literal["x", "y"] = "y", columns: int = 2) -> None:
    """Add the grid, and the legend where it hides nothing."""
    axes.grid(axis=along, color="#e6e8eb", lw=0.7)
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.17), ncols=columns, frameon=False)


def _list(value: Value) -> list[float]:
    assert isinstance(value, list)
    return [float(each) for each in value]


def _number(value: Value) -> float:
    assert isinstance(value, int | float)
    return float(value)
