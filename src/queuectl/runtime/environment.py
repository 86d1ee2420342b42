"""Environment: the variables a command gets: its worker's less what is private, the job's own, and who it is."""

import os

from queuectl.actions.connect import Target, point_at
from queuectl.model.needs import unit_texts
from queuectl.system.names import (
    COMMAND_VARIABLES,
    CREDENTIALS_VARIABLE,
    RESOURCE_PREFIX,
    SECRET_PREFIX,
    WORKER_VARIABLE,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queuectl.model.job import Job

_PRIVATE_VARIABLES = frozenset({*COMMAND_VARIABLES, WORKER_VARIABLE, CREDENTIALS_VARIABLE})


def base_env(target: Target) -> dict[bytes, bytes]:
    """Return what commands inherit: this process's environment, less what is private, and the way to this queue."""
    env = point_at(target, os.environ)
    return {os.fsencode(name): os.fsencode(env[name]) for name in env if not _is_private(name)}


def _is_private(name: str) -> bool:
    """Whether a variable is not for commands: who is to have a secret names it."""
    return name in _PRIVATE_VARIABLES or name.startswith((SECRET_PREFIX, RESOURCE_PREFIX))


def command_env(base: dict[bytes, bytes], job: "Job", mark: str) -> dict[bytes, bytes]:
    """Return the environment of a run: the worker's, the job's own, and what tells the command who it is."""
    env = base.copy()
    for name, value in job.env_map.items():
        env[os.fsencode(name)] = os.fsencode(value)
    env[b"PWD"] = os.fsencode(job.cwd or "/")
    env[b"QUEUECTL_JOB_ID"] = job.id.encode()
    env[b"QUEUECTL_ATTEMPT"] = b"%d" % (job.attempts + 1)
    env[b"QUEUECTL_RUN"] = b"%d" % job.run
    env[b"QUEUECTL_QUEUE"] = job.queue.encode()
    env[b"QUEUECTL_CLAIM"] = mark.encode()
    if job.units is not None:
        for name, text in unit_texts(job.unit_map).items():
            env[f"{RESOURCE_PREFIX}{name}".encode()] = text.encode()
    return env
