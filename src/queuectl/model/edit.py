"""Edits: what a person wants different about a job that exists. When it may be is decided in actions/edit.py."""

from queuectl.errors import BadInput
from queuectl.model.job import dumps
from queuectl.model.spec import FIELDS, MAX_TAGS, read_fields
from queuectl.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from queuectl.model.job import Job

EDITABLE = [name for name in FIELDS if name not in ("id", "hold")]
DEFAULT = "default"
_TIMES = ("run_at", "delay_ms")


class Edit(Value):
    """What is to be different; what is not named stays. `values` are those of a JobSpec, of which None is a default."""

    values: "dict[str, object]"
    backoff: "dict[str, object]"
    env: "dict[str, str]"
    unset_env: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    untags: tuple[str, ...] = ()
    has_no_tags: bool = False
    """Whether the tags the job has go, before those in `tags` come."""

    @property
    def names(self) -> list[str]:
        """What it changes, without the values: those may be secrets."""
        parts = {"env": self.env or self.unset_env, "tags": not self.is_without_tags, "backoff": self.backoff}
        return [*(name.removesuffix("_ms") for name in self.values), *(name for name, part in parts.items() if part)]

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
        return not (self.values or self.backoff or self.env or self.unset_env)

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
    """Check named values: `tags` and `env` are added to what the job has, a timeout may be `default`."""
    given = {name: value for name, value in fields.items() if value is not None}
    by_setting = given.get("timeout") == DEFAULT
    if by_setting:
        del given["timeout"]
    values, backoff = read_fields(given, now_ms, EDITABLE)
    if by_setting:
        values["timeout_ms"] = None
    env, tags = values.pop("env", {}), values.pop("tags", ())
    edit = Edit(
        values=values,
        backoff=backoff,
        env=env if isinstance(env, dict) else {},
        unset_env=tuple(unset_env),
        tags=tags if isinstance(tags, tuple) else (),
        untags=tuple(untags),
        has_no_tags=has_no_tags,
    )
    if edit == Edit(values={}, backoff={}, env={}):
        raise BadInput("nothing to change", hint="say what: e.g. --priority 10, --queue mail, --command './fixed.sh'")
    return edit


def edited(job: "Job", edit: Edit) -> "Job":
    """Return the job as it is to be, all but its time, its state and its lane."""
    columns = {name: value for name, value in edit.values.items() if name not in _TIMES}
    if "command" in columns or "argv" in columns:
        argv = columns.get("argv")
        columns = {**columns, "command": columns.get("command"), "argv": None if argv is None else dumps(argv)}
    if "split_output" in columns:
        columns["split_output"] = int(bool(columns["split_output"]))
    if edit.backoff:
        columns["backoff"] = dumps({**job.own_backoff_map, **edit.backoff})
    if edit.env or edit.unset_env:
        env = {name: value for name, value in job.env_map.items() if name not in edit.unset_env} | edit.env
        columns["env"] = dumps(env) if env else None
    if not edit.is_without_tags:
        kept = [] if edit.has_no_tags else [tag for tag in job.tag_list if tag not in edit.untags]
        tags = list(dict.fromkeys([*kept, *edit.tags]))
        if len(tags) > MAX_TAGS:
            raise BadInput(f"job {job.id} would have {len(tags)} tags; the limit is {MAX_TAGS}")
        columns["tags"] = dumps(tags) if tags else None
    return job.replace(**columns)
