"""Every check of the doctor with its fault really made, and with the fault gone."""

import hashlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import apsw
import psycopg
import pytest

from queuectl import clock
from queuectl.actions import control
from queuectl.actions.checks import database as database_checks
from queuectl.actions.checks import program as program_checks
from queuectl.actions.checks import waiting as waiting_checks
from queuectl.actions.checks.settings import judge_settings
from queuectl.actions.connect import Target, locate
from queuectl.actions.doctor import CHECKS, examine, has_error
from queuectl.actions.liveness import store_mark
from queuectl.actions.submit import submit
from queuectl.model.after import Kind, OnDead, Parent
from queuectl.model.finding import Finding, Level
from queuectl.model.job import JobSpec
from queuectl.model.states import State
from queuectl.runtime.identity import new_id
from queuectl.settings import resolve
from queuectl.store import claims, config, limits, queues
from queuectl.store.database import Database
from queuectl.system import home as home_module
from queuectl.system.home import script_path
from queuectl.system.host import host_name
from queuectl.system.liveness import LifeLock
from tests.program import wait_for
from tests.proxy import proxied, through
from tests.scenarios.faults import filled, locked, need_root, small_disk
from tests.store.rows import add_dead_worker, add_job, add_worker, claim_one


@pytest.fixture(autouse=True)
def _home_of_its_owner_alone(sqlite_home: Path) -> None:
    sqlite_home.chmod(0o700)


on_sqlite = pytest.mark.parametrize("target", ["sqlite"], indirect=True)
on_postgres = pytest.mark.parametrize("target", ["postgres"], indirect=True)
HOUR = 3_600_000
# What depends on where the tests run, and how busy that machine is.
OF_THIS_MACHINE = {"disk", "output-room", "open-files", "inotify", "server"}


def found(target: Target, check: str, *, is_deep: bool = False, environ: Mapping[str, str] = {}) -> list[Finding]:
    """Return what one check has to say."""
    return [one for one in examine(target, environ, is_deep=is_deep) if one.check == check]


def only(target: Target, check: str, *, is_deep: bool = False, environ: Mapping[str, str] = {}) -> Finding:
    """Return the one thing a check has to say."""
    (finding,) = found(target, check, is_deep=is_deep, environ=environ)
    return finding


def is_ok(target: Target, check: str) -> bool:
    """Whether a check finds nothing wrong."""
    return {one.level for one in found(target, check)} == {Level.OK}


def add(db: Database, *commands: str, queue: str = "default") -> list[str]:
    return submit(db, [JobSpec(command=each, queue=queue) for each in commands], who="me", environ={})


def change(db: Database, sql: str) -> None:
    db.write(lambda tx: tx.changed(sql))


def store_setting(db: Database, key: str, value: str) -> None:
    db.write(lambda tx: config.put(tx, key, value))


def test_a_fresh_store_has_neither_errors_nor_warnings(db: Database, target: Target) -> None:
    findings = [one for one in examine(target, {}) if one.check not in OF_THIS_MACHINE]

    assert [one for one in findings if one.level is not Level.OK] == []
    assert not has_error(findings)


def test_every_check_that_applies_has_something_to_say(db: Database, target: Target) -> None:
    said = {one.check for one in examine(target, {})}

    left_out = {"server", "notify", "transactions", "connections", "dead-rows"}
    if not db.dialect.is_local:
        left_out = {"file-system", "integrity", "wal", "journal", "size"}
    assert said == {check.name for check in CHECKS} - left_out


def test_every_finding_that_is_not_ok_says_how_to_mend_it(db: Database, target: Target) -> None:
    add(db, "true")
    store_setting(db, "max_retries", "many")
    add_dead_worker(db, target.home.run)

    findings = [one for one in examine(target, {"QUEUECTL_MAX_RETRY": "1"}) if one.level is not Level.OK]

    assert len(findings) >= 4
    assert [one for one in findings if not one.mend] == []


# -- it changes nothing, and it always comes to an end


def test_a_home_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    home = tmp_path / "nowhere" / "home"
    target = locate(None, {"QUEUECTL_HOME": str(home)})

    assert only(target, "home").level is Level.OK
    assert "does not exist yet" in only(target, "home").what
    assert "not set up yet" in only(target, "store").what
    assert not home.parent.exists()


def test_a_home_that_cannot_be_made_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = locate(None, {"QUEUECTL_HOME": str(tmp_path / "nowhere" / "home")})
    monkeypatch.setattr(os, "access", lambda path, _: path != str(tmp_path))  # root may write anywhere

    found = only(target, "home")

    assert found.level is Level.ERROR
    assert found.what == f"{tmp_path}/nowhere/home cannot be made: {tmp_path} cannot be written"


