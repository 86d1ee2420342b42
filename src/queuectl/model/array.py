"""Arrays: numbers written as Slurm's --array has them, such as 1-100:2%5."""

import re

from queuectl.errors import BadInput
from queuectl.model.checks import as_items, shown_value
from queuectl.model.mapping import MOST_JOBS
from queuectl.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

ARRAY_HELP = "1-100, 1-100:2 (every second), 1,5,20-30, 1-100%5 (five at a time)"
_ITEM = re.compile(r"(\d{1,9})(?:-(\d{1,9})(?::(\d{1,9}))?)?", re.ASCII)


class Array(Value):
    """The numbers of an array, and how many of its jobs may run at once; None means any number."""

    numbers: tuple[int, ...]
    at_once: int | None = None

    def limiting(self, fields: "Mapping[str, object]", fresh_name: str) -> "dict[str, object]":
        """Return the fields of a job with what keeps more of the array from running: a limit nobody has to make.

        It goes by the name of the group, if there is one, else by a fresh one.
        """
        if self.at_once is None:
            return dict(fields)
        limit = f"{fields.get('group') or fresh_name}:{self.at_once}"
        return {
            **fields,
            "at_most": [*as_items("at_most", fields["at_most"]), limit] if fields.get("at_most") else [limit],
        }


def read_array(text: str) -> Array:
    """Read the numbers of an array, each once, in the order given."""
    items, percent, at_once = text.strip().partition("%")
    if percent and not (re.fullmatch(r"\d{1,9}", at_once, re.ASCII) and int(at_once)):
        raise _bad(text, f"how many at once, not {shown_value(at_once)}, goes behind '%'")
    numbers: dict[int, None] = {}
    for item in items.split(","):
        numbers |= dict.fromkeys(_numbers(text, item.strip()))
        if len(numbers) > MOST_JOBS:
            raise BadInput(f"array {shown_value(text)} has more than {MOST_JOBS} numbers", hint="add a part at a time")
    return Array(numbers=tuple(numbers), at_once=int(at_once) if percent else None)


def _numbers(text: str, item: str) -> range:
    found = _ITEM.fullmatch(item)
    if found is None:
        raise _bad(text, f"{shown_value(item)} is no number and no range")
    first = int(found[1])
    last = first if found[2] is None else int(found[2])
    step = 1 if found[3] is None else int(found[3])
    if last < first:
        raise _bad(text, f"{item} ends before it begins")
    if step < 1:
        raise _bad(text, f"a step of {step} goes nowhere")
    return range(first, last + 1, step)[: MOST_JOBS + 1]


def _bad(text: str, why: str) -> BadInput:
    return BadInput(f"bad array {shown_value(text)}: {why}", hint=f"write {ARRAY_HELP}")
