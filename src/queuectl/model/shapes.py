"""Shapes: how jobs, runs, workers and queues look as JSON, the same on the command line and over HTTP."""

import json

from queuectl.model.fields import PARTS
from queuectl.model.limits import AT_MOST, LIMIT, MUTEX, key_words, names_in
from queuectl.model.needs import read_needs
from queuectl.model.states import State
from queuectl.model.units import iso_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from queuectl.model.attempt import Attempt
    from queuectl.model.job import Job

    Shape = dict[str, object]


def job_shape(job: "Job") -> "Shape":
    """Return a job; `attempts` is the number of charged runs."""
    shape: Shape = {
        "id": job.id,
        "number": job.seq,
        "state": job.state.value,
        "command": job.command,
        "argv": job.argv_list,
        "queue": job.queue,
        "priority": job.priority,
        "attempts": job.attempts,
        "max_retries": job.max_retries,
        "losses": job.losses,
        "run": job.run,
        "run_at": time_shape(job.run_at),
        "created_at": iso_text(job.created_at),
        "updated_at": iso_text(job.updated_at),
        "started_at": time_shape(job.started_at),
        "finished_at": time_shape(job.finished_at),
        "exit_code": job.exit_code,
        "error": job.error,
        "timeout": None if job.timeout_ms is None else job.timeout_ms / 1000,
        "backoff": _backoff_shape(job),
        "cwd": job.cwd,
        "env": job.env_map,
        "tags": job.tag_list,
        "split_output": bool(job.split_output),
        "held_at": time_shape(job.held_at),
        **asked_shape(job),
        "policy": policy_shape(job),
        "launch": launch_shape(job),
        "deadline": None if job.deadline_ms is None else job.deadline_ms / 1000,
        "deadline_at": time_shape(job.deadline_at),
        "parked_for": None if job.parked_for is None else key_words(job.parked_for),
        "waits_for_jobs": job.waits_for,
        "on_dead_dependency": job.on_dead,
        "unique": job.unique_key,
        "unique_for": None if job.unique_for_ms is None else job.unique_for_ms / 1000,
        "group": job.group_name,
        "units": job.unit_map,
        "worker": job.worker_id,
        "cancel_requested": bool(job.cancel_requested),
    }
    return shape


def asked_shape(job: "Job") -> "Shape":
    """Return what a job asks of a worker and which limits it must stay within, as `enqueue` takes it."""
    needs = read_needs(job.needs or "")
    return {
        "needs": list(needs.labels),
        "use": needs.use,
        "mutex": names_in(job.limit_list, MUTEX),
        "limits": names_in(job.limit_list, LIMIT),
        "at_most": names_in(job.limit_list, AT_MOST),
    }


def policy_shape(job: "Job") -> "Shape | None":
    """Return what a job says of the ends of its runs, as `enqueue` takes it; null when nothing."""
    parts = job.policy_map
    snooze = parts.get("snooze_codes")
    if isinstance(snooze, dict):
        parts["snooze_codes"] = {code: delay_ms / 1000 for code, delay_ms in snooze.items()}
    return parts or None


def launch_shape(job: "Job") -> "Shape | None":
    """Return what a job asks of the process that runs it, as `enqueue` takes it; null when nothing."""
    shape: Shape = {_LAUNCH_NAMES.get(name, name): value for name, value in job.launch_map.items()}
    if isinstance(shape.get("umask"), int):
        shape["umask"] = f"{shape['umask']:03o}"
    return shape or None


_LAUNCH_NAMES = {"memory_bytes": "memory", "file_size_bytes": "file_size", "stdin_file": "stdin"}


def changes_shape(before: "Job", after: "Job") -> "dict[str, Shape]":
    """Return what differs between two versions of a job, each by the name that `enqueue` has for it."""
    old, new = _flat(job_shape(before)), _flat(job_shape(after))
    return {
        name: {"from": old.get(name), "to": new.get(name)}
        for name in {**old, **new}
        if name != "updated_at" and old.get(name) != new.get(name)
    }


def _flat(shape: "Shape") -> "Shape":
    flat: Shape = {}
    for name, value in shape.items():
        flat |= (value if isinstance(value, dict) else {}) if name in PARTS else {name: value}
    return flat


def attempt_shape(attempt: "Attempt") -> "Shape":
    """Return one run; the one under way has no `finished_at` and no outcome."""
    return {
        "run": attempt.run,
        "attempt": attempt.attempt,
        "worker": attempt.worker_id,
        "host": attempt.host,
        "started_at": iso_text(attempt.started_at),
        "finished_at": time_shape(attempt.finished_at),
        "waited_ms": attempt.waited_ms,
        "outcome": None if attempt.outcome is None else attempt.outcome.value,
        "exit_code": attempt.exit_code,
        "signal": attempt.signal,
        "error": attempt.error,
        "cpu_ms": attempt.cpu_ms,
        "peak_memory_bytes": attempt.peak_memory_bytes,
        "output_bytes": attempt.output_bytes,
        "output_file": attempt.output_file,
        "output_tail": attempt.output_tail.decode(errors="replace"),
        "stderr_bytes": attempt.stderr_bytes,
        "stderr_file": attempt.stderr_file,
        "stderr_tail": None if attempt.stderr_tail is None else attempt.stderr_tail.decode(errors="replace"),
    }


def counts_shape(counts: "Mapping[State, int]") -> "Shape":
    """Return how many jobs are in each state, every state named."""
    return {state.value: counts.get(state, 0) for state in State}


def _backoff_shape(job: "Job") -> "Shape | None":
    if job.backoff is None:
        return None
    own = json.loads(job.backoff)
    names = {"strategy": "backoff_strategy", "base": "backoff_base", "jitter": "backoff_jitter"}
    shape: Shape = {names[key]: value for key, value in own.items() if key in names}
    if "max_ms" in own:
        shape["max_backoff_seconds"] = own["max_ms"] / 1000
    if "fixed_ms" in own:
        shape["job_retry_delay"] = own["fixed_ms"] / 1000
    return shape


def time_shape(ms: int | None) -> str | None:
    """Return a time, or null."""
    return None if ms is None else iso_text(ms)