def test_looking_at_an_empty_store_sets_nothing_up(target: Target) -> None:
    assert "not set up yet" in only(target, "store").what

    if target.sqlite_path is not None:
        assert list(Path(target.home.root).iterdir()) == []
    else:
        with psycopg.connect(target.url) as connection:
            assert connection.execute("SELECT 1 FROM pg_namespace WHERE nspname = 'queuectl'").fetchall() == []


@on_sqlite
def test_looking_changes_no_byte_of_a_home(db: Database, target: Target) -> None:
    add(db, "true")
    add_dead_worker(db, target.home.run)
    before = _contents(target)

    examine(target, {}, is_deep=True)

    assert _contents(target) == before


def _contents(target: Target) -> dict[str, str]:
    files = [path for path in Path(target.home.root).rglob("*") if path.is_file() and path.suffix != ".db-shm"]
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@on_sqlite
def test_a_file_that_somebody_keeps_locked_does_not_stop_it(db: Database, target: Target) -> None:
    assert target.sqlite_path is not None

    with locked(target.sqlite_path):
        findings = examine(target, {})

    assert not has_error(findings)


@on_postgres
def test_a_server_that_falls_silent_is_the_error_and_the_rest_is_looked_at(
    db: Database, target: Target, postgres_server_url: str
) -> None:
    with proxied(postgres_server_url) as proxy, proxy.holding():
        away = target.replace(url=through(proxy, target.url))
        findings = examine(away, {})

    (store,) = [one for one in findings if one.check == "store"]
    assert store.level is Level.ERROR
    assert "cannot use PostgreSQL" in store.what
    assert {"home", "settings", "inotify"} <= {one.check for one in findings}


@on_postgres
def test_a_server_that_is_lost_half_way_is_told_once(db: Database, target: Target, postgres_server_url: str) -> None:
    with proxied(postgres_server_url) as proxy, proxy.swallowing(after=b"server_version"):
        findings = examine(target.replace(url=through(proxy, target.url)), {})

    errors = [one for one in findings if one.level is Level.ERROR]
    assert [one.check for one in errors] == ["server"]
    assert "no answer" in errors[0].what


@on_postgres
def test_no_server_at_all_is_an_error(target: Target) -> None:
    away = target.replace(url="postgresql://nobody@127.0.0.1:9/none")

    assert only(away, "store").level is Level.ERROR


def test_one_check_that_breaks_does_not_keep_the_others_from_being_told(
    db: Database, target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_path: str) -> bool:
        raise ValueError("odd")

    monkeypatch.setattr(program_checks, "can_watch", broken)

    assert "could not look: ValueError: odd" in only(target, "inotify").what
    assert is_ok(target, "open-files")


# -- the home


@on_sqlite
def test_a_home_others_can_read_is_a_warning_and_one_they_can_write_an_error(db: Database, target: Target) -> None:
    home = Path(target.home.root)
    home.chmod(0o755)
    Path(target.home.logs).chmod(0o755)
    Path(str(target.sqlite_path)).chmod(0o644)

    findings = found(target, "private")

    assert {one.level for one in findings} == {Level.WARNING}
    assert {one.what.split()[0] for one in findings} == {str(home), target.home.logs, str(target.sqlite_path)}
    assert f"chmod go= {home}" in findings[0].mend
    home.chmod(0o777)
    assert found(target, "private")[0].level is Level.ERROR


@on_sqlite
def test_what_lies_in_a_shut_home_cannot_be_read(db: Database, target: Target) -> None:
    Path(target.home.root).chmod(0o700)
    Path(target.home.logs).chmod(0o755)

    assert is_ok(target, "private")


@on_sqlite
def test_a_home_of_another_user_is_named_with_its_owner(db: Database, target: Target) -> None:
    need_root()
    os.chown(target.home.root, 65534, 65534)

    (finding,) = found(target, "private")

    assert finding.level is Level.WARNING
    assert f"{target.home.root} belongs to nobody" in finding.what


def test_a_home_that_is_a_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    findings = examine(locate(None, {"QUEUECTL_HOME": str(tmp_path / "file")}), {})

    assert next(one for one in findings if one.check == "home").level is Level.ERROR
    assert "is not a folder" in next(one for one in findings if one.check == "home").what


