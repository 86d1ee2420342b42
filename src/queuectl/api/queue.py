"""Queue: the way into a store from Python."""

import json
from collections.abc import Mapping
from functools import partial

from queuectl.actions import acts, archive, control, doctor, exporting, gatekeeping, importing, restore, upkeep, verbs
from queuectl.actions.connect import settings_of
from queuectl.actions.landing import Rules
from queuectl.actions.mapping import enter_mapped
from queuectl.actions.selection import Selection
from queuectl.actions.submit import Fate, enter
from queuectl.api.fields import filter_of, plain_fields, spec_of, spec_of_any
from queuectl.api.gates import LimitInfo, QueueInfo, limit_info, queue_info
from queuectl.api.group import Group
from queuectl.api.job import Job, by_number
from queuectl.api.mapping import mapped_specs
from queuectl.api.session import Session, ended_of
from queuectl.clock import wall_ms
from queuectl.errors import BadInput, NotFound
from queuectl.model.checks import check_name, check_own_name
from queuectl.model.states import State
from queuectl.model.template import MARK
from queuectl.runtime.errand import Errand
from queuectl.runtime.wait import wait_for_all, wait_for_any
from queuectl.store import audit, jobs, overview

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Protocol, Self, Unpack

    from queuectl.actions.submit import Entry
    from queuectl.api.fields import Choice, Command, JobOptions
    from queuectl.api.gates import QueueSettings
    from queuectl.api.mapping import Mappable
    from queuectl.api.schedules import Schedules
    from queuectl.model.finding import Finding
    from queuectl.model.job import Job as Row
    from queuectl.model.job import JobSpec
    from queuectl.store.audit import Act
    from queuectl.store.database import Database, Tx
    from queuectl.store.jobs import Filter

    class TextFile(Protocol):
        """A file open for writing."""

        def write(self, text: str, /) -> object:
            """Write some."""


PAGE = 500


