"""Graphs of jobs for the tests of the store: adding, running and ending them, and what must hold of them always."""

from collections import Counter
from collections.abc import Callable, Sequence

from queuectl.actions import acts, verbs
from queuectl.actions.control import cancel, delete, hold, retry
from queuectl.actions.edit import edit
from queuectl.actions.settle import Holder, settle_and_claim
from queuectl.actions.submit import Entry, enter
from queuectl.model.after import OnDead, check_after, is_met
from queuectl.model.attempt import Report
from queuectl.model.edit import edit_from_fields
from queuectl.model.job import Claim, Job, JobSpec
from queuectl.model.states import FINAL, State
from queuectl.model.verdict import Outcome
from queuectl.store import edges, jobs
from queuectl.store.database import Database, Tx
from queuectl.store.takers import Taker
from tests.store.rows import HOST, add_worker

Act = Callable[[Database], object]
DONE = Outcome.exited(0)
FAILED = Outcome.exited(1)
ALL = 100_000


def put(db: Database, job_id: str, after: str = "", **fields: object) -> Entry:
    """Add a job that runs after others and is tried once."""
    spec = JobSpec(given_id=job_id, command="true", max_retries=0, after=check_after("after", after) if after else ())
    return enter(db, [spec.replace(**fields)], who="me", environ={})[0]


def puts(job_id: str, after: str = "", **fields: object) -> Callable[[Database], Entry]:
    """A person adds a job."""
    return lambda db: put(db, job_id, after, **fields)


def running(db: Database, *job_ids: str, worker_id: str = "") -> list[Claim]:
    """Let a new worker take jobs, which must be all that is ready."""
    name = worker_id or f"w-{job_ids[0]}"
    add_worker(db, name)
    claimed = settle_and_claim(db, holder(name), (), len(job_ids), {}).claimed
    assert sorted(claim.job.id for claim in claimed) == sorted(job_ids)
    return list(claimed)


def begun(db: Database, job_id: str) -> Claim:
    """Let a new worker take a job, which must be all that is ready."""
    return running(db, job_id)[0]


def claim(db: Database, worker_id: str, free: int = 1) -> list[Claim]:
    """Let a worker take what is ready."""
    return list(settle_and_claim(db, holder(worker_id), (), free, {}).claimed)


def settles(claim: Claim, outcome: Outcome = DONE) -> Act:
    """A worker settles a run and takes nothing."""
    report = Report(outcome=outcome)
    return lambda db: settle_and_claim(db, holder(str(claim.job.worker_id)), [(claim, report)], 0, {})


def cancels(job_id: str) -> Act:
    """A person cancels a job."""
    return lambda db: cancel(db, [job_id], who="me")


def holds(job_id: str) -> Act:
    """A person holds a job."""
    return lambda db: hold(db, [job_id], who="me")


def retries(job_id: str) -> Act:
    """A person runs a job again."""
    return lambda db: retry(db, [job_id], who="me")


def retries_with_dependents(job_id: str) -> Act:
    """A person runs a job again, and all that run after it."""
    return lambda db: acts.act_on_each(db, [job_id], verbs.RETRY_WITH_DEPENDENTS, who="me")


def deletes(job_id: str) -> Act:
    """A person deletes a job."""
    return lambda db: delete(db, [job_id], who="me")


def edits(job_id: str, **fields: object) -> Act:
    """A person changes a job."""
    return lambda db: edit(db, [job_id], edit_from_fields(fields, 0), who="me")


CHANGES: dict[str, Callable[[str], Act]] = {
    "cancel": cancels,
    "hold": holds,
    "delete": deletes,
    "edit after none": lambda job_id: edits(job_id, after="none"),
    "edit after another": lambda job_id: edits(job_id, after=job_id.replace("c", "other")),
    "edit after it once more": lambda job_id: edits(job_id, after=job_id.replace("c", "a")),
    "edit to run": lambda job_id: edits(job_id, on_dead_dependency="run"),
    "edit to keep": lambda job_id: edits(job_id, on_dead_dependency="keep"),
}
"""What a person may do to the child `c1` of `a1`; `other1` is another job."""


def job_of(db: Database, job_id: str) -> Job:
    """Return a job that must be there."""
    job = db.read(lambda tx: jobs.find(tx, job_id))
    assert job is not None
    return job


