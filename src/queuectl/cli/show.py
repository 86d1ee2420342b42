"""Show one job: its state, its runs, and why it waits.

MEMORY of a run is the peak the kernel accounted; it is never less than the size of the worker that started it. OUTPUT
is what it printed, so far if it is under way on this host; STDERR has a column of its own with --split-output.
"""

import json

from queuectl.cli.store import connect, find_job, is_living, target_of
from queuectl.cli.text import facts, print_json, safe, table, when
from queuectl.model.job import Claim
from queuectl.model.shapes import attempt_shape, job_shape
from queuectl.model.states import WAITING_FOR_TIME, State
from queuectl.model.units import local_text, rough_duration_text, rough_size_text
from queuectl.runtime.follow import measured
from queuectl.store import attempts, claims, queues, workers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from queuectl.cli.parser import Args, Parser
    from queuectl.model.attempt import Attempt
    from queuectl.model.job import Job
    from queuectl.store.database import Tx

EXAMPLES = """\
  queuectl show 12
  queuectl show last
  queuectl show job1 --json
"""


def add_arguments(parser: "Parser", _defaults: "Mapping[str, object]") -> None:
    """Declare the arguments."""
    parser.add_argument("id", metavar="ID", help="the job: its number, its id, or 'last'")
    parser.set_defaults(run=run)


def run(args: "Args") -> int:
    """Print everything that is known of a job."""

    target = target_of(args)

    def look(tx: "Tx") -> "tuple[Job, list[Attempt], str | None, int]":
        job = find_job(tx, args.id)
        return job, measured(target, tx, attempts.runs_of(tx, job)), why_waiting(tx, job), tx.now

    job, runs, why, now = connect(target).read(look)
    if args.json:
        print_json({**job_shape(job), "waits_for": why, "runs": [attempt_shape(run) for run in runs]})
        return 0
    facts(_facts(job, why, now))
    if runs:
        print()
        print_runs(runs, now)
    return 0


def why_waiting(tx: "Tx", job: "Job") -> str | None:
    """Say why a job does not run yet; None when it does not wait."""
    if job.state in WAITING_FOR_TIME and (job.run_at or 0) > tx.now:
        return "its time" if job.state is State.SCHEDULED else "its next retry"
    if job.state is State.BLOCKED:
        return "being released"
    if job.state is State.PROCESSING:
        holder = workers.get(tx, job.worker_id or "")
        if holder is None or holder.state != workers.LIVE or not is_living(holder, tx.dialect):
            stuck = f" ({job.error})" if job.error else ""
            return f"a rescue: its worker is dead; a running supervisor brings it back{stuck}"
    if job.state is not State.PENDING and job.state not in WAITING_FOR_TIME:
        return None
    queue = queues.get(tx, job.queue)
    if queue is not None and queue.paused_at is not None:
        return f"its queue: {job.queue} is paused"
    serving = [
        worker
        for worker in workers.live(tx)
        if worker.kind == workers.WORKER and (worker.queue_list is None or job.queue in worker.queue_list)
    ]
    staying = [worker for worker in serving if is_living(worker, tx.dialect) and not worker.stop]
    if not staying:
        return f"a worker: none is running for queue {job.queue}"
    if claims.runs_alone(Claim(job=job)):
        return f"an idle worker: it has lost {job.losses} workers, and runs alone now"
    return "a free worker"


def print_runs(runs: "list[Attempt]", now: int) -> None:
    """Print the runs of a job as a table; hosts have a column when there was more than one, stderr when kept apart."""
    headers = ["RUN", "ATTEMPT", "OUTCOME", "EXIT", "STARTED", "TOOK", "CPU", "MEMORY", "OUTPUT"]
    rows = [
        [
            str(run.run),
            str(run.attempt),
            run.outcome.value if run.outcome else "running",
            "-" if run.exit_code is None else str(run.exit_code),
            local_text(run.started_at),
            rough_duration_text((run.finished_at or now) - run.started_at),
            "-" if run.cpu_ms is None else f"{run.cpu_ms}ms",
            "-" if run.peak_memory_bytes is None else rough_size_text(run.peak_memory_bytes),
            rough_size_text(run.output_bytes),
        ]
        for run in runs
    ]
    if any(run.is_split for run in runs):
        headers.append("STDERR")
        sizes = ("-" if run.stderr_bytes is None else rough_size_text(run.stderr_bytes) for run in runs)
        rows = [[*row, size] for row, size in zip(rows, sizes, strict=True)]
    if len({run.host for run in runs}) > 1:
        headers.append("HOST")
        rows = [[*row, run.host] for row, run in zip(rows, runs, strict=True)]
    table(headers, rows)


def _facts(job: "Job", why: str | None, now: int) -> "Iterator[tuple[str, str]]":
    """Yield what there is to say of a job; what is empty is left out."""
    yield "Job", job.id if job.given_id is None else f"{job.id} (number {job.seq})"
    yield "State", f"{job.state}, being cancelled" if job.cancel_requested else job.state.value
    yield from _given("Waits for", why)
    yield "Command", safe(job.line)
    yield "Queue", f"{job.queue}, priority {job.priority}"
    yield "Attempts", f"{job.attempts}/{job.max_retries}"
    yield from _given("Lost runs", str(job.losses) if job.losses else None)
    yield from _given("Error", job.error)
    yield from _given("Exit code", None if job.exit_code is None else str(job.exit_code))
    yield "Added", when(job.created_at, now)
    if job.state in WAITING_FOR_TIME:
        yield "Runs at", when(job.run_at, now)
    yield from _given("Started", job.started_at and when(job.started_at, now))
    yield from _given("Finished", job.finished_at and when(job.finished_at, now))
    yield from _given("Timeout", None if job.timeout_ms is None else rough_duration_text(job.timeout_ms))
    yield from _given(
        "Backoff", None if job.backoff is None else json.dumps(job_shape(job)["backoff"]).strip("{}").replace('"', "")
    )
    yield "Folder", safe(job.cwd or "/")
    for name, value in job.env_map.items():
        yield "Variable", safe(f"{name}={value}")
    yield from _given("Tags", ", ".join(job.tag_list))
    yield from _given("Worker", job.worker_id)


def _given(name: str, value: object) -> "Iterator[tuple[str, str]]":
    if value:
        yield name, safe(str(value))
