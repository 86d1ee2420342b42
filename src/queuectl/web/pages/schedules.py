"""The pages of the schedules: all of them with their next day, one with its fires, and the form that changes one."""

import shlex
from itertools import islice

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from queuectl.actions import scheduling
from queuectl.errors import BadInput
from queuectl.model.cron import zoned_text
from queuectl.model.cronwords import cron_words
from queuectl.model.schedule import Misfire, Overlap
from queuectl.model.scheduleshapes import result_word
from queuectl.model.units import duration_text, local_text
from queuectl.model.value import Value
from queuectl.model.visible import HIDDEN
from queuectl.store import schedules
from queuectl.web.given import Given
from queuectl.web.templating import render
from queuectl.web.views.coming import lay_out
from queuectl.web.visitor import Reader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queuectl.model.schedule import Schedule
    from queuectl.store.database import Tx
    from queuectl.store.schedules import LastFire

DOTS = 12
FIRES = 50
NEXT = 5
GOOD, BAD, OPEN, GONE = "completed", "dead", "processing", "cancelled"
_KINDS = {"completed": GOOD, "dead": BAD, "refused": BAD, "missed": "failed", "failed": "failed", "skipped": GONE}

router = APIRouter()


class Dot(Value):
    """What came of one instant, as a dot: its colour and its word."""

    key: int
    kind: str
    """The state whose colour it has."""
    word: str
    title: str
    job: int | None


class Entry(Value):
    """A schedule as a row of the page."""

    schedule: "Schedule"
    words: str
    line: str
    dots: tuple[Dot, ...]
    """Oldest first."""


@router.get("/schedules")
def show(request: Request, stores: Given, _visitor: Reader, add: str = "") -> HTMLResponse:
    """Show every schedule, or the form for a new one."""
    if add:
        return _form(request, None, stores.read(lambda tx: tx.now))

    def look(tx: "Tx") -> tuple[list[Entry], int]:
        fires = schedules.newest_fires(tx, DOTS)
        return [entry_of(each, fires.get(each.name, [])) for each in schedules.all_schedules(tx)], tx.now

    entries, now = stores.read(look)
    return render(
        request,
        "schedules.html",
        title="Schedules",
        command="queuectl schedule list",
        entries=entries,
        now=now,
        line=lay_out([entry.schedule for entry in entries], now),
    )


@router.get("/schedules/{name}")
def show_one(request: Request, name: str, stores: Given, _visitor: Reader, edit: str = "") -> HTMLResponse:
    """Show all that is known of a schedule, or the form that changes it."""

    def look(tx: "Tx") -> "tuple[Schedule, list[LastFire], int]":
        found = scheduling.found(tx, name)
        return found, schedules.fires(tx, name, FIRES), tx.now

    schedule, fires, now = stores.read(look)
    if edit:
        return _form(request, schedule, now)
    return render(
        request,
        "schedule.html",
        title=f"Schedule {name}",
        command=f"queuectl schedule show {name}",
        entry=entry_of(schedule, fires[:DOTS]),
        fires=[(each, dot_of(each)) for each in fires],
        facts=_facts(schedule),
        coming=[] if schedule.paused_at else next_instants(schedule, now),
        now=now,
    )


def entry_of(schedule: "Schedule", fires: "list[LastFire]") -> Entry:
    """Return a schedule as a row."""
    return Entry(
        schedule=schedule,
        words=words_of(schedule),
        line=line_of(schedule),
        dots=tuple(dot_of(each) for each in reversed(fires)),
    )


def dot_of(last: "LastFire") -> Dot:
    """Return what came of an instant as a dot."""
    fire, word = last.fire, result_word(last.fire, last.job)
    by_hand = ", by hand" if fire.is_manual else ""
    missed = f"; {fire.missed} missed before it" if fire.missed else ""
    why = f": {fire.why}" if fire.why else ""
    return Dot(
        key=fire.instant,
        kind=_KINDS.get(word, GONE if word in ("cancelled", "removed") else OPEN),
        word=word,
        title=f"{word} {local_text(fire.instant)}{by_hand}{why}{missed}",
        job=fire.job_seq if last.job is not None else None,
    )


def words_of(schedule: "Schedule") -> str:
    """Say when a schedule comes."""
    if schedule.cron is not None:
        return cron_words(schedule.cron)
    return f"every {duration_text(schedule.every_ms or 0)}"


def line_of(schedule: "Schedule") -> str:
    """Return the command of a schedule on one line."""
    fields = schedule.fields
    if fields.get("command") is not None:
        return str(fields["command"])
    argv = fields.get("argv")
    return shlex.join(map(str, argv)) if isinstance(argv, list) else ""


def next_instants(schedule: "Schedule", now: int) -> list[tuple[int, str]]:
    """Return when a schedule is fired next, each with what the clock of its zone shows at the instant."""
    try:
        return [
            (schedule.fires_at(instant), zoned_text(instant, schedule.tz))
            for instant in islice(schedule.rhythm.instants(now), NEXT)
        ]
    except BadInput:
        return []  # a zone this host does not know


def _facts(schedule: "Schedule") -> list[tuple[str, str]]:
    """Return what else is set for its jobs; of variables the names alone, since their values may be secrets."""
    facts = []
    for name, value in schedule.fields.items():
        if name == "env" and isinstance(value, dict):
            facts.append(("variables", ", ".join(f"{key}={HIDDEN}" for key in value)))
        elif name not in ("command", "argv", "input"):
            facts.append((name.replace("_", " "), _field_text(value)))
        elif name == "input":
            facts.append(("input", f"{len(str(value))} characters"))
    return facts


def _field_text(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key}={each}" for key, each in value.items())
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return str(value)


def _form(request: Request, schedule: "Schedule | None", now: int) -> HTMLResponse:
    fields = schedule.fields if schedule else {}
    return render(
        request,
        "schedule_form.html",
        title=f"Edit schedule {schedule.name}" if schedule else "New schedule",
        command="",
        schedule=schedule,
        fields={name: _field_text(value) for name, value in fields.items() if name != "env"},
        line="" if schedule is None else line_of(schedule),
        is_argv="argv" in fields,
        zone=scheduling.local_zone() if schedule is None else schedule.tz,
        every="" if schedule is None or schedule.every_ms is None else duration_text(schedule.every_ms),
        jitter="" if schedule is None or not schedule.jitter_ms else duration_text(schedule.jitter_ms),
        coming=[] if schedule is None else next_instants(schedule, now),
        misfires=list(Misfire),
        overlaps=list(Overlap),
    )
