"""Trouble with the disk, end to end: a lock, no space, no permission. Commands go on; no job is lost or runs twice."""

import os
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.program import Cli, lines_of, wait_for
from tests.scenarios.faults import (
    Witness,
    assert_ran_once,
    bound_by_modes,
    damage,
    filled,
    last_words,
    locked,
    pass_the_time,
    read_only,
    small_disk,
)
from tests.scenarios.working import on_sqlite, runs_of, seconds, wait_for_workers, workers_of

pytestmark = on_sqlite


@pytest.fixture
def small_home(sqlite_home: Path) -> Iterator[Path]:
    """The home, on a file system of two megabytes of its own."""
    with small_disk(sqlite_home, "2m"):
        yield sqlite_home


def test_a_command_goes_on_while_another_program_holds_the_lock_and_is_settled_after(cli: Cli, tmp_path: Path) -> None:
    witness = Witness(tmp_path)
    job_id = cli.enqueue(witness.line)
    supervisor = cli.start("worker", "start")
    witness.wait_for("start 1")

    with locked(cli.target.home.database):
        began = time.monotonic()
        witness.end()
        refused = cli.run("enqueue", "true")
        took = time.monotonic() - began
        pass_the_time(began + 20)
        meanwhile = cli.job(job_id)["state"]
    job = cli.wait_for_state(job_id, "completed", "failed", "pending")

    assert (refused.returncode, refused.stdout) == (5, "")
    assert "was locked by another process" in refused.stderr
    assert 9 < took < 30
    assert meanwhile == "processing"
    assert_ran_once(job, witness)
    assert [each["id"] for each in cli.json("list")] == [job_id]
    cli.wait_for_state(cli.enqueue("true"), "completed")
    assert "Traceback" not in last_words(supervisor)


def test_a_worker_that_begins_while_the_database_is_locked_waits_for_it(cli: Cli, tmp_path: Path) -> None:
    supervisor = cli.start("worker", "start")
    (before,) = wait_for_workers(cli, 1)

    with locked(cli.target.home.database):
        os.kill(int(str(before["pid"])), signal.SIGKILL)
        began = time.monotonic()
        pass_the_time(began + 12)
    job = cli.wait_for_state(cli.enqueue("true"), "completed")

    assert len(runs_of(job)) == 1
    said = last_words(supervisor)
    assert said.count("died") == 1, said


def test_a_full_disk_stops_no_command_and_loses_no_job(small_home: Path, cli: Cli, tmp_path: Path) -> None:
    witnesses = [Witness(tmp_path, name) for name in ("foreground", "background")]
    ran = [cli.enqueue(witnesses[0].line)]
    supervisor = cli.start("worker", "start")
    witnesses[0].wait_for("start 1")
    ran.append(cli.enqueue(witnesses[1].line))
    cli.ok("worker", "start", "-d")
    witnesses[1].wait_for("start 1")
    kept = cli.enqueue("--delay", "1h", "true")

    with filled(small_home):
        began = time.monotonic()
        refused = [cli.run(*words) for words in (["enqueue", "true"], ["cancel", kept], ["worker", "start"])]
        for witness in witnesses:
            witness.end()
        pass_the_time(began + 3)  # a few turns of workers, heartbeats and supervisors
    after = cli.enqueue("true")
    for job_id, witness in zip(ran, witnesses, strict=True):
        assert_ran_once(cli.wait_for_state(job_id, "completed", "failed", "pending"), witness)
    cli.wait_for_state(after, "completed")

    assert [(done.returncode, done.stdout) for done in refused] == [(5, "")] * 3
    assert all("no space left" in done.stderr for done in refused)
    assert {str(job["id"]) for job in cli.json("list")} == {*ran, kept, after}
    said = last_words(supervisor)
    cli.ok("worker", "stop")
    assert "Traceback" not in said + Path(cli.target.home.worker_log).read_text()
    assert damage(cli.target.home.database) == "ok"


def test_a_new_home_on_a_full_disk_is_refused_and_works_when_there_is_space(small_home: Path, cli: Cli) -> None:
    with filled(small_home):
        refused = cli.run("enqueue", "true")

    job_id = cli.enqueue("true")
    cli.drain()

    assert (refused.returncode, refused.stdout) == (5, "")
    assert "no space left" in refused.stderr.lower()
    assert (job_id, cli.job(job_id)["state"]) == ("1", "completed")


def test_a_checkpoint_that_does_not_fit_ends_no_supervisor(cli: Cli, sqlite_home: Path) -> None:
    with small_disk(sqlite_home, "16m"):
        line = f"true {'x' * 1000}\n"
        ids = cli.ok("enqueue", "--from", "-", stdin=line * 5000).split()  # more than a supervisor leaves in the log
        supervisor = cli.start("worker", "start")
        with filled(sqlite_home, but=1 << 20):
            wait_for(lambda: workers_of(cli) or supervisor.poll() is not None or None, "the worker")
            pass_the_time(time.monotonic() + 3)
            is_there = supervisor.poll() is None
        cli.wait_for_state(ids[0], "completed")

        assert is_there
        assert "Traceback" not in last_words(supervisor)


