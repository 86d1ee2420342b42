"""The finish line: a fifo into which every command writes a byte: each end is seen, and none is missed."""

import os
import select
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

DEADLINE_S = 40
LOOK_S = 0.002
"""How long it looks away where many are to cross: to be woken by each would take from the cores it measures."""


class FinishLine:
    """Counts commands as they end."""

    def __init__(self, path: Path) -> None:
        os.mkfifo(path)
        # Open at both ends, so that no writer ever waits for it and no reader ever sees its end.
        self._fd = os.open(path, os.O_RDWR)
        self.command = f"echo >{path}"

    def wait(self, count: int, deadline_s: float = DEADLINE_S) -> tuple[float, float]:
        """Come back when so many commands have crossed; return when the first and the last one did.

        The moment of the first is exact, that of the last one of many to LOOK_S.
        """
        until = time.monotonic() + deadline_s
        first = last = 0.0
        crossed = 0
        while crossed < count:
            if not select.select([self._fd], [], [], max(0, until - time.monotonic()))[0]:
                raise TimeoutError(f"{crossed} of {count} commands had ended after {deadline_s:.0f} s")
            crossed += len(os.read(self._fd, count - crossed))
            last = time.perf_counter()
            first = first or last
            if crossed < count:
                time.sleep(LOOK_S)
        return first, last

    def close(self) -> None:
        """Let go of it."""
        os.close(self._fd)


@contextmanager
def gate(path: Path) -> Iterator[tuple[str, int]]:
    """Give a command that waits, and the descriptor into which a line for each must be written to let it go on."""
    os.mkfifo(path)
    fd = os.open(path, os.O_RDWR)
    try:
        yield f"read line <{path}", fd
    finally:
        os.close(fd)
