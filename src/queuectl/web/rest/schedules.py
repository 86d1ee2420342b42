"""Schedules over REST: jobs that come again and again, by a cron line in a time zone or every so often."""

from itertools import islice
from typing import Annotated

from fastapi import APIRouter, Path, Query

from queuectl.actions import scheduling
from queuectl.actions.shapes import full_schedule_shape, listed_schedule_shape
from queuectl.clock import wall_ms
from queuectl.errors import BadInput
from queuectl.model.asked import ASKED, flat_job, taken_back
from queuectl.model.checks import check_name
from queuectl.model.cron import check_cron, check_zone
from queuectl.model.rhythm import Rhythm, check_every
from queuectl.model.schedule import check_schedule_name
from queuectl.model.scheduleshapes import instant_shape, schedule_changes_shape, schedule_shape
from queuectl.model.units import SECOND_MS
from queuectl.store import schedules
from queuectl.web.given import Given
from queuectl.web.rest.asking import Fields, only
from queuectl.web.rest.documenting import documented, listed
from queuectl.web.rest.masking import seen_by
from queuectl.web.visitor import Operator, Reader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queuectl.model.schedule import Schedule
    from queuectl.store.database import Tx
    from queuectl.web.visitor import Visitor

    Shape = dict[str, object]

MOST_PREVIEWED = 10_000
PREVIEWED = 5
FIRES_SHOWN = 10
_ASKED = {
    "cron": {"type": ["string", "null"], "description": "minute hour day month weekday, or a word such as @daily"},
    "every": {"type": ["string", "number", "null"], "description": "a period instead: seconds, or as in `10m`"},
    "start": {"type": ["string", "null"], "description": "what `every` is counted from"},
    "tz": {"type": ["string", "null"], "description": "the zone of the line; that of the server where none is named"},
    "misfire": {"enum": ["skip", "once", "all", None], "description": "instants nobody was there for"},
    "misfire_cap": {"type": ["integer", "null"], "minimum": 1},
    "overlap": {
        "enum": ["allow", "skip", "queue", "replace", None],
        "description": "instants while an earlier job is not over",
    },
    "jitter": {"type": ["string", "number", "null"], "description": "let each instant wait up to so long"},
}  # fmt: skip
_JOB = {
    "type": ["object", "null"],
    "description": "the job, with the fields that `POST /jobs` takes, but no `id`, no time and no dependencies",
}
_ADD_BODY = {
    "type": "object",
    "additionalProperties": False,
    "required": ["name", "job"],
    "properties": {"name": {"type": "string"}, **_ASKED, "job": _JOB},
}
_EDIT_BODY = {
    "type": "object",
    "additionalProperties": False,
    "minProperties": 1,
    "properties": {**_ASKED, "job": _JOB},
}
_SCHEDULE = {
    "name": "nightly",
    "cron": "30 2 * * *",
    "every": None,
    "anchor": None,
    "tz": "Europe/Oslo",
    "misfire": "once",
    "misfire_cap": 100,
    "overlap": "allow",
    "jitter": 0.0,
    "next_instant": "2026-11-17T01:30:00.000Z",
    "next_at": "2026-11-17T01:30:00.000Z",
    "paused_at": None,
    "created_at": "2026-11-16T10:00:00.000Z",
    "updated_at": "2026-11-16T10:00:00.000Z",
    "job": {"command": "./backup.sh", "cwd": "/srv"},
}
_INSTANT = {
    "instant": "2026-11-17T01:30:00.000Z",
    "fires_at": "2026-11-17T01:30:00.000Z",
    "local": "Tue 2026-11-17 02:30:00 +01:00",
    "tz": "Europe/Oslo",
}

Name = Annotated[str, Path(description="the schedule")]
Count = Annotated[int, Query(ge=1, le=MOST_PREVIEWED, description="how many instants")]
router = APIRouter(prefix="/schedules", tags=["schedules"])
instants = APIRouter(prefix="/instants", tags=["schedules"])
"""Apart, since a schedule may have any name."""


@router.get("", **documented(
    answer=listed("schedules", "schedule-list"), example={"schedules": [{**_SCHEDULE, "last": None}]}
))  # fmt: skip
def list_schedules(stores: Given, visitor: Reader) -> "Shape":
    """List schedules: when each comes next, and what came of the last time."""

    def look(tx: "Tx") -> "list[Shape]":
        last = schedules.newest_fires(tx, 1)
        known = schedules.all_schedules(tx)
        return [listed_schedule_shape(each, next(iter(last.get(each.name, ())), None)) for each in known]

    return {"schedules": [_seen(visitor, each) for each in stores.read(look)]}


@router.post("", **documented(
    answer="schedule-add", example=_SCHEDULE, status=201, about="Added", body=_ADD_BODY, problems=[404, 409],
    body_example={
        "name": "nightly", "cron": "30 2 * * *", "tz": "Europe/Oslo", "job": {"command": "./backup.sh", "cwd": "/srv"},
    },
))  # fmt: skip
def add_schedule(fields: Fields, stores: Given, visitor: Operator) -> "Shape":
    """Add a schedule, by a cron line or a period; its jobs run in / unless their `cwd` says where."""
    only(fields, ["name", *ASKED, "job"])
    name = check_schedule_name(fields.get("name"))
    job = {key: value for key, value in _job_of(fields).items() if value is not None}
    if not job:
        raise BadInput("a schedule needs a job", hint='send "job": {"command": "..."}')
    job = {"cwd": "/", **job}
    return schedule_shape(scheduling.add(stores.database, name, _asked(fields), job, who=visitor.name))


