"""Files of variables, NAME=VALUE a line, as dotenv, Compose and systemd read them. Pure: the text comes in.

No message holds a value: such files are full of passwords.
"""

import re

from queuectl.errors import BadInput

QUOTE_HINT = "put the whole value into single quotes"

# Texts, compiled when first used: few who enqueue have such a file.
_ENTRY = r"[ \t]*(?:export[ \t]+)?([A-Za-z_][A-Za-z0-9_]*)=[ \t]*"
_QUOTED = {"'": r"'([^']*+)'", '"': r'"((?:[^"\\]++|\\.)*+)"'}
_BEHIND_QUOTE = r"(?:[ \t]+#[^\n]*|[ \t]*)(?=\n|\Z)"
_PLAIN = r"[^\n]*"
_COMMENT = r"(?:^|[ \t])#"
_ESCAPE = r"\\(.)"
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\", "$": "$", "`": "`", "\n": ""}


def read_env_file(text: str) -> dict[str, str]:
    """Read variables; of a name that stands there twice the last value counts, and nothing is expanded."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    found = {}
    at, number = 0, 1
    while at < len(text):
        line = text[at : _end_of_line(text, at)]
        end = at + len(line)
        if line.strip(" \t") and not line.lstrip(" \t").startswith("#"):
            entry = re.match(_ENTRY, line)
            if entry is None:
                raise _no_entry(line, number)
            value, end = _value(text, at + entry.end(), number)
            if "\0" in value:
                raise BadInput(f"line {number}: the value of {entry[1]} holds a NUL", hint="no variable can hold one")
            found[entry[1]] = value
        number += text.count("\n", at, end + 1)
        at = end + 1
    return found


def _value(text: str, at: int, number: int) -> tuple[str, int]:
    """Return the value that begins at a place and the place of the end of its last line."""
    quote = text[at : at + 1]
    if quote not in _QUOTED:
        end = _end_of_line(text, at)
        return _plain(text[at:end], number), end
    # A quoted value may go on over lines, as a key in PEM form does.
    found = re.compile(_QUOTED[quote], re.DOTALL).match(text, at)
    if found is None:
        raise BadInput(f"line {number} opens a quote that nothing closes", hint=f"end the value with {quote}")
    behind = re.compile(_BEHIND_QUOTE).match(text, found.end())
    if behind is None:
        last = number + found[0].count("\n")
        raise BadInput(f"line {last} goes on behind its closing quote", hint=QUOTE_HINT)
    value = found[1] if quote == "'" else re.sub(_ESCAPE, _unescape, found[1], flags=re.DOTALL)
    return value, behind.end()


def _plain(rest: str, number: int) -> str:
    comment = re.search(_COMMENT, rest)
    value = (rest[: comment.start()] if comment else rest).rstrip(" \t")
    if value.endswith("\\"):
        # systemd goes on with the next line here, Docker does not.
        raise BadInput(f"line {number} ends with a backslash", hint=QUOTE_HINT)
    return value


def _end_of_line(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def _no_entry(line: str, number: int) -> BadInput:
    name, equals, _ = line.partition("=")
    if not equals:
        return BadInput(f"line {number} has no '='", hint="write NAME=VALUE, or # before a comment")
    hint = "write NAME=VALUE" if name == name.rstrip(" \t") else "write NAME=VALUE without blanks before the '='"
    return BadInput(f"line {number} does not begin with the name of a variable", hint=hint)


def _unescape(found: "re.Match[str]") -> str:
    return _ESCAPED.get(found[1], found[0])
