"""Transfer: a store as lines of JSON and back. Pure: what a line holds, and what it may not hold.

A header comes first, then queues, settings, and each job followed by its runs; an end with the counts comes last, so
that a file that was cut off is not taken for a whole one.
"""

import base64
import datetime
import json
import re

from queuectl.errors import BadInput, UnknownName
from queuectl.model.attempt import Attempt
from queuectl.model.checks import check_given_id, check_name
from queuectl.model.fields import FIELDS as SPEC_FIELDS
from queuectl.model.fields import MAX_PRIORITY, MAX_RETRIES, PARTS
from queuectl.model.job import Job, dumps
from queuectl.model.limits import limit_keys
from queuectl.model.needs import needs_text
from queuectl.model.retry import BackoffStrategy
from queuectl.model.shapes import asked_shape, launch_shape, policy_shape, time_shape
from queuectl.model.states import FINAL, WAITING_FOR_TIME, State
from queuectl.model.units import MAX_DURATION_MS, iso_text
from queuectl.model.value import Value
from queuectl.model.verdict import OutcomeKind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Shape = dict[str, object]
    Check = Callable[[str, object], object]

FORMAT = 1
MAX_NUMBER = 10**15
MAX_COUNT = 2**31 - 1
MAX_BYTES = 2**62
MAX_TEXT = 1 << 20
_EPOCH = datetime.datetime.fromtimestamp(0, datetime.UTC)
_MS = datetime.timedelta(milliseconds=1)
_OUTPUT_FILE = r"([a-z]{{1,20}}-[0-9a-f]{{1,40}}/)?\d{{1,15}}/{}\.{}\.[a-z][a-z.]{{0,15}}(\.\d{{1,3}})?"
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", re.ASCII)


class Header(Value):
    """The first line: what wrote the file, and the highest number its store ever gave out."""

    format: int
    version: str
    exported_at: int
    last_number: int


class QueueLine(Value):
    """A queue as it stood."""

    name: str
    paused_at: int | None
    created_at: int


class SettingLine(Value):
    """A setting somebody stored, as text."""

    key: str
    value: str


class End(Value):
    """The last line: how many jobs and runs came before it."""

    jobs: int
    runs: int


Line = Header | QueueLine | SettingLine | Job | Attempt | End


def header_shape(header: Header) -> "Shape":
    """Return the first line."""
    return {
        "type": "header",
        "format": header.format,
        "version": header.version,
        "exported_at": iso_text(header.exported_at),
        "last_number": header.last_number,
    }


def queue_shape(name: str, paused_at: int | None, created_at: int) -> "Shape":
    """Return the line of a queue."""
    return {"type": "queue", "name": name, "paused_at": time_shape(paused_at), "created_at": iso_text(created_at)}


def setting_shape(key: str, value: str) -> "Shape":
    """Return the line of a stored setting."""
    return {"type": "setting", "key": key, "value": value}


def job_line_shape(job: Job) -> "Shape":
    """Return the line of a job: everything its row holds."""
    return {
        "type": "job",
        "number": job.seq,
        "id": job.given_id,
        "state": job.state.value,
        "queue": job.queue,
        "priority": job.priority,
        "command": job.command,
        "argv": job.argv_list,
        "cwd": job.cwd,
        "env": job.env_map,
        "tags": job.tag_list,
        "max_retries": job.max_retries,
        "timeout_ms": job.timeout_ms,
        "backoff": None if job.backoff is None else json.loads(job.backoff),
        "split_output": bool(job.split_output),
        **asked_shape(job),
        "policy": policy_shape(job),
        "launch": launch_shape(job),
        "deadline_ms": job.deadline_ms,
        "deadline_at": time_shape(job.deadline_at),
        "parked_for": job.parked_for,
        "units": job.unit_map,
        "run": job.run,
        "attempts": job.attempts,
        "losses": job.losses,
        "run_at": time_shape(job.run_at),
        "created_at": iso_text(job.created_at),
        "updated_at": iso_text(job.updated_at),
        "started_at": time_shape(job.started_at),
        "finished_at": time_shape(job.finished_at),
        "held_at": time_shape(job.held_at),
        "exit_code": job.exit_code,
        "error": job.error,
        "worker": job.worker_id,
        "cancel_requested": bool(job.cancel_requested),
    }


def run_line_shape(run: Attempt) -> "Shape":
    """Return the line of a run that ended."""
    return {
        "type": "run",
        "job": run.job_seq,
        "run": run.run,
        "attempt": run.attempt,
        "worker": run.worker_id,
        "host": run.host,
        "started_at": iso_text(run.started_at),
        "finished_at": time_shape(run.finished_at),
        "outcome": None if run.outcome is None else run.outcome.value,
        "exit_code": run.exit_code,
        "signal": run.signal,
        "error": run.error,
        "cpu_ms": run.cpu_ms,
        "peak_memory_bytes": run.peak_memory_bytes,
        "output_bytes": run.output_bytes,
        "output_file": run.output_file,
        "output_tail": _bytes_shape(run.output_tail),
        "stderr_bytes": run.stderr_bytes,
        "stderr_file": run.stderr_file,
        "stderr_tail": None if run.stderr_tail is None else _bytes_shape(run.stderr_tail),
    }


