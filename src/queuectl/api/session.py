"""Session: an open store as a queue and its jobs share it, and what both do with it."""

import os

from queuectl.actions.connect import HOME_VARIABLE, URL_VARIABLE, connect, locate
from queuectl.errors import NotFound, WaitTimedOut
from queuectl.model.units import counted
from queuectl.store import jobs
from queuectl.system.host import user_at_host

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queuectl.model.job import Job as Row
    from queuectl.runtime.wait import Waited


class Session:
    """One open store."""

    def __init__(self, url: str | None, home: "str | os.PathLike[str] | None") -> None:
        self.environ = dict(os.environ)
        if home is not None:
            self.environ[HOME_VARIABLE] = os.fspath(home)
            self.environ.pop(URL_VARIABLE, None)  # who names a home means what is kept in it
        self.target = locate(url, self.environ)
        self.database = connect(self.target)
        self.who = user_at_host()

    def reopen(self) -> None:
        """Open the store anew after it was closed."""
        self.database = connect(self.target)

    def find(self, job_id: str) -> "Row":
        """Return a job by what people call it, or raise."""
        row = self.database.read(lambda tx: jobs.find(tx, job_id))
        if row is None:
            raise NotFound(f"no job {job_id!r}", hint="jobs() lists them")
        return row


def ended_of(waited: "Waited") -> "list[Row]":
    """Return the jobs that have ended, or raise when the time was up or one is gone."""
    if waited.is_timed_out:
        names = ", ".join(job.id for job in waited.remaining[:10])
        raise WaitTimedOut(f"{counted(len(waited.remaining), 'job')} not over in time: {names}")
    if waited.deleted:
        raise NotFound(f"deleted while waited for: {', '.join(map(str, waited.deleted[:10]))}")
    return waited.ended
