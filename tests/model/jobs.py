"""A job as a value, for tests that need no store."""

from queuectl.model.job import Job
from queuectl.model.states import State

CREATED = 1_780_000_000_123


def a_job(**changes: object) -> Job:
    """Return a job that is running for the first time, with some fields changed."""
    job = Job(
        seq=7, given_id=None, state=State.PROCESSING, queue="default", lane_id=1, priority=0, run=1, attempts=0,
        losses=0, max_retries=3, cancel_requested=0, worker_id="w1", run_at=None, created_at=CREATED,
        updated_at=CREATED, started_at=CREATED, finished_at=None, exit_code=None, error=None, timeout_ms=None,
        backoff=None, cwd="/tmp", env=None, tags=None, command="true", argv=None, held_at=None, split_output=0,
        needs=None, limits=None, parked_for=None, deadline_ms=None, deadline_at=None, policy=None, launch=None,
        units=None, waits_for=0, has_dependents=0, on_dead=None, starved_at=None, unique_key=None, unique_for_ms=None,
        group_name=None, waited_ms=None,
    )  # fmt: skip
    return job.replace(**changes)
