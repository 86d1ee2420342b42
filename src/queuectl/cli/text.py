"""Text for people: tables, colours, ages. Rich is imported only when something is drawn on a terminal."""

import json
import os
import sys

from queuectl.model import visible
from queuectl.model.states import State
from queuectl.model.units import local_text, ticking_duration_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rich.table import Table as RichTable

safe = visible.safe
GAP = 2  # between two columns of a drawn table
LEAST_ROOM = 10  # for the last column
LEAST_HEADER = 4
BARS = "\u00b7\u2581\u2582\u2583\u2584\u2585\u2586\u2587\u2588"
KEPT = 2  # columns that are never cut
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


def end_text(state: str, error: str | None) -> str:
    """Say how a job ended: its state and why; once where the reason begins with the state."""
    why = safe(error or "-")
    return why if why.startswith(state) else f"{state}, {why}"


def short(text: str, width: int) -> str:
    """Cut text to a width, with a mark that something is missing."""
    shown = safe(text)
    return shown if len(shown) <= width else f"{shown[: width - 1]}…"


def age(then_ms: int | None, now_ms: int) -> str:
    """Say how long ago something was, or how soon it will be."""
    if then_ms is None:
        return "-"
    apart = abs(then_ms - now_ms) // 1000 * 1000
    if apart == 0:
        return "now" if then_ms > now_ms else "just now"
    text = ticking_duration_text(apart)
    return f"in {text}" if then_ms > now_ms else f"{text} ago"


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


def sparkline(numbers: "Sequence[int]", width: int) -> str:
    """Draw numbers in one line of at most so many characters, several of them added up where there are more."""
    step = -(-len(numbers) // width) or 1
    sums = [sum(numbers[start : start + step]) for start in range(0, len(numbers), step)]
    most = max(sums, default=0)
    return "".join(BARS[-(-(len(BARS) - 1) * each // most)] if each else BARS[0] for each in sums)


def range_text(seqs: "Sequence[int]") -> str:
    """Write numbers that follow each other as commands take them, `3-9`; nothing for others."""
    return f"{seqs[0]}-{seqs[-1]}" if list(seqs) == list(range(seqs[0], seqs[-1] + 1)) else ""


def facts(pairs: "Iterable[tuple[str, str]]") -> None:
    """Print named facts, one a line."""
    for name, value in pairs:
        print(f"{name + ':':<13} {value}")


def note(text: str) -> None:
    """Say something that is not data."""
    print(text, file=sys.stderr)


def drop_output() -> None:
    """Write no more to a pipe that nobody reads, so that what is left for it is not tried again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _draw(headers: "Sequence[str]", rows: list[list[str]], right: "Sequence[str]") -> None:
    from rich.console import Console

    console = Console(highlight=False)
    made = drawn(headers, rows, right, console.width)
    needed = sum(column.width or 0 for column in made.columns) + GAP * (len(made.columns) - 1)
    if needed > console.width:  # a name wider than the terminal goes on in its next line: cut, it would name nothing
        console = Console(highlight=False, width=needed)
    console.print(made)


def drawn(
    headers: "Sequence[str]", rows: "Sequence[Sequence[str]]", right: "Sequence[str]", total_width: int
) -> "RichTable":
    """Return a table as a terminal of so many columns shows it; what had no room is named below it."""
    from rich.cells import cell_len
    from rich.table import Table
    from rich.text import Text

    cell_widths = [max((cell_len(row[place]) for row in rows), default=0) for place in range(len(headers))]
    widths = _fitted(headers, cell_widths, right, total_width)
    table = Table(box=None, header_style="bold", pad_edge=False)
    for place, width in widths.items():
        name = headers[place]
        table.add_column(
            name, justify="right" if name in right else "left", no_wrap=True, overflow="ellipsis", width=width
        )
    for row in rows:
        table.add_row(*(Text(row[place], style=_style(row[place])) for place in widths))
    if len(widths) < len(headers):
        gone = ", ".join(name for place, name in enumerate(headers) if place not in widths)
        table.caption = Text(f"no room for {gone}")
        table.caption_justify = "left"
    return table


def _fitted(
    headers: "Sequence[str]", cell_widths: "Sequence[int]", right: "Sequence[str]", total_width: int
) -> dict[int, int]:
    """Return the width of each column that is shown, by its place.

    The first two say which and how: they are never cut. The last is cut first; then those before it are left out, from
    the right. Of a table that ends in a number only headers are cut: half a number is a wrong one.
    """
    widths = {place: max(len(headers[place]), width) for place, width in enumerate(cell_widths)}
    last = len(headers) - 1
    is_of_numbers = headers[last] in right

    def room() -> int:
        """Return how many columns are left over, or how many are missing."""
        return total_width - sum(widths.values()) - GAP * (len(widths) - 1)

    if is_of_numbers:
        while room() < 0 and (wide := [at for at in widths if at and widths[at] > max(cell_widths[at], LEAST_HEADER)]):
            widths[max(wide, key=widths.__getitem__)] -= 1
    least = widths[last] if is_of_numbers else min(widths[last], LEAST_ROOM)
    for place in range(last - 1, KEPT - 1, -1):
        if room() + widths[last] >= least:
            break
        del widths[place]
    if last >= KEPT and room() < 0:
        widths[last] = max(widths[last] + room(), 0)
        if widths[last] < least:
            del widths[last]
    return widths


def _style(cell: str) -> str:
    return COLOURS.get(State(cell), "") if cell in list(State) else ""
