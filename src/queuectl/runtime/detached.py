"""Detached: starting a supervisor that outlives the terminal, and hearing from it whether it could."""

import json
import os
import sys
import time

from queuectl.errors import StoreError
from queuectl.model.value import Value
from queuectl.runtime.loop import Loop
from queuectl.runtime.spawn import clean_env
from queuectl.system import process
from queuectl.system.limits import close_inherited_on_exec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from queuectl.actions.connect import Target
    from queuectl.runtime.supervisor import Plan

SUPERVISOR_CODE = "from queuectl.runtime.supervisor import main; main()"
START_SECONDS = 30.0


def start_detached(target: "Target", plan: "Plan") -> "Mapping[str, object]":
    """Start a supervisor that outlives this terminal; return what it says once its workers have beaten."""
    close_inherited_on_exec()
    read_end, write_end = os.pipe2(os.O_CLOEXEC)
    devnull = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
    argv = [sys.executable, "-P", "-c", SUPERVISOR_CODE, json.dumps(plan.as_dict(), default=Value.as_dict)]
    pid = process.start_own(argv, clean_env(target), stdin=devnull, output=write_end, detached=True)
    os.close(write_end)
    os.close(devnull)
    try:
        return _first_words(read_end)
    except StoreError:
        process.terminate(pid)  # one that cannot start must not go on trying behind our back
        raise


def _first_words(fd: int) -> "Mapping[str, object]":
    """Read the supervisor's one line of JSON; anything else it says is why it could not start."""
    loop, said = Loop(), bytearray()
    is_open = True

    def more() -> None:
        nonlocal is_open
        data = os.read(fd, 65536)
        said.extend(data)
        is_open = bool(data)

    loop.watch(fd, more)
    deadline = time.monotonic() + START_SECONDS
    while is_open and not said.endswith(b"}\n") and time.monotonic() < deadline:
        loop.turn(deadline)
    os.close(fd)
    text = said.decode(errors="replace").strip()
    try:
        words = json.loads(text.splitlines()[-1]) if text else {}
    except ValueError:
        words = {}
    if not isinstance(words, dict) or "pid" not in words:
        raise StoreError(
            f"the workers did not start: {text or 'no answer'}", hint="see queuectl.log in the home folder"
        )
    return words