def test_a_home_on_a_disk_mounted_read_only_is_an_error(tmp_path: Path) -> None:
    home = tmp_path / "small"
    with small_disk(home, "1m,ro"):
        finding = only(locate(None, {"QUEUECTL_HOME": str(home)}), "home")

    assert finding.level is Level.ERROR
    assert "the disk is mounted read-only" in finding.what


@on_sqlite
def test_a_network_disk_is_an_error(db: Database, target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    assert is_ok(target, "file-system")
    monkeypatch.setattr(home_module, "_mounts", lambda: iter([("/", "nfs4")]))

    finding = only(target, "file-system")

    assert finding.level is Level.ERROR
    assert "network file system (nfs4)" in finding.what
    assert "QUEUECTL_HOME=" in finding.mend


def test_a_full_disk_is_an_error_and_one_with_little_room_a_warning(tmp_path: Path) -> None:
    home = tmp_path / "small"
    target = locate(None, {"QUEUECTL_HOME": str(home)})
    with small_disk(home, "64m"):
        tight = only(target, "disk")
        with filled(home):
            full = only(target, "disk")

    assert (tight.level, full.level) == (Level.WARNING, Level.ERROR)
    assert "is nearly full: 64.0 MiB of 64.0 MiB free" in tight.what
    assert "is full: 0 B of 64.0 MiB free" in full.what


def test_a_disk_that_takes_no_more_files_is_an_error(tmp_path: Path) -> None:
    home = tmp_path / "small"
    with small_disk(home, "400m,nr_inodes=50"):
        finding = only(locate(None, {"QUEUECTL_HOME": str(home)}), "disk")

    assert finding.level is Level.ERROR
    assert "of 50 inodes free" in finding.what


def test_the_disk_of_a_database_elsewhere_is_looked_at_too(tmp_path: Path) -> None:
    with small_disk(tmp_path / "small", "2m"):
        target = locate(f"sqlite://{tmp_path}/small/other.db", {})
        finding = found(target, "disk")

    assert {one.level for one in finding} == {Level.ERROR}


def test_locks_and_scripts_of_no_worker_are_named(db: Database, target: Target) -> None:
    lock = LifeLock(target.home, "0123456789abcdef", store_mark(db.dialect))
    assert is_ok(target, "leftovers")
    os.close(lock._fd)
    script = Path(script_path(target.home, 7, 1))
    script.write_text("true")
    Path(script_path(target.home.replace(folder="another"), 8, 1)).write_text("true")
    Path(target.home.run, "feedfeedfeedfeed.lock").write_text("0 0 another-store")
    Path(target.home.run, "1123456789abcdef.lock").touch()

    finding = only(target, "leftovers")

    assert finding.level is Level.WARNING
    names = ("0123456789abcdef.lock", "1123456789abcdef.lock", script.name)
    assert f"3 files of no running worker: {', '.join(names)}" in finding.what


def test_the_script_of_a_running_job_is_not_left_over(db: Database, target: Target) -> None:
    job = add_job(db)
    claim_one(db, add_worker(db))
    Path(script_path(target.home, job.seq, 1)).write_text("true")

    assert is_ok(target, "leftovers")


# -- a SQLite file


@on_sqlite
@pytest.mark.parametrize("size", [1, 50, 99])
def test_a_file_cut_to_a_few_bytes_is_an_error(db: Database, target: Target, size: int) -> None:
    db.close()
    os.truncate(str(target.sqlite_path), size)
    Path(f"{target.sqlite_path}-wal").unlink()

    finding = only(target, "store")

    assert finding.level is Level.ERROR
    assert "is not a database" in finding.what


@on_sqlite
def test_a_file_that_is_no_database_is_an_error_and_is_told_once(target: Target) -> None:
    Path(str(target.sqlite_path)).write_text("hello " * 1000)

    errors = [one for one in examine(target, {}) if one.level is Level.ERROR]

    assert [one.check for one in errors] == ["store"]
    assert "is not a database" in errors[0].what


@on_sqlite
def test_a_file_of_another_program_is_an_error(target: Target) -> None:
    connection = apsw.Connection(str(target.sqlite_path))
    connection.execute("CREATE TABLE theirs (x)")
    connection.close()

    assert "database of another program" in only(target, "store").what


@on_sqlite
def test_a_file_cut_in_the_middle_is_damaged(db: Database, target: Target) -> None:
    add(db, *(f"echo {number}" for number in range(5000)))
    _checkpointed(db, target)
    os.truncate(str(target.sqlite_path), os.path.getsize(str(target.sqlite_path)) // 2)

    findings = examine(target, {})

    assert has_error(findings)
    assert any(one.check in ("store", "integrity") and one.level is Level.ERROR for one in findings)
    assert "home" in {one.check for one in findings}


@on_sqlite
def test_an_index_that_lost_a_row_is_found_only_by_the_deep_look(db: Database, target: Target) -> None:
    add(db, "true", "true")
    _checkpointed(db, target)
    connection = apsw.Connection(str(target.sqlite_path))
    connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 0)
    connection.execute("PRAGMA writable_schema = 1")
    connection.execute(
        "UPDATE sqlite_schema SET sql = replace(sql, '''blocked''', '''pending''') WHERE name = 'jobs_blocked'"
    )
    connection.close()

    quick, deep = only(target, "integrity"), only(target, "integrity", is_deep=True)

    assert quick.level is Level.OK
    assert deep.level is Level.ERROR
    assert "missing from index jobs_blocked" in deep.what


@on_sqlite
def test_a_large_file_is_looked_at_only_when_asked(
    db: Database, target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database_checks, "QUICK_BYTES", 100)

    finding = only(target, "integrity")

    assert finding.level is Level.OK
    assert "not looked at" in finding.what
    assert "--deep" in finding.mend
    assert "every page" in only(target, "integrity", is_deep=True).what


@on_sqlite
def test_the_look_at_a_file_ends_when_its_time_is_over(
    db: Database, target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(db, *(f"echo {number}" for number in range(2000)))
    monkeypatch.setattr(database_checks, "QUICK_S", 0.0)

    assert "not looked at to the end" in only(target, "integrity").what


@on_sqlite
@pytest.mark.parametrize("garbage", [b"", b"x" * 31, b"x" * 5000])
def test_garbage_in_the_log_does_not_hurt(db: Database, target: Target, garbage: bytes) -> None:
    add(db, "true")
    _checkpointed(db, target)
    Path(f"{target.sqlite_path}-wal").write_bytes(garbage)

    assert not has_error(examine(target, {}))


@on_sqlite
def test_a_large_log_is_told_with_who_keeps_it(db: Database, target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database_checks, "LARGE_WAL_BYTES", 1000)
    add(db, "true")
    free = only(target, "wal")
    with _reader(target) as pid:
        held = only(target, "wal")

    assert (free.level, held.level) == (Level.WARNING, Level.WARNING)
    assert "nobody reads it just now" in free.what
    assert f"process {pid} (" in held.what


@on_sqlite
def test_a_file_without_write_ahead_logging_is_told(db: Database, target: Target) -> None:
    db.close()
    connection = apsw.Connection(str(target.sqlite_path))
    connection.execute("PRAGMA journal_mode = DELETE")
    connection.close()

    finding = only(target, "journal")

    assert finding.level is Level.WARNING
    assert "journal mode is delete" in finding.what
    assert "queuectl migrate" in finding.mend


@on_sqlite
def test_a_file_that_is_mostly_empty_is_told(db: Database, target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database_checks, "FREE_BYTES", 1000)
    assert only(target, "size").level is Level.OK
    add(db, *(f"echo {'x' * 2000}" for _ in range(200)))
    change(db, "DELETE FROM jobs")

    finding = only(target, "size")

    assert finding.level is Level.WARNING
    assert "prune --vacuum" in finding.mend


@pytest.mark.parametrize("version", [1, 99])
def test_a_schema_of_another_version_is_told(db: Database, target: Target, version: int) -> None:
    db.write(lambda tx: tx.dialect.set_schema_version(version))

    finding = only(target, "store")

    assert f"has schema {version}" in finding.what
    if version == 99:
        assert (finding.level, finding.mend) == (Level.ERROR, "upgrade queuectl on this host")
    else:
        assert finding.mend == "run: queuectl migrate"
        assert finding.level is (Level.WARNING if db.dialect.is_local else Level.ERROR)
    assert found(target, "workers") == []


# -- a PostgreSQL


@on_postgres
def test_the_server_is_named_with_its_version_and_the_time_it_takes(
    db: Database, target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "PostgreSQL 1" in only(target, "server").what
    monkeypatch.setattr(database_checks, "SLOW_MS", 0)

    assert only(target, "server").level is Level.WARNING


@on_postgres
def test_notifications_that_do_not_arrive_are_told(
    db: Database, target: Target, postgres_server_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database_checks, "NOTIFY_S", 30.0)
    with proxied(postgres_server_url) as proxy:
        away = target.replace(url=through(proxy, target.url))
        heard = only(away, "notify")
        monkeypatch.setattr(database_checks, "NOTIFY_S", 0.5)
        with proxy.withholding_notifications():
            deaf = only(away, "notify")

    assert (heard.level, deaf.level) == (Level.OK, Level.WARNING)
    assert "did not arrive within 0.5 s" in deaf.what
    assert "transaction mode" in deaf.mend


@on_postgres
def test_a_transaction_somebody_holds_open_is_told(
    db: Database, target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database_checks, "LONG_S", 0.0)
    assert is_ok(target, "transactions")
    with psycopg.connect(target.url, application_name="report") as connection:
        connection.execute("SELECT 1")
        finding = only(target, "transactions")
        pid = connection.info.backend_pid

    assert finding.level is Level.WARNING
    assert f"report (server process {pid}, idle in transaction)" in finding.what
    assert f"pg_terminate_backend({pid})" in finding.mend


@on_postgres
def test_connections_that_are_nearly_used_up_are_told(db: Database, target: Target) -> None:
    assert is_ok(target, "connections")
    with psycopg.connect(target.url, autocommit=True) as connection:
        connection.execute(f"ALTER DATABASE {connection.info.dbname} CONNECTION LIMIT 3")

        finding = only(target, "connections")

    assert finding.level is Level.WARNING
    assert "3 of 3 connections are in use (the limit of this database)" in finding.what


@on_postgres
def test_rows_that_are_dead_and_not_removed_are_told(
    db: Database, target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database_checks, "DEAD_ROWS", 10)
    change(db, "ALTER TABLE jobs SET (autovacuum_enabled = false)")
    add(db, *["true"] * 100)
    change(db, "UPDATE jobs SET priority = 1")
    change(db, "UPDATE jobs SET priority = 2")
    db.close()  # its figures reach the others now

    def told() -> Finding | None:
        finding = only(target, "dead-rows")
        return finding if finding.level is Level.WARNING else None

    finding = wait_for(told, "the figures of the connection that was closed")
    assert re.fullmatch(r"\d+ dead rows beside \d+ in jobs \(last vacuum: never\)", finding.what)
    assert "VACUUM" in finding.mend


@on_postgres
def test_a_clock_that_is_off_is_told(db: Database, target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    assert is_ok(target, "clock")
    real = clock.wall_ms

    monkeypatch.setattr(clock, "wall_ms", lambda: real() + HOUR)
    ahead = only(target, "clock")
    monkeypatch.setattr(clock, "wall_ms", lambda: real() - HOUR)
    behind = only(target, "clock")

    assert (ahead.level, behind.level) == (Level.WARNING, Level.WARNING)
    assert "ahead of that of the database" in ahead.what
    assert "behind that of the database" in behind.what


def test_rows_from_the_future_are_told(db: Database, target: Target) -> None:
    db.read_clock = lambda now: now + HOUR
    add(db, "true")

    finding = only(target, "clock")

    assert finding.level is Level.WARNING
    assert "in the future" in finding.what


# -- workers, jobs and queues


def test_jobs_that_wait_while_nobody_runs_are_told(db: Database, target: Target) -> None:
    add(db, "true", "true")

    assert only(target, "workers").what == "no worker is running while 2 jobs wait"
    add_worker(db)
    assert is_ok(target, "workers")


def test_a_worker_that_died_and_its_jobs_are_told(db: Database, target: Target) -> None:
    job = add_job(db)
    claim_one(db, add_dead_worker(db, target.home.run))

    assert "worker w1 (pid 1 on" in only(target, "dead-workers").what
    assert only(target, "dead-workers").level is Level.WARNING
    assert only(target, "orphans").what == f"a job is processing though the worker is gone: {job.id}"


def test_a_job_whose_worker_was_given_up_is_told(db: Database, target: Target) -> None:
    job = add_job(db)
    claim_one(db, add_worker(db))
    assert is_ok(target, "orphans")
    change(db, "UPDATE workers SET state = 'lost'")

    assert only(target, "orphans").what.endswith(f"gone: {job.id}")


def test_a_worker_that_lives_and_is_silent_is_told(db: Database, target: Target) -> None:
    lock = LifeLock(target.home, "w1", store_mark(db.dialect))
    add_worker(db, "w1", lock_path=lock.path, host=host_name(), pid=os.getpid())
    assert is_ok(target, "hung-workers")
    change(db, "UPDATE workers SET beat_at = beat_at - 60000")

    finding = only(target, "hung-workers")
    lock.release()

    assert finding.level is Level.WARNING
    assert "lives but has been silent for 1m" in finding.what
    assert f"kill -9 {os.getpid()}" in finding.mend


def test_a_worker_out_of_sight_that_is_silent_beyond_its_lease_is_told(db: Database, target: Target) -> None:
    add_worker(db, "w1", host="elsewhere")
    assert is_ok(target, "silent-workers")
    change(db, "UPDATE workers SET beat_at = beat_at - 90000")

    finding = only(target, "silent-workers")

    assert finding.level is Level.WARNING
    assert "on elsewhere) cannot be seen from here" in finding.what


def test_workers_of_another_version_are_told(db: Database, target: Target) -> None:
    add_worker(db, "w1", host="elsewhere")

    finding = only(target, "versions")

    assert finding.level is Level.WARNING
    assert "of version 0; this program is" in finding.what
    assert "queuectl worker restart" in finding.mend


def test_a_process_that_cannot_be_ended_is_an_error_with_its_pid(db: Database, target: Target) -> None:
    job = add_job(db)
    claim = claim_one(db, add_worker(db))
    assert is_ok(target, "stuck")
    db.write(lambda tx: claims.note_stuck(tx, claim, [4711, 4712]))

    finding = only(target, "stuck")

    assert finding.level is Level.ERROR
    assert f"job {job.id}: process 4711 4712 cannot be ended" in finding.what
    assert "kill -9 4711 4712" in finding.mend


def test_a_process_that_outlived_its_run_is_told(db: Database, target: Target) -> None:
    job = add_job(db)
    claim = claim_one(db, add_worker(db, new_id()))  # its own: the same test may run beside this one
    with _process(QUEUECTL_CLAIM=claim.mark) as pid, _process(QUEUECTL_CLAIM="stranger:1:1"):
        assert is_ok(target, "processes")
        change(db, "UPDATE jobs SET run = 2")
        finding = only(target, "processes")

    assert finding.level is Level.WARNING
    assert f"1 left of commands that are over: process {pid} (sleep, job number {job.seq})" in finding.what
    assert f"kill {pid}" in finding.mend


@pytest.mark.parametrize("is_of_this_store", [True, False], ids=["this-store", "another-store"])
def test_a_process_of_a_worker_that_only_a_lock_of_this_store_knows_is_told(
    db: Database, target: Target, is_of_this_store: bool
) -> None:
    mark = store_mark(db.dialect) if is_of_this_store else "another"
    unknown = new_id()
    Path(target.home.run, f"{unknown}.lock").write_text(f"1.0 60.0 {mark}\n")

    with _process(QUEUECTL_CLAIM=f"{unknown}:7:1") as pid:
        finding = only(target, "processes")

    assert (f"process {pid} (sleep, job number 7)" in finding.what) is is_of_this_store


def test_a_paused_queue_with_jobs_is_told(db: Database, target: Target) -> None:
    control.pause_queue(db, "mail", who="me")
    assert is_ok(target, "paused")
    add(db, "true", queue="mail")

    finding = only(target, "paused")

    assert finding.level is Level.WARNING
    assert "queue mail has been paused for" in finding.what
    assert finding.mend == "queuectl queue resume mail"
    assert is_ok(target, "workers")


def test_a_queue_that_no_worker_serves_is_told(db: Database, target: Target) -> None:
    add_worker(db)
    change(db, "UPDATE workers SET queues = '[\"mail\"]'")
    add(db, "true", queue="mail")
    assert is_ok(target, "unserved")
    add(db, "true", queue="video")

    finding = only(target, "unserved")

    assert finding.what == "no running worker serves queue video while a job waits"
    assert finding.mend == "queuectl worker start -d --queue video"


def test_jobs_that_need_what_no_worker_has_are_told(db: Database, target: Target) -> None:
    add_worker(db, labels='["ssd"]')
    submit(db, [JobSpec(command="true", needs=("ssd",))], who="me", environ={})
    assert is_ok(target, "unservable")
    submit(db, [JobSpec(command="true", needs=("gpu",))] * 2, who="me", environ={})

    finding = only(target, "unservable")

    assert finding.what == "2 jobs of queue default wait for what no worker has: gpu"
    assert finding.mend == "queuectl worker start -d --queue default --label gpu"


def test_jobs_that_wait_for_a_limit_of_0_are_told(db: Database, target: Target) -> None:
    db.write(lambda tx: limits.put(tx, "api", 0))
    db.write(lambda tx: limits.put(tx, "unused", 0))
    assert is_ok(target, "closed-limits")
    submit(db, [JobSpec(command="true", limits=("api",))] * 2, who="me", environ={})

    finding = only(target, "closed-limits")

    assert finding.what == "limit api is 0 while 2 jobs wait for it"
    assert finding.mend == "queuectl limit set api 1"


def test_with_no_worker_the_one_that_would_run_what_waits_is_advised(db: Database, target: Target) -> None:
    submit(db, [JobSpec(command="true", needs=("gpu",))], who="me", environ={})

    start = "queuectl worker start -d --queue default --label gpu"
    assert only(target, "workers").mend == f"start a worker: {start}"
    assert only(target, "unservable").mend == start


def test_queues_that_hold_many_back_are_told(db: Database, target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting_checks, "NARROW_JOBS", 2)
    add_worker(db)
    add(db, "true", "true", queue="slow")
    add(db, "true", "true", queue="narrow")
    db.write(lambda tx: queues.change(tx, "slow", {"rate_count": 2, "rate_period_ms": 24 * HOUR}))
    db.write(lambda tx: queues.change(tx, "narrow", {"concurrency": 1}))
    assert is_ok(target, "narrow-queues")
    add(db, "true", queue="slow")
    add_job(db, State.PROCESSING, queue="narrow")

    told = {finding.what for finding in found(target, "narrow-queues")}

    assert told == {
        "queue slow lets 2/d start: the 3 jobs that wait take 1d12h",
        "queue narrow lets 1 run at once, all of that in use, and 2 jobs wait",
    }


def test_limits_that_jobs_name_and_nobody_made_are_told(db: Database, target: Target) -> None:
    db.write(lambda tx: limits.put(tx, "api", 1))
    submit(db, [JobSpec(command="true", limits=("api",), mutexes=("db",))], who="me", environ={})
    assert is_ok(target, "missing-limits")
    add_job(db, limits='["limit:apl"]')  # as after an import, or when the limit was removed

    finding = only(target, "missing-limits")

    assert finding.what == "jobs name limit apl, which nobody made: any number of them runs at once"
    assert finding.mend is not None
    assert finding.mend.startswith("queuectl limit set apl 1")


def test_jobs_that_wait_for_what_cannot_come_any_more_are_told(db: Database, target: Target) -> None:
    ok_parent = (Parent(kind=Kind.OK, id="p"),)
    keeping = JobSpec(given_id="c", command="true", after=ok_parent, on_dead=OnDead.KEEP)
    submit(db, [JobSpec(given_id="p", command="true"), keeping], who="me", environ={})
    assert is_ok(target, "dependencies")
    control.cancel(db, ["p"], who="me")
    add_job(db, State.BLOCKED, given_id="lone")

    told = [(finding.level, finding.what) for finding in found(target, "dependencies")]

    assert told == [
        (Level.ERROR, "job lone is blocked, and waits for nothing"),
        (Level.WARNING, "job c waits for one that is over and ended otherwise than it asked"),
    ]


# -- settings and environment


def test_every_setting_that_cannot_be_read_is_named_not_only_the_first(db: Database, target: Target) -> None:
    store_setting(db, "max_retries", "many")
    store_setting(db, "shell", "bash")
    store_setting(db, "lock_lease_seconds", "6")
    store_setting(db, "colour", "red")

    findings = found(target, "settings", environ={"QUEUECTL_BACKOFF_BASE": "fast"})

    said = "\n".join(one.what for one in findings)
    assert "stored setting max_retries: bad number 'many'" in said
    assert "stored setting shell: bad shell 'bash'" in said
    assert "environment variable QUEUECTL_BACKOFF_BASE: backoff_base: bad number 'fast'" in said
    assert "lock_lease_seconds 6 is too short" in said
    assert "stored setting 'colour' is unknown" in said
    assert [one.level for one in findings].count(Level.ERROR) == 4
    assert any("queuectl config unset max_retries" in one.mend for one in findings)


@pytest.mark.parametrize(
    "stored, is_local, said",
    [
        ({"kill_grace_seconds": "30"}, False, "kill_grace_seconds 30 does not fit into lock_lease_seconds 60"),
        ({"retention_completed": "1m"}, True, "retention_completed 1m is shorter than max_backoff_seconds 5m"),
        ({"backoff_base": "0.5"}, True, "backoff_base 0.5 with the exponential strategy"),
        ({"backoff_strategy": "fixed", "job_retry_delay": "1h"}, True, "job_retry_delay 1h is cut"),
    ],
)
def test_settings_that_are_allowed_and_hardly_meant_are_told(stored: dict[str, str], is_local: bool, said: str) -> None:
    (finding,) = judge_settings(resolve(stored, {})[0], is_local=is_local)

    assert finding.level is Level.WARNING
    assert said in finding.what


def test_the_defaults_raise_no_doubt() -> None:
    assert list(judge_settings(resolve({}, {})[0], is_local=False)) == []


def test_a_shell_that_cannot_be_run_is_an_error(db: Database, target: Target, tmp_path: Path) -> None:
    store_setting(db, "shell", "/no/such/shell")
    assert "/no/such/shell does not exist" in only(target, "shell").what
    (tmp_path / "sh").touch()
    store_setting(db, "shell", str(tmp_path / "sh"))

    finding = only(target, "shell")

    assert finding.level is Level.ERROR
    assert "is not executable" in finding.what


def test_output_that_does_not_fit_on_the_disk_is_told(db: Database, target: Target) -> None:
    assert is_ok(target, "output-room")
    store_setting(db, "max_output_bytes", "1024GiB")
    store_setting(db, "max_concurrent_jobs", "1000")

    finding = only(target, "output-room")

    assert finding.level is Level.WARNING
    assert "1000 at once may keep" in finding.what


def test_a_variable_that_nobody_reads_is_told_with_the_nearest(db: Database, target: Target) -> None:
    environ = {
        "QUEUECTL_MAX_RETRY": "1", "QUEUECTL_HOME": "/x", "QUEUECTL_DEBUG": "1", "QUEUECTL_DEFAULT_MAX_TRIES": "2",
        "QUEUECTL_JOB_ID": "7", "QUEUECTL_CLAIM": "a:1:1", "PATH": "/bin",
    }  # fmt: skip

    finding = only(target, "environment", environ=environ)

    assert finding.level is Level.WARNING
    assert "unknown environment variable 'QUEUECTL_MAX_RETRY'; did you mean 'QUEUECTL_MAX_RETRIES'?" in finding.what


def test_the_variables_of_secrets_are_read_by_workers(db: Database, target: Target) -> None:
    assert only(target, "environment", environ={"QUEUECTL_SECRET_API_KEY": "x"}).level is Level.OK


# -- this program


def test_versions_that_are_too_old_are_errors() -> None:
    assert list(program_checks.judge_versions((3, 11, 0), "3.54.0")) == []

    python, sqlite = program_checks.judge_versions((3, 9, 0), "3.45.1")

    assert (python.level, sqlite.level) == (Level.ERROR, Level.ERROR)
    assert "Python 3.9.0 is too old" in python.what
    assert "SQLite 3.45.1 can corrupt" in sqlite.what


@pytest.mark.parametrize(
    "is_compiled, is_old, words",
    [
        (True, False, ", compiled launch"),
        (False, False, "no compiled launch (install"),
        (False, True, "no compiled launch (what was built is of another version: install queuectl again)"),
    ],
)
def test_whether_commands_are_launched_by_compiled_code_is_told(
    target: Target, monkeypatch: pytest.MonkeyPatch, is_compiled: bool, is_old: bool, words: str
) -> None:
    monkeypatch.setattr(program_checks, "is_compiled", lambda: is_compiled)
    monkeypatch.setattr(program_checks, "is_of_another_version", lambda: is_old)

    assert words in found(target, "program")[-1].what


@on_postgres
def test_a_driver_that_is_not_installed_is_an_error(target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program_checks, "_has_psycopg", lambda: False)

    assert "pip install 'queuectl[postgres]'" in found(target, "program")[0].mend


@contextmanager
def _reader(target: Target) -> Iterator[int]:
    """Let another process read, in a transaction that does not end."""
    code = (
        "import apsw, sys; c = apsw.Connection(sys.argv[1]); c.execute('BEGIN'); "
        "c.execute('SELECT count(*) FROM jobs').fetchall(); print('ready', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(target.sqlite_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process.pid
        process.communicate("")


@contextmanager
def _process(**environ: str) -> Iterator[int]:
    """Let a process run that carries some variables."""
    process = subprocess.Popen(["sleep", "600"], env={**os.environ, **environ})
    try:
        yield process.pid
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()


def _checkpointed(db: Database, target: Target) -> None:
    """Move everything into the one file, and close it."""
    db.close()
    connection = apsw.Connection(str(target.sqlite_path))
    connection.execute("SELECT count(*) FROM jobs").fetchall()
    connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    connection.close()
