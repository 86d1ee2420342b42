"""Queue: the way into a store from Python."""

from contextlib import nullcontext
from functools import partial

from queuectl.actions import control
from queuectl.actions.connect import settings_of
from queuectl.actions.liveness import serving
from queuectl.actions.submit import submit
from queuectl.api.fields import filter_of, spec_of, spec_of_any
from queuectl.api.job import Job
from queuectl.api.session import Session, ended_of
from queuectl.clock import wall_ms
from queuectl.model.spec import check_name
from queuectl.model.states import State
from queuectl.runtime.errand import Errand
from queuectl.runtime.wait import wait_for_all, wait_for_any
from queuectl.store import jobs

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Self, Unpack

    from queuectl.api.fields import Choice, Command, JobOptions
    from queuectl.model.job import Job as Row
    from queuectl.model.job import JobSpec
    from queuectl.store.database import Tx
    from queuectl.store.jobs import Filter

PAGE = 500


class Queue:
    """A queue: the one of the environment, as the command line has it, or that of a `url` or a `home`.

    Use it from one thread; each thread may have its own. It is a context manager, and `close` does the same.
    """

    def __init__(self, url: str | None = None, *, home: "str | os.PathLike[str] | None" = None) -> None:
        self._session = Session(url, home)
        self._database = self._session.database
        self._who = self._session.who

    def __enter__(self) -> "Self":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the store."""
        self._database.close()

    def enqueue(self, command: "Command", **options: "Unpack[JobOptions]") -> Job:
        """Add a job: a shell line, or a list of words that are run without a shell. It is kept once this returns."""
        return self._submit([spec_of(command, options, wall_ms())])[0]

    def enqueue_many(self, commands: "Iterable[Command | Mapping[str, object]]") -> list[Job]:
        """Add jobs, all or none: shell lines, lists of words, or mappings with the fields of a JSON job."""
        now = wall_ms()
        return self._submit([spec_of_any(each, now) for each in commands])

    def run(self, command: "Command", *, wait_timeout: float | None = None, **options: "Unpack[JobOptions]") -> Job:
        """Add a job and wait until it has ended; where no worker would take it, it is run from here.

        As with `queuectl run`, it is tried once unless `max_retries` says otherwise.
        """
        options.setdefault("max_retries", 0)
        job = self.enqueue(command, **options)
        is_taken = bool(self._database.read(lambda tx: serving(tx, {job.queue})))
        with nullcontext() if is_taken else Errand(self._session.target, job.number):
            return job.wait(timeout=wait_timeout)

    def job(self, job_id: "str | int") -> Job:
        """Return a job by its id, its number, or `last`; raises `NotFound`."""
        return Job(self._session, self._session.find(str(job_id)))

    def jobs(self, **choice: "Unpack[Choice]") -> "Iterator[Job]":
        """Go through the jobs that match, newest first; those added meanwhile are not among them."""
        wanted = filter_of(choice)
        while True:
            page = self._database.read(partial(_page, wanted))
            yield from (Job(self._session, row) for row in page)
            if len(page) < PAGE:
                return
            wanted = wanted.replace(last=page[-1].seq - 1)

    def count(self, **choice: "Unpack[Choice]") -> int:
        """Return how many jobs match."""
        wanted = filter_of(choice)
        return self._database.read(lambda tx: jobs.count_matching(tx, wanted))

    def counts(self) -> "dict[State, int]":
        """Return how many jobs are in each state."""
        of_queues = self._database.read(jobs.counts).values()
        return {state: sum(of_queue.get(state, 0) for of_queue in of_queues) for state in State}

    def wait(self, *waited: "Job | str | int", timeout: float | None = None) -> list[Job]:
        """Wait until all of these have ended, and return them; raises `WaitTimedOut`, or `NotFound` for one deleted."""
        seqs = self._numbers(waited)
        return self._handles(ended_of(wait_for_all(self._session.target, self._database, seqs, timeout_s=timeout)))

    def wait_any(self, *waited: "Job | str | int", timeout: float | None = None) -> list[Job]:
        """Wait until one of these has ended, and return those that have."""
        seqs = self._numbers(waited)
        return self._handles(ended_of(wait_for_any(self._session.target, self._database, seqs, timeout_s=timeout)))

    def pause(self, queue: str) -> None:
        """Hand out no more jobs of a queue; running ones go on."""
        control.pause_queue(self._database, check_name("queue", queue), who=self._who)

    def resume(self, queue: str) -> None:
        """Hand out jobs of a queue again."""
        control.resume_queue(self._database, check_name("queue", queue), who=self._who)

    def settings(self) -> "dict[str, int | float | str]":
        """Return the settings in force; durations are in seconds, sizes in bytes."""
        settings = self._database.read(lambda tx: settings_of(tx, self._session.environ))
        return {key: settings.value_of(key) for key in settings.FIELDS}

    def set(self, key: str, value: "float | str") -> None:
        """Store a setting."""
        control.set_setting(self._database, key, str(value), who=self._who)

    def _submit(self, specs: "list[JobSpec]") -> list[Job]:
        ids = submit(self._database, specs, who=self._who, environ=self._session.environ)
        return self._handles(self._database.read(lambda tx: _rows(tx, ids)))

    def _numbers(self, waited: "Sequence[Job | str | int]") -> list[int]:
        return [one.number if isinstance(one, Job) else self.job(one).number for one in waited]

    def _handles(self, rows: "Sequence[Row]") -> list[Job]:
        return [Job(self._session, row) for row in rows]


def _rows(tx: "Tx", ids: "Sequence[str]") -> "list[Row]":
    """Return jobs just added, in order; those with a number alone are many at times, and read in few statements."""
    numbered = {job.id: job for job in jobs.by_seqs(tx, [int(each) for each in ids if each.isdigit()])}
    found = [numbered.get(each) or jobs.find(tx, each) for each in ids]
    return [row for row in found if row is not None]


def _page(wanted: "Filter", tx: "Tx") -> "list[Row]":
    return jobs.newest(tx, wanted, PAGE)
