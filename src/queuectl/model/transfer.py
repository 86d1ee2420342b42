"""Transfer: a store as lines of JSON and back. Pure: what a line holds; what each field may be is in linechecks.py.

A header comes first, then queues, limits, schedules, settings, and each job followed by its runs; an end with the
counts comes last, so that a file that was cut off is not taken for a whole one.
"""

import base64
import json
import re

from queuectl.errors import BadInput, UnknownName
from queuectl.model.attempt import Attempt
from queuectl.model.job import Job, dumps
from queuectl.model.limits import Limit, limit_keys
from queuectl.model.linechecks import ADDED, FORMAT, LINES
from queuectl.model.needs import needs_text
from queuectl.model.queue import Queue
from queuectl.model.rate import Rate
from queuectl.model.schedule import Schedule
from queuectl.model.shapes import asked_shape, launch_shape, policy_shape, time_shape
from queuectl.model.states import FINAL, WAITING_FOR_TIME, State
from queuectl.model.units import iso_text
from queuectl.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Shape = dict[str, object]

MAX_TEXT_BYTES = 2 << 20
_OUTPUT_FILE = r"([a-z]{{1,20}}-[0-9a-f]{{1,40}}/)?\d{{1,15}}/{}\.{}\.[a-z][a-z.]{{0,15}}(\.\d{{1,3}})?"


class Header(Value):
    """The first line: what wrote the file, and the highest number its store ever gave out."""

    format: int
    version: str
    exported_at: int
    last_number: int


class SettingLine(Value):
    """A setting somebody stored, as text."""

    key: str
    value: str


class Input(Value):
    """What a job is to read on standard input, by its number in the file; it stands in the line of the job."""

    job_seq: int
    data: bytes


class End(Value):
    """The last line: how many jobs and runs came before it."""

    jobs: int
    runs: int


Line = Header | Queue | Limit | Schedule | SettingLine | Job | Attempt | End


def header_shape(header: Header) -> "Shape":
    """Return the first line."""
    return {
        "type": "header",
        "format": header.format,
        "version": header.version,
        "exported_at": iso_text(header.exported_at),
        "last_number": header.last_number,
    }


def queue_shape(queue: Queue) -> "Shape":
    """Return the line of a queue."""
    return {
        "type": "queue",
        "name": queue.name,
        "paused_at": time_shape(queue.paused_at),
        "created_at": iso_text(queue.created_at),
        "concurrency": queue.concurrency,
        "rate": None if queue.rate is None else queue.rate.text,
        "next_start_at": time_shape(queue.next_start_at),
        "timeout_ms": queue.timeout_ms,
        "max_retries": queue.max_retries,
        "priority": queue.priority,
    }


def limit_shape(limit: Limit) -> "Shape":
    """Return the line of a limit."""
    return {"type": "limit", "name": limit.name, "slots": limit.slots, "created_at": iso_text(limit.created_at)}


def schedule_line_shape(schedule: Schedule) -> "Shape":
    """Return the line of a schedule: all of it but when it comes next, which is for the store that takes it in."""
    return {
        "type": "schedule",
        "name": schedule.name,
        "cron": schedule.cron,
        "every_ms": schedule.every_ms,
        "anchor": time_shape(schedule.anchor),
        "tz": schedule.tz,
        "misfire": schedule.misfire.value,
        "misfire_cap": schedule.misfire_cap,
        "overlap": schedule.overlap.value,
        "jitter_ms": schedule.jitter_ms,
        "paused_at": time_shape(schedule.paused_at),
        "created_at": iso_text(schedule.created_at),
        "job": schedule.fields,
    }


def setting_shape(key: str, value: str) -> "Shape":
    """Return the line of a stored setting."""
    return {"type": "setting", "key": key, "value": value}


def job_line_shape(job: Job, input_: bytes | None) -> "Shape":
    """Return the line of a job: everything its row holds, and what it reads on standard input."""
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
        "input": None if input_ is None else _bytes_shape(input_),
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
        self.input: Input | None = None
        """What the job that was read last is to read on standard input."""
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
        if self.header is not None and self.header.format < FORMAT:
            fields = {**ADDED.get(kind, {}), **fields}
        checked = _checked(kind, fields)
        if kind == "job":
            self.input = _read_input(checked)
        line = _READ[kind](checked)
        self._check_place(line)
        return line

    def _check_place(self, line: "Line") -> None:
        match line:
            case Header():
                self.header = line
            case Queue():
                self._check_once("queue", line.name)
            case Limit():
                self._check_once("limit", line.name)
            case Schedule():
                self._check_once("schedule", line.name)
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
            raise BadInput(
                f"a {kind} after the jobs", hint="queues, limits, schedules and settings come before the jobs"
            )
        self._names.add((kind, name))

    def _check_job(self, job: Job) -> None:
        if (self.input is not None) != bool(job.launch_map.get("has_input")):
            raise BadInput(f"job {job.id} has an input exactly when its launch says has_input")
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
    known = LINES[kind]
    if fields.keys() != known.keys():
        for name in fields:
            if name not in known:
                raise UnknownName.among(f"field of a {kind}", name, list(known))
        missing = [name for name in known if name not in fields]
        raise BadInput(f"the {kind} has no {missing[0]}", hint=f"a {kind} has: {', '.join(known)}")
    return {name: check(name, fields[name]) for name, check in known.items()}


def _read_queue(fields: "Shape") -> Queue:
    rate = fields.pop("rate")
    period = {"rate_count": rate.count, "rate_period_ms": rate.period_ms} if isinstance(rate, Rate) else {}
    return Queue(**fields, **period)  # type: ignore[arg-type]


def _read_schedule(fields: "Shape") -> Schedule:
    """Check a schedule as one that is added: a line of a file is no less to be looked at."""
    from queuectl.model.asked import imported_schedule  # reading zones is for those who have a schedule

    return imported_schedule(fields)


def _read_input(fields: "Shape") -> Input | None:
    data = fields.pop("input")
    return Input(job_seq=fields["number"], data=data) if isinstance(data, bytes) else None  # type: ignore[arg-type]


def _read_job(fields: "Shape") -> Job:
    fields["seq"] = fields.pop("number")
    fields["given_id"] = fields.pop("id")
    fields["worker_id"] = fields.pop("worker")
    fields["needs"] = needs_text(fields["needs"], fields.pop("use")) or None  # type: ignore[arg-type]
    keys = limit_keys(fields.pop("mutex"), fields["limits"], fields.pop("at_most"))  # type: ignore[arg-type]
    fields["limits"] = dumps(keys) if keys else None
    fields |= {"waits_for": 0, "has_dependents": 0, "on_dead": None, "starved_at": None}
    fields |= {"unique_key": None, "unique_for_ms": None, "group_name": None}
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
    """Return bytes as text where they are UTF-8 and not too many, else as base64."""
    try:
        # In JSON a character may take six times its bytes, and a line that import takes has an end.
        return data.decode() if len(data) <= MAX_TEXT_BYTES else _base64(data)
    except UnicodeDecodeError:
        return _base64(data)


def _base64(data: bytes) -> "dict[str, str]":
    return {"base64": base64.b64encode(data).decode()}


_READ: "dict[str, Callable[[Shape], Line]]" = {
    "header": lambda fields: Header.of_row(list(fields.values())),
    "queue": _read_queue,
    "limit": lambda fields: Limit.of_row(list(fields.values())),
    "schedule": _read_schedule,
    "setting": lambda fields: SettingLine.of_row(list(fields.values())),
    "job": _read_job,
    "run": _read_run,
    "end": lambda fields: End.of_row(list(fields.values())),
}
