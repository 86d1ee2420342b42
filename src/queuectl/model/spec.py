"""Checking what people hand in: from JSON, flags or a plain line to a JobSpec, or an error that says what to mend."""

import re
from functools import cache

from queuectl.errors import BadInput, UnknownName
from queuectl.model.checks import shown_value, wrong_kind
from queuectl.model.fields import FIELDS, PART_OF, PARTS
from queuectl.model.job import JobSpec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from json import JSONDecoder

# A text, compiled when first used: each costs `queuectl enqueue` a third of a millisecond.
_BARE_KEY = r"\{\s*\w+\s*:"
_EITHER = (("run_at", "delay_ms"), ("command", "argv"))


def looks_like_json(word: str) -> bool:
    """Whether a word is a JSON job rather than a shell line: `{`, blanks, then `"` or `}`."""
    inner = word.lstrip()
    return inner[:1] == "{" and inner[1:].lstrip()[:1] in ('"', "}")


def refuse_almost_json(line: str) -> None:
    """Refuse what is meant as JSON but would run as a shell line: an array, an object over several lines, bare keys."""
    inner = line.strip()
    if inner in ("{", "}", "[", "]", "},", "],") or inner.startswith(("[{", '["', "{'")) or re.match(_BARE_KEY, inner):
        raise BadInput(
            f"{shown_value(inner)} looks like JSON but is not one job on one line",
            hint="write one object per line with names in double quotes; for an array: jq -c '.[]' file",
        )


def spec_from_json(
    text: str, now_ms: int, base: JobSpec, *, is_line: bool = False, is_partial: bool = False
) -> JobSpec:
    """Read a JSON job over the values in `base`; of one line among many, the column alone says where it is broken."""
    try:
        fields = json_decoder().decode(text)
    except (ValueError, RecursionError) as error:
        raise BadInput(
            _broken(error, is_line=is_line), hint='write e.g. {"id": "job1", "command": "sleep 2"}'
        ) from None
    if not isinstance(fields, dict):
        raise BadInput("a JSON job is an object", hint='write e.g. {"id": "job1", "command": "sleep 2"}')
    return spec_from_fields(fields, now_ms, base, is_partial=is_partial)


@cache
def json_decoder() -> "JSONDecoder":
    """Return what reads JSON as the standard has it."""
    import json  # plain lines do without it

    return json.JSONDecoder(parse_constant=_no_constant)


def spec_from_fields(
    fields: "Mapping[str, object]", now_ms: int, base: JobSpec, *, is_partial: bool = False
) -> JobSpec:
    """Check named values and lay them over `base`; the whole must be a job that can run.

    `is_partial` says that more is laid over it later, so what belongs together may still be missing.
    """
    changes, parts = read_fields(fields, now_ms, FIELDS)
    for part, own in parts.items():
        changes[part] = {**(getattr(base, part) or {}), **own}
    for one, other in _EITHER:  # the one given here takes the place of either
        if one in changes:
            changes[other] = None
        elif other in changes:
            changes[one] = None
    spec = base.replace(**changes)
    if spec.command is None and spec.argv is None:
        raise BadInput("the job has no command", hint="give a command (a shell line) or argv (a list of words)")
    if spec.policy is not None or spec.launch is not None or spec.input is not None:
        launch = spec.launch or {}
        check_together(has_argv=spec.argv is not None, env=spec.env or {}, policy=spec.policy, launch=launch)
        if spec.input is not None and "stdin_file" in launch:
            raise BadInput("give either stdin (a file) or input (the bytes), not both")
    if not is_partial:
        refuse_alone(spec)
    return spec


def refuse_alone(spec: JobSpec) -> None:
    """Refuse what says how something is done that is not asked for."""
    manners = (spec.on_dead, spec.unique_for_ms, spec.on_conflict, spec.max_failures, spec.on_group_done)
    if manners.count(None) == len(manners):
        return  # as most jobs
    for value, name, partner, is_there in (
        (spec.on_dead, "on_dead_dependency", "after", bool(spec.after)),
        (spec.unique_for_ms, "unique_for", "unique", spec.unique_key is not None),
        (spec.on_conflict, "on_conflict", "unique", spec.unique_key is not None),
        (spec.max_failures, "max_failures", "group", spec.group is not None),
        (spec.on_group_done, "on_group_done", "group", spec.group is not None),
    ):
        if value is not None and not is_there:
            raise BadInput(f"{name} is given without {partner}", hint=f"give {partner}, too, or leave it out")


def check_together(
    *,
    has_argv: bool,
    env: "Mapping[str, str]",
    policy: "Mapping[str, object] | None",
    launch: "Mapping[str, object]",
) -> None:
    """Refuse what does not go together, though each is right by itself."""
    if policy:
        from queuectl.model.policy import check_policy

        check_policy(policy)
    if has_argv and "shell" in launch:
        raise BadInput("a shell is given, but an argument vector runs without one", hint="leave out one of them")
    secrets = launch.get("secrets")
    for name in secrets if isinstance(secrets, list) else ():
        if name in env:
            raise BadInput(f"{name} is a secret and a variable in env", hint="leave out one of them")


def read_fields(
    fields: "Mapping[str, object]", now_ms: int, known: "Collection[str]"
) -> "tuple[dict[str, object], dict[str, dict[str, object]]]":
    """Check named values and return them by the fields of a JobSpec, those of its parts apart; None says nothing."""
    changes: dict[str, object] = {}
    parts: dict[str, dict[str, object]] = {}
    if not fields.keys().isdisjoint(PARTS):
        fields = flat_fields(fields)
    for name, value in fields.items():
        if name not in known:
            raise UnknownName.among("field", name, list(known))
        if value is None:
            continue
        target, checked = FIELDS[name](name, value, now_ms)
        if name in PART_OF:
            parts.setdefault(PART_OF[name], {})[target] = checked
        else:
            changes[target] = checked
    if "run_at" in changes and "delay_ms" in changes:
        raise BadInput("give either run_at or delay, not both")
    if "command" in changes and "argv" in changes:
        raise BadInput("give either command (a shell line) or argv (an argument vector), not both")
    return changes, parts


def flat_fields(fields: "Mapping[str, object]") -> "dict[str, object]":
    """Return the fields with those of an inner object, as `show --json` has them, among the others."""
    flat = {name: value for name, value in fields.items() if name not in PARTS}
    for part in PARTS.keys() & fields.keys():
        inner = {} if fields[part] is None else fields[part]
        if not isinstance(inner, dict):
            raise wrong_kind(part, inner, "an object")
        for name in inner:
            if name not in PARTS[part]:
                raise UnknownName.among(f"field of {part}", str(name), sorted(PARTS[part]))
            if name in flat:
                raise BadInput(f"{name} is given twice: in {part} and beside it", hint="leave out one of them")
        flat |= inner
    return flat


def _broken(error: ValueError | RecursionError, *, is_line: bool) -> str:
    """Say what is wrong with JSON, and where."""
    import json

    if isinstance(error, json.JSONDecodeError):
        where = f"column {error.colno}" if is_line else f"line {error.lineno}, column {error.colno}"
        return f"broken JSON at {where}: {error.msg}"
    if isinstance(error, RecursionError):
        return "broken JSON: nested too deeply"
    if "digits" in str(error):
        return "broken JSON: a number has too many digits"
    return f"broken JSON: {error}"


def _no_constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")
