"""Asked: what people say of a schedule, checked, for a new one and for one that exists. Its job is checked as enqueue
checks jobs."""

from queuectl.errors import BadInput, UnknownName
from queuectl.model.checks import as_items
from queuectl.model.cron import check_cron, check_zone
from queuectl.model.edit import DEFAULT, NONE
from queuectl.model.fields import FIELDS, INSTANT_VARIABLE, MAX_TAGS, SCHEDULE_VARIABLE
from queuectl.model.job import JobSpec, dumps
from queuectl.model.rhythm import check_every
from queuectl.model.schedule import (
    DEFAULT_CAP,
    Misfire,
    Overlap,
    Schedule,
    check_cap,
    check_jitter,
    check_misfire,
    check_overlap,
    check_schedule_name,
)
from queuectl.model.spec import flat_fields, spec_from_fields
from queuectl.model.units import SECOND_MS, duration_text, iso_text, time_ms

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    Fields = Mapping[str, object]

ASKED = ("cron", "every", "start", "tz", "misfire", "misfire_cap", "overlap", "jitter")
# What says when, where or after what a single job runs has no place in one that comes again and again.
_OUT_OF_PLACE = {
    "id": "its jobs get numbers; find them with: queuectl schedule show NAME",
    "run_at": "its line, or --every with --start, says when its jobs run",
    "delay": "its line, or --every, says when its jobs run; --jitter lets them wait a little",
    "after": "its line, or --every, says when its jobs run",
    "on_dead_dependency": "jobs of a schedule wait for no others",
    "hold": "somebody would have to release each of them; let all of it rest with: queuectl schedule pause NAME",
}
# Fields that have a value in any case: the word `none` takes nothing back there.
_KEPT = ("command", "argv", "queue", "cwd", "env", "tags")


