"""Text for people: tables, colours, ages. Rich is imported only when something is drawn on a terminal."""

import json
import os
import sys

from queuectl.model.states import State
from queuectl.model.units import local_text, rough_duration_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rich.table import Table as RichTable

GAP = 2  # between two columns of a drawn table
LEAST_ROOM = 10
COLOURS = {
    State.PENDING: "bright_blue",
    State.SCHEDULED: "magenta",
    State.BLOCKED: "yellow",
    State.PROCESSING: "blue",
    State.COMPLETED: "green",
    State.FAILED: "yellow",
    State.DEAD: "red",
    State.CANCELLED: "bright_black",
}


def print_json(shape: object) -> None:
    """Print one object on one line; what a terminal would obey, and what is no text, is written as an escape."""
    line = json.dumps(shape, ensure_ascii=False)
    if not line.isprintable():
        line = "".join(char if char.isprintable() else json.dumps(char)[1:-1] for char in line)
    print(line)


def safe(text: str) -> str:
    """Show control characters instead of obeying them: a command or name may hold terminal sequences."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else _escaped(char) for char in text)


def short(text: str, width: int) -> str:
    """Cut text to a width, with a mark that something is missing."""
    shown = safe(text)
    return shown if len(shown) <= width else f"{shown[: width - 1]}…"


def age(then_ms: int | None, now_ms: int) -> str:
    """Say how long ago something was, or how soon it will be."""
    if then_ms is None:
        return "-"
    if then_ms > now_ms:
        return f"in {rough_duration_text(then_ms - now_ms)}"
    return f"{rough_duration_text(now_ms - then_ms)} ago"


def moment(ms: int | None, now_ms: int) -> str:
    """Say when something was or will be in a cell: to a person at a terminal relative to now, else in local time."""
    if ms is None:
        return "-"
    return age(ms, now_ms) if sys.stdout.isatty() else local_text(ms)


def when(ms: int | None, now_ms: int) -> str:
    """Say when something was or will be in local time, and to a person at a terminal relative to now, too."""
    if ms is None:
        return "-"
    return f"{local_text(ms)} ({age(ms, now_ms)})" if sys.stdout.isatty() else local_text(ms)


def table(headers: "Sequence[str]", rows: "Iterable[Sequence[str]]", *, right: "Sequence[str]" = ()) -> None:
    """Print a table: drawn on a terminal, aligned plain text in a pipe. The last column takes what room is left."""
    listed = [[*row] for row in rows]
    if sys.stdout.isatty():
        _draw(headers, listed, right)
        return
    widths = [max(len(cell) for cell in column) for column in zip(headers, *listed, strict=True)]
    for row in (headers, *listed):
        cells = (
            cell.rjust(width) if name in right else cell.ljust(width)
            for cell, width, name in zip(row, widths, headers, strict=True)
        )
        print("  ".join(cells).rstrip())


def facts(pairs: "Iterable[tuple[str, str]]") -> None:
    """Print named facts, one a line."""
    for name, value in pairs:
        print(f"{name + ':':<13} {value}")


def note(text: str) -> None:
    """Say something that is not data."""
    print(text, file=sys.stderr)


def drop_output() -> None:
    """Write no more to a pipe that nobody reads, so that the interpreter's own flush at exit stays silent."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _draw(headers: "Sequence[str]", rows: list[list[str]], right: "Sequence[str]") -> None:
    from rich.console import Console

    console = Console(highlight=False)
    console.print(drawn(headers, rows, right, console.width))


def drawn(
    headers: "Sequence[str]", rows: "Sequence[Sequence[str]]", right: "Sequence[str]", total_width: int
) -> "RichTable":
    """Return a table as a terminal of so many columns shows it."""
    from rich.cells import cell_len
    from rich.table import Table
    from rich.text import Text

    widths = [max(map(cell_len, column)) for column in zip(headers, *rows, strict=True)]
    room = total_width - sum(widths[:-1]) - GAP * (len(headers) - 1)
    if room >= LEAST_ROOM:  # else Rich takes a little of every column, and ids and states are the first to go
        widths[-1] = min(widths[-1], room)
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name, width in zip(headers, widths, strict=True):
        table.add_column(
            name, justify="right" if name in right else "left", no_wrap=True, overflow="ellipsis",
            width=width if room >= LEAST_ROOM else None,
        )  # fmt: skip
    for row in rows:
        table.add_row(*(Text(cell, style=_style(cell)) for cell in row))
    return table


def _style(cell: str) -> str:
    return COLOURS.get(State(cell), "") if cell in list(State) else ""


def _escaped(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii") if char not in "\n\t" else {"\n": "\\n", "\t": "\\t"}[char]
