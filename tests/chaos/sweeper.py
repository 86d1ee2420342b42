"""The sweeper: a process that outlives a chaos run however it ends, and ends what the run left behind.

It reads the folders to look after from its standard input, one a line. When that closes, because the run is over or was
killed, every process tied to one of the folders is ended, and folders that are of no use to anybody are removed.
"""

import os
import shutil
import signal
import subprocess
import sys
import time

from tests.chaos.processes import users_of

GENTLE_S = 3.0
PATIENCE_S = 20.0
END, REMOVE = "end", "remove"


class Sweeper:
    """The sweeper as seen by the run it follows."""

    def __init__(self) -> None:
        # A session of its own: a Ctrl-C in the terminal is for the run alone.
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.chaos.sweeper"], stdin=subprocess.PIPE, text=True, start_new_session=True
        )

    def watch(self, folder: str) -> None:
        """End the processes of one more folder."""
        self._say(END, folder)

    def watch_and_remove(self, folder: str) -> None:
        """End the processes of one more folder, and remove it then."""
        self._say(REMOVE, folder)

    def sweep(self) -> None:
        """End what is left, and wait until it is gone."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def _say(self, verb: str, folder: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{verb} {folder}\n")
        self._process.stdin.flush()


def main() -> None:
    """Wait for the end of the run, then sweep."""
    run = os.getppid()
    wanted = [line.rstrip("\n").split(" ", 1) for line in sys.stdin]
    _end_all([folder for _, folder in wanted], run)
    for verb, folder in wanted:
        if verb == REMOVE:
            shutil.rmtree(folder, ignore_errors=True)


def _end_all(folders: list[str], run: int) -> None:
    begun = time.monotonic()
    empty = 0
    while empty < 2 and time.monotonic() < begun + PATIENCE_S:
        left = [pid for folder in folders for pid in users_of(folder, but=(run,))]
        # Gently at first: a PostgreSQL that is killed leaves its shared memory behind.
        number = signal.SIGTERM if time.monotonic() < begun + GENTLE_S else signal.SIGKILL
        for pid in left:
            _signal(pid, number)
        empty = 0 if left else empty + 1
        time.sleep(0.1)


def _signal(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
        os.kill(pid, signal.SIGCONT)
    except ProcessLookupError:
        pass


if __name__ == "__main__":
    main()
