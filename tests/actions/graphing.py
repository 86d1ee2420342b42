"""Jobs that run after others, for tests: added by what a JSON job says, and brought to an end by a worker."""

from queuectl.actions.submit import Entry, enter
from queuectl.model.job import Claim, Job, JobSpec
from queuectl.model.spec import spec_from_fields
from queuectl.model.states import State
from queuectl.model.verdict import Outcome
from queuectl.store import claims, edges, jobs, moves
from queuectl.store.database import Database, Tx
from queuectl.store.takers import Taker
from tests.store.rows import NOW, settle_run

OK, FAILED = Outcome.exited(0), Outcome.exited(1)


def spec(job_id: str, after: object = None, **fields: object) -> JobSpec:
    """Return a job in a queue of its own name, so that a worker can take it and no other; it is tried once."""
    given = {"id": job_id, "command": "true", "queue": job_id, "max_retries": 0, "after": after, **fields}
    return spec_from_fields({name: value for name, value in given.items() if value is not None}, NOW, JobSpec(cwd="/"))


def add(db: Database, *specs: JobSpec) -> list[Entry]:
    """Add jobs in one transaction."""
    return enter(db, specs, who="me", environ={})


def job_of(db: Database, job_id: str) -> Job:
    """Return a job that must be there."""
    found = db.read(lambda tx: jobs.find(tx, job_id))
    assert found is not None, job_id
    return found


def state_of(db: Database, job_id: str) -> State:
    """Return the state of a job that must be there."""
    return job_of(db, job_id).state


def states(db: Database, *job_ids: str) -> str:
    """Return the states of jobs, for one comparison."""
    return " ".join(state_of(db, job_id) for job_id in job_ids)


def start(db: Database, job_id: str) -> Claim:
    """Let a worker take a job that must be ready."""
    queue = job_of(db, job_id).queue
    taken = db.write(lambda tx: _claim(tx, queue))
    assert [claim.job.id for claim in taken] == [job_id], f"{job_id} is {state_of(db, job_id)}"
    return taken[0]


def run(db: Database, *job_ids: str, outcome: Outcome = OK) -> None:
    """Let a worker run jobs, one after the other, each of which must be ready."""
    for job_id in job_ids:
        assert settle_run(db, start(db, job_id), outcome) is not None


def is_ready(db: Database, job_id: str) -> bool:
    """Whether a worker would be given the job now; undone."""
    queue = job_of(db, job_id).queue

    class Undone(Exception):
        pass

    def work(tx: Tx) -> None:
        raise Undone(bool(_claim(tx, queue)))

    try:
        db.write(work)
    except Undone as undone:
        return bool(undone.args[0])
    raise AssertionError("not reached")


def _claim(tx: Tx, queue: str) -> list[Claim]:
    moves.make_due(tx)
    return list(claims.claim(tx, Taker(worker_id="w1", queues=(queue,)), 1).claims)


def edges_of(db: Database, job_id: str) -> dict[str, str]:
    """Return what has become of each dependency of a job, by what its parent is called; checks its counter."""
    job = job_of(db, job_id)
    found = db.read(lambda tx: edges.parents_of(tx, job.seq))
    assert job.waits_for == sum(link.edge_state != "satisfied" for link in found), f"{job_id} waits for {job.waits_for}"
    return {link.id: link.edge_state.value for link in found}
