"""Fields: what Python hands in and gets back, from and to what the store holds."""

import os
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from queuectl.clock import wall_ms
from queuectl.errors import BadInput, UnknownName
from queuectl.model.checks import check_name, check_own_name
from queuectl.model.job import JobSpec
from queuectl.model.spec import spec_from_fields
from queuectl.model.states import STATE_NAMES, State, hindrances
from queuectl.model.units import duration_ms, time_ms
from queuectl.store.jobs import Filter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypedDict

    from queuectl.api.job import Job

    Command = str | Sequence[str]
    Duration = float | str | timedelta
    Time = str | datetime
    Words = str | Sequence[str]
    Path = str | os.PathLike[str]

    class Changeable(TypedDict, total=False):
        """What can be said of a job when it is added, and changed later."""

        queue: str
        priority: int
        delay: Duration
        run_at: Time
        max_retries: int
        timeout: Duration
        backoff_strategy: str
        backoff_base: float
        backoff_jitter: float
        max_backoff_seconds: Duration
        job_retry_delay: Duration
        cwd: Path
        env: Mapping[str, str]
        tags: Sequence[str]
        split_output: bool
        needs: Words
        use: str | Mapping[str, int | str]
        mutex: Words
        limits: Words
        at_most: Words
        after: Job | int | str | Sequence[Job | int | str]
        on_dead_dependency: str
        deadline: Duration
        retry_on: int | str | Sequence[int | str]
        no_retry_on: int | str | Sequence[int | str]
        success_codes: int | str | Sequence[int | str]
        snooze_codes: str | Mapping[int, Duration]
        memory: int | str
        cpu_seconds: Duration
        nofile: int | str
        file_size: int | str
        nice: int | str
        umask: int | str
        shell: str
        stdin: Path
        secrets: Words

    class JobOptions(Changeable, total=False):
        """What can be said of a job beside its command; what is left out is as on the command line."""

        id: str
        hold: bool
        input: str | bytes
        unique: str
        unique_for: Duration
        on_conflict: str
        group: str
        max_failures: int | str
        on_group_done: str

    class EditOptions(Changeable, total=False):
        """What can be different about a job that exists; the word `none` takes back what it asked for."""

        command: str
        argv: Sequence[str]

    class Choice(TypedDict, total=False):
        """Which jobs are meant; every part that is given must hold."""

        states: Sequence[State | str]
        queue: str
        tags: Sequence[str]
        group: str
        command: str
        error: str
        since: Duration | Time
        until: Duration | Time
        ended_since: Duration | Time


def spec_of(command: "Command", options: "Mapping[str, object]", now: int) -> JobSpec:
    """Check a job: a shell line or a list of words, and its options."""
    if isinstance(command, str):
        return spec_of_fields({**options, "command": command}, now)
    return spec_of_fields({**options, "argv": list(command)}, now)


def spec_of_any(job: "Command | Mapping[str, object]", now: int) -> JobSpec:
    """Check a job given as a shell line, a list of words or the fields of a JSON job."""
    return spec_of_fields(job, now) if isinstance(job, Mapping) else spec_of(job, {}, now)


def spec_of_fields(fields: "Mapping[str, object]", now: int) -> JobSpec:
    """Check a job given as the fields of a JSON job, with Python's own types where it has them."""
    plain = plain_fields(fields)
    return spec_from_fields(plain, now, JobSpec(cwd=None if "cwd" in plain else os.getcwd()))


def plain_fields(fields: "Mapping[str, object]") -> dict[str, object]:
    """Return the fields of a job as JSON would hold them."""
    plain = {name: _plain(value) for name, value in fields.items()}
    if type(plain.get("umask")) is int:
        plain["umask"] = f"{plain['umask']:o}"  # Python writes 0o027, and JSON has no such numbers
    return plain


def filter_of(choice: "Choice") -> Filter:
    """Check which jobs are meant."""
    names = [str(state) for state in choice.get("states", ())]
    for name in names:
        if name not in STATE_NAMES:
            raise UnknownName.among("state", name, list(STATE_NAMES))
    return Filter(
        states=tuple(dict.fromkeys(STATE_NAMES[name] for name in names)),
        hindrances=hindrances(names),
        queue=check_name("queue", choice["queue"]) if "queue" in choice else None,
        tags=tuple(check_name("tag", tag) for tag in choice.get("tags", ())),
        group=check_own_name("group", choice["group"]) if "group" in choice else None,
        text=choice.get("command"),
        error=choice.get("error"),
        since=_ago(choice.get("since")),
        until=_ago(choice.get("until")),
        ended_since=_ago(choice.get("ended_since")),
    )


def time_of(ms: int) -> datetime:
    """Return a time of the store."""
    return datetime.fromtimestamp(ms / 1000, UTC)


def time_or_none(ms: int | None) -> datetime | None:
    """Return a time of the store that may not be there."""
    return None if ms is None else time_of(ms)


def _plain(value: object) -> object:
    """Turn what Python has a type for into what a JSON job would hold."""
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, datetime):
        return value.astimezone().isoformat()
    if isinstance(value, os.PathLike):
        return os.path.abspath(value)
    if isinstance(value, Mapping):
        return {key: _plain(part) for key, part in value.items()}
    return value


def _ago(value: "Duration | Time | None") -> int | None:
    """Read a time, or how long ago it was."""
    if value is None:
        return None
    if isinstance(value, datetime):
        return round(value.timestamp() * 1000)
    if isinstance(value, timedelta):
        return wall_ms() - round(value.total_seconds() * 1000)
    try:
        return wall_ms() - duration_ms(str(value))
    except BadInput:
        return time_ms(str(value), wall_ms())
