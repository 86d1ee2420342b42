"""Pitfalls: what a template says that its writer may not mean. Nothing of it is refused; whoever shows it is told."""

import re

from queuectl.model.quoting import Place
from queuectl.model.template import Slot

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queuectl.model.template import Template

_NOT_OURS = re.compile(r"\{(?:%|=.*?=|\.{2,3}|/\.{2,3}|\+/|\+\.{1,3}|##)\}")
_INNER_SHELL = r"(?:^|[\s;&|(/])(?:(?:ba|da|z|k|a)?sh\s+(?:-\w+\s+)*-\w*c|eval)\s+"
_IN_SINGLE_QUOTES = re.compile(_INNER_SHELL + r"'[^']*$")
_IN_DOUBLE_QUOTES = re.compile(_INNER_SHELL + r'(?:"[^"]*")?$')  # they end before the value
_REMOTE_SHELL = re.compile(r"(?:^|[;&|(\n])\s*ssh\s[^;&|\n]*$")


def pitfalls(template: "Template") -> list[str]:
    """Return what to warn of, each once."""
    found: dict[str, None] = {}
    before = ""
    for piece in template.pieces if template.words is None else [each for word in template.words for each in word]:
        if isinstance(piece, Slot):
            if is_read_again(before, piece):
                found[f"{piece.text} is read again by another shell, and there a value could be run; hand it over as "
                      f"an argument instead: sh -c '... \"$1\"' sh {piece.text}"] = None  # fmt: skip
            before += "x"
            continue
        for mark in _NOT_OURS.findall(piece):
            found[f"{mark} stays as it is: of GNU parallel's replacement strings it is not among those known here"] = (
                None
            )
        before += piece
    return list(found)


def is_read_again(before: str, slot: Slot) -> bool:
    """Whether what is behind some text stands in a line that the command hands to another shell."""
    if slot.place is Place.SINGLE and _IN_SINGLE_QUOTES.search(before):
        return True
    if slot.place is Place.QUOTED and _IN_DOUBLE_QUOTES.search(before):
        return True
    return slot.place is not None and _REMOTE_SHELL.search(before) is not None
