"""Edits: what a person wants different about a job that exists. When it may be is decided in actions/edit.py."""

from queuectl.errors import BadInput
from queuectl.model.fields import FIELDS, MAX_TAGS, PART_OF
from queuectl.model.job import dumps
from queuectl.model.limits import AT_MOST, LIMIT, MUTEX, limit_keys, names_in
from queuectl.model.needs import Needs, read_needs
from queuectl.model.spec import check_together, read_fields
from queuectl.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from queuectl.model.job import Job

_FIXED = frozenset(
    {"id", "hold", "input", "unique", "unique_for", "on_conflict", "group", "max_failures", "on_group_done"}
)
"""What a job has from the start, or its group."""
EDITABLE = [name for name in FIELDS if name not in _FIXED]
DEFAULT = "default"
NONE = "none"
_TIMES = ("run_at", "delay_ms")
# Where the word `none` takes back what was asked for: the field of a JobSpec, or of a part of it, that is unset.
_UNSET = {
    "needs": "needs",
    "use": "use",
    "mutex": "mutexes",
    "limits": "limits",
    "at_most": "at_most",
    "after": "after",
    "on_dead_dependency": "on_dead",
    "deadline": "deadline_ms",
    "retry_on": "retry_on",
    "no_retry_on": "no_retry_on",
    "success_codes": "success_codes",
    "snooze_codes": "snooze_codes",
    "memory": "memory_bytes",
    "cpu_seconds": "cpu_seconds",
    "nofile": "nofile",
    "file_size": "file_size_bytes",
    "nice": "nice",
    "umask": "umask",
    "shell": "shell",
    "stdin": "stdin_file",
    "secrets": "secrets",
}

# What a person calls what a JobSpec, or a part of it, has another name for.
_OUTER = {
    "mutexes": "mutex",
    "on_dead": "on_dead_dependency",
    "strategy": "backoff_strategy",
    "base": "backoff_base",
    "jitter": "backoff_jitter",
    "max_ms": "max_backoff_seconds",
    "fixed_ms": "job_retry_delay",
    "memory_bytes": "memory",
    "file_size_bytes": "file_size",
    "stdin_file": "stdin",
}


class Edit(Value):
    """What is to be different; what is not named stays. `values` are those of a JobSpec, of which None is a default."""

    values: "dict[str, object]"
    parts: "dict[str, dict[str, object]]"
    """What changes of its backoff, policy and launch; None takes a thing back."""
    env: "dict[str, str]"
    unset_env: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    untags: tuple[str, ...] = ()
    has_no_tags: bool = False
    """Whether the tags the job has go, before those in `tags` come."""

    @property
    def names(self) -> list[str]:
        """What it changes, without the values: those may be secrets."""
        others = {"env": self.env or self.unset_env, "tags": not self.is_without_tags}
        parts = [name for part in self.parts.values() for name in part]
        inner = [*self.values, *(name for name, is_changed in others.items() if is_changed), *parts]
        return [_OUTER.get(name, name.removesuffix("_ms")) for name in inner]

    @property
    def limit_keys(self) -> list[str]:
        """The limits it gives to jobs, by key."""
        given = (self.values.get(name) or () for name in ("mutexes", "limits", "at_most"))
        return limit_keys(*given)  # type: ignore[arg-type]

    @property
    def is_without_tags(self) -> bool:
        """Whether the tags stay as they are."""
        return not (self.tags or self.untags or self.has_no_tags)

    @property
    def has_time(self) -> bool:
        """Whether it says when the job is to run."""
        return any(name in self.values for name in _TIMES)

    @property
    def is_of_tags_alone(self) -> bool:
        """Whether nothing but tags changes, which a running job can bear."""
        return not (self.values or self.parts or self.env or self.unset_env)

    def run_at(self, now_ms: int) -> int:
        """Return when the job is to run."""
        at, delay = self.values.get("run_at"), self.values.get("delay_ms")
        return at if isinstance(at, int) else now_ms + (delay if isinstance(delay, int) else 0)


