"""Report: the figures of a run as Markdown: the page of results, and the blocks of README.md and docs/performance.md.

`python -m benchmarks.report` writes the blocks again from results/full.json.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from benchmarks import machine
from benchmarks.figures import Figure
from benchmarks.peers.table import table as peers_table
from benchmarks.workloads import title

ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).parent / "results"
BEGIN, END = "<!-- figures -->", "<!-- /figures -->"
PLOTS_OF_FULL = "../benchmarks/results/full-"
HEAD = "| what | ratio (lowest to highest) | absolute | budget |\n|---|---|---|---|\n"


@dataclass(frozen=True, kw_only=True)
class Result:
    """A whole run."""

    version: str
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
    """Write the blocks from the newest full run."""
    write_blocks(Result.of_row(json.loads((RESULTS / "full.json").read_text())))


def write_blocks(result: Result) -> None:
    """Put the newest figures between the marks of README.md and docs/performance.md, unless the run is broken."""
    if result.broken:
        print(f"README.md and docs/performance.md keep their older figures: {', '.join(result.broken)} failed")
        return
    readme, performance = ROOT / "README.md", ROOT / "docs" / "performance.md"
    readme.write_text(with_block(readme.read_text(), summary(result)))
    performance.write_text(with_block(performance.read_text(), page(result, level=3, plots=PLOTS_OF_FULL)))


def with_block(text: str, block: str) -> str:
    """Return a text with what stands between its marks replaced, and nothing else touched."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"no {BEGIN} ... {END} in it")
    return f"{before}{BEGIN}\n{block.strip()}\n{END}{after}"


def summary(result: Result) -> str:
    """Return the headlines alone, without their notes."""
    headlines = [replace(each, note="") for found in result.figures.values() for each in found if each.is_headline]
    return f"{table(headlines)}\nMeasured with {result.version} on {_where(result)}.\n\n{_durability(result)}"


def page(result: Result, *, level: int = 2, plots: str = "") -> str:
    """Return every figure, a table for each workload, and what they were measured on.

    `plots` is how the address of a plot begins, seen from where the page is to be.
    """
    parts = [f"Measured with {result.version} on {_where(result)}, in {result.seconds:.0f} s.\n", _durability(result)]
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
    lines = "".join(f"- {side}: {kept}\n" for side, kept in result.durability.items())
    return f"What each side still has after a power cut:\n\n{lines}"


def _plot(address: str, name: str) -> str:
    """Return the line that shows the plot of a workload; nothing where none was drawn."""
    file = f"{address}{name}.svg"
    return f"\n![{title(name)[0]}]({file})\n" if address and (RESULTS / Path(file).name).exists() else ""


def _where(result: Result) -> str:
    return machine.sentence(result.machine)


if __name__ == "__main__":
    main()
