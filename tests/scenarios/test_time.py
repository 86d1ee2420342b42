"""Time end to end: clocks that are stepped, processes that stand still, machines that sleep; no living job suffers."""

import time
from pathlib import Path

import pytest

from queuectl.model.job import Job
from queuectl.model.states import State
from queuectl.store.database import Database
from tests.program import Cli, pids_with, wait_for
from tests.scenarios.hosts import WallClock, other_host
from tests.scenarios.processes import Guard, living, process_of, standing_still, worker_pid
from tests.scenarios.working import on_postgres, on_sqlite, runs_of, seconds, stays, wait_for_workers
from tests.store.rows import get_job

HOUR_S = 3600
LEASE_S = 7.0
DEFAULT_LEASE_S = 60.0


@pytest.fixture
def wall_clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> WallClock:
    """The wall clock of all that the test starts, and of the database too where it is a file."""
    clock = WallClock(tmp_path)
    for name, value in clock.environ.items():
        monkeypatch.setenv(name, value)
    return clock


@pytest.fixture
def short_lease(cli: Cli) -> None:
    """A worker that falls silent is given up after seven seconds, where a lease applies."""
    cli.ok("config", "set", "worker_heartbeat_interval", "1")
    cli.ok("config", "set", "lock_lease_seconds", f"{LEASE_S:g}")


@pytest.mark.needs("faketime")
def test_a_clock_that_is_stepped_an_hour_ahead_and_back_harms_no_job_and_stops_no_retry(
    wall_clock: WallClock, cli: Cli, short_lease: None, db: Database, guard: Guard, tmp_path: Path
) -> None:
    running = cli.enqueue("--timeout", "100s", guard.around(until_go(tmp_path)))
    failing = cli.enqueue("--backoff-base", "4", "test $QUEUECTL_ATTEMPT = 2")
    cli.start("worker", "start", "-n", "2", "-j", "2")
    guard.wait_for_run(1)
    cli.wait_for_state(failing, "failed")

    wall_clock.set(HOUR_S)
    is_stepped = seconds(cli.job(cli.enqueue("true"))["created_at"]) - time.time() > HOUR_S / 2
    ahead = cli.enqueue("--backoff-base", "1", "test $QUEUECTL_ATTEMPT = 2")
    stays(lambda: is_undisturbed(job_of(db, running)), "the job runs on", LEASE_S + 2)
    retried = [cli.wait_for_state(job_id, "completed") for job_id in (failing, ahead)]
    wall_clock.set(0)
    back = cli.enqueue("--backoff-base", "1", "test $QUEUECTL_ATTEMPT = 2")
    stays(lambda: is_undisturbed(job_of(db, running)), "the job runs on", LEASE_S + 2)
    retried.append(cli.wait_for_state(back, "completed"))
    (tmp_path / "go").touch()
    job = cli.wait_for_state(running, "completed")

    assert is_stepped == (cli.target.sqlite_path is not None)  # PostgreSQL has a clock of its own
    assert (job["attempts"], job["losses"], job["run"], guard.lines) == (1, 0, 1, ["run 1"])
    assert [(done["attempts"], done["losses"]) for done in retried] == [(2, 0)] * 3


@on_sqlite
@pytest.mark.timeout(300)
def test_a_worker_that_stood_still_for_90_seconds_goes_on_with_its_job(
    cli: Cli, db: Database, guard: Guard, tmp_path: Path
) -> None:
    job_id = cli.enqueue(guard.around(until_go(tmp_path)))
    cli.start("worker", "start")
    guard.wait_for_run(1)
    worker = worker_pid(cli)
    tree = wait_for(guard.holders, "the command")
    leader = min(tree)
    cli.start("worker", "start")
    wait_for_workers(cli, 2)

    with standing_still(worker):
        stays(lambda: is_undisturbed(job_of(db, job_id)) and bool(living([leader])), "the job runs on", 90)
    (tmp_path / "go").touch()
    job = cli.wait_for_state(job_id, "completed")

    assert (job["attempts"], job["losses"], job["run"], guard.lines) == (1, 0, 1, ["run 1"])
    assert worker in [int(str(row["pid"])) for row in wait_for_workers(cli, 2)]


