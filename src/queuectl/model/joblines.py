"""Job lines: a file of jobs, a shell line or a JSON object on each line. What a job may say is checked in spec.py."""

from queuectl.errors import BadInput
from queuectl.model.batch import Batch
from queuectl.model.checks import MAX_COMMAND_BYTES, check_command
from queuectl.model.fields import FIELDS
from queuectl.model.spec import (
    json_decoder,
    looks_like_json,
    refuse_almost_json,
    refuse_alone,
    spec_from_json,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from queuectl.model.job import JobSpec

    Said = dict[str, object]
    Check = Callable[[str, object, int], tuple[str, object]]
    Known = dict[object, tuple[str, object]]
    Plan = tuple[Said, tuple[tuple[str, Check, Known | None], ...]]

# How a line begins that needs a closer look, in ASCII: one with nothing in it, a comment, JSON, or what is meant so.
_UNUSUAL = frozenset(("", *"#{[}]", *filter(str.isspace, map(chr, range(128)))))
# Fields that depend on no other but the one they exclude, so that each is checked by itself.
_ALONE = frozenset(
    {
        "id", "command", "queue", "priority", "run_at", "delay", "max_retries", "timeout", "cwd", "tags",
        "split_output", "hold", "needs", "use", "mutex", "limits", "at_most", "deadline",
    }
)  # fmt: skip
# Of these, what is said once is said again and again.
_REPEATED = _ALONE - {"id", "command"}
_MOST_KNOWN = 1_000


def read_job_lines(text: str, now_ms: int, base: "JobSpec") -> Batch:
    """Read the jobs of a file over `base`, which has no command yet, or raise with the number of the first bad line."""
    reader = _Reader(now_ms, base, has_nul="\0" in text)
    found: list[Said] = []
    for number, line in enumerate(_lines(text), start=1):
        if (said := reader.at_a_glance(line)) is not None:
            found.append(said)
            continue
        try:
            said = reader.closely(line)
        except BadInput as error:
            hint = f"{error.hint}; nothing was added" if error.hint else "nothing was added"
            raise BadInput(f"line {number}: {error.message}", hint=hint) from None
        if said is not None:
            found.append(said)
    return Batch(base, found)


def _lines(text: str) -> list[str]:
    lines = text.split("\n")
    return [line.removesuffix("\r") for line in lines] if "\r" in text else lines


class _Reader:
    """Reads lines into what each says itself: most at a glance, and closely whatever is unusual about one.

    What a glance takes, a close look would take in the same way; it leaves every refusal to the latter.
    """

    def __init__(self, now_ms: int, base: "JobSpec", *, has_nul: bool) -> None:
        self._now_ms = now_ms
        self._base = base
        self._is_whole = _is_whole(base)
        self._takes_lines = self._is_whole and not has_nul
        self._plans: dict[tuple[str, ...], Plan | None] = {}
        self._known: dict[str, Known] = {name: {} for name in _REPEATED}
        self._decode: Callable[[str], tuple[dict[str, object], int]] | None = None

    def at_a_glance(self, line: str) -> "Said | None":
        """Return what an ordinary line says; None asks for a closer look."""
        first = line[:1]
        if first not in _UNUSUAL:
            if self._takes_lines and len(line) <= MAX_COMMAND_BYTES and line.isascii():
                return {"command": line}
            return None
        return self._json(line) if first == "{" and self._is_whole else None

    def closely(self, line: str) -> "Said | None":
        """Return what a line says; None means that it is empty or a comment."""
        first = line.lstrip()[:1]
        if not first or first == "#":
            return None
        if first in "{[}]":
            if looks_like_json(line):
                spec = spec_from_json(line, self._now_ms, self._base, is_line=True)
                own, shared = spec.as_dict(), self._base.as_dict()
                return {name: value for name, value in own.items() if value is not shared[name]}
            refuse_almost_json(line)
        if not self._is_whole:
            refuse_alone(self._base)  # of a shell line the flags alone decide
        return {"command": check_command("command", line)}

    def _json(self, line: str) -> "Said | None":
        decode = self._decode = self._decode or json_decoder().raw_decode
        try:
            fields, end = decode(line)
            if end != len(line):
                return None
            keys = tuple(fields)
            plan = self._plans[keys] if keys in self._plans else self._plan(keys)
            if plan is None:
                return None
            said, checks = plan
            said = said.copy()
            for (name, check, known), value in zip(checks, fields.values(), strict=True):
                if known is not None and (type(value) is str or type(value) is int):
                    found = known.get(value)
                    if found is None:
                        found = check(name, value, self._now_ms)
                        if len(known) < _MOST_KNOWN:
                            known[value] = found
                    target, checked = found
                else:
                    target, checked = check(name, value, self._now_ms)
                said[target] = checked
        except (BadInput, ValueError, RecursionError):
            return None
        return said

    def _plan(self, keys: "tuple[str, ...]") -> "Plan | None":
        """Return how objects with these keys are read, or None where they need a closer look."""
        plan = None
        if _ALONE.issuperset(keys) and "command" in keys and not {"run_at", "delay"}.issubset(keys):
            taken_back: Said = {}
            if "delay" in keys or "run_at" in keys:
                taken_back = {"run_at": None, "delay_ms": None}  # the one given here takes the place of either
            plan = taken_back, tuple((name, FIELDS[name], self._known.get(name)) for name in keys)
        self._plans[keys] = plan
        return plan


def _is_whole(base: "JobSpec") -> bool:
    try:
        refuse_alone(base)
    except BadInput:
        return False
    return True
