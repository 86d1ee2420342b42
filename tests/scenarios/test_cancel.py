"""Cancel end to end: how soon it is seen, and what becomes of a job when cancel, exit, timeout and a death meet."""

import signal
from pathlib import Path

import pytest

from queuectl.store import audit
from queuectl.store.database import Database
from tests.program import Cli, wait_for
from tests.scenarios.hosts import other_host
from tests.scenarios.processes import Guard, Process, living, process_of, send, standing_still, worker_pid, worker_pids
from tests.scenarios.working import on_postgres, runs_of, seconds, wait_for_line, wait_for_workers

SOON_S = 20.0  # about one second on a quiet machine


class Slow:
    """A command that says when it is asked to end, and ends when the test says so, in the way given."""

    def __init__(self, guard: Guard, folder: Path, code: int = 0) -> None:
        self._guard = guard
        self._said, self._go = folder / "said", folder / "go"
        self.line = guard.around(
            f"test $QUEUECTL_RUN = 1 || exit 0; trap 'echo asked >>{self._said}' TERM; echo begun >>{self._said}; "
            f"while ! test -e {self._go}; do sleep 0.05; done; exit {code}"
        )

    def wait_until_begun(self) -> None:
        """Wait until it runs and hears."""
        wait_for_line(self._said, "begun")

    def wait_until_asked(self) -> None:
        """Wait until it has had its SIGTERM."""
        wait_for_line(self._said, "asked")

    def let_end(self) -> None:
        """Let it end now, by itself."""
        self._go.touch()

    def wait_until_over(self) -> None:
        """Wait until nothing of it is left."""
        wait_for(lambda: not self._guard.holders() or None, "the command to end")


@pytest.fixture
def long_grace(cli: Cli) -> None:
    """Who was asked to end has as long as he wants."""
    cli.ok("config", "set", "kill_grace_seconds", "600")


def test_a_failed_job_that_waits_for_its_retry_is_cancelled_and_keeps_what_it_was_charged(cli: Cli) -> None:
    job_id = cli.enqueue("--backoff-base", "300", "exit 3")
    cli.start("worker", "start")
    cli.wait_for_state(job_id, "failed")

    cli.ok("cancel", job_id)
    cli.drain()  # which would wait for the retry of a failed job

    job = cli.job(job_id)
    assert (job["state"], job["attempts"], len(runs_of(job))) == ("cancelled", 1, 1)


def test_a_worker_sees_within_about_a_second_that_its_job_is_cancelled(cli: Cli, db: Database) -> None:
    ids = [cli.enqueue("sleep 600") for _ in range(3)]
    cli.start("worker", "start", "-j", "3")

    assert max(seconds_to_cancel(cli, db, job_id) for job_id in ids) < SOON_S


@on_postgres
def test_a_worker_of_another_host_sees_it_as_soon(cli: Cli, db: Database) -> None:
    ids = [cli.enqueue("sleep 600") for _ in range(3)]

    with other_host(cli) as elsewhere:
        elsewhere.start("worker", "start", "-j", "3")
        (worker,) = wait_for_workers(cli, 1)
        slowest = max(seconds_to_cancel(cli, db, job_id) for job_id in ids)

    assert worker["host"] == "elsewhere"
    assert slowest < SOON_S


@pytest.mark.parametrize("code", [0, 3])
@pytest.mark.usefixtures("long_grace")
def test_a_command_that_ends_after_the_signal_is_cancelled_whatever_its_exit_code(
    cli: Cli, guard: Guard, tmp_path: Path, code: int
) -> None:
    slow = Slow(guard, tmp_path, code)
    job_id = cli.enqueue(slow.line)
    cli.start("worker", "start")
    slow.wait_until_begun()

    cli.ok("cancel", job_id)
    slow.wait_until_asked()
    slow.let_end()
    job = cli.wait_for_state(job_id, "cancelled")

    (run,) = runs_of(job)
    assert (run["outcome"], run["exit_code"]) == ("cancelled", code)
    assert (job["attempts"], job["error"]) == (0, "cancelled while running")


@pytest.mark.parametrize(
    "code, retries, state, attempts",
    [(0, 3, "completed", 1), (3, 3, "cancelled", 1), (3, 0, "dead", 1)],
    ids=["success", "failure", "last-failure"],
)
def test_a_command_that_ended_before_the_first_signal_keeps_its_outcome(
    cli: Cli, guard: Guard, tmp_path: Path, code: int, retries: int, state: str, attempts: int
) -> None:
    slow = Slow(guard, tmp_path, code)
    job_id = cli.enqueue("--max-retries", str(retries), slow.line)
    cli.start("worker", "start")
    slow.wait_until_begun()
    worker = worker_pid(cli)

    with standing_still(worker):
        slow.let_end()
        slow.wait_until_over()
        said = cli.ok("cancel", job_id)
    job = cli.wait_for_state(job_id, "completed", "cancelled", "dead")

    assert "its worker is stopping it" in said
    assert (job["state"], job["attempts"], job["losses"]) == (state, attempts, 0)
    assert [(run["outcome"], run["exit_code"]) for run in runs_of(job)] == [("exited", code)]


