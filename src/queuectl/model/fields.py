"""Fields: what can be said of a job, by name, and how each is checked. A whole job is put together in spec.py."""

import re

from queuectl.errors import BadInput, UnknownName
from queuectl.model.checks import (
    MAX_COMMAND_BYTES,
    as_duration,
    as_fraction,
    as_items,
    as_size,
    as_text,
    as_whole,
    check_command,
    check_given_id,
    check_name,
    check_own_name,
    check_variable,
    check_word,
    shown_value,
    wrong_kind,
)
from queuectl.model.retry import BackoffStrategy
from queuectl.model.units import TIME_HELP, time_ms

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

MAX_TAGS = 32
MAX_LIMITS = 16
MAX_SECRETS = 32
MAX_KEY_LENGTH = 256
MAX_RETRIES = 1_000_000
MAX_PRIORITY = 1_000_000_000
MAX_OPEN_FILES = 1 << 30
MAX_INPUT_BYTES = 16 << 20
RESERVED_VARIABLES = "QUEUECTL_"
INDEX_VARIABLE = "QUEUECTL_ARRAY_INDEX"
SCHEDULE_VARIABLE = "QUEUECTL_SCHEDULE"
INSTANT_VARIABLE = "QUEUECTL_SCHEDULED_FOR"
"""Those of them that are a job's own: its number in an array, who fired it, and for when."""
ENDS_HELP = "75, 64-78, timeout, signal, SIGSEGV, out_of_memory, not_started"


def _command(name: str, value: object, _now_ms: int) -> tuple[str, object]:
    return "command", check_command(name, value)


def _argv(name: str, value: object, _now_ms: int) -> tuple[str, object]:
    if not isinstance(value, list | tuple) or not value:
        raise wrong_kind(name, value, "a list of words")
    words = tuple(as_text(name, word) for word in value)
    if not words[0]:
        raise BadInput(f"{name}: the program name is empty")
    for word in words:
        check_word(f"a word of {name}", word)
    if sum(len(word.encode()) for word in words) > MAX_COMMAND_BYTES:
        raise BadInput(f"{name} has more than {MAX_COMMAND_BYTES} bytes", hint="pass a file name instead")
    return "argv", words


def _given_id(name: str, value: object, _now_ms: int) -> tuple[str, object]:
    return "given_id", check_given_id(name, value)


def _queue(name: str, value: object, _now_ms: int) -> tuple[str, object]:
    return "queue", check_name(name, value)


def _priority(name: str, value: object, _now_ms: int) -> tuple[str, object]:
    return "priority", as_whole(name, value, -MAX_PRIORITY, MAX_PRIORITY)


def _run_at(name: str, value: object, now_ms: int) -> tuple[str, object]:
    if not isinstance(value, str):
        raise wrong_kind(name, value, f"a time such as {TIME_HELP}")
    return "run_at", time_ms(value, now_ms)


def _delay(name: str, value: object, _now_ms: int) -> tuple[str, object]:
    return "delay_ms", as_duration(name, value)


def _max_retries(name: str, value: object, _now_ms: int) -> tuple[str, object]:
    return "max_retries", as_whole(name, value, 0, MAX_RETRIES)


def _timeout(name: str, value: object, _now_ms: int) -> tuple[str, object]:
    return "timeout_ms", as_duration(name, value)


def _backoff_strategy(name: str, value: object, _now_ms: int) -> tuple[str, object]:
    return "strategy", _one_of(name, value, list(BackoffStrategy))


def _backoff_base(name: str, value: object, _now_ms: int) -> tuple[str, object]:
    return "base", as_fraction(name, value, 0, 1_000_000)


def _backoff_jitter(name: str, value: object, _now_ms: int) -> tuple[str, object]:
    return "jitter", as_fraction(name, value, 0, 1)


def _max_backoff(name: str, value: object, _now_ms: int) -> tuple[str, object]:
    return "max_ms", as_duration(name, value)


def _retry_delay(name: str, value: object, _now_ms: int) -> tuple[str, object]:
    return "fixed_ms", as_duration(name, value)


def _cwd(name: str, value: object, _now_ms: int) -> tuple[str, object]:
    return "cwd", _absolute(name, value)


def _env(name: str, value: object, _now_ms: int) -> tuple[str, object]:
    if not isinstance(value, dict):
        raise wrong_kind(name, value, "an object of names and values")
    for key, text in value.items():
        as_text(name, key)
        check_word(f"{name} {key}", f"{key}={as_text(f'{name} {key}', text)}")
        if not key or "=" in key:
            raise BadInput(f"bad variable name {shown_value(key)} in {name}", hint="write NAME=VALUE")
        if key != INDEX_VARIABLE or not (text.isascii() and text.isdecimal()):
            _refuse_reserved(name, key)
    return "env", dict(value)


