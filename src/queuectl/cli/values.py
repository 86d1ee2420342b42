"""Values: the lists behind a command of `map`: words, lines of files, lines of standard input."""

import sys

from queuectl.cli.lines import MAX_LINE_BYTES, read_pieces
from queuectl.errors import BadInput
from queuectl.model.mapping import MOST_JOBS, Source, check_source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import BinaryIO

WORDS, FILES = ":::", "::::"
SEPARATORS = (WORDS, FILES, f"{WORDS}+", f"{FILES}+")
STANDARD_INPUT = "-"
_NOTHING_ADDED = "nothing was added"


def read_sources(tail: "Sequence[str]", *, ends_with_nul: bool) -> list[Source]:
    """Read the lists of a command line: after `:::` words, after `::::` files, each of them a list."""
    return [
        source
        for separator, words in _lists(tail)
        for source in _sources(separator, words, ends_with_nul=ends_with_nul)
    ]


def reads_standard_input(tail: "Sequence[str]") -> bool:
    """Whether one of the lists is standard input; raises when more than one is."""
    count = sum(words.count(STANDARD_INPUT) for separator, words in _lists(tail) if separator.startswith(FILES))
    if count > 1:
        raise BadInput("standard input is named twice", hint="it can be read once; put one of the lists in a file")
    return count > 0


def _lists(tail: "Sequence[str]") -> list[tuple[str, list[str]]]:
    lists: list[tuple[str, list[str]]] = []
    for word in tail:
        if word in SEPARATORS:
            lists.append((word, []))
        else:
            lists[-1][1].append(word)
    return lists


def _sources(separator: str, words: "Sequence[str]", *, ends_with_nul: bool) -> "Iterator[Source]":
    is_linked = separator.endswith("+")
    if separator.startswith(FILES):
        if not words:
            raise BadInput(f"no file behind {separator}", hint="name one, or - for standard input")
        for name in words:
            yield check_source(_values_in(name, ends_with_nul=ends_with_nul), _shown(name), is_linked=is_linked)
    else:
        yield check_source(words, f"the list behind {separator}", is_linked=is_linked)


def _shown(name: str) -> str:
    return "standard input" if name == STANDARD_INPUT else name


def _values_in(name: str, *, ends_with_nul: bool) -> list[str]:
    """Read the values in a file. Lines that are empty are passed by; between NULs everything is a value."""
    separator = b"\0" if ends_with_nul else b"\n"
    try:
        if name == STANDARD_INPUT:
            data = _read(sys.stdin.buffer, name, separator)
        else:
            with open(name, "rb") as file:
                data = _read(file, name, separator)
    except OSError as error:
        raise BadInput(f"cannot read {_shown(name)}: {error.strerror}", hint=_NOTHING_ADDED) from None
    if not ends_with_nul and b"\0" in data:
        raise BadInput(f"{_shown(name)} holds NUL bytes", hint="for values that end with one, give --null")
    try:
        text = data.decode("utf-8-sig")  # Windows editors begin a file with a mark
    except UnicodeDecodeError as error:
        number = data.count(separator, 0, error.start) + 1
        hint = f"a command is kept as text; rename what has such a name; {_NOTHING_ADDED}"
        raise BadInput(f"value {number} of {_shown(name)} is not valid UTF-8", hint=hint) from None
    values = text.split(separator.decode())
    if values[-1] == "":
        values.pop()
    return values if ends_with_nul else _lines(values)


def _read(file: "BinaryIO", name: str, separator: bytes) -> bytes:
    try:
        return read_pieces(file, MAX_LINE_BYTES, _NOTHING_ADDED, separator=separator, most=MOST_JOBS)
    except BadInput as error:
        raise BadInput(f"{_shown(name)}: {error.message}", hint=error.hint) from None


def _lines(values: list[str]) -> list[str]:
    lines = [value for value in values if value]
    if lines and all(line.endswith("\r") for line in lines):  # a file of Windows; else it belongs to the name
        return [line[:-1] for line in lines if line != "\r"]
    return lines