def end_shape(end: End) -> "Shape":
    """Return the last line."""
    return {"type": "end", "jobs": end.jobs, "runs": end.runs}


class Reader:
    """Reads the lines of one file in order and refuses what does not fit; keeps nothing but the ids people gave."""

    def __init__(self) -> None:
        self.header: Header | None = None
        self.end: End | None = None
        self.jobs = 0
        self.runs = 0
        self._job: Job | None = None
        self._last_run = 0
        self._ids: set[str] = set()
        self._names: set[tuple[str, str]] = set()

    def read(self, number: int, text: str) -> "Line":
        """Read one line, or raise with its number."""
        try:
            return self._read(text)
        except BadInput as error:
            hint = f"{error.hint}; nothing was written" if error.hint else "nothing was written"
            raise BadInput(f"line {number}: {error.message}", hint=hint) from None

    def finish(self) -> "tuple[Header, End]":
        """Return the header and the end, or raise when the file stops before it says so."""
        if self.header is None:
            raise BadInput("there is nothing to import: the file is empty", hint="make one with: queuectl export")
        if self.end is None:
            raise BadInput(
                f"the file was cut off: it has {self.jobs} jobs and no end line",
                hint="export again; nothing was written",
            )
        return self.header, self.end

    def _read(self, text: str) -> "Line":
        fields = _object(text)
        kind = fields.pop("type", None)
        if not isinstance(kind, str):
            raise BadInput("no type", hint=f"each line has one of: {', '.join(_READ)}")
        if kind not in _READ:
            raise UnknownName.among("type", kind, list(_READ))
        if (self.header is None) != (kind == "header"):
            raise BadInput(
                "a second header" if kind == "header" else f"a {kind} before the header",
                hint="give one export as it was written; import several one after the other",
            )
        if self.end is not None:
            raise BadInput(f"a {kind} after the end", hint="import several exports one after the other")
        if kind == "header":
            _check_format(fields)
        line = _READ[kind](_checked(kind, fields))
        self._check_place(line)
        return line

    def _check_place(self, line: "Line") -> None:
        match line:
            case Header():
                self.header = line
            case QueueLine():
                self._check_once("queue", line.name)
            case SettingLine():
                self._check_once("setting", line.key)
            case Job():
                self._check_job(line)
            case Attempt():
                self._check_run(line)
            case End():
                self._check_end(line)

    def _check_once(self, kind: str, name: str) -> None:
        if (kind, name) in self._names:
            raise BadInput(f"{kind} {name!r} is given twice")
        if self._job is not None:
            raise BadInput(f"a {kind} after the jobs", hint="queues and settings come before the jobs")
        self._names.add((kind, name))

    def _check_job(self, job: Job) -> None:
        if self._job is not None and job.seq <= self._job.seq:
            raise BadInput(f"job {job.seq} after job {self._job.seq}", hint="jobs come in the order of their numbers")
        if job.given_id is not None and job.given_id in self._ids:
            raise BadInput(f"id {job.given_id!r} is given twice")
        if job.given_id is not None:
            self._ids.add(job.given_id)
        self._job, self._last_run = job, 0
        self.jobs += 1

    def _check_run(self, run: Attempt) -> None:
        job = self._job
        if job is None or run.job_seq != job.seq:
            raise BadInput(
                f"a run of job {run.job_seq} that does not follow it", hint="runs come right after their job"
            )
        if not self._last_run < run.run <= job.run:
            raise BadInput(
                f"run {run.run} of job {job.seq} is out of order",
                hint=f"its runs ascend, up to the number of its last run, {job.run}",
            )
        self._last_run = run.run
        self.runs += 1

    def _check_end(self, end: End) -> None:
        if (end.jobs, end.runs) != (self.jobs, self.runs):
            raise BadInput(
                f"the file says {end.jobs} jobs and {end.runs} runs, but holds {self.jobs} and {self.runs}",
                hint="lines are missing or were added: export again, with --state, --queue or --tag to choose",
            )
        self.end = end


def _object(text: str) -> "Shape":
    try:
        fields = json.loads(text)
    except json.JSONDecodeError as error:
        raise BadInput(f"broken JSON at column {error.colno}: {error.msg}") from None
    except (ValueError, RecursionError) as error:
        raise BadInput(f"broken JSON: {error}") from None
    if not isinstance(fields, dict):
        raise BadInput("not an object", hint='a line looks like {"type": "job", ...}')
    return fields


def _check_format(fields: "Shape") -> None:
    found = fields.get("format")
    if isinstance(found, int) and found > FORMAT:
        raise BadInput(f"format {found} is newer than this queuectl knows ({FORMAT})", hint="upgrade queuectl here")


def _checked(kind: str, fields: "Shape") -> "Shape":
    """Check the fields of a line one by one; the names become those of the value."""
    known = _FIELDS[kind]
    if fields.keys() != known.keys():
        for name in fields:
            if name not in known:
                raise UnknownName.among(f"field of a {kind}", name, list(known))
        missing = [name for name in known if name not in fields]
        raise BadInput(f"the {kind} has no {missing[0]}", hint=f"a {kind} has: {', '.join(known)}")
    return {name: check(name, fields[name]) for name, check in known.items()}


