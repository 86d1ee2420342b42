"""Line checks: what each field of each kind of line in an export may hold. Reading the lines is in transfer.py."""

import base64
import datetime
import json
import re

from queuectl.errors import BadInput, UnknownName
from queuectl.model.after import EdgeState, Kind
from queuectl.model.checks import check_given_id, check_name, check_own_name
from queuectl.model.fields import FIELDS as SPEC_FIELDS
from queuectl.model.fields import (
    INSTANT_VARIABLE,
    MAX_INPUT_BYTES,
    MAX_PRIORITY,
    MAX_RETRIES,
    PARTS,
    SCHEDULE_VARIABLE,
)
from queuectl.model.group import ENDED_VARIABLES, GROUP_VARIABLE
from queuectl.model.limits import MAX_SLOTS
from queuectl.model.lineformats import FORMAT
from queuectl.model.queue import MAX_CONCURRENCY
from queuectl.model.rate import Rate, read_rate
from queuectl.model.retry import BackoffStrategy
from queuectl.model.schedule import MAX_CAP, MAX_JITTER_MS, Misfire, Overlap
from queuectl.model.states import State
from queuectl.model.units import MAX_DURATION_MS
from queuectl.model.verdict import OutcomeKind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    Shape = dict[str, object]
    Check = Callable[[str, object], object]

MAX_NUMBER = 10**15
MAX_COUNT = 2**31 - 1
MAX_BYTES = 2**62
MAX_TEXT = 1 << 20
# Variables that queuectl alone gives a job: those of a schedule's job, and of the one that closes a group.
_GIVEN = (SCHEDULE_VARIABLE, INSTANT_VARIABLE, GROUP_VARIABLE, *ENDED_VARIABLES.values())
_EPOCH = datetime.datetime.fromtimestamp(0, datetime.UTC)
_MS = datetime.timedelta(milliseconds=1)
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", re.ASCII)


def _wrong(name: str, value: object, wanted: str) -> BadInput:
    shown = repr(value)
    return BadInput(f"{name} must be {wanted}, not {shown if len(shown) <= 80 else f'{shown[:77]}...'}")


def _or_null(check: "Check") -> "Check":
    return lambda name, value: None if value is None else check(name, value)


def _whole(low: int, high: int) -> "Check":
    def check(name: str, value: object) -> int:
        if type(value) is not int:
            raise _wrong(name, value, "a whole number")
        if not low <= value <= high:
            raise BadInput(f"{name} {value} is out of range", hint=f"it is {low} to {high}")
        return value

    return check


def _flag(name: str, value: object) -> int:
    if not isinstance(value, bool):
        raise _wrong(name, value, "true or false")
    return int(value)


