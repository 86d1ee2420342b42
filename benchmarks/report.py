"""Report: the figures of a run as Markdown: the page of results, and the blocks of README.md and docs/performance.md.

`python -m benchmarks.report` writes all of them again from results/full.json and results/dashboard.json.
"""

import argparse
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from benchmarks import machine, story, verdict
from benchmarks.budgets import DASHBOARD, FULL
from benchmarks.figures import Figure
from benchmarks.peers.table import table as peers_table
from benchmarks.workloads import title

ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).parent / "results"
FIGURES = "figures"
"""The mark of the block that holds them; the others of docs/performance.md are in story.py."""
PLOTS = "../benchmarks/results/"
XARGS = "xargs"
HEAD = "| what | ratio (lowest to highest) | absolute | budget |\n|---|---|---|---|\n"


@dataclass(frozen=True, kw_only=True)
class Result:
    """A whole run."""

    version: str
    commit: str
    """Of the source tree that was measured."""
    measured_at: str
    """When the run began."""
    seconds: float
    machine: Mapping[str, str | float]
    durability: Mapping[str, str]
    figures: Mapping[str, list[Figure]]
    """By workload."""
    broken: list[str] = field(default_factory=list)
    """The workloads that failed."""

    def row(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        rows = {name: [figure.row() for figure in found] for name, found in self.figures.items()}
        return {**vars(self), "figures": rows}

    @classmethod
    def of_row(cls, row: Mapping[str, Any]) -> "Result":
        """Read it back."""
        figures = {name: [Figure.of_row(each) for each in found] for name, found in row["figures"].items()}
        return cls(**{**row, "figures": figures})


def main() -> None:
    """Write plots, page and blocks from the newest run of each kind."""
    from benchmarks.plots import draw_all

    argparse.ArgumentParser(prog="python -m benchmarks.report", description=main.__doc__).parse_args()

    for name in (FULL, DASHBOARD):
        result = newest(name)
        draw_all(result.figures, RESULTS, name)
        write_page(name, result)
        write_blocks(name, result)


def newest(name: str) -> Result:
    """Return the newest run of a kind."""
    return Result.of_row(json.loads((RESULTS / f"{name}.json").read_text()))


def write_page(name: str, result: Result) -> None:
    """Write every figure of a run into a page of its own, beside its plots."""
    (RESULTS / f"{name}.md").write_text(f"# Figures ({name})\n\n{page(result, plots=f'{name}-')}")


def write_blocks(kind: str, result: Result) -> None:
    """Put the newest figures between the marks of README.md and docs/performance.md, unless the run is broken."""
    if result.broken:
        print(f"README.md and docs/performance.md keep their older figures: {', '.join(result.broken)} failed")
        return
    for name, blocks in documents(kind, result).items():
        path = ROOT / name
        text = path.read_text()
        for mark, block in blocks.items():
            text = with_block(text, mark, block)
        path.write_text(text)


def documents(kind: str, result: Result) -> dict[str, dict[str, str]]:
    """Return what stands between the marks of each document, of a run of everything or of the dashboard."""
    whole = page(result, level=3, plots=f"{PLOTS}{kind}-")
    if kind == DASHBOARD:
        return {"docs/performance.md": {DASHBOARD: whole}}
    told = {name: tell(result.figures) for name, tell in story.BLOCKS.items()}
    return {"README.md": {FIGURES: summary(result)}, "docs/performance.md": {FIGURES: whole, **told}}


def with_block(text: str, mark: str, block: str) -> str:
    """Return a text with what stands between two marks replaced, and nothing else touched."""
    opening, closing = f"<!-- {mark} -->", f"<!-- /{mark} -->"
    before, begin, rest = text.partition(opening)
    _, end, after = rest.partition(closing)
    if not begin or not end:
        raise ValueError(f"no {opening} ... {closing} in it")
    return f"{before}{opening}\n{block.strip()}\n{closing}{after}"


def summary(result: Result) -> str:
    """Return every figure that misses its budget, and the headlines of the others, without their notes."""
    missed = verdict.missed(result.figures)
    met = [each for found in result.figures.values() for each in found if each.is_headline and each not in missed]
    headlines = table(replace(each, note="") for each in met)
    lead = "Of the others" if missed else "The main ones"
    return f"{_measured(result)}.\n\n{missed_text(result)}\n{lead}:\n\n{headlines}\n{_durability(result)}"


def missed_text(result: Result) -> str:
    """Say plainly which budgets are missed, whatever else is shown."""
    missed, judged = verdict.missed(result.figures), verdict.judged(result.figures)
    if not judged:
        return "None of these figures has a budget.\n"
    if not missed:
        return f"All {len(judged)} figures with a budget are within it.\n"
    heading = f"**Of {len(judged)} figures with a budget, {len(missed)} miss{'es' * (len(missed) == 1)} it:**"
    return f"{heading}\n\n{table(replace(each, note='') for each in missed)}"


def page(result: Result, *, level: int = 2, plots: str = "") -> str:
    """Return every figure, a table for each workload, and what they were measured on.

    `plots` is how the address of a plot begins, seen from where the page is to be.
    """
    parts = [f"{_measured(result)}, in {result.seconds:.0f} s.\n", missed_text(result), _durability(result)]
    for name, found in result.figures.items():
        heading, story = title(name)
        parts.append(f"{'#' * level} {heading}\n\n{story}\n\n{_table_of(name)(found)}{_plot(plots, name)}")
    return "\n".join(parts)


def table(figures: Iterable[Figure]) -> str:
    """Return figures as a table."""
    return HEAD + "".join(f"| {' | '.join(_cells(figure))} |\n" for figure in figures)


def _table_of(name: str) -> Callable[[Iterable[Figure]], str]:
    return peers_table if name == "peers" else table


def _cells(figure: Figure) -> tuple[str, ...]:
    spread = f" ({figure.spread_text})" if figure.spread_text else ""
    absolute = "; ".join(filter(None, (figure.absolute_text, figure.note)))
    verdict = figure.verdict_text.replace("MISSED", "**missed**")
    return tuple(cell.replace("|", "\\|") for cell in (figure.what, f"{figure.ratio_text}{spread}", absolute, verdict))


def _durability(result: Result) -> str:
    units = {figure.unit for found in result.figures.values() for figure in found}
    sides = {
        side: kept for side, kept in result.durability.items() if side != XARGS or any(XARGS in unit for unit in units)
    }
    lines = "".join(f"- {side}: {kept}\n" for side, kept in sides.items())
    return f"What each side still has after a power cut:\n\n{lines}"


def _plot(address: str, name: str) -> str:
    """Return the line that shows the plot of a workload; nothing where none was drawn."""
    file = f"{address}{name}.svg"
    return f"\n![{title(name)[0]}]({file})\n" if address and (RESULTS / Path(file).name).exists() else ""


def _measured(result: Result) -> str:
    commit = result.commit or "a tree without git"
    where = machine.sentence(result.machine)
    return f"Measured on {result.measured_at} at commit {commit} (version {result.version}) on {where}"


if __name__ == "__main__":
    main()
