"""Progress: one line on a terminal that shows how far jobs are, how quickly they go on and how long it takes yet.

It is drawn on standard error, takes itself away, and leaves what else is there alone. Rich is imported only to draw it.
"""

import os
import sys
import time
from collections import deque

from queuectl.cli.text import short
from queuectl.model.states import FINAL, State
from queuectl.model.units import rough_duration_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

    from rich.console import Console

REDRAW_S = 0.1
WINDOW_S = 30.0
LEAST_ENDS = 5  # of jobs that take minutes few end in the window: it reaches back to the last few ends
WIDEST_BAR = 40
LEAST_BAR = 8
LONGEST_LABEL = 24
CLEAR = "\r\x1b[J"
UP = "\x1b[{}A"


class Pace:
    """How quickly jobs end: over the last half minute, or over the last few ends where that was longer ago."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int]] = deque()
        self._now = 0.0

    def add(self, now: float, ended: int) -> None:
        """Note how many have ended at a monotonic time."""
        seen = self._seen
        self._now = now
        if seen and ended < seen[-1][1]:
            seen.clear()  # some were given a fresh life: what was counted before says nothing any more
        if not seen or ended > seen[-1][1]:
            seen.append((now, ended))
        while len(seen) > 1 and seen[1][0] <= now - WINDOW_S and ended - seen[1][1] >= LEAST_ENDS:
            seen.popleft()

    @property
    def per_s(self) -> float | None:
        """How many end a second; None until that is known."""
        if len(self._seen) < 2:
            return None
        began, before = self._seen[0]
        return (self._seen[-1][1] - before) / max(self._now - began, 0.001)


class Bar:
    """The line: shown how many jobs are in each state, it draws itself anew. Use it in a `with` statement."""

    def __init__(self, label: str) -> None:
        self._label = short(label, LONGEST_LABEL)
        self._pace = Pace()
        self._drawn_at = 0.0
        self._drawn_columns = 0
        self._console: Console | None = None

    def __enter__(self) -> "Self":
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()

    def __call__(self, counts: "Mapping[State, int]") -> None:
        """Draw how far it is, unless that was done just now."""
        now = time.monotonic()
        ended = sum(number for state, number in counts.items() if state in FINAL)
        self._pace.add(now, ended)
        if now - self._drawn_at < REDRAW_S or not counts:
            return
        self._drawn_at = now
        words = _words(counts, ended, self._pace.per_s)
        columns = _columns()
        self._put(self._line(words, ended, sum(counts.values()), columns, is_marred=_failed(counts) > 0), columns)

    def clear(self) -> None:
        """Take the line away."""
        if self._drawn_columns:
            self._put("", _columns())

    def note(self, text: str) -> None:
        """Say something above the line."""
        self.clear()
        print(text, file=sys.stderr)

    def _line(self, words: str, ended: int, total: int, columns: int, *, is_marred: bool) -> str:
        """Return the line as it fits the terminal: the bar goes first, then the words are cut."""
        from rich.console import Console
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        self._console = console = self._console or Console(stderr=True, highlight=False)
        console.width = columns  # an exported COLUMNS may be of another terminal, or of an hour ago
        room = columns - 1  # a line that fills the last column may take the next row
        width = min(WIDEST_BAR, room - len(self._label) - len(words) - 2)
        cells: list[Text | ProgressBar] = [Text(self._label), Text(words)]
        if width >= LEAST_BAR:
            colour = "red" if is_marred else "green"
            cells.insert(1, ProgressBar(total, ended, width, complete_style=colour, finished_style=colour))
        else:
            cells = [Text(short(f"{self._label} {words}", max(room, 1)))]
        row = Table.grid(padding=(0, 1, 0, 0))
        row.add_row(*cells)
        with console.capture() as captured:
            console.print(row, end="", no_wrap=True, crop=True)
        return captured.get().rstrip("\n")

    def _put(self, line: str, columns: int) -> None:
        """Write a line where the last one was; one that no longer fits its terminal has gone on in further rows."""
        rows = -(-self._drawn_columns // columns)
        sys.stderr.write((UP.format(rows - 1) if rows > 1 else "") + CLEAR + line)
        sys.stderr.flush()
        self._drawn_columns = _length(line)


def bar_on_terminal(label: str) -> Bar | None:
    """Return a line to draw on, where standard error is a terminal that can take one away again."""
    return Bar(label) if sys.stderr.isatty() and os.environ.get("TERM", "dumb") not in ("", "dumb") else None


def rate_text(per_s: float) -> str:
    """Write how often something happens, in the unit that gives it a figure before the point."""
    for number, unit in ((per_s, "s"), (per_s * 60, "min"), (per_s * 3600, "h")):
        if number >= 1 or unit == "h":
            break
    return f"{number:.0f}/{unit}" if number >= 10 else f"{number:.1f}/{unit}"


def left_text(ms: int) -> str:
    """Write how long something takes yet, no finer than a guess is."""
    return f"{max(1, round(ms / 1000))}s" if ms < 60_000 else rough_duration_text(ms)


def _words(counts: "Mapping[State, int]", ended: int, per_s: float | None) -> str:
    total = sum(counts.values())
    parts = [f"{ended}/{total}"]
    if failed := _failed(counts):
        parts.append(f"{failed} failed")
    parts.append(f"{counts.get(State.PROCESSING, 0)} running")
    if per_s:
        parts += [rate_text(per_s), f"{left_text(round((total - ended) / per_s * 1000))} left"]
    return "  ".join(parts)


def _failed(counts: "Mapping[State, int]") -> int:
    return counts.get(State.DEAD, 0) + counts.get(State.CANCELLED, 0)


def _columns() -> int:
    try:
        return os.get_terminal_size(2).columns or 80
    except OSError:
        return 80


def _length(line: str) -> int:
    """Return how many columns a drawn line takes: without its colours."""
    from rich.text import Text

    return Text.from_ansi(line).cell_len if line else 0
