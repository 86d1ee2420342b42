"""Jobs behind a mutex or a limit, and workers that take and settle them, for the tests of gates."""

from collections.abc import Callable, Sequence

from queuectl.actions.control import cancel, delete, hold
from queuectl.actions.edit import edit
from queuectl.actions.settle import Holder, Step, settle_and_claim
from queuectl.actions.submit import submit
from queuectl.model.attempt import Report
from queuectl.model.edit import edit_from_fields
from queuectl.model.job import Claim, JobSpec, dumps
from queuectl.model.states import FINAL
from queuectl.model.verdict import Outcome
from queuectl.store import jobs
from queuectl.store.database import Database
from queuectl.store.takers import Taker
from tests.store.rows import HOST, add_job, get_job

Act = Callable[[Database], object]
TURNS = 20


def put(db: Database, *job_ids: str, **fields: object) -> None:
    """Add jobs that name the mutex `m`, or whatever they are given instead."""
    spec = JobSpec(command="true").replace(**{"mutexes": ("m",), **fields})
    submit(db, [spec.replace(given_id=job_id) for job_id in job_ids], who="me", environ={})


def put_ready(db: Database, *job_ids: str) -> None:
    """Add jobs that name the mutex `m` and stand in the line all the same, as those do whose retry is due."""
    for job_id in job_ids:
        add_job(db, given_id=job_id, limits=dumps(["mutex:m"]))


def held_mutex(db: Database) -> tuple[Claim, ...]:
    """Let a worker hold the mutex `m`."""
    put(db, "holder")
    return claim(db, "w1")


def step(db: Database, worker_id: str, ended: Sequence[Claim] = (), free: int = 1) -> Step:
    """Let a worker settle its runs as done, and claim."""
    reports = [(claim, Report(outcome=Outcome.exited(0))) for claim in ended]
    return settle_and_claim(db, Holder(taker=Taker(worker_id=worker_id), host=HOST), reports, free, {})


def claim(db: Database, worker_id: str = "w1", free: int = 1) -> tuple[Claim, ...]:
    """Let a worker claim, and return what it got."""
    return step(db, worker_id, free=free).claimed


def claims(worker_id: str) -> Callable[[Database], list[str]]:
    """A worker claims: the ids of what it got."""
    return lambda db: [one.job.id for one in claim(db, worker_id)]


def settles(*held: Claim) -> Callable[[Database], Step]:
    """A worker settles its runs and takes nothing."""
    return lambda db: step(db, str(held[0].job.worker_id), held, free=0)


def edits(job_id: str, **fields: object) -> Act:
    """A person changes a job."""
    return lambda db: edit(db, [job_id], edit_from_fields(fields, 0), who="me")


def states(db: Database, *job_ids: str) -> list[str]:
    """Return where jobs stand."""
    return [get_job(db, seq_of(db, job_id)).state.value for job_id in job_ids]


def seq_of(db: Database, job_id: str) -> int:
    """Return the number of a job."""
    seq = db.read(lambda tx: jobs.find(tx, job_id))
    assert seq is not None
    return seq.seq


def runs_to_its_end(db: Database, job_id: str) -> bool:
    """Whether a worker that takes whatever is ready comes to a job, without any other help."""
    held: tuple[Claim, ...] = ()
    for _ in range(TURNS):
        held = step(db, "w1", held).claimed
        if not held:
            break
    return get_job(db, seq_of(db, job_id)).state in FINAL


LEAVES_LINE: dict[str, Act] = {
    "cancel": lambda db: cancel(db, ["next"], who="me"),
    "hold": lambda db: hold(db, ["next"], who="me"),
    "delete": lambda db: delete(db, ["next"], who="me"),
    "edit mutex": edits("next", mutex="none"),
    "edit queue": edits("next", queue="other"),
    "edit time": edits("next", delay="1h"),
}
