"""Timetable: schedules, their fires and their next instants as text and JSON. The verbs are in schedule.py."""

import sys

from queuectl.actions.shapes import full_schedule_shape, listed_schedule_shape
from queuectl.cli.text import age, facts, note, print_json, safe, short, table, when
from queuectl.errors import BadInput
from queuectl.model.checks import as_duration
from queuectl.model.cron import zoned_text
from queuectl.model.edit import NONE
from queuectl.model.rhythm import MOST_COUNTED
from queuectl.model.schedule import Misfire
from queuectl.model.scheduleshapes import instant_shape, result_word
from queuectl.model.units import counted, duration_text, iso_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from queuectl.model.rhythm import Rhythm
    from queuectl.model.schedule import Fire, Schedule
    from queuectl.store.schedules import LastFire

    Shape = dict[str, object]

COMMAND_WIDTH = 200
_COMMANDS = ("command", "argv")
_DURATIONS = ("timeout", "deadline", "unique_for")
# As `show` of a job names them; the others have the name of their option.
_TITLES = {
    "cwd": "Folder",
    "use": "Uses",
    "success_codes": "Success on",
    "snooze_codes": "Snooze on",
    "unique": "Unique key",
    "input": "Reads",
    "stdin": "Reads",
}


def print_list(known: "Sequence[tuple[Schedule, LastFire | None]]", now: int, *, as_json: bool) -> None:
    """Print schedules, each with its next and its last instant."""
    if as_json:
        for schedule, last in known:
            print_json(listed_schedule_shape(schedule, last))
        return
    rows = [
        (
            schedule.name,
            _when_text(schedule),
            _next_text(schedule, now),
            "-" if last is None else _with_age(_clock_text(last.fire.instant, schedule.tz), last.fire.instant, now),
            "-" if last is None else result_word(last.fire, last.job),
            short(line_of(schedule), COMMAND_WIDTH),
        )
        for schedule, last in known
    ]
    table(("NAME", "WHEN", "NEXT", "LAST", "RESULT", "COMMAND"), rows)
    if not known:
        note("no schedules; add one with: queuectl schedule add nightly '30 2 * * *' './backup.sh'")


def print_one(schedule: "Schedule", fires: "Sequence[LastFire]", now: int, *, as_json: bool) -> None:
    """Print all that is known of a schedule, its newest fires first."""
    if as_json:
        print_json(full_schedule_shape(schedule, fires))
        return
    facts(_facts(schedule, now))
    if fires:
        print()
        rows = [
            (
                _clock_text(each.fire.instant, schedule.tz),
                "by hand" if each.fire.is_manual else f"{(each.fire.fired_at - each.fire.instant) / 1000:.1f}s",
                "-" if each.fire.job_seq is None else str(each.fire.job_seq),
                result_word(each.fire, each.job),
                _note_text(each.fire),
            )
            for each in fires
        ]
        table(("INSTANT", "LATE", "JOB", "RESULT", "NOTE"), rows)


def print_instants(schedule: "Schedule | None", rhythm: "Rhythm", instants: "Iterable[int]", *, as_json: bool) -> None:
    """Print instants by the clock of their zone; those of a schedule with the jitter they get."""
    rows = []
    for instant in instants:
        at = instant + (0 if schedule is None else schedule.jitter_of(instant))
        local = zoned_text(instant, rhythm.tz)
        if as_json:
            print_json(instant_shape(schedule, rhythm, instant))
        rows.append((local, iso_text(instant), f"+{duration_text(at - instant)}" if at > instant else "-"))
    if as_json:
        return
    if schedule is not None and schedule.jitter_ms:
        table(("INSTANT", "UTC", "JITTER"), rows)
    else:
        table(("INSTANT", "UTC"), [row[:2] for row in rows])


def line_of(schedule: "Schedule") -> str:
    """Return the command of a schedule on one line."""
    fields = schedule.fields
    if fields.get("command") is not None:
        return str(fields["command"])
    import shlex

    argv = fields.get("argv")
    return shlex.join(map(str, argv)) if isinstance(argv, list) else ""


def next_words(schedule: "Schedule", now: int) -> str:
    """Say when a schedule comes next, by the clock of its zone."""
    if schedule.paused_at is not None:
        return "paused"
    if schedule.next_instant is None:
        return "it comes no more"
    at = schedule.fires_at(schedule.next_instant)
    return f"next {_instant_text(schedule, schedule.next_instant)} ({age(at, now)})"


