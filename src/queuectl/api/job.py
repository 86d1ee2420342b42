"""Job: one job of a queue as Python sees it, and its runs."""

from queuectl.actions import control
from queuectl.actions.edit import edit
from queuectl.actions.waiting import how_it_comes_back
from queuectl.api.fields import plain_fields, time_of, time_or_none
from queuectl.api.session import ended_of
from queuectl.clock import wall_ms
from queuectl.errors import BadInput, JobFailed, NotFound, UnknownName
from queuectl.model.edit import edit_from_fields
from queuectl.model.states import FINAL, State
from queuectl.model.value import Value
from queuectl.runtime.follow import follow
from queuectl.runtime.outputs import STDERR, STDOUT, output_of
from queuectl.runtime.wait import wait_for_all
from queuectl.store import attempts, edges, jobs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime
    from typing import Unpack

    from queuectl.api.fields import EditOptions
    from queuectl.api.graph import Dependency, GraphInfo
    from queuectl.api.session import Session
    from queuectl.api.why import Why
    from queuectl.model.attempt import Attempt
    from queuectl.model.job import Job as Row
    from queuectl.store.database import Tx


class Run(Value):
    """One run of a job; the one under way has no outcome yet."""

    number: int
    attempt: int
    outcome: str | None
    exit_code: int | None
    signal: int | None
    error: str | None
    host: str
    started_at: "datetime"
    finished_at: "datetime | None"
    cpu_ms: int | None
    peak_memory_bytes: int | None
    output_bytes: int


