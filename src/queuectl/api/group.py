"""Group: jobs under one name as Python sees them."""

from functools import partial

from queuectl.actions import acts, verbs
from queuectl.actions.regroup import refuse_unknown_group, retry_group
from queuectl.actions.selection import Selection
from queuectl.api.job import Job
from queuectl.errors import JobFailed, NotFound, WaitTimedOut
from queuectl.model.states import FINAL, State
from queuectl.model.units import counted
from queuectl.runtime.group_wait import wait_for_group
from queuectl.store import group_views, groups, jobs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from queuectl.api.session import Session
    from queuectl.model.job import Job as Row
    from queuectl.store.database import Tx

PAGE = 500


class Group:
    """A group of a queue: all jobs that were added with its name, also those that come later."""

    def __init__(self, session: "Session", name: str) -> None:
        self._session = session
        self._name = name
        session.database.read(lambda tx: refuse_unknown_group(tx, name))

    def __repr__(self) -> str:
        return f"<Group {self._name}>"

    @property
    def name(self) -> str:
        """What it is called."""
        return self._name

    @property
    def is_stopped(self) -> bool:
        """Whether the rest was cancelled because more than `max_failures` had died; `retry` lets it go on."""
        group = self._session.database.read(lambda tx: groups.get(tx, self._name))
        return group is not None and group.stopped_at is not None

    @property
    def is_over(self) -> bool:
        """Whether all its jobs have ended."""
        return all(state in FINAL or not number for state, number in self.counts().items())

    def counts(self) -> "dict[State, int]":
        """Return how many of its jobs are in each state."""
        found = self._session.database.read(lambda tx: groups.counts(tx, self._name))
        return {state: found.get(state, 0) for state in State}

    def failures(self) -> "Iterator[Job]":
        """Go through the jobs that are dead or were cancelled, oldest first."""
        after = 0
        while page := self._session.database.read(partial(_page, self._name, after)):
            yield from (Job(self._session, row) for row in page)
            after = page[-1].seq

    def wait(self, timeout: float | None = None, *, check: bool = False) -> "Group":
        """Wait until all its jobs have ended, at most `timeout` seconds; raises `WaitTimedOut`.

        With `check`, raise `JobFailed` unless all completed. Raises `NotFound` when all were deleted.
        """
        session = self._session
        waited = wait_for_group(session.target, session.database, self._name, timeout_s=timeout)
        if waited.view is None:
            raise NotFound(f"no job of group {self._name!r} is left")
        if waited.is_timed_out:
            rest = waited.view.total - waited.view.ended
            raise WaitTimedOut(f"{counted(rest, 'job')} of group {self._name!r} not over in time")
        if check and waited.view.failed:
            raise JobFailed(
                f"{counted(waited.view.failed, 'job')} of group {self._name!r} did not complete",
                hint=f"run again with: queuectl retry --group {self._name}",
            )
        return self

    def cancel(self) -> int:
        """Cancel those that have not ended, and return how many; running ones end when their workers stopped them."""
        chosen = acts.choose(self._session.database, verbs.CANCEL, Selection(wanted=jobs.Filter(group=self._name)))
        return acts.act_on_many(self._session.database, chosen, who=self._session.who).count

    def retry(self) -> int:
        """Run those that are dead or were cancelled again, and return how many; lifts its stop."""
        return retry_group(self._session.database, self._name, who=self._session.who).count


def _page(name: str, after: int, tx: "Tx") -> "list[Row]":
    wanted = jobs.Filter(group=name, states=group_views.FAILED)
    return jobs.by_seqs(tx, jobs.seqs_matching(tx, wanted, after, PAGE))