def state_of(db: Database, job_id: str) -> str:
    """Return where a job stands; `gone` where there is none."""
    job = db.read(lambda tx: jobs.find(tx, job_id))
    return "gone" if job is None else job.state.value


def states(db: Database, *job_ids: str) -> list[str]:
    """Return where jobs stand."""
    return [state_of(db, job_id) for job_id in job_ids]


def drain(db: Database, worker_id: str = "drain") -> list[str]:
    """Let one worker run all there is to its good end, and return the ids in the order in which they were taken."""
    add_worker(db, worker_id)
    ran: list[str] = []
    ended: list[tuple[Claim, Report]] = []
    while True:
        claimed = settle_and_claim(db, holder(worker_id), ended, 5, {}).claimed
        if not claimed and not ended:
            return ran
        ran += [claim.job.id for claim in claimed]
        ended = [(claim, Report(outcome=DONE)) for claim in claimed]


def faults(tx: Tx) -> list[str]:
    """Return what must never be so of the jobs, edges, keys and groups that are there."""
    found = {job.seq: job for job in jobs.page(tx, jobs.Filter(), 0, ALL)}
    links = edges.between(tx, sorted(found))
    unmet = Counter(each.child_seq for each in links if each.state != "satisfied")
    return [
        *(fault for job in found.values() for fault in _of_job(job, unmet[job.seq])),
        *(fault for each in links for fault in _of_edge(each, found)),
        *_of_keys(tx, found),
        *_of_groups(tx, list(found.values())),
    ]


def _of_job(job: Job, unmet: int) -> list[str]:
    is_stuck = not (job.waits_for or job.held_at or job.parked_for)
    return [
        *([f"job {job.id} says it waits for {job.waits_for}, and does for {unmet}"] if job.waits_for != unmet else []),
        *([f"job {job.id} is blocked by nothing"] if job.state is State.BLOCKED and is_stuck else []),
        *([f"job {job.id} is {job.state} and waits for {unmet}"] if unmet and job.state in _MOVING else []),
        *([f"job {job.id} is parked and waits for {unmet}"] if unmet and job.parked_for else []),
    ]


_MOVING = frozenset({State.PENDING, State.SCHEDULED, State.FAILED, State.PROCESSING})


def _of_edge(edge: edges.Edge, found: dict[int, Job]) -> list[str]:
    child, parent = found[edge.child_seq], found.get(edge.parent_seq)
    name = f"{child.id} ({child.state}) after {edge.kind}:{edge.parent_seq} ({parent and parent.state}) is {edge.state}"
    if parent is not None and not parent.has_dependents:
        return [f"{name}, and that one does not know it"]
    if child.state in FINAL or edge.state == "satisfied":
        return []
    if edge.state == "broken" or parent is None:
        return [f"{name} for ever"]
    if parent.state in FINAL and (is_met(edge.kind, parent.state) or child.on_dead != OnDead.KEEP):
        return [name]
    return []


def _of_keys(tx: Tx, found: dict[int, Job]) -> list[str]:
    held = {str(key): int(seq or 0) for key, seq in tx.rows("SELECT key, job_seq FROM unique_keys WHERE held = 1")}
    unfinished = [job for job in found.values() if job.unique_key is not None and job.state not in FINAL]
    return [
        *(
            f"job {job.id} ({job.state}) has not its key {job.unique_key}"
            for job in unfinished
            if not _has_key(job, held)
        ),
        *(f"key {key} is held by {seq}" for key, seq in held.items() if seq not in {job.seq for job in unfinished}),
    ]


def _has_key(job: Job, held: dict[str, int]) -> bool:
    """Whether a job has its key, or is being stopped for one that took it."""
    is_stopping = job.state is State.PROCESSING and bool(job.cancel_requested)
    return is_stopping or held.get(str(job.unique_key)) == job.seq


def _of_groups(tx: Tx, found: Sequence[Job]) -> list[str]:
    wrong = []
    for name, done_at in tx.rows("SELECT name, done_at FROM job_groups WHERE on_done IS NOT NULL"):
        members = [job for job in found if job.group_name == name]
        has_ended = all(job.state in FINAL for job in members)
        if members and has_ended != (done_at is not None):
            wrong.append(f"group {name!s} {'has ended' if has_ended else 'goes on'}, and its hook knows nothing of it")
    return wrong


def holder(worker_id: str) -> Holder:
    """A worker that takes whatever there is."""
    return Holder(taker=Taker(worker_id=worker_id), host=HOST)
