"""Queue: a queue and what can be set for it, read from what people hand in. Its row is written in store/queues.py."""

from queuectl.errors import BadInput, UnknownName
from queuectl.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from queuectl.model.rate import Rate

    Columns = dict[str, int | None]

MAX_CONCURRENCY = 1_000_000
TAKE_BACK = "none"


class Queue(Value):
    """A queue; the fields are its columns."""

    name: str
    paused_at: int | None
    created_at: int
    concurrency: int | None = None
    """How many of its jobs may run at once, over all hosts."""
    rate_count: int | None = None
    rate_period_ms: int | None = None
    next_start_at: int | None = None
    """When the rate lets the next job start."""
    timeout_ms: int | None = None
    max_retries: int | None = None
    priority: int | None = None

    @property
    def rate(self) -> "Rate | None":
        """How often its jobs may start."""
        if self.rate_count is None or self.rate_period_ms is None:
            return None
        from queuectl.model.rate import Rate

        return Rate(count=self.rate_count, period_ms=self.rate_period_ms)


def queue_columns(fields: "Mapping[str, object]") -> "Columns":
    """Check what is to be set for a queue and return it by its columns; None and `none` take a setting back."""
    columns: Columns = {}
    for name, value in fields.items():
        if name not in _READ:
            raise UnknownName.among("setting of a queue", name, list(_READ))
        is_taken_back = value is None or (isinstance(value, str) and value.strip().lower() == TAKE_BACK)
        columns.update(dict.fromkeys(_COLUMNS[name]) if is_taken_back else _READ[name](name, value))
    if not columns:
        raise BadInput("nothing to set", hint=f"give one of: {', '.join(_READ)}; {TAKE_BACK} takes one back")
    return columns


def queue_settings_shape(queue: Queue) -> "dict[str, int | float | str | None]":
    """Return what is set for a queue, as JSON has it."""
    return {
        "concurrency": queue.concurrency,
        "rate": None if queue.rate is None else queue.rate.text,
        "timeout": None if queue.timeout_ms is None else queue.timeout_ms / 1000,
        "max_retries": queue.max_retries,
        "priority": queue.priority,
    }


def _concurrency(name: str, value: object) -> "Columns":
    from queuectl.model.checks import as_whole

    if value == 0 or (isinstance(value, str) and value.strip() == "0"):
        raise BadInput(f"{name} 0 would let nothing run", hint="to stop a queue use: queuectl queue pause NAME")
    return {"concurrency": as_whole(name, value, 1, MAX_CONCURRENCY)}


def _rate(name: str, value: object) -> "Columns":
    from queuectl.model.checks import as_text
    from queuectl.model.rate import read_rate

    rate = read_rate(as_text(name, value))
    return {"rate_count": rate.count, "rate_period_ms": rate.period_ms}


def _as_of_a_job(name: str, value: object) -> "Columns":
    from queuectl.model.fields import FIELDS

    column, checked = FIELDS[name](name, value, 0)
    assert isinstance(checked, int)
    return {column: checked}


_READ: "dict[str, Callable[[str, object], Columns]]" = {
    "concurrency": _concurrency,
    "rate": _rate,
    "timeout": _as_of_a_job,
    "max_retries": _as_of_a_job,
    "priority": _as_of_a_job,
}
_COLUMNS = {
    "concurrency": ("concurrency",),
    "rate": ("rate_count", "rate_period_ms"),
    "timeout": ("timeout_ms",),
    "max_retries": ("max_retries",),
    "priority": ("priority",),
}
