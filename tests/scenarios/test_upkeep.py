"""The store stays small by itself: real workers prune, sweep and give space back while they run jobs."""

import os
from pathlib import Path

from queuectl.actions.connect import connect, locate
from queuectl.model.units import DAY_MS
from queuectl.store import audit, queues
from queuectl.store.database import Tx
from tests.program import Cli, wait_for
from tests.scenarios.faults import damage, last_words
from tests.scenarios.working import on_postgres, on_sqlite, wait_for_workers
from tests.store.rows import last_act


def add_expired(cli: Cli, count: int, *, padding: int = 0) -> None:
    """Write jobs that were completed a year ago."""
    database = connect(cli.target)

    def work(tx: Tx) -> None:
        then = tx.now - 365 * DAY_MS
        lane = queues.lane_of(tx, "default")
        columns = ("seq", "state", "queue", "lane_id", "max_retries", "created_at", "updated_at", "finished_at",
                   "command")  # fmt: skip
        tx.insert_many(
            "jobs",
            columns,
            (
                (seq, "completed", "default", lane, 3, then, then, then, f"true {'x' * padding}")
                for seq in tx.dialect.reserve_seqs(count)
            ),
        )

    database.write(work)
    database.close()


def count(cli: Cli, state: str) -> int:
    """Return how many jobs are in a state."""
    (status,) = cli.json("status")
    jobs = status["jobs"]
    assert isinstance(jobs, dict)
    return int(jobs[state])


def test_workers_prune_what_expired_while_they_run_jobs(cli: Cli) -> None:
    add_expired(cli, 5000)
    ids = cli.ok("enqueue", "--from", "-", stdin="true\n" * 200).split()
    supervisor = cli.start("worker", "start", "-n", "2")

    wait_for(lambda: count(cli, "completed") == len(ids) or None, "the old to be gone and the new to be done")

    database = connect(cli.target)
    assert last_act(database) == ("queuectl", "prune", "completed for 7d, cancelled for 7d", 5000)
    database.close()
    assert "Traceback" not in last_words(supervisor)


def test_workers_remove_old_jobs_with_their_output_as_soon_as_a_setting_says_so(cli: Cli) -> None:
    job_id = cli.enqueue("seq 100000")
    kept = cli.enqueue("--max-retries", "0", "seq 100000; exit 1")
    logs = Path(cli.target.home.own_logs, "0")
    cli.drain()
    before = sorted(path.name for path in logs.iterdir())

    cli.ok("config", "set", "retention_completed", "1ms")
    supervisor = cli.start("worker", "start")
    wait_for(lambda: cli.run("show", job_id).returncode == 3 or None, "the job to go")

    assert before == [f"{job_id}.1.log", f"{kept}.1.log"]
    wait_for(lambda: [path.name for path in logs.iterdir()] == [f"{kept}.1.log"] or None, "its output to go")
    assert cli.job(kept)["state"] == "dead"
    assert "Traceback" not in last_words(supervisor)


def test_workers_that_leave_when_idle_prune_before_they_go(cli: Cli) -> None:
    add_expired(cli, 400)  # a batch: what there is time for, however slow the machine

    cli.drain()

    assert count(cli, "completed") == 0


@on_postgres
def test_output_of_a_job_deleted_on_another_host_is_swept_where_it_lies(cli: Cli, tmp_path: Path) -> None:
    job_id = cli.enqueue("seq 100000")
    supervisor = cli.start("worker", "start")
    cli.wait_for_state(job_id, "completed")
    log = Path(cli.target.home.own_logs, "0", f"{job_id}.1.log")
    there = log.exists()
    elsewhere = {"QUEUECTL_HOME": str(tmp_path / "elsewhere"), "QUEUECTL_DATABASE_URL": cli.target.url}

    Cli(locate(None, elsewhere), tmp_path).ok("delete", job_id)

    wait_for(lambda: not log.exists() or None, "the output to go")
    assert there
    assert "Traceback" not in last_words(supervisor)


@on_sqlite
def test_the_file_shrinks_while_workers_run(cli: Cli) -> None:
    path = cli.target.home.database
    add_expired(cli, 6000, padding=2000)
    cli.ok("enqueue", "--from", "-", stdin="true\n" * 100)
    supervisor = cli.start("worker", "start")
    checkpointed = wait_for(lambda: size if (size := os.path.getsize(path)) > 10 << 20 else None, "the file to grow")

    wait_for(lambda: os.path.getsize(path) < 3 << 20 or None, "the file to shrink")

    wait_for(lambda: count(cli, "completed") == 100 or None, "only what is not expired to be left")
    assert checkpointed > 10 << 20
    assert "Traceback" not in last_words(supervisor)
    assert damage(path) == "ok"


def test_pruning_by_hand_beside_workers_that_prune_is_counted_once(cli: Cli) -> None:
    add_expired(cli, 3000)
    supervisor = cli.start("worker", "start")
    wait_for_workers(cli, 1)

    while count(cli, "completed"):
        cli.ok("prune")

    database = connect(cli.target)
    acts = [act for act in database.read(lambda tx: audit.newest(tx, 50)) if act.action == "prune"]
    database.close()
    assert sum(act.count for act in acts) == 3000
    assert "Traceback" not in last_words(supervisor)
