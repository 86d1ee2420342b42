"""The table of the peers: a line each, with its durability; what has no cell, or is missing, is named below it."""

import statistics
from collections.abc import Iterable, Mapping, Sequence

from benchmarks.figures import Figure, number
from benchmarks.peers.peer import Measure

ALL = "all"
"""The measure of a peer that is not here at all."""
DRAINS = {f"{Measure.DRAIN} 2": "drain, 2 workers, x of `xargs -P 2`", f"{Measure.DRAIN} 4": "4 workers"}
RUNNING = "once it runs, 2 / 4"
HEADS = (
    "peer",
    "jobs",
    *DRAINS.values(),
    RUNNING,
    "add one, x of `python3 -c pass`",
    "bulk add, jobs/s (of how many)",
    "pick-up p50 / p95, ms",
    "4 idle workers (+ broker), MB",
    "durability",
)

ByMeasure = Mapping[str, Figure]


def table(figures: Iterable[Figure]) -> str:
    """Return the table and, below it, what has no cell there and why others are empty."""
    found = list(figures)
    rows = "".join(f"| {' | '.join(_cells(each))} |\n" for each in by_peer(found).values())
    below = "".join(f"- {_line(each)}\n" for each in found if each.is_missing or not _is_of_a_peer(each))
    return f"| {' | '.join(HEADS)} |\n|{'---|' * len(HEADS)}\n{rows}" + (f"\n{below}" if below else "")


def by_peer(figures: Iterable[Figure]) -> dict[str, dict[str, Figure]]:
    """Return the figures of each peer by measure, the missing ones left out; none where the peer is missing."""
    found: dict[str, dict[str, Figure]] = {}
    for figure in figures:
        if not _is_of_a_peer(figure):
            continue
        measures = found.setdefault(str(figure.values["peer"]), {})
        if not figure.is_missing:
            measures[str(figure.values["measure"])] = figure
        elif figure.values["measure"] == ALL:
            measures[ALL] = figure
    return found


def _is_of_a_peer(figure: Figure) -> bool:
    return "peer" in figure.values


def _line(figure: Figure) -> str:
    if figure.is_missing:
        return f"{figure.what}: {figure.note}"
    return f"{figure.what}: {figure.ratio_text} ({figure.spread_text}); {figure.verdict_text}"


def _cells(measures: ByMeasure) -> list[str]:
    if missing := measures.get(ALL):
        return [str(missing.values["peer"]), "", "missing", *[""] * (len(HEADS) - 4), str(missing.values["durability"])]
    if not measures:
        return [""] * len(HEADS)
    values = next(iter(measures.values())).values
    return [
        f"{values['peer']} {values['version']}",
        _jobs(measures),
        *(_ratio(measures.get(name)) for name in DRAINS),
        _running(measures),
        _ratio(measures.get(Measure.ADD)),
        _median(measures.get(Measure.BULK)),
        _pair(measures.get(Measure.PICKUP), "p50_ms", "p95_ms", " / "),
        _pair(measures.get(Measure.MEMORY), "workers_mb", "broker_mb", " + "),
        str(values["durability"]),
    ]


def _jobs(measures: ByMeasure) -> str:
    return next((str(measures[name].values["jobs"]) for name in DRAINS if name in measures), "")


def _ratio(figure: Figure | None) -> str:
    if figure is None:
        return ""
    return "1" if set(figure.ratios) == {1.0} else f"{number(figure.median)} ({figure.spread_text})"


def _running(measures: ByMeasure) -> str:
    drains = [measures[name] for name in DRAINS if name in measures]
    return " / ".join(number(statistics.median(numbers(figure, "running_ratios"))) for figure in drains)


def _median(figure: Figure | None) -> str:
    return "" if figure is None else f"{number(statistics.median(figure.absolute))} ({figure.values['jobs']:,})"


def _pair(figure: Figure | None, first: str, second: str, sign: str) -> str:
    if figure is None:
        return ""
    one, other = float(str(figure.values[first])), float(str(figure.values[second]))
    return f"{number(one)}{sign}{number(other)}" if other else number(one)


def numbers(figure: Figure, name: str) -> Sequence[float]:
    """Return a list of numbers that a figure carries."""
    value = figure.values[name]
    assert isinstance(value, list)
    return [float(each) for each in value]
