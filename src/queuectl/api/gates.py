"""Gates: queues and limits as Python sees them, each as it was when it was looked at."""

from queuectl.api.fields import time_of, time_or_none
from queuectl.model.queue import queue_settings_shape
from queuectl.model.states import State
from queuectl.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime
    from typing import TypedDict

    from queuectl.api.fields import Duration
    from queuectl.store.overview import LimitView, QueueView

    class QueueSettings(TypedDict, total=False):
        """What can be set for a queue; None takes it back."""

        concurrency: int | None
        rate: str | None
        timeout: Duration | None
        max_retries: int | None
        priority: int | None


class QueueInfo(Value):
    """A queue, what is set for it, and how many of its jobs are in each state."""

    name: str
    paused_at: "datetime | None"
    created_at: "datetime"
    concurrency: int | None
    rate: str | None
    next_start_at: "datetime | None"
    """When the rate lets the next job start."""
    timeout: float | None
    """In seconds."""
    max_retries: int | None
    priority: int | None
    counts: "dict[State, int]"

    @property
    def is_paused(self) -> bool:
        """Whether its jobs wait until somebody resumes it."""
        return self.paused_at is not None


class LimitInfo(Value):
    """A limit or a mutex, how many hold it and how many would."""

    name: str
    kind: str
    """`limit` or `mutex`."""
    slots: int | None
    """None means that jobs name a limit which nobody made: it holds nothing back."""
    held: int
    waiting: int


def queue_info(view: "QueueView") -> QueueInfo:
    """Return a queue of the store."""
    return QueueInfo(
        name=view.queue.name,
        paused_at=time_or_none(view.queue.paused_at),
        created_at=time_of(view.queue.created_at),
        next_start_at=time_or_none(view.queue.next_start_at),
        counts={state: view.counts.get(state, 0) for state in State},
        **queue_settings_shape(view.queue),  # type: ignore[arg-type]
    )


def limit_info(view: "LimitView") -> LimitInfo:
    """Return a limit of the store."""
    return LimitInfo(name=view.name, kind=view.kind, slots=view.slots, held=view.held, waiting=view.waiting)
