"""The job: as it is asked for (JobSpec), as it stands in the store (Job), as a worker holds it (Claim)."""

from queuectl.model.retry import Backoff
from queuectl.model.states import State
from queuectl.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

DEFAULT_QUEUE = "default"


class JobSpec(Value):
    """A job as somebody asks for it, checked; None means the setting decides."""

    given_id: str | None = None
    command: str | None = None
    argv: tuple[str, ...] | None = None
    queue: str = DEFAULT_QUEUE
    priority: int = 0
    run_at: int | None = None
    delay_ms: int | None = None
    max_retries: int | None = None
    timeout_ms: int | None = None
    backoff: "dict[str, str | float | int] | None" = None
    cwd: str | None = None
    env: "dict[str, str] | None" = None
    tags: tuple[str, ...] = ()
    split_output: bool = False
    hold: bool = False


class Job(Value):
    """A job as it stands in the store: one row; the fields are its columns."""

    seq: int
    given_id: str | None
    state: State
    queue: str
    lane_id: int
    priority: int
    run: int
    attempts: int
    losses: int
    max_retries: int
    cancel_requested: int
    worker_id: str | None
    run_at: int | None
    created_at: int
    updated_at: int
    started_at: int | None
    finished_at: int | None
    exit_code: int | None
    error: str | None
    timeout_ms: int | None
    backoff: str | None
    cwd: str | None
    env: str | None
    tags: str | None
    command: str | None
    argv: str | None
    held_at: int | None
    split_output: int

    @classmethod
    def of_row(cls, row: "Sequence[object]") -> "Job":
        """Build from a row over `columns_of(Job)`."""
        job = super().of_row(row)
        job.__dict__["state"] = State(job.state)
        return job

    @property
    def id(self) -> str:
        """What people call the job: the id they gave it, else its number."""
        return self.given_id or str(self.seq)

    @property
    def argv_list(self) -> list[str] | None:
        """The argument vector, or None for a shell line."""
        return None if self.argv is None else _loads(self.argv)

    @property
    def env_map(self) -> dict[str, str]:
        """The variables the job adds to its worker's."""
        return _loads(self.env) if self.env else {}

    @property
    def tag_list(self) -> list[str]:
        """The tags, in the order given."""
        return _loads(self.tags) if self.tags else []

    @property
    def line(self) -> str:
        """The command on one line, as a person could type it."""
        if self.command is not None:
            return self.command
        import shlex  # only to show an argument vector

        return shlex.join(self.argv_list or [])

    @property
    def own_backoff_map(self) -> "dict[str, object]":
        """The numbers of the backoff that are the job's own."""
        return _loads(self.backoff) if self.backoff else {}

    def own_backoff(self, default: Backoff) -> Backoff:
        """Return the backoff in force for this job: its own numbers over those of the settings."""
        return default if self.backoff is None else default.replace(**self.own_backoff_map)


class Claim(Value):
    """A job held by one worker for one run; (seq, run, worker_id) fences every write about it."""

    job: Job

    @property
    def mark(self) -> str:
        """What every process of this run carries in its environment."""
        return f"{self.job.worker_id}:{self.job.seq}:{self.job.run}"

    @property
    def fence(self) -> "dict[str, int | str | None]":
        """The three values that every write of the holder names in its WHERE."""
        return {"seq": self.job.seq, "run": self.job.run, "worker_id": self.job.worker_id}


def dumps(value: object) -> str:
    """Write a list or an object as a column holds it."""
    import json  # most jobs have nothing to write this way

    return json.dumps(value, ensure_ascii=False)


def _loads(text: str) -> "Any":  # noqa: ANN401 - JSON is of any shape
    import json  # a plain job has nothing to read this way

    return json.loads(text)