def new_schedule(name: str, asked: "Fields", job: "Fields", *, zone: str, now: int) -> Schedule:
    """Return a schedule that is to be added; `zone` is where the person is who adds it."""
    given = _given(asked)
    if ("cron" in given) == ("every" in given):
        raise BadInput(
            "give either a cron line or --every" if "cron" in given else "when? give a cron line or --every",
            hint="e.g. '*/5 * * * *', '@daily', or --every 10m",
        )
    columns = _columns({"tz": zone, **given}, now)
    if columns.get("every_ms") is not None:
        columns.setdefault("anchor", now // SECOND_MS * SECOND_MS)
    schedule = Schedule(
        **{  # type: ignore[arg-type]
            "name": name,
            "cron": None,
            "every_ms": None,
            "anchor": None,
            "job": dumps(dict(job)),
            "misfire": Misfire.ONCE,
            "misfire_cap": DEFAULT_CAP,
            "overlap": Overlap.ALLOW,
            "jitter_ms": 0,
            "next_instant": None,
            "next_at": None,
            "paused_at": None,
            "created_at": now,
            "updated_at": now,
            **columns,
        }
    )
    return checked(schedule, now).planned(now)


def imported_schedule(fields: "Fields") -> Schedule:
    """Return the schedule of a line of an export; when it comes next is for whoever takes it in."""
    row = {**fields, "job": dumps(fields["job"]), "next_instant": None, "next_at": None, "updated_at": 0}
    schedule = Schedule.of_row([row[name] for name in Schedule.FIELDS])
    check_schedule_name(schedule.name)
    check_zone("tz", schedule.tz)
    if (schedule.cron is None) == (schedule.every_ms is None) or (schedule.every_ms is None) != (
        schedule.anchor is None
    ):
        raise BadInput(f"schedule {schedule.name!r} has either a cron line, or every_ms and an anchor")
    if schedule.cron is not None:
        schedule = schedule.replace(cron=check_cron("cron", schedule.cron))
    elif (schedule.every_ms or 0) % SECOND_MS or (schedule.anchor or 0) % SECOND_MS or not schedule.every_ms:
        raise BadInput(f"schedule {schedule.name!r} does not come on whole seconds")
    return checked(schedule, schedule.created_at)


def edited_schedule(before: Schedule, asked: "Fields", job: "Fields", *, now: int) -> Schedule:
    """Return a schedule with what is named different; a job's field None takes it back."""
    given = _given(asked)
    if "cron" in given and "every" in given:
        raise BadInput("give either a cron line or --every")
    if "start" in given and "every" not in given and (before.every_ms is None or "cron" in given):
        raise BadInput("--start goes with --every", hint="a cron line says itself when it comes")
    columns = _columns(given, now)
    if "cron" in columns:
        columns |= {"every_ms": None, "anchor": None}
    elif "every_ms" in columns:
        anchor = before.anchor if before.anchor is not None else now // SECOND_MS * SECOND_MS
        columns = {"anchor": anchor, **columns, "cron": None}
    fields = {name: value for name, value in _merged(before.fields, job).items() if value is not None}
    after = checked(before.replace(**columns, job=before.job if fields == before.fields else dumps(fields)), now)
    if after == before:
        return before
    after = after.replace(updated_at=now)
    if after.paused_at is not None:
        return after
    if after.rhythm != before.rhythm:
        return after.planned(now)
    if after.jitter_ms != before.jitter_ms and before.next_instant is not None:
        return after.planned(before.next_instant - 1)
    return after


def resumed(schedule: Schedule, now: int) -> Schedule:
    """Return a schedule that goes on: what came while it was paused is left out."""
    return schedule.replace(paused_at=None, updated_at=now).planned(now)


def paused(schedule: Schedule, now: int) -> Schedule:
    """Return a schedule that rests."""
    return schedule.replace(paused_at=now, next_instant=None, next_at=None, updated_at=now)


def checked(schedule: Schedule, now: int) -> Schedule:
    """Return a schedule whose job could be added, or raise."""
    for name, hint in _OUT_OF_PLACE.items():
        if schedule.fields.get(name) not in (None, False):
            raise BadInput(f"{name} has no place in the job of a schedule", hint=hint)
    job_spec(schedule, now, now)
    _refuse_wide_jitter(schedule, now)
    return schedule


def _refuse_wide_jitter(schedule: Schedule, now: int) -> None:
    """Raise where an instant could come after the one that follows it: they would come in heaps, not spread."""
    gap_ms = schedule.rhythm.smallest_gap(now) if schedule.jitter_ms else None
    if gap_ms is not None and schedule.jitter_ms >= gap_ms:
        raise BadInput(
            f"jitter {duration_text(schedule.jitter_ms)} is too long: "
            f"instants of {schedule.rhythm.text!r} come {duration_text(gap_ms)} apart",
            hint=f"give less than {duration_text(gap_ms)}",
        )


def job_spec(schedule: Schedule, instant: int, now: int) -> JobSpec:
    """Return the job of one instant, checked as if it were enqueued now; its command is told what it is for."""
    fields = schedule.fields
    if schedule.mutex is not None:
        fields["mutex"] = [*(as_items("mutex", fields["mutex"]) if fields.get("mutex") else ()), schedule.mutex]
    spec = spec_from_fields(fields, now, JobSpec())
    return spec.replace(env={**(spec.env or {}), SCHEDULE_VARIABLE: schedule.name, INSTANT_VARIABLE: iso_text(instant)})


def flat_job(fields: "Fields") -> "dict[str, object]":
    """Return the fields of a JSON job with those of its parts among the others; a name that no job has is refused."""
    flat = flat_fields(fields)
    for name in flat:
        if name not in FIELDS:
            raise UnknownName.among("field", name, list(FIELDS))
    return flat


def taken_back(fields: "Fields") -> "dict[str, object]":
    """Return fields in which the word `none`, and `default` for a timeout, is None."""
    return {
        name: None
        if name not in _KEPT and (value in (NONE, [NONE]) or (name == "timeout" and value == DEFAULT))
        else value
        for name, value in fields.items()
    }


def _given(asked: "Fields") -> "dict[str, object]":
    return {name: value for name, value in asked.items() if value is not None}


def _columns(given: "Fields", now: int) -> "dict[str, object]":
    columns: dict[str, object] = {}
    if "cron" in given:
        columns["cron"] = check_cron("cron line", given["cron"])
    if "every" in given:
        columns["every_ms"] = check_every("every", given["every"])
    if "start" in given:
        if "cron" in given:
            raise BadInput("--start goes with --every", hint="a cron line says itself when it comes")
        columns["anchor"] = time_ms(str(given["start"]), now) // SECOND_MS * SECOND_MS
    checks = {
        "tz": ("tz", check_zone, "zone"),
        "misfire": ("misfire", check_misfire, "misfire"),
        "misfire_cap": ("misfire_cap", check_cap, "misfire cap"),
        "overlap": ("overlap", check_overlap, "overlap"),
        "jitter": ("jitter_ms", check_jitter, "jitter"),
    }
    for name, (column, check, words) in checks.items():
        if name in given:
            columns[column] = check(words, given[name])
    return columns


def _merged(before: "Fields", changes: "Fields") -> "dict[str, object]":
    """Return the fields of a job with some changed; a command takes the place of the one it had, whatever its form."""
    kept = dict(before)
    if changes.get("command") is not None or changes.get("argv") is not None:
        kept.pop("command", None)
        kept.pop("argv", None)
    if changes.get("stdin") is not None:
        kept.pop("input", None)
    tags = changes.get("tags")
    if isinstance(tags, list) and len(tags) > MAX_TAGS:
        raise BadInput(f"it would have {len(tags)} tags; the limit is {MAX_TAGS}")
    return {**kept, **changes}