@instants.get("", **documented(answer=listed("instants", "schedule-preview"), example={"instants": [_INSTANT]}))
def preview_instants(
    _visitor: Reader,
    cron: Annotated[str | None, Query(description="a cron line", examples=["30 2 * * 1-5"])] = None,
    every: Annotated[str | None, Query(description="a period, counted from now: 10m")] = None,
    tz: Annotated[str | None, Query(description="the zone of the line; that of the server where none is named")] = None,
    count: Count = PREVIEWED,
) -> "Shape":
    """Show when a cron line or a period comes next."""
    if (cron is None) == (every is None):
        raise BadInput("give either cron or every", hint="e.g. ?cron=@daily or ?every=10m")
    zone = scheduling.local_zone() if tz is None else check_zone("zone", tz)
    now = wall_ms()
    if cron is not None:
        rhythm = Rhythm(cron=check_cron("cron line", cron), tz=zone)
    else:
        rhythm = Rhythm(every_ms=check_every("every", every), anchor=now // SECOND_MS * SECOND_MS, tz=zone)
    return {"instants": [instant_shape(None, rhythm, each) for each in islice(rhythm.instants(now), count)]}


@router.get("/{name}", **documented(answer="schedule-show", example={**_SCHEDULE, "fires": []}))
def show_schedule(
    name: Name,
    stores: Given,
    visitor: Reader,
    fires: Annotated[
        int, Query(ge=0, le=schedules.KEPT_FIRES, description="so many of its newest fires")
    ] = FIRES_SHOWN,
) -> "Shape":
    """Show all that is known of a schedule."""
    check_name("schedule name", name)

    def look(tx: "Tx") -> "Shape":
        return full_schedule_shape(scheduling.found(tx, name), schedules.fires(tx, name, fires))

    return _seen(visitor, stores.read(look))


@router.get(
    "/{name}/preview", **documented(answer=listed("instants", "schedule-preview"), example={"instants": [_INSTANT]})
)
def preview_schedule(name: Name, stores: Given, _visitor: Reader, count: Count = PREVIEWED) -> "Shape":
    """Show when a schedule comes next, each instant with the jitter it gets; also of one that is paused."""
    check_name("schedule name", name)
    found, now = stores.read(lambda tx: (scheduling.found(tx, name), tx.now))
    instants = islice(found.rhythm.instants(now), count)
    return {"instants": [instant_shape(found, found.rhythm, each) for each in instants]}


@router.patch("/{name}", **documented(
    answer="schedule-edit", body=_EDIT_BODY, body_example={"overlap": "skip", "job": {"timeout": "1h"}},
    example={"name": "nightly", "changes": {"overlap": {"from": "allow", "to": "skip"}}},
))  # fmt: skip
def edit_schedule(name: Name, fields: Fields, stores: Given, visitor: Operator) -> "Shape":
    """Change a schedule, or the job it fires; what is not named stays, null takes a field of the job back.

    Jobs that were fired stay as they are.
    """
    check_name("schedule name", name)
    asked, job = _asked(only(fields, [*ASKED, "job"])), taken_back(_job_of(fields))
    if not asked and not job:
        raise BadInput("nothing to change", hint='say what: {"cron": "@daily"}, {"job": {"priority": 5}}')

    def change(_before: "Schedule") -> "tuple[Shape, Shape]":
        return asked, job

    before, after = scheduling.edit(stores.database, name, change, who=visitor.name)
    return {"name": name, "changes": schedule_changes_shape(before, after)}


@router.post("/{name}/run", **documented(answer="schedule-run", example={"name": "nightly", "job": 12}, problems=[409]))
def run_schedule(name: Name, stores: Given, visitor: Operator) -> "Shape":
    """Fire a schedule now; its next instant comes all the same."""
    check_name("schedule name", name)
    return {"name": name, "job": scheduling.run_now(stores.database, name, who=visitor.name)}


@router.post("/{name}/pause", **documented(
    answer="schedule-pause", example={"name": "nightly", "paused": True, "changed": True}
))  # fmt: skip
def pause_schedule(name: Name, stores: Given, visitor: Operator) -> "Shape":
    """Let a schedule rest; its jobs go on."""
    done = scheduling.pause(stores.database, [check_name("schedule name", name)], who=visitor.name)
    return {"name": name, "paused": True, "changed": name in done}


@router.post("/{name}/resume", **documented(
    answer="schedule-resume", example={"name": "nightly", "paused": False, "changed": True}
))  # fmt: skip
def resume_schedule(name: Name, stores: Given, visitor: Operator) -> "Shape":
    """Let a schedule go on; what came while it rested is left out."""
    done = scheduling.resume(stores.database, [check_name("schedule name", name)], who=visitor.name)
    return {"name": name, "paused": False, "changed": name in done}


@router.delete("/{name}", **documented(
    answer="schedule-remove", example={"name": "nightly", "removed": True, "changed": True}
))  # fmt: skip
def remove_schedule(name: Name, stores: Given, visitor: Operator) -> "Shape":
    """Remove a schedule; its jobs stay."""
    done = scheduling.remove(stores.database, [check_name("schedule name", name)], who=visitor.name)
    return {"name": name, "removed": True, "changed": name in done}


def _seen(visitor: "Visitor", shape: "Shape") -> "Shape":
    """Return a schedule as a visitor may see it."""
    job = shape["job"]
    return {**shape, "job": seen_by(visitor, job)} if isinstance(job, dict) else shape


def _asked(fields: "Shape") -> "Shape":
    return {name: fields[name] for name in ASKED if fields.get(name) is not None}


def _job_of(fields: "Shape") -> "Shape":
    job = fields.get("job")
    if job is None:
        return {}
    if not isinstance(job, dict):
        raise BadInput("job is to be an object", hint='send "job": {"command": "..."}')
    return flat_job(job)