def _text(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise _wrong(name, value, "text")
    if "\0" in value or len(value) > MAX_TEXT or (not value.isascii() and _has_surrogates(value)):
        raise BadInput(f"{name} is not text that can be stored")
    return value


def _has_surrogates(text: str) -> bool:
    return any("\ud800" <= char <= "\udfff" for char in text)


def _time(name: str, value: object) -> int:
    if not isinstance(value, str) or not _TIME.fullmatch(value):
        raise _wrong(name, value, "a time such as 2026-12-01T09:00:00.000Z")
    try:
        when = datetime.datetime.fromisoformat(value)
    except ValueError:
        raise _wrong(name, value, "a time that exists") from None
    ms = (when - _EPOCH) // _MS
    if ms < 0:
        raise BadInput(f"{name} {value} is before 1970")
    return ms


def _one_of(names: "tuple[str, ...]") -> "Check":
    def check(name: str, value: object) -> str:
        text = _text(name, value)
        if text not in names:
            raise UnknownName.among(name, text, names)
        return text

    return check


def _bytes(name: str, value: object) -> bytes:
    if isinstance(value, str):
        try:
            return value.encode()
        except UnicodeEncodeError:
            raise BadInput(f"{name} is not valid UTF-8") from None
    coded = value.get("base64") if isinstance(value, dict) and len(value) == 1 else None
    if not isinstance(coded, str):
        raise _wrong(name, value, 'text or {"base64": "..."}')
    try:
        return base64.b64decode(coded, validate=True)
    except ValueError as error:
        raise BadInput(f"{name}: bad base64: {error}") from None


def _input(name: str, value: object) -> bytes:
    data = _bytes(name, value)
    if len(data) > MAX_INPUT_BYTES:
        raise BadInput(f"{name} has {len(data)} bytes; the limit is {MAX_INPUT_BYTES}")
    return data


def _rate(name: str, value: object) -> Rate:
    return read_rate(_text(name, value))


def _as_enqueued(name: str, value: object) -> object:
    """Check what `enqueue` checks, too."""
    return SPEC_FIELDS[name](name, value, 0)[1]


def _list_as_enqueued(name: str, value: object) -> object:
    """Check a list that may be empty."""
    return () if value == [] else _as_enqueued(name, value)


def _use(name: str, value: object) -> object:
    """Check amounts by resource; none is fine."""
    return {} if value == {} else _as_enqueued(name, value)


def _env(name: str, value: object) -> object:
    """Check variables as `enqueue` does, but for those that queuectl itself gave the job."""
    if not isinstance(value, dict):
        return _as_enqueued(name, value)
    given = {key: _text(key, value[key]) for key in _GIVEN if key in value}
    own = {key: text for key, text in value.items() if key not in given}
    return {**(_as_enqueued(name, own) if own else {}), **given}  # type: ignore[dict-item]


def _schedule(name: str, value: object) -> "Shape":
    """Check the job of a schedule as far as it is an object; the whole is checked when all of it is known."""
    if not isinstance(value, dict):
        raise _wrong(name, value, "an object")
    return value


def _part(name: str, value: object) -> "Shape":
    """Check the fields of a job that are kept together, each as `enqueue` does."""
    if not isinstance(value, dict):
        raise _wrong(name, value, "an object")
    known = [*PARTS[name], *(["has_input"] if name == "launch" else [])]
    for key in value:
        if key not in known:
            raise UnknownName.among(f"field of {name}", str(key), known)
    has_input = {"has_input": _flag("has_input", value["has_input"]) == 1} if "has_input" in value else {}
    return {**dict(SPEC_FIELDS[key](key, value[key], 0) for key in value if key != "has_input"), **has_input}


def _units(name: str, value: object) -> "Shape":
    """Check what a running job has of its worker's resources: numbers, or an amount."""
    if not isinstance(value, dict):
        raise _wrong(name, value, "an object")
    amount = _whole(0, MAX_BYTES)
    return {
        check_name(name, key): [amount(name, one) for one in part] if isinstance(part, list) else amount(name, part)
        for key, part in value.items()
    }


def _after(name: str, value: object) -> "tuple[tuple[int, str, str], ...]":
    """Check the jobs that one is to run after: the number of each in the file, how it must end, what became of that."""
    if not isinstance(value, list):
        raise _wrong(name, value, "a list")
    found: dict[int, tuple[int, str, str]] = {}
    for item in value:
        if not isinstance(item, dict) or item.keys() != _EDGE.keys():
            raise _wrong(f"an item of {name}", item, f"an object with {', '.join(_EDGE)}")
        number, kind, state = (check(f"{name} {key}", item[key]) for key, check in _EDGE.items())
        if number in found:
            raise BadInput(f"{name} names job {number} twice")
        found[number] = number, kind, state
    return tuple(found.values())


def _closing_job(name: str, value: object) -> "Shape":
    """Check the job that is added when all of a group have ended."""
    if not isinstance(value, dict) or value.keys() != _CLOSING.keys():
        raise _wrong(name, value, f"an object with {', '.join(_CLOSING)}")
    return {key: check(key, value[key]) for key, check in _CLOSING.items()}


def _as_json(check: "Check") -> "Check":
    """Check, then write as the store keeps it: JSON as text, and nothing for nothing."""

    def checked(name: str, value: object) -> str | None:
        found = check(name, value)
        return json.dumps(found, ensure_ascii=False) if found else None

    return checked


def _backoff(name: str, value: object) -> "Shape":
    if not isinstance(value, dict):
        raise _wrong(name, value, "an object")
    for key in value:
        if key not in _BACKOFF:
            raise UnknownName.among(f"field of {name}", str(key), list(_BACKOFF))
    return {key: _BACKOFF[key](f"{name} {key}", number) for key, number in value.items()}


def _fraction(high: float) -> "Check":
    def check(name: str, value: object) -> float:
        if type(value) not in (int, float):
            raise _wrong(name, value, "a number")
        assert isinstance(value, int | float)
        if not 0 <= value <= high:
            raise BadInput(f"{name} {value} is out of range", hint=f"it is 0 to {high:g}")
        return value

    return check


def _state(name: str, value: object) -> State:
    return State(str(_one_of(tuple(State))(name, value)))


_DURATION = _whole(0, MAX_DURATION_MS)
_BACKOFF: "dict[str, Check]" = {
    "strategy": _one_of(tuple(BackoffStrategy)),
    "base": _fraction(1_000_000),
    "max_ms": _DURATION,
    "fixed_ms": _DURATION,
    "jitter": _fraction(1),
}
_COUNT = _whole(0, MAX_COUNT)
_CODE = _or_null(_whole(-MAX_COUNT, MAX_COUNT))
_SIZE = _whole(0, MAX_BYTES)
_MAYBE_TIME = _or_null(_time)
_MAYBE_TEXT = _or_null(_text)
_NUMBER = _whole(1, MAX_NUMBER)
_EDGE: "dict[str, Any]" = {"job": _NUMBER, "kind": _one_of(tuple(Kind)), "state": _one_of(tuple(EdgeState))}
_CLOSING: "dict[str, Check]" = {"command": _as_enqueued, "cwd": _or_null(_as_enqueued), "queue": _as_enqueued}

# What each kind of line holds, every field of it, and how each is checked.
LINES: "Mapping[str, Mapping[str, Check]]" = {
    "header": {
        "format": _whole(1, FORMAT),
        "version": _text,
        "exported_at": _time,
        "last_number": _whole(0, MAX_NUMBER),
    },
    "queue": {
        "name": check_name,
        "paused_at": _MAYBE_TIME,
        "created_at": _time,
        "concurrency": _or_null(_whole(1, MAX_CONCURRENCY)),
        "rate": _or_null(_rate),
        "next_start_at": _MAYBE_TIME,
        "timeout_ms": _or_null(_DURATION),
        "max_retries": _or_null(_whole(0, MAX_RETRIES)),
        "priority": _or_null(_whole(-MAX_PRIORITY, MAX_PRIORITY)),
    },
    "limit": {"name": check_name, "slots": _whole(0, MAX_SLOTS), "created_at": _time},
    "schedule": {
        "name": check_name,
        "cron": _MAYBE_TEXT,
        "every_ms": _or_null(_DURATION),
        "anchor": _MAYBE_TIME,
        "tz": _text,
        "misfire": _one_of(tuple(Misfire)),
        "misfire_cap": _whole(1, MAX_CAP),
        "overlap": _one_of(tuple(Overlap)),
        "jitter_ms": _whole(0, MAX_JITTER_MS),
        "paused_at": _MAYBE_TIME,
        "created_at": _time,
        "job": _schedule,
    },
    "group": {
        "name": check_own_name,
        "jobs": _whole(0, MAX_NUMBER),
        "max_failures": _or_null(_as_enqueued),
        "on_done": _or_null(_as_json(_closing_job)),
        "stopped_at": _MAYBE_TIME,
        "done_at": _MAYBE_TIME,
        "created_at": _time,
    },
    "setting": {"key": _text, "value": _text},
    "job": {
        "number": _NUMBER,
        "id": _or_null(check_given_id),
        "state": _state,
        "queue": check_name,
        "priority": _whole(-MAX_PRIORITY, MAX_PRIORITY),
        "command": _or_null(_as_enqueued),
        "argv": _or_null(_as_json(_as_enqueued)),
        "cwd": _or_null(_as_enqueued),
        "env": _as_json(_env),
        "tags": _as_json(_as_enqueued),
        "max_retries": _whole(0, MAX_RETRIES),
        "timeout_ms": _or_null(_DURATION),
        "backoff": _or_null(_as_json(_backoff)),
        "split_output": _flag,
        "needs": _list_as_enqueued,
        "use": _use,
        "mutex": _list_as_enqueued,
        "limits": _list_as_enqueued,
        "at_most": _list_as_enqueued,
        "policy": _or_null(_as_json(_part)),
        "launch": _or_null(_as_json(_part)),
        "input": _or_null(_input),
        "deadline_ms": _or_null(_DURATION),
        "deadline_at": _MAYBE_TIME,
        "parked_for": _MAYBE_TEXT,
        "after": _after,
        "on_dead_dependency": _or_null(_as_enqueued),
        "starved_at": _MAYBE_TIME,
        "unique": _or_null(_as_enqueued),
        "unique_for_ms": _or_null(_whole(1, MAX_DURATION_MS)),
        "unique_until": _MAYBE_TIME,
        "group": _or_null(_as_enqueued),
        "units": _as_json(_units),
        "run": _whole(0, MAX_COUNT - 1),
        "attempts": _COUNT,
        "losses": _COUNT,
        "run_at": _MAYBE_TIME,
        "created_at": _time,
        "updated_at": _time,
        "started_at": _MAYBE_TIME,
        "finished_at": _MAYBE_TIME,
        "held_at": _MAYBE_TIME,
        "exit_code": _CODE,
        "error": _MAYBE_TEXT,
        "worker": _MAYBE_TEXT,
        "cancel_requested": _flag,
        "waited_ms": _or_null(_SIZE),
    },
    "run": {
        "job": _NUMBER,
        "run": _whole(1, MAX_COUNT),
        "attempt": _whole(1, MAX_COUNT),
        "worker": _text,
        "host": _text,
        "started_at": _time,
        "finished_at": _time,
        "outcome": _one_of(tuple(OutcomeKind)),
        "exit_code": _CODE,
        "signal": _CODE,
        "error": _MAYBE_TEXT,
        "cpu_ms": _or_null(_SIZE),
        "peak_memory_bytes": _or_null(_SIZE),
        "output_bytes": _SIZE,
        "output_file": _MAYBE_TEXT,
        "output_tail": _bytes,
        "stderr_bytes": _or_null(_SIZE),
        "stderr_file": _MAYBE_TEXT,
        "stderr_tail": _or_null(_bytes),
        "waited_ms": _or_null(_SIZE),
        "queue": check_name,
    },
    "end": {"jobs": _whole(0, MAX_NUMBER), "runs": _whole(0, MAX_NUMBER)},
}
