"""Checking what people hand in: from JSON, flags or a plain line to a JobSpec, or an error that says what to mend."""

import re

from queuectl.errors import BadInput, UnknownName
from queuectl.model.job import JobSpec
from queuectl.model.retry import BackoffStrategy
from queuectl.model.units import DURATION_HELP, TIME_HELP, duration_ms, time_ms

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

MAX_COMMAND_BYTES = 1 << 20
MAX_WORD_BYTES = (128 << 10) - 1
MAX_NAME_LENGTH = 128
MAX_TAGS = 32
MAX_RETRIES = 1_000_000
MAX_PRIORITY = 1_000_000_000
RESERVED_VARIABLES = "QUEUECTL_"

# Texts, compiled when first used: each costs `queuectl enqueue` a third of a millisecond.
_ID = r"[A-Za-z0-9][A-Za-z0-9._-]*"
_BARE_KEY = r"\{\s*\w+\s*:"
_RANGE = r"\d+-\d+"


def looks_like_json(word: str) -> bool:
    """Whether a word is a JSON job rather than a shell line: `{`, blanks, then `"` or `}`."""
    inner = word.lstrip()
    return inner[:1] == "{" and inner[1:].lstrip()[:1] in ('"', "}")


def refuse_almost_json(line: str) -> None:
    """Refuse what is meant as JSON but would run as a shell line: an array, an object over several lines, bare keys."""
    inner = line.strip()
    if inner in ("{", "}", "[", "]", "},", "],") or inner.startswith(("[{", '["', "{'")) or re.match(_BARE_KEY, inner):
        raise BadInput(
            f"{_shown(inner)} looks like JSON but is not one job on one line",
            hint="write one object per line with names in double quotes; for an array: jq -c '.[]' file",
        )


def spec_from_json(text: str, now_ms: int, base: JobSpec, *, is_line: bool = False) -> JobSpec:
    """Read a JSON job over the values in `base`; of one line among many, the column alone says where it is broken."""
    import json  # plain lines do without it

    try:
        fields = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise BadInput(
            _broken(error, is_line=is_line), hint='write e.g. {"id": "job1", "command": "sleep 2"}'
        ) from None
    if not isinstance(fields, dict):
        raise BadInput("a JSON job is an object", hint='write e.g. {"id": "job1", "command": "sleep 2"}')
    return spec_from_fields(fields, now_ms, base)


def spec_from_fields(fields: "Mapping[str, object]", now_ms: int, base: JobSpec) -> JobSpec:
    """Check named values and lay them over `base`; the whole must be a job that can run."""
    changes, backoff = read_fields(fields, now_ms, list(FIELDS))
    if backoff:
        changes["backoff"] = {**(base.backoff or {}), **backoff}
    if "run_at" in changes or "delay_ms" in changes:
        base = base.replace(run_at=None, delay_ms=None)  # the one given here takes the place of either
    if "command" in changes or "argv" in changes:
        base = base.replace(command=None, argv=None)
    spec = base.replace(**changes)
    if spec.command is None and spec.argv is None:
        raise BadInput("the job has no command", hint="give a command (a shell line) or argv (a list of words)")
    return spec


def read_fields(
    fields: "Mapping[str, object]", now_ms: int, known: "list[str]"
) -> "tuple[dict[str, object], dict[str, object]]":
    """Check named values and return them by the fields of a JobSpec, those of its backoff apart; None says nothing."""
    changes: dict[str, object] = {}
    backoff: dict[str, object] = {}
    for name, value in fields.items():
        if name not in known:
            raise UnknownName.among("field", name, known)
        if value is None:
            continue
        target, checked = FIELDS[name](name, value, now_ms)
        (backoff if name in BACKOFF_FIELDS else changes)[target] = checked
    if "run_at" in changes and "delay_ms" in changes:
        raise BadInput("give either run_at or delay, not both")
    if "command" in changes and "argv" in changes:
        raise BadInput("give either command (a shell line) or argv (an argument vector), not both")
    return changes, backoff


