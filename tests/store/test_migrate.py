"""Setting a store up and bringing it up to date, by one process or by twenty at once; refusing what is not ours."""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import apsw
import psycopg
import pytest

from queuectl.actions.connect import Target, connect, locate, migrate_store
from queuectl.cli.main import main
from queuectl.errors import NotAStore, StoreError, StoreFull, StoreNewer, StoreOlder, StoreUnreachable
from queuectl.store import migrate
from queuectl.store.database import Database, Tx
from queuectl.store.postgres import PostgresDialect
from queuectl.store.sqlite import SqliteDialect
from tests.program import PROGRAM, Cli
from tests.store.rows import add_job, get_job

if TYPE_CHECKING:
    from queuectl.store.dialect import Row

ON_SQLITE = pytest.mark.parametrize("target", ["sqlite"], indirect=True)
ON_POSTGRES = pytest.mark.parametrize("target", ["postgres"], indirect=True)
NEXT = migrate.LATEST + 1


@pytest.fixture(autouse=True)
def _all_connections_end_with_the_test(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A command that is refused ends, and its connection with it; here it must be closed."""
    opened: list[psycopg.Connection[Row]] = []
    connect_to = PostgresDialect._connect

    def connect_and_note(self: PostgresDialect) -> "psycopg.Connection[Row]":
        opened.append(connect_to(self))
        return opened[-1]

    monkeypatch.setattr(PostgresDialect, "_connect", connect_and_note)
    yield
    for connection in opened:
        connection.close()


@pytest.fixture
def next_program(old_store: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The program as it may be one day, with a migration more; it finds a store of today's."""
    folder = tmp_path / "migrations"
    shutil.copytree(migrate.FOLDER, folder)
    for dialect in ("sqlite", "postgres"):
        (folder / f"{NEXT:04}_motto.{dialect}.sql").write_text("ALTER TABLE queues ADD COLUMN motto TEXT;\n")
    check = migrate.check
    monkeypatch.setattr(migrate, "LATEST", NEXT)
    monkeypatch.setattr(migrate, "check", lambda version, latest=NEXT: check(version, latest))
    for name in ("set_up_sqlite", "set_up_postgres"):
        later = partial(getattr(migrate, name), latest=NEXT, folder=str(folder))
        monkeypatch.setattr(migrate, name, later)


@pytest.fixture
def old_store(target: Target) -> int:
    """A store that today's program has set up and put a job into: the job's number."""
    database = connect(target)
    job = add_job(database, command="echo from before")
    database.close()
    return job.seq


def test_an_empty_store_sets_itself_up(target: Target) -> None:
    database = connect(target)

    assert database.read(version) == migrate.LATEST
    database.close()


def test_a_store_is_set_up_once(target: Target, old_store: int) -> None:
    database = connect(target)

    assert get_job(database, old_store).command == "echo from before"
    database.close()


def test_twenty_processes_at_once_on_a_fresh_home_all_succeed(target: Target, tmp_path: Path) -> None:
    environ = Cli(target, tmp_path).environ

    started = [
        subprocess.Popen(
            [PROGRAM, "enqueue", "true"], env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for _ in range(20)
    ]
    streams = [process.communicate(timeout=60) for process in started]

    assert [process.returncode for process in started] == [0] * 20, streams
    assert sorted(int(out) for out, _ in streams) == list(range(1, 21))


def test_a_new_home_is_for_its_owner_alone(tmp_path: Path) -> None:
    target = locate(None, {"QUEUECTL_HOME": str(tmp_path / "fresh")})

    connect(target).close()

    modes = [os.stat(path).st_mode & 0o777 for path in (target.home.root, target.home.database)]
    assert modes == [0o700, 0o600]


def test_a_store_of_a_newer_program_is_refused(target: Target, old_store: int) -> None:
    set_version(target, NEXT)

    with pytest.raises(StoreNewer, match=f"schema {NEXT}") as refused:
        connect(target)

    assert refused.value.hint == "upgrade queuectl on this host"


def test_migrate_refuses_a_store_of_a_newer_program_too(target: Target, old_store: int) -> None:
    set_version(target, NEXT)

    with pytest.raises(StoreNewer):
        migrate_store(target)


def test_a_command_on_a_store_of_a_newer_program_ends_with_code_5(
    target: Target, old_store: int, tmp_path: Path
) -> None:
    set_version(target, NEXT)

    done = run(target, tmp_path, "enqueue", "true")

    assert (done.returncode, done.stdout) == (5, "")
    assert "upgrade queuectl" in done.stderr


@ON_SQLITE
@pytest.mark.parametrize("free_bytes, mode", [(1 << 40, 2), (1 << 20, 0)])
def test_a_new_file_gives_space_back_unless_the_disk_is_tight(
    target: Target, monkeypatch: pytest.MonkeyPatch, free_bytes: int, mode: int
) -> None:
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_bavail=free_bytes, f_frsize=1))

    connect(target).close()

    assert read_header(target, "auto_vacuum") == mode


