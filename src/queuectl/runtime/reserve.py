"""Reserve: workers that are forked before their supervisor is connected, and wait to be told who they are.

One that starts afresh has to load Python and all its modules first. For these a supervisor has loaded them once.
"""

import gc
import os
import time
from functools import partial

from queuectl.actions.connect import load_driver
from queuectl.runtime.options import WorkerOptions
from queuectl.runtime.spawn import Started, command_of
from queuectl.system import cgroups, forking, guise, process
from queuectl.system.limits import OWN_FILES, allow_open_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queuectl.actions.connect import Target
    from queuectl.system.forking import Forked

FILES_PER_WORKER = 2  # its pidfd and the pipe that tells it what to do
_LENGTH_BYTES = 4


def fork_workers(target: "Target", count: int, *, log_to_file: bool) -> "list[Forked]":
    """Fork so many workers, or as many as can be; the others are to be started afresh.

    For a supervisor, before it connects to its store or starts a thread. Those that are never told anything leave when
    their supervisor does.
    """
    cgroups.move_aside()  # before they are there: nobody else may live in the group
    if not guise.can_change():
        return []
    _load(target)
    files = allow_open_files(OWN_FILES + count * FILES_PER_WORKER)
    waiting: list[Forked] = []
    while len(waiting) < min(count, (files - OWN_FILES) // FILES_PER_WORKER) and forking.can_fork():
        try:
            waiting.append(forking.fork(partial(_wait, target), is_silent=log_to_file))
        except OSError:
            break  # who starts the others finds no room either, and says so
    return waiting


def wake(worker: "Forked", options: WorkerOptions) -> Started:
    """Tell a forked worker what to do; one that has died meanwhile is then found dead like any other."""
    text = options.text.encode()
    told = len(text).to_bytes(_LENGTH_BYTES, "big") + text
    try:
        while told:
            told = told[os.write(worker.control, told) :]
    except BrokenPipeError:
        pass
    return Started(
        worker_id=options.worker_id,
        pid=worker.pid,
        pidfd=worker.pidfd,
        control=worker.control,
        since=time.monotonic(),
    )


def _load(target: "Target") -> None:
    """Import all that a worker needs. None of it is ever garbage, and unless it is looked at it stays shared."""
    gc.disable()
    import queuectl.runtime.enlist  # noqa: F401

    load_driver(target)
    gc.freeze()
    gc.enable()


def _wait(target: "Target") -> None:
    """Wait in the new process to be told, and then be what a fresh process would be that was started so."""
    text = _hear()
    if text is None:
        return  # its supervisor could not start
    from queuectl.runtime.enlist import work

    options = WorkerOptions.of_text(text)
    argv, env = command_of(target, options)
    if not guise.appear_as(argv, env):
        process.become(argv, env)
    work(options)


def _hear() -> str | None:
    """Return what the supervisor says first, and leave what it may say next; None means that it is gone."""
    length = os.read(0, _LENGTH_BYTES)
    missing, text = int.from_bytes(length, "big"), b""
    while missing and (part := os.read(0, missing)):
        text += part
        missing -= len(part)
    return None if missing or not length else text.decode()
