"""Needs: what a job asks of a worker, what a worker has, and which of its units a job gets. Who has them is in store/.

Labels are words. Resources are numbers: up to NUMBERED of one kind are units with a number each, as GPUs are, and the
command is told which it got; more than that is an amount, as memory is.
"""

from queuectl.errors import BadInput
from queuectl.model.checks import as_pairs, as_size, as_whole, check_own_name
from queuectl.model.job import dumps
from queuectl.model.units import MAX_SIZE
from queuectl.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    Units = dict[str, "int | list[int]"]

NUMBERED = 1024
MAX_KINDS = 16


class Needs(Value):
    """What a job asks of a worker: every label, and so much of each resource while it runs."""

    labels: tuple[str, ...] = ()
    use: "dict[str, int]" = {}  # noqa: RUF012 - never written to

    @property
    def text(self) -> str:
        """One spelling for one meaning, as lanes are told apart by it; empty for nothing."""
        return needs_text(self.labels, self.use)

    @property
    def words(self) -> str:
        """How a person would ask for it."""
        parts = [*self.labels, *(f"{name}={amount_text(amount)}" for name, amount in self.use.items())]
        return ", ".join(parts)


def needs_text(labels: "Sequence[str]", use: "Mapping[str, int] | None") -> str:
    """Write what a job asks of a worker in the one spelling it has."""
    if not labels and not use:
        return ""
    return dumps({"labels": sorted(set(labels)), "use": dict(sorted((use or {}).items()))})


def read_needs(text: str) -> Needs:
    """Read what `needs_text` wrote."""
    if not text:
        return Needs()
    import json  # most jobs need nothing

    found = json.loads(text)
    return Needs(labels=tuple(found["labels"]), use=found["use"])


class Supply(Value):
    """What a worker has: its labels, and of each resource so much in all."""

    labels: tuple[str, ...] = ()
    resources: "dict[str, int]" = {}  # noqa: RUF012 - never written to

    def could_take(self, needs: Needs) -> bool:
        """Whether it could run such a job with nothing else running."""
        return not self.missing(needs)

    def missing(self, needs: Needs) -> list[str]:
        """Return what it lacks for such a job, however idle it is."""
        lacking = [label for label in needs.labels if label not in self.labels]
        return lacking + [
            f"{name}={amount_text(amount)}"
            for name, amount in needs.use.items()
            if amount > self.resources.get(name, 0)
        ]

    def left(self, taken: "Iterable[Units]") -> "Units":
        """Return what is free of each resource while others have theirs: the numbers, or the amount."""
        free: Units = {}
        given = list(taken)
        for name, amount in self.resources.items():
            used = [units[name] for units in given if name in units]
            if amount > NUMBERED:
                free[name] = amount - sum(part for part in used if isinstance(part, int))
            else:
                gone = {number for part in used if isinstance(part, list) for number in part}
                free[name] = [number for number in range(amount) if number not in gone]
        return free


def fits(use: "Mapping[str, int]", free: "Units") -> bool:
    """Whether so much of each resource is free."""
    return all(_size(free.get(name, 0)) >= amount for name, amount in use.items())


def take(use: "Mapping[str, int]", free: "Units") -> "Units":
    """Return the units a job gets: the lowest numbers that are free, or the amount. The caller knows that they fit."""
    units: Units = {}
    for name, amount in use.items():
        part = free[name]
        units[name] = amount if isinstance(part, int) else part[:amount]
    return units


def without(free: "Units", units: "Units") -> "Units":
    """Return what is left free when a job has taken its units."""
    left: Units = dict(free)
    for name, part in units.items():
        before = left[name]
        if isinstance(before, int) and isinstance(part, int):
            left[name] = before - part
        elif isinstance(before, list) and isinstance(part, list):
            left[name] = [number for number in before if number not in part]
    return left


def unit_texts(units: "Units") -> dict[str, str]:
    """Return what a command is told of what it got, by the name in capitals: numbers with commas, or an amount."""
    return {
        _variable(name): str(part) if isinstance(part, int) else ",".join(map(str, part))
        for name, part in units.items()
    }


def check_resources(name: str, value: object) -> dict[str, int]:
    """Return amounts by resource, from an object or text such as `gpu=1,mem=4G`, or raise."""
    found = as_pairs(name, value, _amount, "=")
    if len(found) > MAX_KINDS:
        raise BadInput(f"{name} names {len(found)} resources; the limit is {MAX_KINDS}")
    seen: dict[str, str] = {}
    for resource in found:
        other = seen.setdefault(_variable(resource), resource)
        if other != resource:
            raise BadInput(f"{name}: {other} and {resource} would be the same variable", hint="rename one of them")
    return found


def check_labels(name: str, value: "Iterable[object]") -> tuple[str, ...]:
    """Return labels, each once, or raise."""
    labels = tuple(dict.fromkeys(check_own_name(name, label) for label in value))
    if len(labels) > MAX_KINDS:
        raise BadInput(f"{len(labels)} labels; the limit is {MAX_KINDS}")
    return labels


def amount_text(amount: int) -> str:
    """Write so much of a resource as people do: `2`, `4GiB`."""
    from queuectl.model.units import size_text

    return size_text(amount) if amount > NUMBERED and amount % 1024 == 0 else str(amount)


def free_text(name: str, free: "Units", supply: Supply) -> str:
    """Say how much of a resource is left: `1 of 2 gpu free`."""
    total = supply.resources.get(name, 0)
    return f"{amount_text(_size(free.get(name, 0)))} of {amount_text(total)} {name} free"


def units_text(units: "Units") -> str:
    """Say what a job has of its worker's resources: `gpu 0,1; mem 4GiB`."""
    parts = {
        name: amount_text(part) if isinstance(part, int) else ",".join(map(str, part)) for name, part in units.items()
    }
    return "; ".join(f"{name} {part}" for name, part in parts.items())


def used(supply: Supply, free: "Units") -> dict[str, int]:
    """Return how much of each resource is taken while so much is free."""
    return {name: total - _size(free[name]) for name, total in supply.resources.items()}


def _amount(name: str, value: object) -> int:
    """Return so much of a resource: a whole number, or a size with its unit."""
    text = str(value).strip()
    if not text[-1:].isalpha():
        return as_whole(name, value, 1, MAX_SIZE)
    return as_size(name, value)


def _size(part: "int | list[int]") -> int:
    return part if isinstance(part, int) else len(part)


def _variable(resource: str) -> str:
    return "".join(letter if letter.isalnum() else "_" for letter in resource).upper()
