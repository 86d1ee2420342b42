"""Transfer: a store as lines of JSON. Pure: what each line holds; how it is read back is in linereading.py.

A header comes first, then queues, limits, schedules, groups, settings, and each job followed by its runs; an end with
the counts comes last, so that a file that was cut off is not taken for a whole one.
"""

import base64
import json

from queuectl.model.after import EdgeState
from queuectl.model.attempt import Attempt
from queuectl.model.group import Group
from queuectl.model.job import Job
from queuectl.model.limits import Limit
from queuectl.model.queue import Queue
from queuectl.model.schedule import Schedule
from queuectl.model.shapes import asked_shape, launch_shape, policy_shape, time_shape
from queuectl.model.units import iso_text
from queuectl.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    Shape = dict[str, object]

MAX_TEXT_BYTES = 2 << 20


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


class Extras(Value):
    """What the line of a job holds beside its row, by its number in the file."""

    job_seq: int
    input: bytes | None = None
    """What it is to read on standard input."""
    after: "tuple[tuple[int, str, str], ...]" = ()
    """The jobs it is to run after: the number of each in the file, how it must end, what has become of that."""
    unique_until: int | None = None
    """When its key expires, if it has the key and that does."""

    @property
    def waits_for(self) -> int:
        """How many of those have not ended as asked."""
        return sum(state != EdgeState.SATISFIED for _, _, state in self.after)


class End(Value):
    """The last line: how many jobs and runs came before it."""

    jobs: int
    runs: int


Line = Header | Queue | Limit | Schedule | Group | SettingLine | Job | Attempt | End


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


def group_shape(group: Group) -> "Shape":
    """Return the line of a group."""
    return {
        "type": "group",
        "name": group.name,
        "jobs": group.jobs,
        "max_failures": group.max_failures,
        "on_done": None if group.on_done is None else json.loads(group.on_done),
        "stopped_at": time_shape(group.stopped_at),
        "done_at": time_shape(group.done_at),
        "created_at": iso_text(group.created_at),
    }


def job_line_shape(job: Job, extras: Extras) -> "Shape":
    """Return the line of a job: everything its row holds, and what stands beside it."""
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
        "input": None if extras.input is None else _bytes_shape(extras.input),
        "deadline_ms": job.deadline_ms,
        "deadline_at": time_shape(job.deadline_at),
        "parked_for": job.parked_for,
        "after": [{"job": number, "kind": kind, "state": state} for number, kind, state in extras.after],
        "on_dead_dependency": job.on_dead,
        "starved_at": time_shape(job.starved_at),
        "unique": job.unique_key,
        "unique_for_ms": job.unique_for_ms,
        "unique_until": time_shape(extras.unique_until),
        "group": job.group_name,
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
        "waited_ms": job.waited_ms,
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
        "waited_ms": run.waited_ms,
        "queue": run.queue,
    }


def end_shape(end: End) -> "Shape":
    """Return the last line."""
    return {"type": "end", "jobs": end.jobs, "runs": end.runs}


def _bytes_shape(data: bytes) -> "str | dict[str, str]":
    """Return bytes as text where they are UTF-8 and not too many, else as base64."""
    try:
        # In JSON a character may take six times its bytes, and a line that import takes has an end.
        return data.decode() if len(data) <= MAX_TEXT_BYTES else _base64(data)
    except UnicodeDecodeError:
        return _base64(data)


def _base64(data: bytes) -> "dict[str, str]":
    return {"base64": base64.b64encode(data).decode()}