@ON_SQLITE
@pytest.mark.usefixtures("next_program")
def test_an_older_sqlite_migrates_by_itself(target: Target, old_store: int) -> None:
    database = connect(target)

    assert database.read(version) == NEXT
    assert get_job(database, old_store).command == "echo from before"
    assert database.read(lambda tx: tx.rows("SELECT motto FROM queues")) == [(None,)]
    database.close()


@ON_SQLITE
@pytest.mark.usefixtures("next_program")
def test_an_older_sqlite_is_copied_before_it_is_changed(target: Target, old_store: int) -> None:
    connect(target).close()

    copy = apsw.Connection(f"{target.sqlite_path}.schema{NEXT - 1}.bak", flags=apsw.SQLITE_OPEN_READONLY)
    assert copy.pragma("user_version") == NEXT - 1
    assert copy.pragma("integrity_check") == "ok"
    assert copy.execute("SELECT seq, command FROM jobs").fetchall() == [(old_store, "echo from before")]
    copy.close()


@ON_SQLITE
@pytest.mark.usefixtures("next_program", "old_store")
@pytest.mark.parametrize("is_left", [True, False], ids=["one-was-left", "none-was-left"])
def test_the_copy_is_for_its_owner_alone(target: Target, is_left: bool) -> None:
    copy = Path(f"{target.sqlite_path}.schema{NEXT - 1}.bak")
    if is_left:
        copy.write_text("half a copy")
        copy.chmod(0o644)

    umask = os.umask(0)
    try:
        connect(target).close()
    finally:
        os.umask(umask)

    assert copy.stat().st_mode & 0o777 == 0o600


@ON_SQLITE
@pytest.mark.usefixtures("next_program", "old_store")
def test_a_link_in_the_place_of_the_copy_is_not_followed(target: Target, tmp_path: Path) -> None:
    Path(f"{target.sqlite_path}.schema{NEXT - 1}.bak").symlink_to(tmp_path / "elsewhere")

    connect(target).close()

    assert not (tmp_path / "elsewhere").exists()


@ON_SQLITE
@pytest.mark.usefixtures("next_program")
def test_a_copy_that_a_cut_off_migration_left_is_written_anew(target: Target, old_store: int) -> None:
    Path(f"{target.sqlite_path}.schema{NEXT - 1}.bak").write_text("half a copy")

    connect(target).close()

    copy = apsw.Connection(f"{target.sqlite_path}.schema{NEXT - 1}.bak", flags=apsw.SQLITE_OPEN_READONLY)
    assert copy.execute("SELECT count(*) FROM jobs").fetchall() == [(1,)]
    copy.close()


@ON_SQLITE
@pytest.mark.usefixtures("next_program")
def test_of_many_that_open_an_older_sqlite_at_once_one_migrates_and_all_go_on(target: Target, old_store: int) -> None:
    def open_and_look(_: int) -> int:
        database = connect(target)
        found = database.read(version)
        database.close()
        return found

    with ThreadPoolExecutor(5) as threads:
        found = list(threads.map(open_and_look, range(5)))

    assert found == [NEXT] * 5


@ON_SQLITE
@pytest.mark.usefixtures("next_program")
def test_an_older_sqlite_is_left_alone_when_the_disk_has_no_room_for_the_copy(
    target: Target, old_store: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_bavail=1, f_frsize=4096))

    with pytest.raises(StoreFull, match="4096 are free"):
        connect(target)

    assert read_header(target, "user_version") == NEXT - 1
    assert not list(Path(target.home.root).glob("*.bak"))