@on_postgres
@pytest.mark.timeout(300)
def test_a_worker_that_stands_still_is_ended_before_its_lease_and_its_job_handed_back(
    cli: Cli, db: Database, guard: Guard
) -> None:
    job_id = cli.enqueue(guard.once("trap '' TERM; sleep 600 & setsid sleep 600 & wait; wait"))
    cli.start("worker", "start")
    wait_for(lambda: len(guard.holders()) == 3 or None, "the tree")
    worker = process_of(worker_pid(cli))
    assert worker is not None
    cli.start("worker", "start")
    wait_for_workers(cli, 2)

    with standing_still(worker.pid):
        stopped_at = time.time()
        wait_for(lambda: job_of(db, job_id).state is State.COMPLETED or None, "the second run", 90)

    job = cli.job(job_id)
    first = runs_of(job)[0]
    assert [run["outcome"] for run in runs_of(job)] == ["handed_back", "exited"]
    assert seconds(first["finished_at"]) - stopped_at < DEFAULT_LEASE_S
    assert (job["attempts"], job["losses"], guard.lines) == (1, 0, ["run 1", "run 2"])
    assert living([worker]) == set()
    assert guard.holders() == set()
    wait_for_workers(cli, 2)


@on_postgres
def test_a_worker_that_stood_still_for_less_than_its_lease_goes_on_with_its_job(
    cli: Cli, db: Database, guard: Guard, tmp_path: Path
) -> None:
    cli.ok("config", "set", "lock_lease_seconds", "20")
    job_id = cli.enqueue(guard.around(until_go(tmp_path)))
    cli.start("worker", "start")
    guard.wait_for_run(1)
    worker = worker_pid(cli)

    with standing_still(worker):
        stays(lambda: is_undisturbed(job_of(db, job_id)), "the job runs on", 4)
    (tmp_path / "go").touch()
    job = cli.wait_for_state(job_id, "completed")

    assert (job["attempts"], job["losses"], job["run"], guard.lines) == (1, 0, 1, ["run 1"])
    assert worker_pid(cli) == worker


@pytest.mark.usefixtures("short_lease")
def test_after_a_sleep_of_the_machine_the_job_goes_on_or_where_a_lease_ended_is_handed_back(
    cli: Cli, db: Database, guard: Guard, tmp_path: Path
) -> None:
    is_leased = cli.target.sqlite_path is None
    job_id = cli.enqueue(guard.around(f"test $QUEUECTL_RUN = 1 || exit 0; {until_go(tmp_path)}"))
    cli.start("worker", "start", "-n", "2")
    guard.wait_for_run(1)
    wait_for_workers(cli, 2)

    with standing_still(*pids_with("QUEUECTL_HOME", cli.target.home.root)):
        stays(lambda: is_undisturbed(job_of(db, job_id)), "nothing happens in its sleep", LEASE_S + 5)
    if is_leased:
        wait_for(lambda: job_of(db, job_id).run == 2 or None, "the second run")
    else:
        stays(lambda: is_undisturbed(job_of(db, job_id)), "the job runs on", 3)
    (tmp_path / "go").touch()
    job = cli.wait_for_state(job_id, "completed")

    outcomes = [run["outcome"] for run in runs_of(job)]
    assert outcomes == (["handed_back", "exited"] if is_leased else ["exited"])
    assert (job["attempts"], job["losses"]) == (1, 0)
    assert "OVERLAP" not in guard.lines
    wait_for_workers(cli, 2)


@on_postgres
@pytest.mark.usefixtures("short_lease")
def test_a_host_that_froze_and_came_back_ends_what_another_runs_by_now_and_writes_nothing(
    cli: Cli, db: Database, guard: Guard, tmp_path: Path
) -> None:
    """The one case of two copies at once, since nobody can reach the frozen one; it lasts until the host is awake."""
    job_id = cli.enqueue(guard.around(f"test $QUEUECTL_RUN = 1 && exec sleep 600; {until_go(tmp_path)}"))
    with other_host(cli) as elsewhere:
        elsewhere.start("worker", "start")
        guard.wait_for_run(1)
        (old,) = wait_for_workers(cli, 1)
        cli.start("worker", "start")
        wait_for_workers(cli, 2)
        first = wait_for(guard.holders, "the command")

        with standing_still(*pids_with("QUEUECTL_HOME", elsewhere.target.home.root)):
            guard.wait_for_run(2)
        wait_for(lambda: not living(first) or None, "the first copy to be ended")
        (tmp_path / "go").touch()
        job = cli.wait_for_state(job_id, "completed")
        fresh = wait_for_workers(cli, 2)

    assert [(run["host"] == "elsewhere", run["outcome"]) for run in runs_of(job)] == [(True, "lost"), (False, "exited")]
    assert (job["attempts"], job["losses"]) == (1, 1)
    assert old["id"] not in [worker["id"] for worker in fresh]


def until_go(folder: Path) -> str:
    """Return a shell line that goes on until the test says so."""
    return f"while ! test -e {folder}/go; do sleep 0.1; done"


def job_of(db: Database, job_id: str) -> Job:
    """Return a job as the store has it, without starting a program for it."""
    return get_job(db, int(job_id))


def is_undisturbed(job: Job) -> bool:
    """Whether a job is still in its first run, and nothing was counted against it."""
    return (job.state, job.run, job.attempts, job.losses) == (State.PROCESSING, 1, 0, 0)
