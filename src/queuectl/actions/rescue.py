"""Rescue: taking jobs back from workers of this host that died without a word."""

from functools import partial

from queuectl.actions.settle import settle
from queuectl.model.attempt import Report
from queuectl.model.verdict import Outcome
from queuectl.store import claims, workers
from queuectl.system import host, process
from queuectl.system.liveness import Pulse, pulse_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from queuectl.model.job import Claim
    from queuectl.store.database import Database, Tx


def rescue(database: "Database", environ: "Mapping[str, str]") -> list[str]:
    """Give up the dead workers of this host, end what is left of their commands, and free their jobs.

    Returns a note per job. A worker is dead when its lock can be taken; those elsewhere are left alone. The sweep goes
    by jobs without a living worker, so a rescue that was itself cut off half way is finished by the next.
    """
    here = host.host_name()
    for worker in dead_here(database):
        database.write(partial(_give_up, worker))
    notes: list[str] = []
    for claim, where in database.read(claims.without_worker):
        if where == here:
            process.kill_marked(f"{claim.job.worker_id}:{claim.job.seq}:{claim.job.run}")
            notes.append(database.write(partial(_free, claim, here, environ)))
    return notes


def dead_here(database: "Database") -> list[workers.Worker]:
    """Return the workers whose row says they live and whose lock says they do not."""
    here = host.host_name()
    return [row for row in database.read(workers.live) if pulse_of(row.lock_path, row.host, here) is Pulse.DEAD]


def _give_up(worker: workers.Worker, tx: "Tx") -> None:
    workers.end(tx, worker.id, workers.LOST)


def _free(claim: "Claim", where: str, environ: "Mapping[str, str]", tx: "Tx") -> str:
    job = settle(tx, claim, Report(outcome=Outcome.lost()), where, environ)
    if job is None:
        return f"job {claim.job.id} run {claim.job.run}: was settled meanwhile"
    tx.wake()
    return f"job {job.id} run {job.run}: its worker was lost; the job is {job.state} now"