class Queue:
    """A queue: the one of the environment, as the command line has it, or that of a `url` or a `home`.

    Use it from one thread; each thread may have its own. It is a context manager, and `close` does the same.
    """

    def __init__(self, url: str | None = None, *, home: "str | os.PathLike[str] | None" = None) -> None:
        self._session = Session(url, home)
        self._who = self._session.who

    @property
    def _database(self) -> "Database":
        return self._session.database

    def __enter__(self) -> "Self":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the store."""
        self._database.close()

    def enqueue(self, command: "Command", **options: "Unpack[JobOptions]") -> Job:
        """Add a job: a shell line, or a list of words that are run without a shell. It is kept once this returns.

        Where another job has its `unique` key, that one is returned, and its `is_new` is False.
        """
        return self._submit([spec_of(command, by_number(options, self._session), wall_ms())])[0]

    def enqueue_many(self, commands: "Iterable[Command | Mapping[str, object]]") -> list[Job]:
        """Add jobs, all or none: shell lines, lists of words, or mappings with the fields of a JSON job."""
        now = wall_ms()
        session = self._session
        given = (by_number(each, session) if isinstance(each, Mapping) else each for each in commands)
        return self._submit([spec_of_any(each, now) for each in given])

    def map(
        self,
        command: "Command",
        *lists: "Iterable[Mappable]",
        array: str | None = None,
        mark: str = MARK,
        **options: "Unpack[JobOptions]",
    ) -> list[Job]:
        """Add a job for each value, all or none: `{}` in the command stands for it, as with `queuectl map`.

        Several lists are combined, the last varying fastest, and `{1}`, `{2}` stand for a value of each. In a shell
        line values are quoted, always. `array` is a first list of numbers, such as `"1-100:2%5"`.
        """
        specs = mapped_specs(command, lists, options, wall_ms(), array=array, mark=mark)
        return self._jobs_of(enter_mapped(self._database, specs, who=self._who, environ=self._session.environ))

    def run(self, command: "Command", *, wait_timeout: float | None = None, **options: "Unpack[JobOptions]") -> Job:
        """Add a job and wait until it has ended; where no worker would take it, it is run from here.

        As with `queuectl run`, it is tried once unless `max_retries` says otherwise. When `wait_timeout` seconds are
        over, `WaitTimedOut` is raised and the job goes on; cancel it if it should not.
        """
        options.setdefault("max_retries", 0)
        job = self.enqueue(command, **options)
        with Errand(self._session.target, self._session.find(str(job.number))):
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

    def cancel(self, *names: "str | int", **choice: "Unpack[Choice]") -> int:
        """Cancel jobs and return how many: by id, number, `last` or range (`"3-9"`), or all that match.

        As for the other verbs for many: jobs named one by one are all changed or none; of a range or a choice, those to
        which it does not apply are passed by.
        """
        return self._act(verbs.CANCEL, names, choice)

    def retry(self, *names: "str | int", with_dependents: bool = False, **choice: "Unpack[Choice]") -> int:
        """Run jobs again now, with all that run after them if so asked, and return how many."""
        return self._act(verbs.RETRY_WITH_DEPENDENTS if with_dependents else verbs.RETRY, names, choice)

    def hold(self, *names: "str | int", **choice: "Unpack[Choice]") -> int:
        """Keep jobs from running, and return how many."""
        return self._act(verbs.HOLD, names, choice)

    def release(self, *names: "str | int", **choice: "Unpack[Choice]") -> int:
        """Let held jobs run again, and return how many."""
        return self._act(verbs.RELEASE, names, choice)

    def delete(self, *names: "str | int", **choice: "Unpack[Choice]") -> int:
        """Remove jobs and their history, and return how many."""
        return self._act(verbs.DELETE, names, choice)

    def pause(self, queue: str) -> None:
        """Hand out no more jobs of a queue; running ones go on."""
        control.pause_queue(self._database, check_name("queue", queue), who=self._who)

    def resume(self, queue: str) -> None:
        """Hand out jobs of a queue again."""
        control.resume_queue(self._database, check_name("queue", queue), who=self._who)

    def configure(self, queue: str, **settings: "Unpack[QueueSettings]") -> QueueInfo:
        """Set what is given for a queue, as `queue set` does, and make it if it is new; None takes a setting back.

        Concurrency and rate are in force at once; timeout, retries and priority are for jobs added from now on.
        """
        name = check_name("queue", queue)
        gatekeeping.set_queue(self._database, name, plain_fields(settings), who=self._who)
        return self.queue(name)

    def group(self, name: str) -> Group:
        """Return a group by its name; raises `NotFound`."""
        return Group(self._session, check_name("group", name))

    def queue(self, name: str) -> QueueInfo:
        """Return a queue by its name; raises `NotFound`."""

        def look(tx: "Tx") -> QueueInfo:
            view = overview.queue(tx, check_name("queue", name))
            if view is None:
                raise gatekeeping.unknown_queue(tx, name)
            return queue_info(view)

        return self._database.read(look)

    def queues(self) -> "list[QueueInfo]":
        """Return every queue, by name."""
        return [queue_info(view) for view in self._database.read(overview.all_queues)]

    def delete_queue(self, queue: str) -> None:
        """Remove a queue that holds no job, with what was set for it; raises `Refused` otherwise."""
        gatekeeping.delete_queue(self._database, check_name("queue", queue), who=self._who)

    def limits(self) -> "list[LimitInfo]":
        """Return every limit, and the mutexes that jobs hold or wait for now."""
        return [limit_info(view) for view in self._database.read(overview.all_limits)]

    def set_limit(self, name: str, slots: int) -> None:
        """Make a limit, or give it another number; it is in force at once, and with 0 no job that names it starts."""
        gatekeeping.set_limit(self._database, check_own_name("limit", name), slots, who=self._who)

    def delete_limit(self, name: str) -> None:
        """Remove a limit; raises `Refused` while a job that is not over names it."""
        gatekeeping.delete_limit(self._database, check_name("limit", name), who=self._who)

    @property
    def schedules(self) -> "Schedules":
        """Jobs that come again and again: `queue.schedules.add("nightly", "30 2 * * *", "./backup.sh")`."""
        from queuectl.api.schedules import Schedules  # reading zones is for those who have a schedule

        return Schedules(self._session)

    def settings(self) -> "dict[str, int | float | str]":
        """Return the settings in force; durations are in seconds, sizes in bytes."""
        settings = self._database.read(lambda tx: settings_of(tx, self._session.environ))
        return {key: settings.value_of(key) for key in settings.FIELDS}

    def set(self, key: str, value: "float | str") -> None:
        """Store a setting."""
        control.set_setting(self._database, key, str(value), who=self._who)

    def audit(self, limit: int = 50, *, who: str | None = None, action: str | None = None) -> "list[Act]":
        """Return who did what, newest first; times are milliseconds since 1970."""
        return self._database.read(lambda tx: audit.newest(tx, limit, who=who, action=action))

    def prune(self, *, dry_run: bool = False) -> int:
        """Remove the jobs that were kept long enough by the retention settings, and return how many (would) go."""
        rules = upkeep.retention(self._database.read(lambda tx: settings_of(tx, self._session.environ)))
        if dry_run:
            return upkeep.count_expired(self._database, rules).jobs
        return upkeep.prune(self._database, rules, who=self._who).jobs

    def backup(self, file: "str | os.PathLike[str]", *, force: bool = False) -> int:
        """Copy the store into a file while workers run, and return how many jobs are in it."""
        return archive.backup(self._session.target, str(file), who=self._who, force=force).jobs

    def restore(self, file: "str | os.PathLike[str]") -> int:
        """Put a backup in the place of the store and return how many jobs it has; refused while others use it."""
        self.close()
        try:
            restored = restore.restore(
                self._session.target, str(file), who=self._who, confirm=lambda _gone, _come: None
            )
        finally:
            self._session.reopen()
        return restored.jobs

    def export(self, file: "TextFile", **choice: "Unpack[Choice]") -> int:
        """Write everything, or the jobs that match, as lines of JSON, and return how many jobs."""
        wanted = filter_of(choice) if choice else None
        end = exporting.export(self._database, wanted, lambda line: file.write(json.dumps(line) + "\n"))
        return end.jobs

    def import_(self, lines: "Iterable[str]", *, renumber: bool = False, skip_existing: bool = False) -> int:
        """Add what `export` wrote, all or nothing, from an open file or other lines; return how many jobs came."""
        rules = Rules(renumber=renumber, skip_existing=skip_existing)
        given = (line.encode() for line in lines)
        return importing.import_lines(self._database, given, rules=rules, who=self._who).jobs

    def doctor(self, *, deep: bool = False) -> "list[Finding]":
        """Look for what is wrong with the store and this host; each finding has `check`, `level`, `what` and `mend`."""
        return doctor.examine(self._session.target, self._session.environ, is_deep=deep)

    def _act(self, act: "acts.Act", names: "Sequence[str | int]", choice: "Choice") -> int:
        selection = Selection(names=tuple(map(str, names)), wanted=filter_of(choice))
        if selection.is_by_name:
            return len(acts.act_on_each(self._database, selection.names, act, who=self._who))
        if selection == Selection():
            raise BadInput("which jobs?", hint="name them, or say what to look for; all: states=list(State)")
        return acts.act_on_many(self._database, acts.choose(self._database, act, selection), who=self._who).count

    def _submit(self, specs: "list[JobSpec]") -> list[Job]:
        return self._jobs_of(enter(self._database, specs, who=self._who, environ=self._session.environ))

    def _jobs_of(self, entries: "Sequence[Entry]") -> list[Job]:
        rows = self._database.read(lambda tx: jobs.by_seqs(tx, [entry.seq for entry in entries]))
        found = {row.seq: row for row in rows}
        for entry in entries:
            if entry.seq not in found:
                raise NotFound(f"job {entry.id} was removed just now", hint="add it again")
        return [Job(self._session, found[entry.seq], is_new=entry.fate is Fate.ADDED) for entry in entries]

    def _numbers(self, waited: "Sequence[Job | str | int]") -> list[int]:
        return [one.number if isinstance(one, Job) else self.job(one).number for one in waited]

    def _handles(self, rows: "Sequence[Row]") -> list[Job]:
        return [Job(self._session, row) for row in rows]


def _page(wanted: "Filter", tx: "Tx") -> "list[Row]":
    return jobs.newest(tx, wanted, PAGE)