class Job:
    """A job of a queue.

    `state`, `exit_code`, `error` and `attempts` are read anew until it has ended; the rest is as it was when the job
    was last looked at, and `refresh` looks again.
    """

    def __init__(self, session: "Session", row: "Row", *, is_new: bool = False) -> None:
        self._session = session
        self._row = row
        self._is_new = is_new

    def __repr__(self) -> str:
        return f"<Job {self.id} {self._row.state}: {self._row.line}>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Job):
            return False
        return (other.number, other._session.target) == (self.number, self._session.target)

    def __hash__(self) -> int:
        return hash(self.number)

    @property
    def id(self) -> str:
        """What people call it: the id it was given, else its number."""
        return self._row.id

    @property
    def is_new(self) -> bool:
        """Whether the call that returned it added it; False for one that was there, such as the holder of its key."""
        return self._is_new

    @property
    def number(self) -> int:
        """Its number, which no other job has or will have."""
        return self._row.seq

    @property
    def state(self) -> State:
        """Where it stands now."""
        return self._now().state

    @property
    def exit_code(self) -> int | None:
        """The exit code of the last run that ended; None before the first, and after a signal."""
        return self._now().exit_code

    @property
    def error(self) -> str | None:
        """Why the last run failed, or why the job ended without one."""
        return self._now().error

    @property
    def attempts(self) -> int:
        """How many runs were charged."""
        return self._now().attempts

    @property
    def command(self) -> str:
        """The command on one line, as a person could type it."""
        return self._row.line

    @property
    def queue(self) -> str:
        """The name of its queue."""
        return self._row.queue

    @property
    def priority(self) -> int:
        """Higher runs first."""
        return self._row.priority

    @property
    def max_retries(self) -> int:
        """How many runs it may have after the first."""
        return self._row.max_retries

    @property
    def tags(self) -> list[str]:
        """Its tags."""
        return self._row.tag_list

    @property
    def created_at(self) -> "datetime":
        """When it was added."""
        return time_of(self._row.created_at)

    @property
    def run_at(self) -> "datetime | None":
        """The time it waits for, or waited for last."""
        return time_or_none(self._row.run_at)

    @property
    def deadline_at(self) -> "datetime | None":
        """When its time is over, with all its runs and waits; None for a job without a deadline."""
        return time_or_none(self._row.deadline_at)

    @property
    def started_at(self) -> "datetime | None":
        """When its last run began."""
        return time_or_none(self._row.started_at)

    @property
    def finished_at(self) -> "datetime | None":
        """When it ended for good."""
        return time_or_none(self._row.finished_at)

    @property
    def runs(self) -> list[Run]:
        """Every run on record, the one under way last."""

        def look(tx: "Tx") -> "list[Attempt]":
            row = jobs.get(tx, self.number)
            return [] if row is None else attempts.runs_of(tx, row)

        return [_run(attempt) for attempt in self._session.database.read(look)]

    def why(self) -> "Why":
        """Look at everything that decides whether it may start, open and shut, and at its place in the line."""
        from queuectl.actions.standing import standing  # with all the gates, which few programs ask for
        from queuectl.api.why import why_of

        self.refresh()
        return why_of(self._session.database.read(lambda tx: standing(tx, self._row)))

    def parents(self) -> "list[Dependency]":
        """Return the jobs it runs after, with what has become of each."""
        from queuectl.api.graph import dependency

        return [dependency(link) for link in self._session.database.read(lambda tx: edges.parents_of(tx, self.number))]

    def dependents(self) -> "list[Dependency]":
        """Return the jobs that run after it."""
        from queuectl.api.graph import dependency

        return [dependency(link) for link in self._session.database.read(lambda tx: edges.children_of(tx, self.number))]

    def graph(self, *, limit: int = 200) -> "GraphInfo":
        """Return all that hang together with it, the nearest first, so many at most."""
        from queuectl.actions.graphs import graph_around  # few programs ask for it
        from queuectl.api.graph import graph_info

        if limit < 1:
            raise BadInput(f"bad limit {limit}", hint="at least 1: the job itself")
        self.refresh()
        return graph_info(self._session.database.read(lambda tx: graph_around(tx, self._row, limit=limit)))

    def refresh(self) -> "Job":
        """Read it anew; raises `NotFound` when it was deleted."""
        self._row = self._session.find(str(self.number))
        return self

    def wait(self, timeout: float | None = None, *, check: bool = False) -> "Job":
        """Wait until it has ended, at most `timeout` seconds; with `check`, raise `JobFailed` unless it completed."""
        session = self._session
        waited = wait_for_all(session.target, session.database, [self.number], timeout_s=timeout)
        [self._row] = ended_of(waited)
        if check and self._row.state is not State.COMPLETED:
            row = self._row
            mending = session.database.read(lambda tx: how_it_comes_back(tx, row)) or f"queuectl retry {row.id}"
            raise JobFailed(f"job {row.id} is {row.state}: {row.error or '-'}", hint=f"run again with: {mending}")
        return self

    def cancel(self) -> "Job":
        """Cancel it: at once while it waits, as soon as its worker has stopped it while it runs."""
        control.cancel(self._session.database, [str(self.number)], who=self._session.who)
        return self.refresh()

    def retry(self, *, with_dependents: bool = False) -> "Job":
        """Run it again now: skips its wait, or gives it a fresh life when it has ended.

        With `with_dependents`, all that run after it run again, too, in their order.
        """
        retry = control.retry_with_dependents if with_dependents else control.retry
        retry(self._session.database, [str(self.number)], who=self._session.who)
        return self.refresh()

    def hold(self) -> "Job":
        """Keep it from running until it is released."""
        control.hold(self._session.database, [str(self.number)], who=self._session.who)
        return self.refresh()

    def release(self) -> "Job":
        """Let it run again when its time has come."""
        control.release(self._session.database, [str(self.number)], who=self._session.who)
        return self.refresh()

    def edit(self, *, untags: "Sequence[str]" = (), **options: "Unpack[EditOptions]") -> "Job":
        """Change what is named; tags and variables are added to those it has. What has ended changes for its retry."""
        fields = plain_fields(by_number(options, self._session))
        change = edit_from_fields(fields, wall_ms(), untags=untags)
        edit(self._session.database, [str(self.number)], change, who=self._session.who)
        return self.refresh()

    def output(self, *, run: int | None = None, stream: str | None = None) -> str:
        """Return what its newest run, or the one of this number, has printed so far.

        `stream` picks stdout or stderr of a job with `split_output`. What is not UTF-8 is replaced; `output_bytes`
        has it as it is.
        """
        return self.output_bytes(run=run, stream=stream).decode(errors="replace")

    def output_bytes(self, *, run: int | None = None, stream: str | None = None) -> bytes:
        """Return the same byte by byte."""
        session = self._session

        def look(tx: "Tx") -> "tuple[Row | None, list[Attempt]]":
            row = jobs.get(tx, self.number)
            return row, [] if row is None else attempts.runs_of(tx, row)

        row, runs = session.database.read(look)
        chosen = [each for each in runs if run in (None, each.run)]
        if run is not None and not chosen:
            raise NotFound(f"job {self.id} has no run {run}")
        if row is None or not chosen:
            return b""
        chunks = output_of(session.target, session.database, row, chosen[-1], streams=_streams(stream))
        return b"".join(chunk.data for chunk in chunks)

    def follow(self) -> "Iterator[bytes]":
        """Yield what it prints as it comes, from its first run until it has ended."""
        session = self._session
        for chunk in follow(session.target, session.database, self.number):
            yield chunk.data

    def delete(self) -> None:
        """Remove it and its history; a running one is refused."""
        control.delete(self._session.database, [str(self.number)], who=self._session.who)

    def _now(self) -> "Row":
        return self._row if self._row.state in FINAL else self.refresh()._row


def by_number(fields: "Mapping[str, object]", session: "Session") -> "Mapping[str, object]":
    """Return the fields of a job with the `Job`s it is to run after by their numbers."""
    after = fields.get("after")
    parents = [after] if isinstance(after, Job) else after
    if not isinstance(parents, list | tuple):
        return fields
    return {**fields, "after": [_number_in(session, one) if isinstance(one, Job) else one for one in parents]}


def _number_in(session: "Session", job: Job) -> int:
    if job._session.target != session.target:
        raise BadInput(f"{job!r} is a job of another store", hint="a job can run after those of its own store alone")
    return job.number


def _streams(name: str | None) -> frozenset[str] | None:
    if name not in (None, STDOUT, STDERR):
        raise UnknownName.among("stream", str(name), [STDOUT, STDERR])
    return None if name is None else frozenset({name})


def _run(attempt: "Attempt") -> Run:
    return Run(
        number=attempt.run,
        attempt=attempt.attempt,
        outcome=None if attempt.outcome is None else attempt.outcome.value,
        exit_code=attempt.exit_code,
        signal=attempt.signal,
        error=attempt.error,
        host=attempt.host,
        started_at=time_of(attempt.started_at),
        finished_at=time_or_none(attempt.finished_at),
        cpu_ms=attempt.cpu_ms,
        peak_memory_bytes=attempt.peak_memory_bytes,
        output_bytes=attempt.output_bytes,
    )
