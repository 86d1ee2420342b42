"""Schedules: a job that comes again and again, as it stands in the store, and what is due of it. Pure."""

from enum import StrEnum

from queuectl.errors import BadInput, UnknownName
from queuectl.model.checks import as_duration, as_text, as_whole, check_own_name
from queuectl.model.units import DAY_MS, MINUTE_MS
from queuectl.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from queuectl.model.rhythm import Rhythm

GRACE_MS = MINUTE_MS
"""An instant that is noticed later than this, and than the jitter, was missed: nobody was there."""
DEFAULT_CAP = 100
MAX_CAP = 1000
MAX_JITTER_MS = 7 * DAY_MS
MAX_NAME = 100
MUTEX_PREFIX = "schedule."


class Misfire(StrEnum):
    """What becomes of instants that nobody was there to notice."""

    SKIP = "skip"
    ONCE = "once"
    ALL = "all"


class Overlap(StrEnum):
    """What becomes of an instant while an earlier job of the schedule is not over."""

    ALLOW = "allow"
    SKIP = "skip"
    QUEUE = "queue"
    REPLACE = "replace"


class FireOutcome(StrEnum):
    """What came of an instant."""

    FIRED = "fired"
    SKIPPED = "skipped"
    MISSED = "missed"
    REFUSED = "refused"


class Schedule(Value):
    """A schedule as it stands in the store: one row; the fields are its columns."""

    name: str
    cron: str | None
    every_ms: int | None
    anchor: int | None
    tz: str
    job: str
    """The fields of its jobs as JSON, as `enqueue` takes them."""
    misfire: Misfire
    misfire_cap: int
    overlap: Overlap
    jitter_ms: int
    next_instant: int | None
    next_at: int | None
    """When the next instant is fired: later than it is by its jitter. None while paused, or when no more come."""
    paused_at: int | None
    created_at: int
    updated_at: int

    @classmethod
    def of_row(cls, row: "Sequence[object]") -> "Schedule":
        """Build from a row over `columns_of(Schedule)`."""
        schedule = super().of_row(row)
        schedule.__dict__["misfire"] = Misfire(schedule.misfire)
        schedule.__dict__["overlap"] = Overlap(schedule.overlap)
        return schedule

    @property
    def rhythm(self) -> "Rhythm":
        """When it comes."""
        from queuectl.model.rhythm import Rhythm  # reading zones is for those who have a schedule

        return Rhythm(cron=self.cron, every_ms=self.every_ms, anchor=self.anchor, tz=self.tz)

    @property
    def fields(self) -> "dict[str, object]":
        """What its jobs are, as `enqueue` takes it."""
        import json

        found: dict[str, object] = json.loads(self.job)
        return found

    @property
    def mutex(self) -> str | None:
        """What keeps its jobs from running beside each other; None where they may."""
        return f"{MUTEX_PREFIX}{self.name}" if self.overlap in (Overlap.QUEUE, Overlap.REPLACE) else None

    def planned(self, after: int) -> "Schedule":
        """Return it with the first instant after one as its next."""
        instant = self.rhythm.next_after(after)
        return self.replace(
            next_instant=instant, next_at=None if instant is None else instant + self.jitter_of(instant)
        )

    def jitter_of(self, instant: int) -> int:
        """Return by how much an instant is fired later: the same on every host, whoever asks."""
        if not self.jitter_ms:
            return 0
        import hashlib

        digest = hashlib.blake2b(f"{self.name}\n{instant}".encode(), digest_size=8).digest()
        return int.from_bytes(digest, "big") % self.jitter_ms


class Fire(Value):
    """What came of one instant of a schedule: one row; the fields are its columns."""

    schedule: str
    instant: int
    outcome: FireOutcome
    is_manual: int
    fired_at: int
    job_seq: int | None = None
    missed: int = 0
    """How many instants before this one, that nobody noticed in time, the row stands for."""
    why: str | None = None

    @classmethod
    def of_row(cls, row: "Sequence[object]") -> "Fire":
        """Build from a row over `columns_of(Fire)`."""
        fire = super().of_row(row)
        fire.__dict__["outcome"] = FireOutcome(fire.outcome)
        return fire


class Due(Value):
    """What is to be done about a schedule whose time has come."""

    given_up: int | None = None
    """The newest instant that was missed and gets no job, with how many before it."""
    given_up_before: int = 0
    instants: tuple[int, ...] = ()
    """Those that get a job, in order."""
    missed_before: int = 0
    """How many missed ones the first of them stands for, beside itself."""

    @property
    def last(self) -> int:
        """The last instant that is dealt with."""
        return self.instants[-1] if self.instants else self.given_up or 0


def what_is_due(schedule: Schedule, now: int) -> Due:
    """Return what to do now about a schedule that is due: its next instant, or all that were missed by its rule."""
    first = schedule.next_instant
    assert first is not None
    latest_missed = now - GRACE_MS - schedule.jitter_ms
    if first > latest_missed:
        return Due(instants=(first,))
    wanted = {Misfire.SKIP: 1, Misfire.ONCE: 1, Misfire.ALL: schedule.misfire_cap + 1}[schedule.misfire]
    newest = schedule.rhythm.newest(first - 1, latest_missed, wanted)
    if schedule.misfire is Misfire.ALL:
        return _each(schedule, first, newest)
    before = schedule.rhythm.count(first - 1, newest[-1] - 1)
    if schedule.misfire is Misfire.SKIP:
        return Due(given_up=newest[-1], given_up_before=before)
    return Due(instants=(newest[-1],), missed_before=before)


def _each(schedule: Schedule, first: int, newest: "list[int]") -> Due:
    if len(newest) <= schedule.misfire_cap:
        return Due(instants=tuple(newest))
    before = schedule.rhythm.count(first - 1, newest[0] - 1)
    return Due(given_up=newest[0], given_up_before=before, instants=tuple(newest[1:]))


def check_schedule_name(value: object) -> str:
    """Return the name of a schedule, or raise."""
    text = check_own_name("schedule", value)
    if len(text) > MAX_NAME:
        raise BadInput(f"the name of a schedule has {len(text)} characters; the limit is {MAX_NAME}")
    return text


def check_misfire(name: str, value: object) -> Misfire:
    """Return a rule for missed instants, or raise."""
    return Misfire(_one_of(name, value, list(Misfire)))


def check_overlap(name: str, value: object) -> Overlap:
    """Return a rule for jobs that meet an earlier one, or raise."""
    return Overlap(_one_of(name, value, list(Overlap)))


def check_cap(name: str, value: object) -> int:
    """Return how many missed instants get a job of their own at most, or raise."""
    return as_whole(name, value, 1, MAX_CAP)


def check_jitter(name: str, value: object) -> int:
    """Return a jitter in milliseconds, or raise."""
    jitter_ms = as_duration(name, value)
    if jitter_ms > MAX_JITTER_MS:
        raise BadInput(f"{name} {value} is more than a week", hint="write e.g. 30s, 5m, 1h")
    return jitter_ms


def _one_of(name: str, value: object, known: "list[str]") -> str:
    text = as_text(name, value).lower()
    if text not in known:
        raise UnknownName.among(name, text, [str(each) for each in known])
    return text
