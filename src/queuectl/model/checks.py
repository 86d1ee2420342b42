"""Checks: the kinds of values people hand in, each read from text or JSON, or refused with what to mend."""

from queuectl.errors import BadInput
from queuectl.model.patterns import ascii_pattern
from queuectl.model.units import DURATION_HELP, SIZE_HELP, duration_ms, size_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

MAX_COMMAND_BYTES = 1 << 20
MAX_WORD_BYTES = (128 << 10) - 1
MAX_NAME_LENGTH = 128

_ID = r"[A-Za-z0-9][A-Za-z0-9._-]*"
_RANGE = r"\d+-\d+"
_VARIABLE = r"[A-Za-z_][A-Za-z0-9_]*"


def check_command(name: str, value: object) -> str:
    """Return a shell line that can be stored and run, or raise."""
    line = as_text(name, value)
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
    if not text[0].isdigit() and text != "last":
        return text
    if text.isdigit() or text == "last" or ascii_pattern(_RANGE).fullmatch(text):
        raise BadInput(
            f"bad id {text!r}: numbers, ranges such as 3-9 and 'last' name jobs by their place", hint="add a letter"
        )
    return text


def check_name(name: str, value: object) -> str:
    """Return a queue name, a tag or an id, or raise."""
    text = as_text(name, value)
    if not ascii_pattern(_ID).fullmatch(text) or len(text) > MAX_NAME_LENGTH:
        raise BadInput(
            f"bad {name} {shown_value(text)}",
            hint="begin with a letter or digit, then letters, digits, '.', '_' or '-', at most 128",
        )
    return text


def check_own_name(name: str, value: object) -> str:
    """Return the name of a limit, a mutex or a label, or raise: `none` takes those of a job back."""
    text = check_name(name, value)
    if text == "none":
        raise BadInput(f"{name} 'none' would be no name: it takes back what a job has", hint="choose another name")
    return text


def as_text(name: str, value: object) -> str:
    """Return text that a database and a process can hold, or raise."""
    if not isinstance(value, str):
        raise wrong_kind(name, value, "text")
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


def check_word(name: str, word: str) -> None:
    """Refuse a word the kernel would not take."""
    if len(word) > MAX_WORD_BYTES // 4 and len(word.encode()) > MAX_WORD_BYTES:
        raise BadInput(
            f"{name} has {len(word.encode())} bytes; the kernel takes less than 128 KiB",
            hint="pass it in a file",
        )


def as_whole(name: str, value: object, low: int, high: int) -> int:
    """Return a whole number within bounds, or raise."""
    if isinstance(value, str) and ascii_pattern(r"[+-]?\d{1,30}").fullmatch(value.strip()):
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        raise wrong_kind(name, value, "a whole number", hint=f"give {low} to {high}")
    if not low <= value <= high:
        raise BadInput(f"{name} {value} is out of range", hint=f"give {low} to {high}")
    return value


def as_fraction(name: str, value: object, low: float, high: float) -> float:
    """Return a number within bounds, or raise."""
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            raise wrong_kind(name, value, "a number") from None
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise wrong_kind(name, value, "a number")
    if not low <= value <= high:  # also catches NaN
        raise BadInput(f"{name} {value} is out of range", hint=f"give {low:g} to {high:g}")
    return float(value)


def as_duration(name: str, value: object) -> int:
    """Return a duration in milliseconds, or raise."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        if not 0 <= value <= 1e10:
            raise BadInput(f"{name} {value} is out of range", hint=f"write {DURATION_HELP}")
        value = f"{value:f}"
    if not isinstance(value, str):
        raise wrong_kind(name, value, f"a duration such as {DURATION_HELP}")
    try:
        return duration_ms(value)
    except BadInput as error:
        raise BadInput(f"{name}: {error.message}", hint=error.hint) from None


def as_size(name: str, value: object) -> int:
    """Return a size in bytes of at least one, or raise."""
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str):
        raise wrong_kind(name, value, f"a size such as {SIZE_HELP}")
    try:
        size = size_bytes(value)
    except BadInput as error:
        raise BadInput(f"{name}: {error.message}", hint=error.hint) from None
    if size < 1:
        raise BadInput(f"{name} {value} is no size", hint=f"write {SIZE_HELP}")
    return size


def as_items(name: str, value: object) -> list[object]:
    """Return the items of a list, also of one written as text with commas, or raise; an empty one is a mistake."""
    if isinstance(value, str):
        value = [part.strip() for part in value.split(",")]
    if isinstance(value, int) and not isinstance(value, bool):
        value = [value]
    if not isinstance(value, list | tuple):
        raise wrong_kind(name, value, "a list, or text with commas")
    if not value or "" in value:
        raise BadInput(f"{name} has an empty item", hint="separate the items by one comma each")
    return list(value)


def as_pairs(name: str, value: object, check: "Callable[[str, object], int]", mark: str) -> dict[str, int]:
    """Return names and numbers, of an object or of text such as `a=1,b=2`, or raise."""
    if isinstance(value, dict):
        return {check_name(name, key): check(f"{name} {key}", number) for key, number in value.items()}
    pairs: dict[str, int] = {}
    for item in as_items(name, value):
        key, sign, number = as_text(name, item).partition(mark)
        if not sign:
            raise BadInput(f"{name} {item!r} has no {mark!r}", hint=f"write NAME{mark}VALUE")
        if key in pairs:
            raise BadInput(f"{name} {key!r} is given twice")
        pairs[check_name(name, key)] = check(f"{name} {key}", number)
    return pairs


def check_variable(name: str, value: object) -> str:
    """Return the name of a variable a shell can read, or raise."""
    text = as_text(name, value)
    if not ascii_pattern(_VARIABLE).fullmatch(text) or len(text) > MAX_NAME_LENGTH:
        raise BadInput(
            f"bad {name} {shown_value(text)}",
            hint="the name of a variable: letters, digits and '_', not beginning with a digit",
        )
    return text


def wrong_kind(name: str, value: object, wanted: str, *, hint: str = "") -> BadInput:
    """Return the error for a value that is not of the kind wanted."""
    return BadInput(f"{name} must be {wanted}, not {shown_value(value)}", hint=hint)


def shown_value(value: object) -> str:
    """Write a value as a message may hold it."""
    import json

    text = json.dumps(value, ensure_ascii=True, default=str)
    return text if len(text) <= 80 else f"{text[:77]}..."
