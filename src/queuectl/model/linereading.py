"""Line reading: the lines of an export, read back one by one. What each field may be is in linechecks.py."""

import json
import re

from queuectl.errors import BadInput, UnknownName
from queuectl.model.after import EdgeState
from queuectl.model.attempt import Attempt
from queuectl.model.group import Group
from queuectl.model.job import Job, dumps
from queuectl.model.limits import Limit, limit_keys
from queuectl.model.linechecks import LINES
from queuectl.model.lineformats import ADDED, FORMAT
from queuectl.model.needs import needs_text
from queuectl.model.queue import Queue
from queuectl.model.rate import Rate
from queuectl.model.schedule import Schedule
from queuectl.model.states import FINAL, WAITING_FOR_TIME, State
from queuectl.model.transfer import End, Extras, Header, Line, SettingLine

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from queuectl.model.transfer import Shape

_MAY_WAIT = FINAL | {State.BLOCKED}
_FREES = frozenset({State.DEAD, State.CANCELLED})
_OUTPUT_FILE = r"([a-z]{{1,20}}-[0-9a-f]{{1,40}}/)?\d{{1,15}}/{}\.{}\.[a-z][a-z.]{{0,15}}(\.\d{{1,3}})?"


class Reader:
    """Reads the lines of one file in order and refuses what does not fit; keeps ids, keys and who waits for whom."""

    def __init__(self) -> None:
        self.header: Header | None = None
        self.end: End | None = None
        self.jobs = 0
        self.runs = 0
        self.extras = Extras(job_seq=0)
        """What stands beside the job that was read last."""
        self.parents: set[int] = set()
        """The numbers of the jobs that others run after."""
        self.waiting: dict[str, list[str]] = {}
        """Who waits for whom, by number."""
        self._job: Job | None = None
        self._last_run = 0
        self._ids: set[str] = set()
        self._keys: set[str] = set()
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
            raise BadInput("no type", hint=f"each line has one of: {', '.join(LINES)}")
        if kind not in LINES:
            raise UnknownName.among("type", kind, list(LINES))
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
            if kind == "run" and self._job is not None:
                fields = {"queue": self._job.queue, **fields}
        checked = _checked(kind, fields)
        if kind == "job":
            self.extras = _read_extras(checked)
        line = _read_job(checked, self.extras) if kind == "job" else _READ[kind](checked)
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
            case Group():
                self._check_once("group", line.name)
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
                f"a {kind} after the jobs", hint="queues, limits, schedules, groups and settings come before the jobs"
            )
        self._names.add((kind, name))

    def _check_job(self, job: Job) -> None:
        if (self.extras.input is not None) != bool(job.launch_map.get("has_input")):
            raise BadInput(f"job {job.id} has an input exactly when its launch says has_input")
        if self._job is not None and job.seq <= self._job.seq:
            raise BadInput(f"job {job.seq} after job {self._job.seq}", hint="jobs come in the order of their numbers")
        if job.given_id is not None and job.given_id in self._ids:
            raise BadInput(f"id {job.given_id!r} is given twice")
        if job.given_id is not None:
            self._ids.add(job.given_id)
        if job.unique_key is not None and (job.state not in FINAL or self.extras.unique_until is not None):
            if job.unique_key in self._keys:
                raise BadInput(f"two jobs have the key {job.unique_key!r}, the second is job {job.id}")
            self._keys.add(job.unique_key)
        if self.extras.after:
            self.parents.update(number for number, _, _ in self.extras.after)
            waits_for = [str(number) for number, _, state in self.extras.after if state != EdgeState.SATISFIED]
            self.waiting[str(job.seq)] = waits_for
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


def _read_group(fields: "Shape") -> Group:
    return Group.of_row([fields[name] for name in Group.FIELDS])


def _read_extras(fields: "Shape") -> Extras:
    inner = {name: fields.pop(name) for name in ("input", "after", "unique_until")}
    return Extras(job_seq=fields["number"], **inner)  # type: ignore[arg-type]


def _read_job(fields: "Shape", extras: Extras) -> Job:
    fields["seq"] = fields.pop("number")
    fields["given_id"] = fields.pop("id")
    fields["worker_id"] = fields.pop("worker")
    fields["needs"] = needs_text(fields["needs"], fields.pop("use")) or None  # type: ignore[arg-type]
    keys = limit_keys(fields.pop("mutex"), fields["limits"], fields.pop("at_most"))  # type: ignore[arg-type]
    fields["limits"] = dumps(keys) if keys else None
    fields["on_dead"] = fields.pop("on_dead_dependency")
    fields["unique_key"] = fields.pop("unique")
    fields["group_name"] = fields.pop("group")
    fields |= {"waits_for": extras.waits_for, "has_dependents": 0}
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
        ((job.deadline_ms is None) != (job.deadline_at is None), "has both or none of deadline_ms and deadline_at"),
        (job.parked_for is not None and job.waits_for > 0, "waits for a limit when the others have ended"),
        (any(number == job.seq for number, _, _ in extras.after), "does not run after itself"),
        (job.waits_for > 0 and job.state not in _MAY_WAIT, "that waits for others is blocked, or finished"),
        (job.starved_at is not None and job.state is not State.CANCELLED, "has starved_at only when it is cancelled"),
        (job.unique_key is None and _says_more_of_a_key(job, extras), "without a unique key has no times for it"),
        (extras.unique_until is not None and job.state in _FREES, "frees its unique key when it ends so"),
    ):
        if is_wrong:
            raise BadInput(f"job {job.id} is {job.state}: a job {words}")
    return job


def _says_more_of_a_key(job: Job, extras: Extras) -> bool:
    return job.unique_for_ms is not None or extras.unique_until is not None


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


_READ: "dict[str, Callable[[Shape], Line]]" = {
    "header": lambda fields: Header.of_row(list(fields.values())),
    "queue": _read_queue,
    "limit": lambda fields: Limit.of_row(list(fields.values())),
    "schedule": _read_schedule,
    "group": _read_group,
    "setting": lambda fields: SettingLine.of_row(list(fields.values())),
    "run": _read_run,
    "end": lambda fields: End.of_row(list(fields.values())),
}