@ON_POSTGRES
@pytest.mark.usefixtures("next_program")
def test_an_older_postgres_waits_for_migrate(target: Target, old_store: int) -> None:
    with pytest.raises(StoreOlder, match=f"schema {NEXT - 1}") as refused:
        connect(target)

    assert refused.value.hint == "run: queuectl migrate"


@ON_POSTGRES
@pytest.mark.usefixtures("next_program")
def test_an_older_postgres_is_migrated_on_demand_and_keeps_its_jobs(target: Target, old_store: int) -> None:
    versions = migrate_store(target)

    database = connect(target)
    assert versions == (NEXT - 1, NEXT)
    assert get_job(database, old_store).command == "echo from before"
    assert database.read(lambda tx: tx.rows("SELECT motto FROM queues")) == [(None,)]
    database.close()


@ON_POSTGRES
@pytest.mark.usefixtures("next_program")
def test_commands_on_an_older_postgres_end_with_code_5_until_it_is_migrated(
    target: Target, old_store: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("QUEUECTL_HOME", target.home.root)
    monkeypatch.setenv("QUEUECTL_DATABASE_URL", target.url)

    codes = [main(["list"]), main(["migrate"]), main(["list"])]

    captured = capsys.readouterr()
    assert codes == [5, 0, 0]
    assert "run: queuectl migrate" in captured.err
    assert f"schema {NEXT - 1} -> {NEXT}" in captured.out


def test_runs_from_before_schema_6_get_their_result_and_their_queue(
    target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    with _program_of_schema(5, monkeypatch), closing(connect(target)) as database:
        database.write(_add_runs_of_schema_5)

    migrate_store(target)

    database = connect(target)
    found = database.read(lambda tx: tx.rows("SELECT job_seq, result, queue, waited_ms FROM attempts ORDER BY job_seq"))
    database.close()
    assert found == [
        (1, "completed", "default", None),
        (2, "failed", "mail", None),
        (3, "snoozed", "default", None),
        (4, "timed_out", "mail", None),
        (5, "completed", "mail", None),
    ]


def test_a_file_from_before_schema_7_keeps_its_jobs_and_its_checks(
    sqlite_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = locate(None, {"QUEUECTL_HOME": str(sqlite_home)})
    with _program_of_schema(6, monkeypatch), closing(connect(target)) as database:
        job = add_job(database, command="echo from before")
        old_text = database.read(_text_of_jobs)

    with closing(connect(target)) as database:
        assert "state IN ('completed'" in old_text
        assert "state IN ('completed'" not in database.read(_text_of_jobs)
        assert database.read(lambda tx: tx.row("PRAGMA integrity_check")) == ("ok",)
        assert get_job(database, job.seq).command == "echo from before"
        for wrong in ("state = 'odd'", "state = 'completed'"):  # no such state; completed without a time
            with pytest.raises(StoreError, match="CHECK constraint failed"):
                database.write(lambda tx, wrong=wrong: tx.changed(f"UPDATE jobs SET {wrong}"))  # type: ignore[misc]


def _text_of_jobs(tx: Tx) -> str:
    return str(tx.rows("SELECT sql FROM sqlite_schema WHERE name = 'jobs'")[0][0])


@contextmanager
def _program_of_schema(number: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Be an earlier program for the block."""
    with monkeypatch.context() as before:
        before.setattr(migrate, "LATEST", number)
        before.setattr(migrate, "check", partial(migrate.check, latest=number))
        for name in ("set_up_sqlite", "set_up_postgres"):
            before.setattr(migrate, name, partial(getattr(migrate, name), latest=number))
        yield


def test_a_worker_of_schema_5_that_was_not_restarted_says_nothing_wrong(db: Database) -> None:
    db.write(_add_runs_of_schema_5)

    found = db.read(lambda tx: tx.rows("SELECT job_seq, result FROM attempts ORDER BY job_seq"))
    assert found == [(1, "completed"), (2, "failed"), (3, "snoozed"), (4, "timed_out"), (5, "completed")]


def _add_runs_of_schema_5(tx: Tx) -> None:
    ends = [
        ("default", "exited", None),
        ("mail", "exited", "exit code 3"),
        ("default", "exited", "asked to run again later (exit code 9)"),
        ("mail", "timed_out", "timed out after 5 s"),
        ("mail", "exited", None),
    ]
    for seq, (queue, outcome, error) in enumerate(ends, 1):
        tx.changed(
            "INSERT INTO jobs (seq, state, queue, lane_id, max_retries, created_at, updated_at, finished_at, command)"
            " VALUES (:seq, 'dead', :queue, 1, 0, 1, 1, 1, 'true')",
            {"seq": seq, "queue": queue},
        )
        tx.changed(
            "INSERT INTO attempts (job_seq, run, attempt, worker_id, host, started_at, finished_at, outcome, error,"
            " output_tail) VALUES (:seq, 1, 1, 'w1', 'here', 1, 2, :outcome, :error, :tail)",
            {"seq": seq, "outcome": outcome, "error": error, "tail": b""},
        )


def test_migrate_has_nothing_to_do_on_a_store_of_this_program(target: Target, old_store: int) -> None:
    assert migrate_store(target) == (migrate.LATEST, migrate.LATEST)


def a_foreign_database(path: str) -> None:
    """Another program's tables."""
    connection = apsw.Connection(path)
    connection.execute("CREATE TABLE songs (title TEXT)")
    connection.close()


def a_foreign_database_with_a_version(path: str) -> None:
    """Another program's tables, with a version that could be ours."""
    connection = apsw.Connection(path)
    connection.execute(f"CREATE TABLE songs (title TEXT); PRAGMA user_version = {migrate.LATEST}")
    connection.close()


def a_text(path: str) -> None:
    """No database at all."""
    Path(path).write_text("milk, eggs and a long enough list of other things to buy\n")


def a_folder(path: str) -> None:
    """Not even a file."""
    os.mkdir(path)


STRANGERS: list[tuple[Callable[[str], None], type[StoreError]]] = [
    (a_foreign_database, NotAStore),
    (a_foreign_database_with_a_version, NotAStore),
    (a_text, NotAStore),
    (a_folder, StoreUnreachable),
]


@ON_SQLITE
@pytest.mark.parametrize("make, error", STRANGERS)
def test_what_is_not_a_store_is_refused(target: Target, make: Callable[[str], None], error: type[StoreError]) -> None:
    make(target.home.database)

    with pytest.raises(error, match=target.home.database) as refused:
        connect(target)

    assert refused.value.hint


@ON_SQLITE
@pytest.mark.parametrize("make", [make for make, _ in STRANGERS])
def test_a_command_on_what_is_not_a_store_ends_with_code_5(
    target: Target, tmp_path: Path, make: Callable[[str], None]
) -> None:
    make(target.home.database)

    done = run(target, tmp_path, "enqueue", "true")

    assert (done.returncode, done.stdout) == (5, "")
    assert target.home.database in done.stderr


@ON_SQLITE
@pytest.mark.parametrize("open_it", [connect, migrate_store])
@pytest.mark.parametrize("make", [a_foreign_database, a_foreign_database_with_a_version, a_text])
def test_what_is_not_ours_is_left_as_it_is(
    target: Target, make: Callable[[str], None], open_it: Callable[[Target], object]
) -> None:
    make(target.home.database)
    before = Path(target.home.database).read_bytes()

    with pytest.raises(NotAStore):
        open_it(target)

    assert Path(target.home.database).read_bytes() == before


def test_a_server_that_does_not_answer_is_unreachable_and_its_password_is_not_told(tmp_path: Path) -> None:
    url = "postgresql://me:secret@127.0.0.1:1/queue"
    target = locate(None, {"QUEUECTL_HOME": str(tmp_path), "QUEUECTL_DATABASE_URL": url})

    with pytest.raises(StoreUnreachable, match=r"postgresql://me@127.0.0.1:1/queue") as refused:
        connect(target)

    assert "secret" not in refused.value.message


def version(tx: Tx) -> int:
    """Return the version of the schema."""
    return tx.dialect.schema_version()


def set_version(target: Target, number: int) -> None:
    """Make a store look as if another version of the program had set it up."""
    database: Database = connect(target)
    database.write(lambda tx: tx.dialect.set_schema_version(number))
    database.close()


def read_header(target: Target, pragma: str) -> object:
    """Read a number from the header of a SQLite file."""
    dialect = SqliteDialect(target.home.database, is_durable=True)
    value: object = dialect.connection.pragma(pragma)
    dialect.close()
    return value


def run(target: Target, folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    """Run the program against a store."""
    return Cli(target, folder).run(*words)