def edit_from_fields(
    fields: "Mapping[str, object]",
    now_ms: int,
    *,
    unset_env: "Sequence[str]" = (),
    untags: "Sequence[str]" = (),
    has_no_tags: bool = False,
) -> Edit:
    """Check named values: `tags` and `env` are added to what the job has; `default` and `none` take things back."""
    given = {name: value for name, value in fields.items() if value is not None}
    by_setting = given.get("timeout") == DEFAULT
    if by_setting:
        del given["timeout"]
    unset = [name for name in _UNSET if given.get(name) == NONE]
    if str(given.get("deadline")) == "0":
        raise BadInput("deadline 0 is over before the job can run", hint=f"take it back with: --deadline {NONE}")
    for name in unset:
        del given[name]
    values, parts = read_fields(given, now_ms, EDITABLE)
    for name in unset:
        (parts.setdefault(PART_OF[name], {}) if name in PART_OF else values)[_UNSET[name]] = None
    if by_setting:
        values["timeout_ms"] = None
    env, tags = values.pop("env", {}), values.pop("tags", ())
    edit = Edit(
        values=values,
        parts=parts,
        env=env if isinstance(env, dict) else {},
        unset_env=tuple(unset_env),
        tags=tags if isinstance(tags, tuple) else (),
        untags=tuple(untags),
        has_no_tags=has_no_tags,
    )
    if edit == Edit(values={}, parts={}, env={}):
        raise BadInput("nothing to change", hint="say what: e.g. --priority 10, --queue mail, --command './fixed.sh'")
    return edit


def edited(job: "Job", edit: Edit, now_ms: int) -> "Job":
    """Return the job as it is to be, all but its time, its state and its lane."""
    columns = {name: value for name, value in edit.values.items() if name not in (*_TIMES, *_ASKED)}
    if "command" in columns or "argv" in columns:
        argv = columns.get("argv")
        columns = {**columns, "command": columns.get("command"), "argv": None if argv is None else dumps(argv)}
    if "split_output" in columns:
        columns["split_output"] = int(bool(columns["split_output"]))
    columns |= _asked(job, edit)
    own = {"backoff": job.own_backoff_map, "policy": job.policy_map, "launch": job.launch_map}
    for part, changes in edit.parts.items():
        whole = {name: value for name, value in {**own[part], **changes}.items() if value is not None}
        if "stdin_file" in changes:
            whole.pop("has_input", None)  # what was kept with the job is read no more
        columns[part] = dumps(whole) if whole else None
    if edit.env or edit.unset_env:
        env = {name: value for name, value in job.env_map.items() if name not in edit.unset_env} | edit.env
        columns["env"] = dumps(env) if env else None
    if not edit.is_without_tags:
        kept = [] if edit.has_no_tags else [tag for tag in job.tag_list if tag not in edit.untags]
        tags = list(dict.fromkeys([*kept, *edit.tags]))
        if len(tags) > MAX_TAGS:
            raise BadInput(f"job {job.id} would have {len(tags)} tags; the limit is {MAX_TAGS}")
        columns["tags"] = dumps(tags) if tags else None
    after = job.replace(**columns)
    check_together(has_argv=after.argv is not None, env=after.env_map, policy=after.policy_map, launch=after.launch_map)
    return after.replace(deadline_at=_deadline_at(after, edit, now_ms))


def _deadline_at(job: "Job", edit: Edit, now_ms: int) -> int | None:
    """Return when the time of a job is over: one given now counts from now, or from when it is first to run."""
    has_run = job.run > 0
    if job.deadline_ms is None:
        return None
    if "deadline_ms" not in edit.values and (has_run or not edit.has_time):
        return job.deadline_at
    first_run_at = edit.run_at(now_ms) if edit.has_time else job.run_at
    return job.deadline_ms + (now_ms if has_run else max(now_ms, first_run_at or 0))


_ASKED = ("needs", "use", "mutexes", "limits", "at_most", "deadline_ms", "after")


_LIMITS = {"mutexes": MUTEX, "limits": LIMIT, "at_most": AT_MOST}


def _asked(job: "Job", edit: Edit) -> "dict[str, object]":
    """Return the columns of what it asks of workers, limits and time; what is not named stays."""
    values = {name: value for name, value in edit.values.items() if name in _ASKED}
    columns: dict[str, object] = {}
    if "needs" in values or "use" in values:
        had = read_needs(job.needs or "")
        labels, use = values.get("needs", had.labels) or (), values.get("use", had.use) or {}
        columns["needs"] = Needs(labels=labels, use=use).text or None  # type: ignore[arg-type]
    if not values.keys().isdisjoint(_LIMITS):
        named = (values.get(name, names_in(job.limit_list, kind)) or () for name, kind in _LIMITS.items())
        keys = limit_keys(*named)  # type: ignore[arg-type]
        columns["limits"] = dumps(keys) if keys else None
    if "deadline_ms" in values:
        columns["deadline_ms"] = values["deadline_ms"]
    return columns