def _refuse_reserved(name: str, variable: str) -> None:
    if variable.startswith(RESERVED_VARIABLES):
        raise BadInput(
            f"{name}: {variable} is set by queuectl itself", hint=f"names in {RESERVED_VARIABLES}* are reserved"
        )


def _absolute(name: str, value: object) -> str:
    path = as_text(name, value)
    if not path.startswith("/"):
        raise BadInput(f"{name} must be an absolute path, not {shown_value(path)}")
    check_word(name, path)
    return path


def _tags(name: str, value: object, _now_ms: int) -> tuple[str, object]:
    if not isinstance(value, list | tuple):
        raise wrong_kind(name, value, "a list of tags")
    if len(value) > MAX_TAGS:
        raise BadInput(f"{len(value)} tags; the limit is {MAX_TAGS}")
    return "tags", tuple(dict.fromkeys(check_name("tag", tag) for tag in value))


def _switch(name: str, value: object, _now_ms: int) -> tuple[str, object]:
    if not isinstance(value, bool):
        raise wrong_kind(name, value, "true or false")
    return name, value


def _needs(name: str, value: object, _now_ms: int) -> tuple[str, object]:
    from queuectl.model.needs import check_labels

    return "needs", check_labels(name, as_items(name, value))


def _use(name: str, value: object, _now_ms: int) -> tuple[str, object]:
    from queuectl.model.needs import check_resources

    return "use", check_resources(name, value)


def _mutexes(name: str, value: object, _now_ms: int) -> tuple[str, object]:
    return "mutexes", _limit_names(name, value)


def _group(name: str, value: object, _now_ms: int) -> tuple[str, object]:
    return name, check_own_name(name, value)


def _limits(name: str, value: object, _now_ms: int) -> tuple[str, object]:
    return "limits", _limit_names(name, value)


def _limit_names(name: str, value: object) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(check_own_name(name, item) for item in as_items(name, value)))
    if len(names) > MAX_LIMITS:
        raise BadInput(f"{name} names {len(names)}; the limit is {MAX_LIMITS}")
    return names


def _deadline(name: str, value: object, _now_ms: int) -> tuple[str, object]:
    deadline_ms = as_duration(name, value)
    if deadline_ms < 1:
        raise BadInput(f"{name} 0 is over before the job can run", hint="leave it out for none")
    return "deadline_ms", deadline_ms


def _ends(name: str, value: object, _now_ms: int) -> tuple[str, object]:
    from queuectl.model.policy import check_ends

    return name, check_ends(name, value)


def _success_codes(name: str, value: object, _now_ms: int) -> tuple[str, object]:
    from queuectl.model.policy import check_codes

    return name, check_codes(name, value)


def _snooze(name: str, value: object, _now_ms: int) -> tuple[str, object]:
    from queuectl.model.policy import check_snooze

    return name, check_snooze(name, value)


def _memory(name: str, value: object, _now_ms: int) -> tuple[str, object]:
    return "memory_bytes", as_size(name, value)


def _file_size(name: str, value: object, _now_ms: int) -> tuple[str, object]:
    return "file_size_bytes", as_size(name, value)


