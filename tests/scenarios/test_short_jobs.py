"""Many short jobs: taken and settled by the handful, and still every one once, whatever kills the workers."""

import signal
from collections import Counter
from pathlib import Path

from queuectl.model.verdict import OutcomeKind
from queuectl.store.database import Database
from tests.program import Cli, lines_of, wait_for
from tests.scenarios.processes import send, worker_pids
from tests.scenarios.working import enqueue_all, wait_for_all, wait_for_workers, workers_of
from tests.store.rows import get_runs

JOBS = 400
KILLS = 4


def test_no_short_job_is_lost_or_repeated_without_a_record_when_workers_are_killed(cli: Cli, db: Database) -> None:
    ledger = cli.folder / "ledger"
    ids = enqueue_all(cli, [f"echo $QUEUECTL_JOB_ID.$QUEUECTL_RUN >>{ledger}"] * JOBS)
    cli.start("worker", "start", "-n", "2")

    for kill in range(1, KILLS + 1):
        wanted = kill * JOBS // (KILLS + 2)
        wait_for(lambda wanted=wanted: len(lines_of(ledger)) >= wanted or None, "more to run")  # type: ignore[misc]
        send(signal.SIGKILL, *worker_pids(cli))
        wait_for_workers(cli, 2)
    wait_for_all(cli, ids, "completed")

    ran = Counter(lines_of(ledger))
    runs = {int(job_id): get_runs(db, int(job_id)) for job_id in ids}
    rows = {f"{seq}.{run.run}": run.outcome for seq, found in runs.items() for run in found}
    assert set(ran.values()) == {1}
    assert ran.keys() <= rows.keys()  # each run that began is on record
    assert {rows[run] for run in rows.keys() - ran.keys()} <= {OutcomeKind.LOST}
    assert all([run.outcome for run in found].count(OutcomeKind.EXITED) == 1 for found in runs.values())
    living = {str(worker["id"]) for worker in workers_of(cli)}
    assert {path.stem for path in Path(cli.target.home.run).glob("*.ended")} <= living