def differences(before: "Schedule", after: "Schedule") -> "Iterator[str]":
    """Yield what is different about a schedule, in the words of `add` and `show`."""
    old, new = _words(before), _words(after)
    for name in {**old, **new}:
        if old.get(name) != new.get(name):
            yield f"{name} {old.get(name) or NONE} -> {new.get(name) or NONE}"


def _when_text(schedule: "Schedule") -> str:
    text = schedule.rhythm.text
    return f"{text} {schedule.tz}" if schedule.cron is not None else text


def _next_text(schedule: "Schedule", now: int) -> str:
    if schedule.paused_at is not None:
        return "paused"
    if schedule.next_instant is None:
        return "-"
    return _with_age(_instant_text(schedule, schedule.next_instant), schedule.fires_at(schedule.next_instant), now)


def _with_age(text: str, at: int, now: int) -> str:
    return f"{text} ({age(at, now)})" if sys.stdout.isatty() else text


def _instant_text(schedule: "Schedule", instant: int) -> str:
    """Write an instant by the clock of its schedule's zone, with the jitter it gets."""
    jitter = schedule.jitter_of(instant)
    return _clock_text(instant, schedule.tz) + (f" +{duration_text(jitter)}" if jitter else "")


def _clock_text(instant: int, zone: str) -> str:
    """Write an instant by the clock of a zone, or in UTC where this host does not know it."""
    try:
        return zoned_text(instant, zone)
    except BadInput:
        return iso_text(instant)


def _note_text(fire: "Fire") -> str:
    missed = ""
    if fire.missed:
        number = f"{MOST_COUNTED} or more" if fire.missed >= MOST_COUNTED else str(fire.missed)
        missed = f"{number} missed before it"
    return safe("; ".join(part for part in (fire.why, missed) if part) or "-")


def _facts(schedule: "Schedule", now: int) -> "Iterator[tuple[str, str]]":
    yield "Schedule", schedule.name
    if schedule.cron is not None:
        yield "When", f"{schedule.cron} in {schedule.tz}"
    else:
        yield "When", f"{schedule.rhythm.text}, counted from {_clock_text(schedule.anchor or 0, schedule.tz)}"
    if schedule.paused_at is not None:
        yield "Paused", f"{when(schedule.paused_at, now)}; go on with: queuectl schedule resume {schedule.name}"
    else:
        yield "Next", next_words(schedule, now).removeprefix("next ")
    cap = f", at most {counted(schedule.misfire_cap, 'job')}" if schedule.misfire is Misfire.ALL else ""
    yield "Misfire", f"{schedule.misfire}{cap}"
    yield "Overlap", f"{schedule.overlap}" + (f", by mutex {schedule.mutex}" if schedule.mutex else "")
    yield "Jitter", f"up to {duration_text(schedule.jitter_ms)}" if schedule.jitter_ms else "none"
    yield "Command", safe(line_of(schedule))
    for name, value in schedule.fields.items():
        if name == "env" and isinstance(value, dict):
            yield from (("Variable", safe(f"{key}={each}")) for key, each in value.items())
        elif name not in _COMMANDS:
            title = _TITLES.get(name, name.replace("_", " ").capitalize())
            yield title, safe(short(_field_text(name, value), COMMAND_WIDTH))
    yield "Created", when(schedule.created_at, now)
    if schedule.updated_at != schedule.created_at:
        yield "Changed", when(schedule.updated_at, now)


def _words(schedule: "Schedule") -> "dict[str, str | None]":
    """Return what can be changed of a schedule, by the name of its option."""
    return {
        "cron": schedule.cron,
        "every": None if schedule.every_ms is None else duration_text(schedule.every_ms),
        "start": None if schedule.anchor is None else _clock_text(schedule.anchor, schedule.tz),
        "tz": schedule.tz,
        "misfire": schedule.misfire.value,
        "misfire_cap": str(schedule.misfire_cap),
        "overlap": schedule.overlap.value,
        "jitter": duration_text(schedule.jitter_ms) if schedule.jitter_ms else None,
        "next": None if schedule.next_instant is None else _instant_text(schedule, schedule.next_instant),
        "command": line_of(schedule),
        **{name: _field_text(name, value) for name, value in schedule.fields.items() if name not in _COMMANDS},
    }


def _field_text(name: str, value: object) -> str:
    """Write a field of a job as people write it, whatever form it was given in."""
    if name in _DURATIONS and value != NONE:
        return duration_text(as_duration(name, value))
    if isinstance(value, dict):
        return ", ".join(f"{key}={each}" for key, each in value.items())
    if isinstance(value, list):
        return ", ".join(map(str, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)
