"""The feeder: a thread that enqueues, one by one and in batches, and notes what was acknowledged."""

import json
import random
import threading
from collections.abc import Callable

from tests.chaos.calls import DONE, REFUSED, STORE, Calls
from tests.chaos.commands import some_job
from tests.chaos.ledger import Ledger
from tests.chaos.notes import Notes
from tests.chaos.snapshot import BATCH

PAUSE_S = (0.2, 1.5)
BATCH_SIZES = (2, 12)
KINDS = ("", "", "", "any:", "fail:")
MUTEX_SHARE = 0.1


class Feeder:
    """Enqueues from `start` to `stop`."""

    def __init__(self, name: str, calls: Calls, ledger: Ledger, notes: Notes, dice: random.Random) -> None:
        self._name = name
        self._calls = calls
        self._ledger = ledger
        self._notes = notes
        self._dice = dice
        self._number = 0
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin to enqueue."""
        self._stopped.clear()
        self._thread = threading.Thread(target=self._run, name="feeder", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Begin nothing more."""
        self._stopped.set()

    @property
    def is_busy(self) -> bool:
        """Whether a call is under way."""
        return self._thread is not None and self._thread.is_alive()

    def _run(self) -> None:
        feed = self._feed_batch  # so that there is work before the first fault
        while not self._stopped.is_set():
            self._number += 1
            feed()
            self._stopped.wait(self._dice.uniform(*PAUSE_S))
            feed = self._dice.choice((self._feed_one, self._feed_named, self._feed_batch, self._feed_graph))

    def _feed_one(self) -> None:
        # By way of standard input: a long line does not fit an argument.
        done = self._calls.run("enqueue", "--from", "-", stdin=self._job(), may_end=(DONE, STORE))
        self._note(done.stdout if done else "")

    def _feed_named(self) -> None:
        """Give the job a name and ask until it is there: after a lost answer, `refused` says that it is."""
        name = f"{self._name}-{self._number}"
        job = f'{{"id": "{name}", {self._job()[1:]}'
        while not self._stopped.is_set():
            done = self._calls.run("enqueue", "--from", "-", stdin=job, may_end=(DONE, STORE, REFUSED))
            if done is not None and done.returncode in (DONE, REFUSED):
                self._note(name)
                return

    def _feed_batch(self) -> None:
        self._feed_jobs(lambda batch, size: [self._job(batch) for _ in range(size)])

    def _feed_graph(self) -> None:
        """Feed jobs that wait for each other, in an order that has nothing to do with it; some share a mutex."""
        self._feed_jobs(self._graph)

    def _graph(self, batch: str, size: int) -> list[str]:
        names = [f"{self._name}-{self._number}.{place}" for place in range(size)]
        lines = []
        for place, name in enumerate(names):
            parents = self._dice.sample(names[:place], min(place, self._dice.randint(0, 3)))
            fields: dict[str, object] = {"id": name}
            if parents:
                fields["after"] = [f"{self._dice.choice(KINDS)}{parent}" for parent in parents]
            if self._dice.random() < MUTEX_SHARE:
                fields["mutex"] = "chaos"
            lines.append(json.dumps({**json.loads(self._job(batch)), **fields}))
        self._dice.shuffle(lines)
        return lines

    def _feed_jobs(self, make: Callable[[str, int], list[str]]) -> None:
        batch, size = f"{BATCH}{self._name}-{self._number}", self._dice.randint(*BATCH_SIZES)
        self._notes.batches[batch] = size
        jobs = "\n".join(make(batch, size))
        done = self._calls.run("enqueue", "--from", "-", stdin=jobs, may_end=(DONE, STORE))
        if done is None or done.returncode != DONE:
            return
        if len(done.stdout.split()) != size:
            self._notes.accuse("enqueue prints every id", f"batch {batch}", f"{size} jobs, printed {done.stdout!r}")
        self._note(done.stdout)

    def _job(self, *tags: str) -> str:
        return some_job(self._ledger, self._dice, *tags)

    def _note(self, printed: str) -> None:
        self._notes.acknowledged.extend(printed.split())
