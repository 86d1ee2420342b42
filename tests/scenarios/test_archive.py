"""Backup and restore in the thick of it: workers that drain, a kill in the middle, a disk that is full."""

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import apsw
import psycopg
import pytest

from queuectl.actions.connect import Target, connect, locate
from tests.program import PROGRAM, Cli, running_cli, wait_for
from tests.scenarios.faults import damage, filled, small_disk
from tests.scenarios.processes import Guard, send, worker_pids
from tests.scenarios.working import on_postgres, on_sqlite, workers_of
from tests.store.rows import add_job


def fingerprint(target: Target) -> tuple[object, ...]:
    """Return what tells one state of a store from another: how many jobs, the sum of numbers, runs and acts."""
    database = connect(target)
    try:
        return database.read(
            lambda tx: tuple(tx.rows("SELECT count(*), CAST(sum(seq) AS BIGINT) FROM jobs")
                             + tx.rows("SELECT count(*) FROM attempts") + tx.rows("SELECT count(*) FROM audit"))
        )  # fmt: skip
    finally:
        database.close()


def test_a_backup_while_workers_drain_has_every_job_acknowledged_before_it_began(
    cli: Cli, tmp_path: Path, sqlite_home: Path
) -> None:
    ids = cli.ok("enqueue", "--from", "-", stdin="echo done >>ran; sleep 0.03\n" * 1000).split()
    supervisor = cli.start("worker", "start", "-n", "2")
    wait_for(lambda: (tmp_path / "ran").exists() or None, "the first job to run")

    copies = []
    for number in range(2):
        cli.enqueue("true")
        cli.ok("backup", f"{number}.db")
        copies.append(tmp_path / f"{number}.db")
    is_busy = len(cli.json("list", "--state", "pending", "--limit", "10")) > 0
    cli.ok("worker", "stop", "--now")
    supervisor.wait(60)

    assert is_busy
    for number, copy in enumerate(copies):
        assert damage(str(copy)) == "ok"
        cli.ok("restore", str(copy), "--yes")
        assert {str(job["id"]) for job in cli.json("list", "--limit", "9999")} == {
            *ids,
            *(str(len(ids) + 1 + each) for each in range(number + 1)),
        }
    cli.drain("-n", "2", "-j", "8")
    states = [job["state"] for job in cli.json("list", "--limit", "9999")]
    assert states.count("completed") == len(states)


def test_a_restore_leaves_no_command_running_that_would_be_run_twice(cli: Cli, guard: Guard, tmp_path: Path) -> None:
    job_id = cli.enqueue(guard.around("test -e over || sleep 600"))
    cli.ok("backup", "copy.db")
    killed = cli.start("worker", "start")
    guard.wait_for_run(1)
    send(signal.SIGKILL, killed.pid, *worker_pids(cli))
    wait_for(lambda: not workers_of(cli) or None, "nobody alive")
    before = guard.holders()

    cli.ok("restore", "copy.db", "--yes")
    after = guard.holders()
    (tmp_path / "over").touch()
    cli.drain()

    assert before
    assert not after
    assert guard.lines == ["run 1", "run 1"]
    assert cli.job(job_id)["state"] == "completed"


@pytest.fixture
def large_copy(tmp_path: Path) -> Path:
    """A backup that takes a while to restore."""
    target = locate(None, {"QUEUECTL_HOME": str(tmp_path / "large")})
    with running_cli(target, tmp_path) as cli:
        cli.ok("enqueue", "--from", "-", stdin=f"true {'x' * 1000}\n" * 20_000)
        cli.ok("backup", "large.db")
    return tmp_path / "large.db"


def killed_at(cli: Cli, call: str, number: int, *words: str, path: str | None = None) -> int:
    """Run the program, killed by its n-th such call to the kernel (on one file alone), and return how it ended.

    Whoever watched it from outside might look too late, and find it done.
    """
    where = [] if path is None else [f"--trace-path={path}"]
    return subprocess.run(
        ["strace", "--follow-forks", "--output=/dev/null", f"--trace={call}", *where,
         f"--inject={call}:signal=KILL:when={number}", PROGRAM, *words],
        env=cli.environ, cwd=cli.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60,
    ).returncode  # fmt: skip


def kill_a_restore(cli: Cli, copy: Path) -> int:
    """Kill a restore that has written half of its one transaction, and return how it ended."""
    if cli.target.sqlite_path is None:
        return killed_at(cli, "sendto", 500, "restore", str(copy), "--yes")  # of 900; the tables are filled from 100 on
    log = f"{cli.target.sqlite_path}-wal"
    code = killed_at(cli, "pwrite64", 5000, "restore", str(copy), "--yes", path=log)  # of 13,000
    assert os.path.getsize(log) > 4 << 20
    return code