def _cpu_seconds(name: str, value: object, _now_ms: int) -> tuple[str, object]:
    seconds = -(-as_duration(name, value) // 1000)
    if seconds < 1:
        raise BadInput(f"{name} 0 leaves no time to run", hint="leave it out for no limit")
    return name, seconds


def _nofile(name: str, value: object, _now_ms: int) -> tuple[str, object]:
    return name, as_whole(name, value, 3, MAX_OPEN_FILES)


def _nice(name: str, value: object, _now_ms: int) -> tuple[str, object]:
    return name, as_whole(name, value, -20, 19)


def _umask(name: str, value: object, _now_ms: int) -> tuple[str, object]:
    text = as_text(name, value)
    if not re.fullmatch(r"[0-7]{1,4}", text, re.ASCII) or int(text, 8) > 0o777:
        raise BadInput(f"bad {name} {shown_value(text)}", hint="write it in octal as umask does, e.g. 027")
    return name, int(text, 8)


def _shell(name: str, value: object, _now_ms: int) -> tuple[str, object]:
    text = as_text(name, value)
    if not text.strip() or any(map(str.isspace, text)):
        raise BadInput(f"bad {name} {shown_value(text)}", hint="give one program that takes -c, e.g. /bin/bash")
    check_word(name, text)
    return name, text


def _stdin(name: str, value: object, _now_ms: int) -> tuple[str, object]:
    return "stdin_file", _absolute(name, value)


def _input(name: str, value: object, _now_ms: int) -> tuple[str, object]:
    if not isinstance(value, bytes):
        if not isinstance(value, str):
            raise wrong_kind(name, value, "text")
        try:
            value = value.encode()
        except UnicodeEncodeError:
            raise BadInput(f"{name} is not valid UTF-8") from None
    if len(value) > MAX_INPUT_BYTES:
        raise BadInput(
            f"{name} has {len(value)} bytes; the limit is {MAX_INPUT_BYTES}", hint="put it in a file: --stdin FILE"
        )
    return name, value


def _secrets(name: str, value: object, _now_ms: int) -> tuple[str, object]:
    names = list(dict.fromkeys(check_variable(name, item) for item in as_items(name, value)))
    if len(names) > MAX_SECRETS:
        raise BadInput(f"{len(names)} secrets; the limit is {MAX_SECRETS}")
    for each in names:
        _refuse_reserved(name, each)
    return name, names


def _at_most(name: str, value: object, _now_ms: int) -> tuple[str, object]:
    from queuectl.model.limits import MAX_SLOTS

    found = []
    for item in as_items(name, value):
        text, colon, slots = as_text(name, item).rpartition(":")
        if not colon:
            raise BadInput(f"bad {name} {shown_value(item)}", hint="write NAME:N, e.g. thumbs:5")
        found.append(f"{check_own_name(name, text)}:{as_whole(f'{name} {text}', slots, 1, MAX_SLOTS)}")
    if len(found) > MAX_LIMITS:
        raise BadInput(f"{name} names {len(found)}; the limit is {MAX_LIMITS}")
    return name, tuple(dict.fromkeys(found))


def _after(name: str, value: object, _now_ms: int) -> tuple[str, object]:
    from queuectl.model.after import check_after

    return name, check_after(name, value) if value != [] else ()  # as a program writes it that makes graphs


def _on_dead(name: str, value: object, _now_ms: int) -> tuple[str, object]:
    from queuectl.model.after import OnDead

    return "on_dead", _one_of(name, value, list(OnDead))


def _unique(name: str, value: object, _now_ms: int) -> tuple[str, object]:
    key = as_text(name, value)
    if not key.strip() or len(key) > MAX_KEY_LENGTH:
        raise BadInput(f"bad {name} {shown_value(key)}", hint=f"any text of 1 to {MAX_KEY_LENGTH} characters")
    return "unique_key", key


def _unique_for(name: str, value: object, _now_ms: int) -> tuple[str, object]:
    unique_for_ms = as_duration(name, value)
    if unique_for_ms < 1:
        raise BadInput(f"{name} 0 keeps nobody away", hint="leave it out: the key is held until the job has ended")
    return "unique_for_ms", unique_for_ms


def _on_conflict(name: str, value: object, _now_ms: int) -> tuple[str, object]:
    from queuectl.model.unique import OnConflict

    return name, _one_of(name, value, list(OnConflict))


def _max_failures(name: str, value: object, _now_ms: int) -> tuple[str, object]:
    from queuectl.model.group import check_max_failures

    return name, check_max_failures(name, value)


def _on_group_done(name: str, value: object, _now_ms: int) -> tuple[str, object]:
    return name, check_command(name, value)


def _one_of(name: str, value: object, known: "list[str]") -> str:
    text = as_text(name, value)
    if text not in known:
        raise UnknownName.among(name, text, known)
    return text


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
    **dict.fromkeys(("split_output", "hold"), _switch),
    "needs": _needs,
    "use": _use,
    "mutex": _mutexes,
    "limits": _limits,
    "deadline": _deadline,
    **dict.fromkeys(("retry_on", "no_retry_on"), _ends),
    "success_codes": _success_codes,
    "snooze_codes": _snooze,
    "memory": _memory,
    "cpu_seconds": _cpu_seconds,
    "nofile": _nofile,
    "file_size": _file_size,
    "nice": _nice,
    "umask": _umask,
    "shell": _shell,
    "stdin": _stdin,
    "input": _input,
    "secrets": _secrets,
    "at_most": _at_most,
    "after": _after,
    "on_dead_dependency": _on_dead,
    "unique": _unique,
    "unique_for": _unique_for,
    "on_conflict": _on_conflict,
    "group": _group,
    "max_failures": _max_failures,
    "on_group_done": _on_group_done,
}
# Fields that are kept together as one object, by the name of that object.
PARTS = {
    "backoff": frozenset(
        {"backoff_strategy", "backoff_base", "max_backoff_seconds", "backoff_jitter", "job_retry_delay"}
    ),
    "policy": frozenset({"retry_on", "no_retry_on", "success_codes", "snooze_codes"}),
    "launch": frozenset({"memory", "cpu_seconds", "nofile", "file_size", "nice", "umask", "shell", "stdin", "secrets"}),
}
PART_OF = {field: part for part, fields in PARTS.items() for field in fields}
