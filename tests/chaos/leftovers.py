"""Leftovers: what must not be there once the queue is drained and its workers are stopped."""

import os
import time
from collections.abc import Iterator

from queuectl.system.home import Home
from tests.chaos import snapshot
from tests.chaos.checker import Violation
from tests.chaos.ledger import Ledger
from tests.chaos.processes import processes_of, users_of
from tests.chaos.stores import Store

PATIENCE_S = 10.0
STAYS = {"wake", "changed", "setup.lock"}


def leftovers(store: Store, ledger: Ledger) -> list[Violation]:
    """Return what was left behind; what is on its way out gets a moment."""
    until = time.monotonic() + PATIENCE_S
    while (found := [*_found(store, ledger)]) and time.monotonic() < until:
        time.sleep(0.2)
    return found


def _found(store: Store, ledger: Ledger) -> Iterator[Violation]:
    home = store.target.home
    for process in processes_of(home.root):
        yield Violation("no process is left", f"pid {process.pid}", str(process))
    for job in ledger.held():
        holders = users_of(str(ledger.locks))
        yield Violation("no process is left", f"job {job}", f"something of it runs: one of pids {holders}")
    for name in sorted(set(os.listdir(home.run)) - STAYS):
        yield Violation("no file is left", f"run/{name}", "belongs to nobody")
    for name in sorted(_logs(home) - snapshot.output_files(store.database)):
        yield Violation("no file is left", f"logs/{name}", "belongs to no run")
    for worker, pid in snapshot.living_workers(store.database):
        yield Violation("no worker is left", f"worker {worker[:6]}", f"its row says that it lives (pid {pid})")


def _logs(home: Home) -> set[str]:
    return {
        os.path.relpath(os.path.join(folder, name), home.logs)
        for folder, _, names in os.walk(home.logs)
        for name in names
    }