@pytest.mark.needs("strace")
def test_a_restore_that_is_killed_half_way_leaves_the_old_state(cli: Cli, large_copy: Path) -> None:
    cli.ok("enqueue", "--from", "-", stdin="true\n" * 50)
    before = fingerprint(cli.target)

    code = kill_a_restore(cli, large_copy)

    assert code == -signal.SIGKILL
    assert fingerprint(cli.target) == before
    (kept,) = Path(cli.target.home.backups).glob("*.db")
    assert fingerprint(locate(f"sqlite://{kept}", {})) == before
    cli.drain()
    done = cli.run("restore", str(large_copy), "--yes")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("20000 jobs restored")
    assert [name for name in os.listdir(cli.target.home.root) if name.startswith(".restore")] == []
    if cli.target.sqlite_path:
        assert damage(cli.target.sqlite_path) == "ok"


@pytest.mark.needs("strace")
def test_a_backup_that_is_killed_leaves_no_file_of_that_name(cli: Cli, tmp_path: Path, large_copy: Path) -> None:
    cli.ok("restore", str(large_copy), "--yes")

    code = killed_at(cli, "pwrite64", 3000, "backup", "copy.db")  # of 6,800

    assert code == -signal.SIGKILL
    assert list(tmp_path.glob(".copy.db.*"))
    assert not (tmp_path / "copy.db").exists()
    cli.ok("backup", "copy.db")


@pytest.fixture
def small_folder(tmp_path: Path) -> Iterator[Path]:
    """A file system of four megabytes."""
    with small_disk(tmp_path / "small", "4m"):
        yield tmp_path / "small"


def test_a_backup_that_does_not_fit_is_refused_and_leaves_nothing(
    cli: Cli, large_copy: Path, small_folder: Path
) -> None:
    cli.ok("restore", str(large_copy), "--yes")

    done = cli.run("backup", str(small_folder / "copy.db"))

    assert (done.returncode, done.stdout) == (5, "")
    assert "no space left" in done.stderr
    assert os.listdir(small_folder) == []
    cli.ok("backup", "fits.db")


@pytest.mark.parametrize("size", ["26m", "60m"])  # no room for the staged copy; room for that, none for the change
def test_a_restore_that_does_not_fit_leaves_the_old_state(
    sqlite_home: Path, tmp_path: Path, large_copy: Path, size: str
) -> None:
    with small_disk(sqlite_home, size):
        target = locate(None, {"QUEUECTL_HOME": str(sqlite_home)})
        with running_cli(target, tmp_path) as cli:
            cli.ok("enqueue", "--from", "-", stdin="true\n" * 50)
            before = fingerprint(target)

            with filled(sqlite_home, but=(20 if size == "26m" else 40) << 20):
                done = cli.run("restore", str(large_copy), "--yes")

            assert (done.returncode, done.stdout) == (5, "")
            assert "no space left" in done.stderr
            assert fingerprint(target) == before
            assert damage(target.home.database) == "ok"
            cli.drain()


@on_postgres
def test_a_restore_is_refused_while_somebody_else_holds_a_lock(cli: Cli, tmp_path: Path) -> None:
    cli.enqueue("true")
    cli.ok("backup", "copy.db")
    with psycopg.connect(cli.target.url) as connection:
        connection.execute("SELECT count(*) FROM queuectl.jobs")

        done = cli.run("restore", "copy.db", "--yes")

    assert done.returncode == 6
    assert "locks" in done.stderr
    cli.ok("restore", "copy.db", "--yes")


@on_sqlite
def test_a_backup_takes_no_notice_of_commits_meanwhile(cli: Cli, tmp_path: Path, large_copy: Path) -> None:
    """Without one read transaction around it, a copy by steps begins anew with every commit."""
    cli.ok("restore", str(large_copy), "--yes")
    database = connect(cli.target)
    process = subprocess.Popen([PROGRAM, "backup", "copy.db"], env=cli.environ, cwd=tmp_path, stdout=subprocess.DEVNULL)

    while process.poll() is None:
        add_job(database)
    database.close()

    assert process.returncode == 0
    connection = apsw.Connection(str(tmp_path / "copy.db"))
    assert int(str(connection.execute("SELECT count(*) FROM jobs").fetchall()[0][0])) >= 20_000
    connection.close()