def test_a_small_disk_is_enough_for_a_small_queue(small_home: Path, cli: Cli) -> None:
    cli.ok("enqueue", "--from", "-", stdin="true\n" * 300)  # their settles fill the log of SQLite several times over

    cli.drain("-n", "2")

    assert Counter(job["state"] for job in cli.json("list", "--limit", "300")) == {"completed": 300}


def test_a_queue_that_fills_its_own_disk_keeps_all_it_acknowledged(small_home: Path, cli: Cli, tmp_path: Path) -> None:
    witness, ledger = Witness(tmp_path), tmp_path / "ledger"
    ids = [cli.enqueue(witness.line)]
    supervisor = cli.start("worker", "start")
    witness.wait_for("start 1")
    lines = f"echo $QUEUECTL_JOB_ID >>{ledger} # {'x' * 2000}\n" * 20

    while (added := cli.run("enqueue", "--from", "-", stdin=lines)).returncode == 0:
        ids += added.stdout.split()
    witness.end()
    pass_the_time(time.monotonic() + 2)
    subprocess.run(["mount", "-o", "remount,size=64m", small_home], check=True)
    wait_for(lambda: len(lines_of(ledger)) >= len(ids) - 1 or None, "all to run")
    said = last_words(supervisor)

    assert (added.returncode, added.stdout) == (5, "")
    assert "no space left" in added.stderr
    assert len(ids) > 100
    jobs = cli.json("list", "--limit", "10000")
    assert {(str(job["id"]), job["state"], job["run"]) for job in jobs} == {(job_id, "completed", 1) for job_id in ids}
    assert Counter(lines_of(ledger)) == dict.fromkeys(ids[1:], 1)
    assert "Traceback" not in said
    assert damage(cli.target.home.database) == "ok"


def test_a_home_made_read_only_stops_no_command_and_loses_no_job(cli: Cli, tmp_path: Path) -> None:
    cli.prefix = bound_by_modes()
    witness = Witness(tmp_path)
    job_id = cli.enqueue(witness.line)
    supervisor = cli.start("worker", "start")
    witness.wait_for("start 1")
    waiting = cli.enqueue("true")

    with read_only(Path(cli.target.home.root)):
        began = time.monotonic()
        refused = [cli.run(*words) for words in (["enqueue", "true"], ["cancel", waiting], ["worker", "start"])]
        witness.end()
        pass_the_time(began + 3)
    jobs = [cli.wait_for_state(each, "completed", "failed") for each in (job_id, waiting)]
    after = cli.wait_for_state(cli.enqueue("true"), "completed")

    assert [(done.returncode, done.stdout) for done in refused] == [(5, "")] * 3, refused
    assert all(cli.target.home.root in done.stderr for done in refused)
    assert_ran_once(jobs[0], witness)
    assert [(job["state"], job["run"]) for job in jobs] == [("completed", 1)] * 2
    assert {str(job["id"]) for job in cli.json("list")} == {job_id, waiting, str(after["id"])}
    assert "Traceback" not in last_words(supervisor)


def test_a_worker_that_dies_while_its_home_is_read_only_is_replaced_when_it_is_not(cli: Cli, tmp_path: Path) -> None:
    cli.prefix = bound_by_modes()
    witness = Witness(tmp_path)
    job_id = cli.enqueue(witness.line)
    supervisor = cli.start("worker", "start")
    witness.wait_for("start 1")

    with read_only(Path(cli.target.home.root)):
        os.kill(int(str(workers_of(cli)[0]["pid"])), signal.SIGKILL)
        pass_the_time(time.monotonic() + 3)
    witness.wait_for("start 2")
    witness.let_end()
    job = cli.wait_for_state(job_id, "completed")

    assert (job["attempts"], job["losses"]) == (1, 1)
    assert witness.events == ["start 1", "start 2", "end 2"]
    assert "Traceback" not in last_words(supervisor)


def test_a_full_log_disk_neither_stops_nor_slows_a_command(cli: Cli, sqlite_home: Path) -> None:
    cli.ok("config", "set", "max_output_bytes", "100MB")
    with small_disk(sqlite_home / "logs", "1m"):
        job_id = cli.enqueue("head -c 20000000 /dev/zero | tr '\\0' x; echo; echo the end")
        supervisor = cli.start("worker", "start")
        job = cli.wait_for_state(job_id, "completed", "failed")
        shown = cli.ok("logs", job_id)

        run = runs_of(job)[0]
        assert (job["state"], run["outcome"], run["output_bytes"]) == ("completed", "exited", 20_000_009)
        assert seconds(job["finished_at"]) - seconds(job["started_at"]) < 20
        assert str(run["output_tail"]).endswith("xxx\nthe end\n")
        assert "could not be written to disk: No space left on device" in shown
        assert shown.startswith("xxx")
        assert shown.endswith("xxx\nthe end\n")
        assert "Traceback" not in last_words(supervisor)
