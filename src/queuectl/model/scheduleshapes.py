"""Schedule shapes: how schedules and their fires look as JSON, and in a word."""

from queuectl.model.shapes import time_shape
from queuectl.model.units import iso_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queuectl.model.job import Job
    from queuectl.model.rhythm import Rhythm
    from queuectl.model.schedule import Fire, Schedule

    Shape = dict[str, object]

REMOVED = "removed"


def schedule_shape(schedule: "Schedule") -> "Shape":
    """Return a schedule; its job has the fields that `enqueue` takes."""
    return {
        "name": schedule.name,
        "cron": schedule.cron,
        "every": None if schedule.every_ms is None else schedule.every_ms / 1000,
        "anchor": time_shape(schedule.anchor),
        "tz": schedule.tz,
        "misfire": schedule.misfire.value,
        "misfire_cap": schedule.misfire_cap,
        "overlap": schedule.overlap.value,
        "jitter": schedule.jitter_ms / 1000,
        "next_instant": time_shape(schedule.next_instant),
        "next_at": time_shape(schedule.next_at),
        "paused_at": time_shape(schedule.paused_at),
        "created_at": iso_text(schedule.created_at),
        "updated_at": iso_text(schedule.updated_at),
        "job": schedule.fields,
    }


def fire_shape(fire: "Fire", job: "Job | None") -> "Shape":
    """Return what came of an instant, with the job it brought as far as that is still there."""
    return {
        "instant": iso_text(fire.instant),
        "fired_at": iso_text(fire.fired_at),
        "manual": bool(fire.is_manual),
        "outcome": fire.outcome.value,
        "missed": fire.missed,
        "why": fire.why,
        "job": fire.job_seq,
        "state": None if job is None else job.state.value,
        "exit_code": None if job is None else job.exit_code,
        "result": result_word(fire, job),
    }


def result_word(fire: "Fire", job: "Job | None") -> str:
    """Say in a word what came of an instant: the state of its job, or why there is none."""
    if fire.job_seq is None:
        return fire.outcome.value
    return REMOVED if job is None else job.state.value


def instant_shape(schedule: "Schedule | None", rhythm: "Rhythm", instant: int) -> "Shape":
    """Return an instant by the clock of its zone; one of a schedule with the jitter it gets."""
    from queuectl.model.cron import zoned_text  # brings the time zones, and most who look at shapes need none

    at = instant + (0 if schedule is None else schedule.jitter_of(instant))
    return {
        "instant": iso_text(instant),
        "fires_at": iso_text(at),
        "local": zoned_text(instant, rhythm.tz),
        "tz": rhythm.tz,
    }


def schedule_changes_shape(before: "Schedule", after: "Schedule") -> "dict[str, Shape]":
    """Return what differs between two versions of a schedule, fields of its job among its own."""
    old, new = _flat(before), _flat(after)
    return {key: {"from": old.get(key), "to": new.get(key)} for key in {**old, **new} if old.get(key) != new.get(key)}


def _flat(schedule: "Schedule") -> "Shape":
    shape = schedule_shape(schedule)
    job = shape.pop("job")
    for name in ("updated_at", "next_instant", "anchor"):
        shape.pop(name)
    return {**shape, **(job if isinstance(job, dict) else {})}
