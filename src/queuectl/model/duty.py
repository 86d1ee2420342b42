"""Duty: what workers are started for, as a person asked with `worker start`: which queues, and what they have."""

from queuectl.errors import BadInput
from queuectl.model.checks import as_whole, check_name
from queuectl.model.needs import Supply, amount_text, check_labels, check_resources
from queuectl.model.value import Value
from queuectl.model.weights import MAX_WEIGHT, Turns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class Duty(Value):
    """Which queues are served (None: all), how they share a worker's time, and what jobs may need that is there."""

    queues: tuple[str, ...] | None = None
    weights: "dict[str, int]" = {}  # noqa: RUF012 - never written to
    """By queue; empty means that priority alone decides."""
    labels: tuple[str, ...] = ()
    resources: "dict[str, int]" = {}  # noqa: RUF012 - never written to

    @classmethod
    def of_map(cls, fields: "Mapping[str, object]") -> "Duty":
        """Build from what `as_dict` gave, after a way through JSON."""
        lists = {name: tuple(value) for name, value in fields.items() if isinstance(value, list)}
        return cls(**{**fields, **lists})  # type: ignore[arg-type]

    @property
    def words(self) -> list[str]:
        """What a person types to ask for it."""
        queues = [f"{name}:{self.weights[name]}" if name in self.weights else name for name in self.queues or ()]
        resources = [f"{name}={amount_text(amount)}" for name, amount in self.resources.items()]
        flags = {"--queue": queues, "--label": self.labels, "--resource": resources}
        return [word for flag, values in flags.items() for value in values for word in (flag, value)]

    @property
    def supply(self) -> Supply:
        """What jobs may need that is there."""
        return Supply(labels=self.labels, resources=self.resources)

    @property
    def turns(self) -> Turns | None:
        """Where the queues stand that share a worker's time, at its start."""
        return Turns(weights=self.weights) if self.weights else None


def read_duty(queues: "Sequence[str] | None", labels: "Sequence[str]" = (), resources: "Sequence[str]" = ()) -> Duty:
    """Read what a person asks workers to serve: `mail` or `mail:3`, labels, and resources such as `gpu=2`."""
    names: list[str] = []
    weights: dict[str, int] = {}
    for text in queues or ():
        name, colon, weight = text.partition(":")
        check_name("queue", name)
        if colon:
            if name in names:
                raise BadInput(f"queue {name} is given twice", hint="give each queue once, with its weight")
            weights[name] = as_whole(f"weight of queue {name}", weight, 1, MAX_WEIGHT)
        names.append(name)
    found: dict[str, int] = {}
    for text in resources:
        for name, amount in check_resources("resource", text).items():
            if name in found:
                raise BadInput(f"resource {name} is given twice", hint="give the sum of them")
            found[name] = amount
    return Duty(
        queues=None if queues is None else tuple(dict.fromkeys(names)),
        weights={name: weights.get(name, 1) for name in names} if weights else {},
        labels=check_labels("label", [part for text in labels for part in text.split(",")]),
        resources=found,
    )
