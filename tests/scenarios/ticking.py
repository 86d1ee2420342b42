"""A process that ticks by a clock of the test's own, again and again, until it is killed: `python ticking.py FILE`.

The store is that of the environment. FILE holds the time.
"""

import os
import sys
from pathlib import Path

from queuectl.actions.connect import connect, locate
from queuectl.actions.schedule import tick
from queuectl.errors import StoreError


def main() -> None:
    """Tick for ever; what the store has to say against it is for the next time."""
    database = connect(locate(None, os.environ))
    clock = Path(sys.argv[1])
    database.read_clock = lambda _: int(clock.read_text() or 0)
    while True:
        try:
            tick(database)
        except StoreError:
            pass  # busy: two write to one file


if __name__ == "__main__":
    main()
