"""Spawn: starting a worker as a fresh process, with a pipe that tells it when to stop. Keeping it is the caller's."""

import os
import sys
import time

from queuectl.actions.connect import Target, point_at
from queuectl.model.value import Value
from queuectl.runtime.options import WorkerOptions
from queuectl.system import process
from queuectl.system.names import CLAIM_VARIABLE, RESTARTED_VARIABLE, WORKER_VARIABLE

# Nothing that an import makes is garbage: to look for some meanwhile is a twentieth of a worker's start.
WORKER_CODE = "import gc; gc.disable(); from queuectl.runtime.enlist import main; gc.enable(); main()"


class Started(Value):
    """A worker process: it stops when told so through `control`, and when that is closed."""

    worker_id: str
    pid: int
    pidfd: int
    control: int
    since: float


def start_worker(target: Target, options: WorkerOptions) -> Started:
    """Start a worker; raises OSError when the host has no room for one."""
    argv, env = command_of(target, options)
    control_end, control = os.pipe2(os.O_CLOEXEC)
    # One that logs to the file has nothing to say here: our own output may be the pipe of whoever waits for us.
    output = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC) if options.log_to_file else None
    try:
        pid = process.start_own(argv, env, stdin=control_end, output=output, detached=False)
    except OSError:
        os.close(control)
        raise
    finally:
        for fd in (control_end, output):
            if fd is not None:
                os.close(fd)
    return Started(
        worker_id=options.worker_id, pid=pid, pidfd=os.pidfd_open(pid), control=control, since=time.monotonic()
    )


def command_of(target: Target, options: WorkerOptions) -> tuple[list[str], dict[str, str]]:
    """Return the arguments and the environment of a worker."""
    argv = [sys.executable, "-P", "-c", WORKER_CODE, options.text]
    return argv, {**clean_env(target), WORKER_VARIABLE: options.worker_id}


def end_of(started: Started) -> process.Ended | None:
    """Reap a worker that is over and close what led to it."""
    ended = process.reap(started.pid)
    os.close(started.pidfd)
    os.close(started.control)
    return ended


def clean_env(target: Target) -> dict[str, str]:
    """Return the environment of our own processes: the store by variable, and no mark of a job we may run in."""
    private = (CLAIM_VARIABLE, WORKER_VARIABLE, RESTARTED_VARIABLE)
    env = {name: value for name, value in os.environ.items() if name not in private}
    return point_at(target, env)
