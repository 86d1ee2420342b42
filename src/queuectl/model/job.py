"""The job: as it is asked for (JobSpec), as it stands in the store (Job), as a worker holds it (Claim)."""

from queuectl.model.limits import limit_keys
from queuectl.model.retry import Backoff
from queuectl.model.states import State
from queuectl.model.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from queuectl.model.after import Parent
    from queuectl.model.launch import Launch
    from queuectl.model.policy import Policy

DEFAULT_QUEUE = "default"
_STATES: dict[str, State] = {state.value: state for state in State}  # to ask State itself takes ten times as long


class JobSpec(Value):
    """A job as somebody asks for it, checked; None means that its queue or the settings decide."""

    given_id: str | None = None
    command: str | None = None
    argv: tuple[str, ...] | None = None
    queue: str = DEFAULT_QUEUE
    priority: int | None = None
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
    needs: tuple[str, ...] = ()
    use: "dict[str, int] | None" = None
    mutexes: tuple[str, ...] = ()
    limits: tuple[str, ...] = ()
    deadline_ms: int | None = None
    policy: "dict[str, object] | None" = None
    launch: "dict[str, object] | None" = None
    input: bytes | None = None
    at_most: tuple[str, ...] = ()
    after: "tuple[Parent, ...]" = ()
    on_dead: str | None = None
    unique_key: str | None = None
    unique_for_ms: int | None = None
    on_conflict: str | None = None
    group: str | None = None
    max_failures: str | None = None
    on_group_done: str | None = None

    @property
    def needs_text(self) -> str:
        """What it asks of a worker, as lanes are told apart by it."""
        if not self.needs and not self.use:
            return ""
        from queuectl.model.needs import needs_text  # most jobs need nothing

        return needs_text(self.needs, self.use)

    @property
    def limit_keys(self) -> list[str]:
        """The limits it must stay within, by their keys."""
        return limit_keys(self.mutexes, self.limits, self.at_most) if self.names_limits else []

    @property
    def names_limits(self) -> bool:
        """Whether it must stay within any."""
        return bool(self.mutexes or self.limits or self.at_most)


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
    needs: str | None
    limits: str | None
    parked_for: str | None
    deadline_ms: int | None
    deadline_at: int | None
    policy: str | None
    launch: str | None
    units: str | None
    waits_for: int
    """How many of the jobs it is to run after have not yet ended as asked."""
    has_dependents: int
    on_dead: str | None
    starved_at: int | None
    unique_key: str | None
    unique_for_ms: int | None
    group_name: str | None
    waited_ms: int | None
    """How long its last run waited, from when it was ready until it was taken."""

    @classmethod
    def of_row(cls, row: "Sequence[object]") -> "Job":
        """Build from a row over `columns_of(Job)`."""
        job = cls.__new__(cls)
        own = job.__dict__
        own.update(zip(cls.FIELDS, row, strict=True))
        own["state"] = _STATES[own["state"]]
        return job

    @property
    def id(self) -> str:
        """What people call the job: the id they gave it, else its number."""
        return self.given_id or str(self.seq)

    @property
    def ready_at(self) -> int:
        """When a ready job came to be so (or was last edited): a time it waited for, or when what held it was gone."""
        return self.updated_at

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
    def limit_list(self) -> list[str]:
        """The keys of the limits it must stay within."""
        return read_list(self.limits) if self.limits else []

    @property
    def unit_map(self) -> "dict[str, int | list[int]]":
        """What it has of its worker's resources while it runs."""
        return read_units(self.units) if self.units else {}

    @property
    def policy_map(self) -> "dict[str, object]":
        """What it says of the ends of its runs."""
        return _loads(self.policy) if self.policy else {}

    @property
    def own_policy(self) -> "Policy | None":
        """How the ends of its runs are judged; None where a plain job's are."""
        if self.policy is None:
            return None
        from queuectl.model.policy import Policy  # a plain job has none

        return Policy.of_map(self.policy_map)

    @property
    def launch_map(self) -> "dict[str, object]":
        """What it asks of the process that runs it."""
        return _loads(self.launch) if self.launch else {}

    @property
    def launch_options(self) -> "Launch | None":
        """What it asks of the process that runs it; None for a plain one."""
        if self.launch is None:
            return None
        from queuectl.model.launch import Launch  # a plain job has none

        return Launch.of_map(self.launch_map)

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


def read_list(text: str) -> list[str]:
    """Read a list of words as a column holds it."""
    found: list[str] = _loads(text)
    return found


def read_units(text: str) -> "dict[str, int | list[int]]":
    """Read what a job has of its worker's resources, as a column holds it."""
    found: dict[str, int | list[int]] = _loads(text)
    return found


def _loads(text: str) -> "Any":  # noqa: ANN401 - JSON is of any shape
    import json  # a plain job has nothing to read this way

    return json.loads(text)
