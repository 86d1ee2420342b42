"""Schedules: jobs that come again and again, as Python sees them, each as it was when it was looked at."""

import os
from itertools import islice

from queuectl.actions import scheduling
from queuectl.api.fields import plain_fields, time_of, time_or_none
from queuectl.api.job import Job
from queuectl.errors import BadInput
from queuectl.model.asked import ASKED, taken_back
from queuectl.model.checks import check_name
from queuectl.model.scheduleshapes import result_word
from queuectl.model.value import Value
from queuectl.store import schedules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime
    from typing import Unpack

    from queuectl.api.fields import Command, Duration, JobOptions, Time
    from queuectl.api.session import Session
    from queuectl.model.schedule import Schedule
    from queuectl.store.database import Tx
    from queuectl.store.schedules import LastFire

    class ScheduleOptions(JobOptions, total=False):
        """By which rules a schedule comes, and what can be said of its jobs: all but `id`, a time, `after`, `hold`."""

        every: Duration
        start: Time
        tz: str
        misfire: str
        misfire_cap: int
        overlap: str
        jitter: Duration

    class ScheduleEdits(ScheduleOptions, total=False):
        """What can be different about a schedule; the word `none` takes a field of the job back."""

        cron: str
        command: str
        argv: list[str]


class FireInfo(Value):
    """What came of one instant of a schedule."""

    instant: "datetime"
    fired_at: "datetime"
    is_manual: bool
    outcome: str
    """`fired`, `skipped`, `missed` or `refused`."""
    job_number: int | None
    result: str
    """The state of its job, `removed` when that is gone, or the outcome where there is none."""
    missed: int
    """How many instants before it, that nobody was there for, it stands for."""
    why: str | None


class ScheduleInfo(Value):
    """A schedule, and what came of its last instant."""

    name: str
    cron: str | None
    every: float | None
    """In seconds."""
    anchor: "datetime | None"
    tz: str
    misfire: str
    misfire_cap: int
    overlap: str
    jitter: float
    """In seconds."""
    job: "dict[str, object]"
    """The fields of its jobs."""
    next_at: "datetime | None"
    """None while it is paused."""
    paused_at: "datetime | None"
    last: FireInfo | None

    @property
    def is_paused(self) -> bool:
        """Whether it rests until somebody resumes it."""
        return self.paused_at is not None


class Schedules:
    """The schedules of a queue: `queue.schedules`."""

    def __init__(self, session: "Session") -> None:
        self._session = session

    def add(
        self, name: str, when: str | None, command: "Command", **options: "Unpack[ScheduleOptions]"
    ) -> ScheduleInfo:
        """Add a schedule: by a cron line, or with None and `every`; all options of a job apply.

        Without `tz`, the line is read in the zone of this host.
        """
        asked, job = _apart({**options, **({} if when is None else {"cron": when})})
        words: dict[str, object] = {"command": command} if isinstance(command, str) else {"argv": list(command)}
        job = {"cwd": os.getcwd(), **job, **words}
        scheduling.add(self._session.database, name, asked, _storable(job), who=self._session.who)
        return self.get(name)

    def get(self, name: str) -> ScheduleInfo:
        """Return a schedule by its name; raises `NotFound`."""
        return self._session.database.read(
            lambda tx: _info(tx, scheduling.found(tx, check_name("schedule name", name)))
        )

    def all(self) -> "list[ScheduleInfo]":
        """Return every schedule, by name."""
        return self._session.database.read(lambda tx: [_info(tx, each) for each in schedules.all_schedules(tx)])

    def fires(self, name: str, limit: int = 20) -> "list[FireInfo]":
        """Return what came of the newest instants of a schedule, newest first."""

        def look(tx: "Tx") -> "list[FireInfo]":
            scheduling.found(tx, name)
            return [_fire_info(each) for each in schedules.fires(tx, name, limit)]

        return self._session.database.read(look)

    def preview(self, name: str, count: int = 5) -> "list[datetime]":
        """Return the next instants of a schedule, without their jitter."""
        found, now = self._session.database.read(lambda tx: (scheduling.found(tx, name), tx.now))
        return [time_of(instant) for instant in islice(found.rhythm.instants(now), count)]

    def run(self, name: str) -> Job:
        """Fire a schedule now and return its job; its next instant comes all the same."""
        session = self._session
        seq = scheduling.run_now(session.database, name, who=session.who)
        return Job(session, session.find(str(seq)))

    def edit(self, name: str, **changes: "Unpack[ScheduleEdits]") -> ScheduleInfo:
        """Change a schedule; what is not named stays, and jobs that were fired stay as they are."""
        asked, job = _apart(changes)
        if not asked and not job:
            raise BadInput("nothing to change", hint="say what: e.g. cron='@daily', overlap='skip', priority=5")
        fields = _storable(taken_back(job))
        scheduling.edit(self._session.database, name, lambda _: (asked, fields), who=self._session.who)
        return self.get(name)

    def pause(self, *names: str) -> "list[str]":
        """Let schedules rest, all or none; return those that did not yet."""
        return scheduling.pause(self._session.database, _checked(names), who=self._session.who)

    def resume(self, *names: str) -> "list[str]":
        """Let schedules go on, all or none; return those that rested. What came meanwhile is left out."""
        return scheduling.resume(self._session.database, _checked(names), who=self._session.who)

    def remove(self, *names: str) -> None:
        """Remove schedules, all or none; their jobs stay."""
        scheduling.remove(self._session.database, _checked(names), who=self._session.who)


def _checked(names: "tuple[str, ...]") -> "list[str]":
    if not names:
        raise BadInput("which schedules?", hint="name them; schedules.all() lists them")
    return [check_name("schedule name", name) for name in names]


def _apart(options: "Mapping[str, object]") -> "tuple[dict[str, object], dict[str, object]]":
    """Return what is said of the schedule, and what of its jobs."""
    plain = plain_fields(options)
    asked = {name: value for name, value in plain.items() if name in ASKED}
    return asked, {name: _listed(value) for name, value in plain.items() if name not in ASKED}


def _listed(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value


def _storable(job: "dict[str, object]") -> "dict[str, object]":
    if isinstance(job.get("input"), bytes):
        raise BadInput("the input of a schedule is text", hint="name a file instead: stdin=...")
    return job


def _info(tx: "Tx", schedule: "Schedule") -> ScheduleInfo:
    last = next(iter(schedules.fires(tx, schedule.name, 1)), None)
    return ScheduleInfo(
        name=schedule.name,
        cron=schedule.cron,
        every=None if schedule.every_ms is None else schedule.every_ms / 1000,
        anchor=time_or_none(schedule.anchor),
        tz=schedule.tz,
        misfire=schedule.misfire.value,
        misfire_cap=schedule.misfire_cap,
        overlap=schedule.overlap.value,
        jitter=schedule.jitter_ms / 1000,
        job=schedule.fields,
        next_at=time_or_none(schedule.next_at),
        paused_at=time_or_none(schedule.paused_at),
        last=None if last is None else _fire_info(last),
    )


def _fire_info(each: "LastFire") -> FireInfo:
    fire = each.fire
    return FireInfo(
        instant=time_of(fire.instant),
        fired_at=time_of(fire.fired_at),
        is_manual=bool(fire.is_manual),
        outcome=fire.outcome.value,
        job_number=fire.job_seq,
        result=result_word(fire, each.job),
        missed=fire.missed,
        why=fire.why,
    )