def check_command(name: str, value: object) -> str:
    """Return a shell line that can be stored and run, or raise."""
    line = _text(name, value)
    if not line.strip():
        raise BadInput(f"{name} is empty", hint="give the shell line to run")
    if len(line) > MAX_COMMAND_BYTES // 4 and len(line.encode()) > MAX_COMMAND_BYTES:
        size = len(line.encode())
        raise BadInput(
            f"{name} has {size} bytes; the limit is {MAX_COMMAND_BYTES}",
            hint="put it in a script and enqueue that",
        )
    return line


def check_given_id(name: str, value: object) -> str:
    """Return an id a person may give, or raise."""
    text = check_name(name, value)
    if text.isdigit() or re.fullmatch(_RANGE, text, re.ASCII) or text == "last":
        raise BadInput(
            f"bad id {text!r}: numbers, ranges such as 3-9 and 'last' name jobs by their place", hint="add a letter"
        )
    return text


def check_name(name: str, value: object) -> str:
    """Return a queue name, a tag or an id, or raise."""
    text = _text(name, value)
    if not re.fullmatch(_ID, text, re.ASCII) or len(text) > MAX_NAME_LENGTH:
        raise BadInput(
            f"bad {name} {_shown(text)}",
            hint="begin with a letter or digit, then letters, digits, '.', '_' or '-', at most 128",
        )
    return text


def _command(name: str, value: object, _now_ms: int) -> tuple[str, object]:
    return "command", check_command(name, value)


def _argv(name: str, value: object, _now_ms: int) -> tuple[str, object]:
    if not isinstance(value, list | tuple) or not value:
        raise _wrong(name, value, "a list of words")
    words = tuple(_text(name, word) for word in value)
    if not words[0]:
        raise BadInput(f"{name}: the program name is empty")
    for word in words:
        _check_word(f"a word of {name}", word)
    if sum(len(word.encode()) for word in words) > MAX_COMMAND_BYTES:
        raise BadInput(f"{name} has more than {MAX_COMMAND_BYTES} bytes", hint="pass a file name instead")
    return "argv", words


def _given_id(name: str, value: object, _now_ms: int) -> tuple[str, object]:
    return "given_id", check_given_id(name, value)


def _queue(name: str, value: object, _now_ms: int) -> tuple[str, object]:
    return "queue", check_name(name, value)


def _priority(name: str, value: object, _now_ms: int) -> tuple[str, object]:
    return "priority", _whole(name, value, -MAX_PRIORITY, MAX_PRIORITY)


def _run_at(name: str, value: object, now_ms: int) -> tuple[str, object]:
    if not isinstance(value, str):
        raise _wrong(name, value, f"a time such as {TIME_HELP}")
    return "run_at", time_ms(value, now_ms)


def _delay(name: str, value: object, _now_ms: int) -> tuple[str, object]:
    return "delay_ms", _duration(name, value)


def _max_retries(name: str, value: object, _now_ms: int) -> tuple[str, object]:
    return "max_retries", _whole(name, value, 0, MAX_RETRIES)


def _timeout(name: str, value: object, _now_ms: int) -> tuple[str, object]:
    return "timeout_ms", _duration(name, value)


def _backoff_strategy(name: str, value: object, _now_ms: int) -> tuple[str, object]:
    text = _text(name, value)
    if text not in list(BackoffStrategy):
        raise UnknownName.among(name, text, list(BackoffStrategy))
    return "strategy", text


def _backoff_base(name: str, value: object, _now_ms: int) -> tuple[str, object]:
    return "base", _fraction(name, value, 0, 1_000_000)


def _backoff_jitter(name: str, value: object, _now_ms: int) -> tuple[str, object]:
    return "jitter", _fraction(name, value, 0, 1)


def _max_backoff(name: str, value: object, _now_ms: int) -> tuple[str, object]:
    return "max_ms", _duration(name, value)


def _retry_delay(name: str, value: object, _now_ms: int) -> tuple[str, object]:
    return "fixed_ms", _duration(name, value)


def _cwd(name: str, value: object, _now_ms: int) -> tuple[str, object]:
    text = _text(name, value)
    if not text.startswith("/"):
        raise BadInput(f"{name} must be an absolute path, not {_shown(text)}")
    _check_word(name, text)
    return "cwd", text


