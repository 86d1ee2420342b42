"""Pitfalls: what a template says that its writer may not mean. Nothing of it is refused; whoever shows it is told."""

import re

from queuectl.model.quoting import Place
from queuectl.model.template import Slot

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queuectl.model.template import Template

_NOT_OURS = re.compile(r"\{(?:%|=.*?=|\.{2,3}|/\.{2,3}|\+/|\+\.{1,3}|##)\}")
_INNER_SHELL = r"(?:^|[\s;&|(/])(?:ba|da|z|k|a)?sh\s+(?:-\w+\s+)*-\w*c\s+"
_IN_SINGLE_QUOTES = re.compile(_INNER_SHELL + r"'[^']*$")
_IN_DOUBLE_QUOTES = re.compile(_INNER_SHELL + r'(?:"[^"]*")?$')  # they end before the value
_BARE = re.compile(_INNER_SHELL + "$")
_REMOTE_SHELL = re.compile(r"(?:^|[;&|(\n])\s*ssh\s[^;&|\n]*$")

_COMMAND = r"(?:^|[;&|({!\n]|(?<!\S)(?:then|do|else|if|elif|while|until|time|command|builtin)\s)\s*(?:\w+=\S*\s+)*"
# Words of one command: quoted, of a redirection, or plain. Nothing is tried twice, so long lines cost no more.
_WORDS = r"(?>'[^']*+(?:'|$)|\"[^\"]*+(?:\"|$)|[<>]+&?[ \t]*[^\s;&|<>'\"]+[ \t]|[^;&|\n<>'\"])*+"
_IN_A_NAME = r"(?<=\s)['\"]?[^\s=]*$"
_BUILTINS = [
    re.compile(_COMMAND + rf"(?P<name>{pattern}", re.DOTALL)
    for pattern in (
        rf"eval|trap|let|unset|read|getopts|integer|float|nameref|repeat)\s(?={_WORDS}$)",
        rf"declare|typeset|local|export|readonly)\s(?={_WORDS}$)(?:.*\s)?-\w*[aAinEF]",
        rf"declare|typeset|local|export|readonly)(?=\s{_WORDS}$).*{_IN_A_NAME}",
        r"printf|print)\s+-v\s*['\"]?\S*$",
        r"mapfile|readarray)\s[^;&|\n]*-C\s*['\"]?[^;&|\n]*$",
        r"test|\[)\s(?:[^;&|\n]*\s)?-(?:v|t|eq|ne|lt|le|gt|ge)\s+['\"]?\S*$",
    )
]
_TEST = re.compile(_COMMAND + r"(?P<name>test|\[)\s[^;&|\n]*$")
_COMPARED = re.compile(r"[^\s)]*\s+-(?:eq|ne|lt|le|gt|ge)\s")
_SETTING = re.compile(r"(?:^|[\s;&|(])(?P<name>BASH_ENV|ENV|PS4|PROMPT_COMMAND)=['\"]?[^\s;&|]*$")


def pitfalls(template: "Template") -> list[str]:
    """Return what to warn of, each once."""
    found: dict[str, None] = {}
    pieces = template.pieces if template.words is None else [each for word in template.words for each in word]
    before = ""
    for number, piece in enumerate(pieces):
        if isinstance(piece, Slot):
            following = pieces[number + 1] if number + 1 < len(pieces) else ""
            if warning := _reading_again(before, piece, following if isinstance(following, str) else ""):
                found[warning] = None
            before += "x"
            continue
        for mark in _NOT_OURS.findall(piece):
            found[f"{mark} stays as it is: of GNU parallel's replacement strings it is not among those known here"] = (
                None
            )
        before += piece
    return list(found)


def _reading_again(before: str, slot: Slot, after: str) -> str:
    """Return what to say of a slot whose value is read again by what the line runs."""
    if slot.place in (None, Place.NUMBER) or slot.part == "#":
        return ""
    mark = slot.text
    if _is_of_inner_shell(before, slot):
        return (
            f"{mark} is read again by another shell, and there a value could be run; "
            f"hand it over as an argument instead: sh -c '... \"$1\"' sh {mark}"
        )
    if _REMOTE_SHELL.search(before):
        return (
            f"{mark} is read again by the shell on the other host, and there a value could be run; "
            f"hand it over by standard input instead: printf '%s\\0' {mark} | ssh HOST 'xargs -0 COMMAND'"
        )
    builtin = _builtin(before, after)
    return (
        f"{mark} is read again by {builtin}, and there a value could be run; {_advice(builtin, mark)}"
        if builtin
        else ""
    )


def _advice(builtin: str, mark: str) -> str:
    if builtin in ("eval", "trap"):
        return f"put it into a variable and name that: v={mark}; {builtin} '... \"$v\"'"
    return f"write $(({mark})) if it is a whole number, and hand over no other value that you do not trust"


def _is_of_inner_shell(before: str, slot: Slot) -> bool:
    if slot.place is Place.SINGLE:
        return _IN_SINGLE_QUOTES.search(before) is not None
    return (_IN_DOUBLE_QUOTES if slot.place is Place.QUOTED else _BARE).search(before) is not None


def _builtin(before: str, after: str) -> str:
    for pattern in (*_BUILTINS, _SETTING):
        if found := pattern.search(before):
            return found["name"]
    if _COMPARED.match(after) and (found := _TEST.search(before)):
        return found["name"]
    return ""
