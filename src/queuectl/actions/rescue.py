"""Rescue: taking jobs back from workers of this host that died without a word."""

import os
from functools import partial

from queuectl.actions.connect import working_settings
from queuectl.actions.liveness import pulse
from queuectl.actions.settle import settle
from queuectl.model.attempt import Report
from queuectl.model.verdict import Outcome
from queuectl.store import claims, workers
from queuectl.system import host, process
from queuectl.system.home import log_path, remove_file, script_path
from queuectl.system.liveness import Pulse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from queuectl.model.job import Claim
    from queuectl.store.database import Database, Tx
    from queuectl.system.home import Home


def rescue(database: "Database", home: "Home", environ: "Mapping[str, str]") -> list[str]:
    """Give up the dead workers of this host, end what is left of their commands, and free their jobs.

    Returns a note per job. A worker is dead when its lock can be taken; those elsewhere are left alone. The sweep goes
    by jobs without a living worker, so a rescue that was itself cut off half way is finished by the next.
    """
    here = host.host_name()
    for worker in dead_here(database):
        database.write(partial(_give_up, worker))
        remove_file(worker.lock_path)
    notes: list[str] = []
    tail_bytes = database.read(lambda tx: working_settings(tx, environ)).output_tail_bytes
    for claim, where in database.read(claims.without_worker):
        if where in (here, ""):
            if not process.kill_marked(claim.mark):
                notes.append(
                    f"job {claim.job.id} run {claim.job.run}: part of it cannot be ended, so it is not run again"
                )
                continue
            remove_file(script_path(home, claim.job.seq, claim.job.run))
            notes.append(database.write(partial(_free, claim, _what_is_left(home, claim, tail_bytes), here, environ)))
    return notes


def dead_here(database: "Database") -> list[workers.Worker]:
    """Return the workers whose row says they live and whose lock says they do not."""
    return [row for row in database.read(workers.live) if pulse(row) is Pulse.DEAD]


def _give_up(worker: workers.Worker, tx: "Tx") -> None:
    workers.end(tx, worker.id, workers.LOST)


def _what_is_left(home: "Home", claim: "Claim", tail_bytes: int) -> Report:
    """Return the report of a run that nobody saw end: its outcome, and what it had printed into its file."""
    path = log_path(home, claim.job.seq, claim.job.run)
    try:
        with open(path, "rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - tail_bytes))
            tail = file.read()
    except OSError:
        return Report(outcome=Outcome.lost())
    name = os.path.relpath(path, home.logs)
    return Report(outcome=Outcome.lost(), output_bytes=size, output_file=name, output_tail=tail)


def _free(claim: "Claim", report: Report, where: str, environ: "Mapping[str, str]", tx: "Tx") -> str:
    job = settle(tx, claim, report, where, environ)
    if job is None:
        return f"job {claim.job.id} run {claim.job.run}: was settled meanwhile"
    tx.wake()
    return f"job {job.id} run {job.run}: its worker was lost; the job is {job.state} now"
