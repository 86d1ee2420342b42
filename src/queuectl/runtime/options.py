"""Options: what a supervisor tells a worker: what to do, when it starts it, and through its pipe when to stop."""

import json

from queuectl.model.duty import Duty
from queuectl.model.value import Value

DRAIN_BYTE = b"d"
NOW_BYTE = b"n"


class WorkerOptions(Value):
    """What a supervisor tells a worker process it starts."""

    worker_id: str
    supervisor_id: str
    duty: Duty
    slots: int
    until_idle: bool
    log_form: str
    log_to_file: bool
    only: int | None = None
    """The one job it is there for; None means whatever its queues hold."""

    @classmethod
    def of_text(cls, text: str) -> "WorkerOptions":
        """Read what `text` wrote."""
        fields = json.loads(text)
        return cls(**{**fields, "duty": Duty.of_map(fields["duty"])})

    @property
    def text(self) -> str:
        """All of it on one line."""
        return json.dumps(self.as_dict(), default=Value.as_dict)