def _read_job(fields: "Shape") -> Job:
    fields["seq"] = fields.pop("number")
    fields["given_id"] = fields.pop("id")
    fields["worker_id"] = fields.pop("worker")
    fields["needs"] = needs_text(fields["needs"], fields.pop("use")) or None  # type: ignore[arg-type]
    keys = limit_keys(fields.pop("mutex"), fields["limits"])  # type: ignore[arg-type]
    fields["limits"] = dumps(keys) if keys else None
    job = Job.of_row([0 if name == "lane_id" else fields[name] for name in Job.FIELDS])
    for is_wrong, words in (
        ((job.command is None) == (job.argv is None), "has either a command or an argv"),
        ((job.state in FINAL) != (job.finished_at is not None), "has finished_at exactly when it is finished"),
        (job.state in WAITING_FOR_TIME and job.run_at is None, "waits for a time and has no run_at"),
        ((job.state is State.PROCESSING) != (job.worker_id is not None), "has a worker exactly when one runs it"),
        (job.state is State.PROCESSING and job.run < 1, "is processing and has run 0"),
        (bool(job.cancel_requested) and job.state is not State.PROCESSING, "is to be stopped and does not run"),
        (job.held_at is not None and job.state is not State.BLOCKED, "is held and not blocked"),
        (job.parked_for is not None and job.parked_for not in job.limit_list, "waits for a limit it does not name"),
        (job.parked_for is not None and job.state is not State.BLOCKED, "waits for a limit and is not blocked"),
        (job.units is not None and job.state is not State.PROCESSING, "has units of a worker and does not run"),
        ((job.deadline_ms is None) != (job.deadline_at is None), "has one of deadline_ms and deadline_at"),
    ):
        if is_wrong:
            raise BadInput(f"job {job.id} is {job.state}: a job {words}")
    return job


def _read_run(fields: "Shape") -> Attempt:
    fields["job_seq"] = fields.pop("job")
    fields["worker_id"] = fields.pop("worker")
    run = Attempt.of_row([fields[name] for name in Attempt.FIELDS])
    for name in (run.output_file, run.stderr_file):
        # Such a name is opened and, with its job, removed: it must not lead to anything but the output of this run.
        if name is not None and not re.fullmatch(_OUTPUT_FILE.format(run.job_seq, run.run), name):
            raise BadInput(f"bad output file {name[:80]!r} of run {run.run} of job {run.job_seq}")
    if (run.stderr_bytes is None) != (run.stderr_tail is None):
        raise BadInput(f"run {run.run} of job {run.job_seq} has one of stderr_bytes and stderr_tail")
    return run


def _bytes_shape(data: bytes) -> "str | dict[str, str]":
    """Return bytes as text where they are UTF-8, else as base64."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}


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


def _as_enqueued(name: str, value: object) -> object:
    """Check what `enqueue` checks, too."""
    return SPEC_FIELDS[name](name, value, 0)[1]


def _list_as_enqueued(name: str, value: object) -> object:
    """Check a list that may be empty."""
    return () if value == [] else _as_enqueued(name, value)


def _use(name: str, value: object) -> object:
    """Check amounts by resource; none is fine."""
    return {} if value == {} else _as_enqueued(name, value)


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

# What each kind of line holds, every field of it, and how each is checked.
_FIELDS: "Mapping[str, Mapping[str, Check]]" = {
    "header": {
        "format": _whole(1, FORMAT),
        "version": _text,
        "exported_at": _time,
        "last_number": _whole(0, MAX_NUMBER),
    },
    "queue": {"name": check_name, "paused_at": _MAYBE_TIME, "created_at": _time},
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
        "env": _as_json(_as_enqueued),
        "tags": _as_json(_as_enqueued),
        "max_retries": _whole(0, MAX_RETRIES),
        "timeout_ms": _or_null(_DURATION),
        "backoff": _or_null(_as_json(_backoff)),
        "split_output": _flag,
        "needs": _list_as_enqueued,
        "use": _use,
        "mutex": _list_as_enqueued,
        "limits": _list_as_enqueued,
        "policy": _or_null(_as_json(_part)),
        "launch": _or_null(_as_json(_part)),
        "deadline_ms": _or_null(_DURATION),
        "deadline_at": _MAYBE_TIME,
        "parked_for": _MAYBE_TEXT,
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
    },
    "end": {"jobs": _whole(0, MAX_NUMBER), "runs": _whole(0, MAX_NUMBER)},
}
_READ: "dict[str, Callable[[Shape], Line]]" = {
    "header": lambda fields: Header.of_row(list(fields.values())),
    "queue": lambda fields: QueueLine.of_row(list(fields.values())),
    "setting": lambda fields: SettingLine.of_row(list(fields.values())),
    "job": _read_job,
    "run": _read_run,
    "end": lambda fields: End.of_row(list(fields.values())),
}
