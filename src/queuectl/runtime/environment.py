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
from queuectl.system.process import CANNOT_RUN, CannotStart, encoded
from queuectl.system.variables import Variables

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queuectl.model.job import Job

_PRIVATE_VARIABLES = frozenset({*COMMAND_VARIABLES, WORKER_VARIABLE, CREDENTIALS_VARIABLE})


def shared_variables(target: Target) -> Variables:
    """Return what commands inherit: our own environment, less what is not for them, and the way to this queue."""
    env = point_at(target, os.environ)
    return Variables({os.fsencode(name): os.fsencode(env[name]) for name in env if not _is_private(name)})


def _is_private(name: str) -> bool:
    """Whether a variable is not for commands, or each has its own: who is to have a secret names it."""
    return name == "PWD" or name in _PRIVATE_VARIABLES or name.startswith((SECRET_PREFIX, RESOURCE_PREFIX))


def own_variables(job: "Job", mark: str) -> bytes:
    """Return what a run has beside that, laid out: the job's own, and what tells the command where and who it is.

    Raises CannotStart for a variable that no program can be given.
    """
    text = (
        f"PWD={job.cwd or '/'}\0QUEUECTL_JOB_ID={job.id}\0QUEUECTL_ATTEMPT={job.attempts + 1}\0"
        f"QUEUECTL_RUN={job.run}\0QUEUECTL_QUEUE={job.queue}\0QUEUECTL_CLAIM={mark}\0"
    )
    if job.env is not None:
        given = "".join([f"{name}={value}\0" for name, value in job.env_map.items()])
        if given.count("\0") > len(job.env_map):
            raise CannotStart(CANNOT_RUN, "cannot be given to a program: a variable holds a NUL")
        text = given + text
    if job.units is not None:
        text += "".join([f"{RESOURCE_PREFIX}{name}={units}\0" for name, units in unit_texts(job.unit_map).items()])
    return encoded(text)
