"""Schedules: a job that comes again and again, as it stands in the store, and what is due of it. Pure."""

from enum import StrEnum

from queuectl.errors import BadInput, UnknownName
from queuectl.model.checks import as_duration, as_text, as_whole, check_own_name
from queuectl.model.units import DAY_MS, MINUTE_MS, SECOND_MS
from queuectl.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from queuectl.model.rhythm import Rhythm

GRACE_MS = MINUTE_MS
"""An instant that is noticed later than this, or when the one after it is due as well, was missed: nobody was there."""
NEVER_MISSED_MS = 5 * SECOND_MS
"""Who is there but busy notices an instant this late: it is never missed, however short the period is."""
DEFAULT_CAP = 100
MAX_CAP = 1000
MAX_JITTER_MS = 7 * DAY_MS
MAX_NAME = 100
MUTEX_PREFIX = "schedule."
REPLACED = "replaced by job "


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
        return self.replace(next_instant=instant, next_at=None if instant is None else self.fires_at(instant))

    def fires_at(self, instant: int) -> int:
        """Return when an instant is fired: later than it is by its jitter."""
        return instant + self.jitter_of(instant)

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

    @property
    def was_replaced(self) -> bool:
        """Whether a newer job of the schedule took the place of its job; `why` names that."""
        return (self.why or "").startswith(REPLACED)


class Due(Value):
    """What is to be done about a schedule whose time has come."""

    given_up: int | None = None
    """The newest instant that was missed and gets no job, with how many before it."""
    given_up_before: int = 0
    instant: int | None = None
    """The one that gets a job."""
    missed_before: int = 0
    """How many missed ones it stands for, beside itself."""

    @property
    def last(self) -> int:
        """The last instant that is dealt with."""
        return self.given_up or 0 if self.instant is None else self.instant


def what_is_due(schedule: Schedule, now: int) -> Due:
    """Return what to do now about a schedule that is due: its next instant, or what was missed by its rule.

    Where each of many missed ones gets a job, this is the first of them: ask again when it is dealt with.
    """
    first = schedule.next_instant
    assert first is not None
    latest_missed = _latest_missed(schedule, first, now)
    if first > latest_missed:
        return Due(instant=first)
    if schedule.misfire is Misfire.ALL:
        return _first_of_all(schedule, first, latest_missed)
    [newest] = schedule.rhythm.newest(first - 1, latest_missed, 1)
    before = schedule.rhythm.count(first - 1, newest - 1)
    if schedule.misfire is Misfire.SKIP:
        return Due(given_up=newest, given_up_before=before)
    return Due(instant=newest, missed_before=before)


def _latest_missed(schedule: Schedule, first: int, now: int) -> int:
    """Return up to when instants were missed; before the first of them where that is not too late.

    Of those that are due the newest is missed when its grace is over, all others because a newer one is due.
    """
    if now - schedule.fires_at(first) < NEVER_MISSED_MS:
        return first - 1
    # Two: the very newest may still wait for its jitter, which is shorter than the time from one to the next.
    due = [each for each in schedule.rhythm.newest(first - 1, now, 2) if schedule.fires_at(each) <= now]
    newest = due[-1] if due else first
    return newest if now - schedule.fires_at(newest) >= GRACE_MS else newest - 1


def _first_of_all(schedule: Schedule, first: int, latest_missed: int) -> Due:
    newest = schedule.rhythm.newest(first - 1, latest_missed, schedule.misfire_cap + 1)
    if len(newest) <= schedule.misfire_cap:
        return Due(instant=newest[0])
    before = schedule.rhythm.count(first - 1, newest[0] - 1)
    return Due(given_up=newest[0], given_up_before=before, instant=newest[1])


def check_schedule_name(value: object) -> str:
    """Return the name of a schedule, or raise."""
    text = check_own_name("schedule name", value)
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