def _env(name: str, value: object, _now_ms: int) -> tuple[str, object]:
    if not isinstance(value, dict):
        raise _wrong(name, value, "an object of names and values")
    for key, text in value.items():
        _text(name, key)
        _check_word(f"{name} {key}", f"{key}={_text(f'{name} {key}', text)}")
        if not key or "=" in key:
            raise BadInput(f"bad variable name {_shown(key)} in {name}", hint="write NAME=VALUE")
        if key.startswith(RESERVED_VARIABLES):
            raise BadInput(
                f"{name}: {key} is set by queuectl itself",
                hint=f"names in {RESERVED_VARIABLES}* are reserved",
            )
    return "env", dict(value)


def _tags(name: str, value: object, _now_ms: int) -> tuple[str, object]:
    if not isinstance(value, list | tuple):
        raise _wrong(name, value, "a list of tags")
    if len(value) > MAX_TAGS:
        raise BadInput(f"{len(value)} tags; the limit is {MAX_TAGS}")
    return "tags", tuple(dict.fromkeys(check_name("tag", tag) for tag in value))


def _switch(name: str, value: object, _now_ms: int) -> tuple[str, object]:
    if not isinstance(value, bool):
        raise _wrong(name, value, "true or false")
    return name, value


FIELDS: "dict[str, Callable[[str, object, int], tuple[str, object]]]" = {
    "id": _given_id,
    "command": _command,
    "argv": _argv,
    "queue": _queue,
    "priority": _priority,
    "run_at": _run_at,
    "delay": _delay,
    "max_retries": _max_retries,
    "timeout": _timeout,
    "backoff_strategy": _backoff_strategy,
    "backoff_base": _backoff_base,
    "max_backoff_seconds": _max_backoff,
    "backoff_jitter": _backoff_jitter,
    "job_retry_delay": _retry_delay,
    "cwd": _cwd,
    "env": _env,
    "tags": _tags,
    "split_output": _switch,
    "hold": _switch,
}
BACKOFF_FIELDS = frozenset(
    {"backoff_strategy", "backoff_base", "max_backoff_seconds", "backoff_jitter", "job_retry_delay"}
)


def _text(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise _wrong(name, value, "text")
    if value.isascii():
        if "\0" in value:
            raise BadInput(f"{name} holds a NUL byte", hint="no command or variable can carry one")
        return value
    try:
        value.encode()
    except UnicodeEncodeError:
        raise BadInput(f"{name} is not valid UTF-8") from None
    if "\0" in value:
        raise BadInput(f"{name} holds a NUL byte", hint="no command or variable can carry one")
    return value


def _check_word(name: str, word: str) -> None:
    if len(word) > MAX_WORD_BYTES // 4 and len(word.encode()) > MAX_WORD_BYTES:
        raise BadInput(
            f"{name} has {len(word.encode())} bytes; the kernel takes less than 128 KiB",
            hint="pass it in a file",
        )


def _whole(name: str, value: object, low: int, high: int) -> int:
    if isinstance(value, str) and re.fullmatch(r"[+-]?\d{1,30}", value.strip(), re.ASCII):
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        raise _wrong(name, value, "a whole number")
    if not low <= value <= high:
        raise BadInput(f"{name} {value} is out of range", hint=f"give {low} to {high}")
    return value


def _fraction(name: str, value: object, low: float, high: float) -> float:
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            raise _wrong(name, value, "a number") from None
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise _wrong(name, value, "a number")
    if not low <= value <= high:  # also catches NaN
        raise BadInput(f"{name} {value} is out of range", hint=f"give {low:g} to {high:g}")
    return float(value)


def _duration(name: str, value: object) -> int:
    if isinstance(value, int | float) and not isinstance(value, bool):
        if not 0 <= value <= 1e10:
            raise BadInput(f"{name} {value} is out of range", hint=f"write {DURATION_HELP}")
        value = f"{value:f}"
    if not isinstance(value, str):
        raise _wrong(name, value, f"a duration such as {DURATION_HELP}")
    try:
        return duration_ms(value)
    except BadInput as error:
        raise BadInput(f"{name}: {error.message}", hint=error.hint) from None


def _wrong(name: str, value: object, wanted: str) -> BadInput:
    return BadInput(f"{name} must be {wanted}, not {_shown(value)}")


def _shown(value: object) -> str:
    import json

    text = json.dumps(value, ensure_ascii=True, default=str)
    return text if len(text) <= 80 else f"{text[:77]}..."


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
