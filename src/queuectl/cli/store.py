"""How commands reach the store: which one, as whom, and how they find a job by what a person calls it."""

import os

from queuectl.actions.connect import Target, connect, locate
from queuectl.store import jobs
from queuectl.system.host import user_at_host

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queuectl.cli.parser import Args
    from queuectl.model.job import Job
    from queuectl.store.database import Database, Tx

__all__ = ["connect", "find_job", "open_store", "target_of", "who"]

who = user_at_host


def target_of(args: "Args") -> Target:
    """Return the store a command line means."""
    return locate(args.db, os.environ)


def open_store(args: "Args") -> "Database":
    """Open the store a command line means."""
    return connect(target_of(args))


def find_job(tx: "Tx", job_id: str) -> "Job":
    """Return the job a person names, or raise."""
    job = jobs.find(tx, job_id)
    if job is None:
        from queuectl.actions.selection import no_such_job  # most find theirs, and some look for none

        raise no_such_job(tx, job_id)
    return job
