"""Calls: `queuectl` as people run it meanwhile. Each must end in time, with an exit code that its act can have."""

import subprocess
import time
from collections.abc import Callable, Collection
from concurrent.futures import Future, ThreadPoolExecutor

from tests.chaos.notes import Notes
from tests.program import Cli

LIMIT_S = 60.0
MANY = 16
BAD_WORDS = ("Traceback", "internal error")

DONE, TIMED_OUT, STORE, REFUSED = 0, 4, 5, 6

Done = subprocess.CompletedProcess[str]


class Calls:
    """Runs command lines, at once or in the background, and looks at how each ends."""

    def __init__(self, cli: Cli, notes: Notes) -> None:
        self._cli = cli
        self._notes = notes
        self._threads = ThreadPoolExecutor(MANY)
        self._pending: list[Future[None]] = []

    def run(self, *words: str, stdin: str = "", may_end: Collection[int]) -> Done | None:
        """Run a command line; None means that it did not end in time or ended as it must not."""
        begun = time.monotonic()
        name = " ".join(words[:2])
        try:
            done = self._cli.run(*words, stdin=stdin, timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            self._notes.accuse("calls are bounded", name, f"did not return within {LIMIT_S:g} s")
            return None
        took = time.monotonic() - begun
        self._notes.slowest_call_s = max(self._notes.slowest_call_s, took)
        self._notes.tell(f"{name} -> {done.returncode} after {took:.2f} s {done.stderr.strip()[:200]}")
        if done.returncode not in may_end or any(word in done.stderr for word in BAD_WORDS):
            self._notes.accuse("calls end as they may", " ".join(words)[:80], f"exit {done.returncode}: {done.stderr}")
            return None
        return done

    def start(
        self, *words: str, may_end: Collection[int], then: Callable[[Done | None], None] = lambda _: None
    ) -> None:
        """Run a command line in the background and hand on how it ended."""

        def work() -> None:
            then(self.run(*words, may_end=may_end))

        self._pending = [call for call in self._pending if not call.done()]
        if len(self._pending) < MANY:
            self._pending.append(self._threads.submit(work))

    def knows(self, *words: str) -> bool:
        """Whether the program has this command."""
        return self._cli.run(*words, "--help").returncode == DONE

    @property
    def is_busy(self) -> bool:
        """Whether one is under way."""
        return any(not call.done() for call in self._pending)

    def close(self) -> None:
        """Start no more and wait for those under way; call it when their processes have been ended."""
        self._threads.shutdown(cancel_futures=True)