@pytest.mark.parametrize("retries, state", [(3, "cancelled"), (0, "dead")], ids=["retries-left", "last-attempt"])
@pytest.mark.usefixtures("long_grace")
def test_a_cancel_after_the_timeout_struck_keeps_the_failed_run_and_ends_the_retries(
    cli: Cli, guard: Guard, tmp_path: Path, retries: int, state: str
) -> None:
    slow = Slow(guard, tmp_path)
    job_id = cli.enqueue("--timeout", "2s", "--max-retries", str(retries), slow.line)
    cli.start("worker", "start")

    slow.wait_until_asked()
    cli.ok("cancel", job_id)
    slow.let_end()
    job = cli.wait_for_state(job_id, "cancelled", "dead")

    assert (job["state"], job["attempts"]) == (state, 1)
    assert [(run["outcome"], run["exit_code"]) for run in runs_of(job)] == [("timed_out", 0)]


@pytest.mark.usefixtures("long_grace")
def test_a_job_whose_worker_dies_while_it_stops_the_command_is_cancelled_by_the_rescue(
    cli: Cli, guard: Guard, tmp_path: Path
) -> None:
    slow = Slow(guard, tmp_path)
    job_id = cli.enqueue(slow.line)
    cli.start("worker", "start")
    slow.wait_until_begun()

    cli.ok("cancel", job_id)
    slow.wait_until_asked()
    send(signal.SIGKILL, worker_pid(cli))
    job = cli.wait_for_state(job_id, "cancelled")

    assert [run["outcome"] for run in runs_of(job)] == ["lost"]
    assert (job["attempts"], job["losses"], guard.lines) == (0, 1, ["run 1"])
    assert guard.holders() == set()


def test_a_job_whose_worker_is_dead_is_cancelled_by_the_next_start(cli: Cli, guard: Guard, tmp_path: Path) -> None:
    slow = Slow(guard, tmp_path)
    job_id = cli.enqueue(slow.line)
    supervisor = cli.start("worker", "start")
    slow.wait_until_begun()
    kill_and_wait(supervisor.pid, *worker_pids(cli))
    # The last of its threads to end lets go of the lock that tells of its life.
    wait_for(lambda: not cli.json("worker", "list") or None, "their locks to be let go of")

    said = cli.ok("cancel", job_id)
    cli.drain()

    assert "its worker is dead" in said
    assert (cli.job(job_id)["state"], guard.lines) == ("cancelled", ["run 1"])
    assert guard.holders() == set()


@pytest.mark.usefixtures("long_grace")
def test_a_timeout_whose_worker_dies_before_it_was_written_is_a_loss_and_no_failure(
    cli: Cli, guard: Guard, tmp_path: Path
) -> None:
    slow = Slow(guard, tmp_path)
    job_id = cli.enqueue("--timeout", "2s", slow.line)
    cli.start("worker", "start")

    slow.wait_until_asked()
    send(signal.SIGKILL, worker_pid(cli))
    job = cli.wait_for_state(job_id, "completed")

    assert [run["outcome"] for run in runs_of(job)] == ["lost", "exited"]
    assert (job["attempts"], job["losses"], guard.lines) == (1, 1, ["run 1", "run 2"])


@pytest.mark.parametrize("is_cancelled", [False, True], ids=["", "cancelled"])
def test_an_exit_that_nobody_saw_is_a_loss(cli: Cli, guard: Guard, tmp_path: Path, is_cancelled: bool) -> None:
    slow = Slow(guard, tmp_path)
    job_id = cli.enqueue(slow.line)
    cli.start("worker", "start")
    slow.wait_until_begun()
    worker = worker_pid(cli)

    with standing_still(worker):
        slow.let_end()
        slow.wait_until_over()
        if is_cancelled:
            cli.ok("cancel", job_id)
        send(signal.SIGKILL, worker)
    job = cli.wait_for_state(job_id, "completed", "cancelled")

    outcomes = [run["outcome"] for run in runs_of(job)]
    expected = ("cancelled", ["lost"]) if is_cancelled else ("completed", ["lost", "exited"])
    assert (job["state"], outcomes) == expected


@pytest.mark.usefixtures("long_grace")
def test_cancelling_twice_is_once_and_a_third_time_after_the_end_is_refused(
    cli: Cli, guard: Guard, tmp_path: Path
) -> None:
    slow = Slow(guard, tmp_path)
    job_id = cli.enqueue(slow.line)
    cli.start("worker", "start")
    slow.wait_until_begun()

    codes = [cli.run("cancel", job_id).returncode for _ in range(2)]
    slow.wait_until_asked()
    slow.let_end()
    job = cli.wait_for_state(job_id, "cancelled")
    late = cli.run("cancel", job_id)

    assert codes == [0, 0]
    assert (late.returncode, f"job {job_id} is cancelled already" in late.stderr) == (6, True)
    assert cli.job(job_id) == job


def seconds_to_cancel(cli: Cli, db: Database, job_id: str) -> float:
    """Cancel a running job and return how long it took from then until nothing of it was left."""
    cli.wait_for_state(job_id, "processing")
    cli.ok("cancel", job_id)
    (act,) = db.read(lambda tx: audit.newest(tx, 1))
    return seconds(cli.wait_for_state(job_id, "cancelled")["finished_at"]) - act.at / 1000


def kill_and_wait(*pids: int) -> None:
    """Kill processes and wait until they are gone."""
    doomed: list[Process] = [process for pid in pids if (process := process_of(pid)) is not None]
    send(signal.SIGKILL, *pids)
    wait_for(lambda: not living(doomed) or None, "their death")
