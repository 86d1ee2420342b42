"""Acknowledged means durable: what a person was told is on the disk before it is said, as the kernel saw it.

SQLite alone: what PostgreSQL has committed is PostgreSQL's affair.
"""

import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import apsw
import pytest

from tests.program import QUOTED, Cli
from tests.scenarios.faults import damage
from tests.scenarios.powercut import STRACE, SYNCS, Call, Disk, by_chance, calls_in, everything, nothing
from tests.scenarios.working import on_sqlite

pytestmark = [on_sqlite, pytest.mark.needs("strace")]

ACTS: dict[str, Sequence[str]] = {
    "enqueue": ["enqueue", "true"],
    "batch": ["enqueue", "--from", "-"],
    "cancel": ["cancel", "waiting"],
    "retry": ["retry", "cancelled"],
    "delete": ["delete", "cancelled"],
    "config": ["config", "set", "max_retries", "7"],
    "pause": ["queue", "pause", "mail"],
}


@pytest.mark.parametrize("words", ACTS.values(), ids=ACTS.keys())
def test_an_act_is_synced_before_it_is_acknowledged(cli: Cli, tmp_path: Path, words: Sequence[str]) -> None:
    cli.enqueue("--id", "waiting", "true")
    cli.enqueue("--id", "cancelled", "true")
    cli.ok("cancel", "cancelled")

    calls = traced(cli, tmp_path, *words, stdin="true\nfalse\n" * 100)

    assert_synced_before_it_was_said(cli, calls)


def test_the_first_job_of_a_home_is_on_disk_with_its_files_before_its_id_is_printed(cli: Cli, tmp_path: Path) -> None:
    calls = traced(cli, tmp_path, "enqueue", "true")

    assert_synced_before_it_was_said(cli, calls)
    assert not [call.path for call in made_before_said(calls, cli.target.home.root, "openat")]


def test_the_first_job_of_a_new_home_is_on_disk_with_all_its_folders(cli: Cli, tmp_path: Path) -> None:
    Path(cli.target.home.root).rmdir()

    calls = traced(cli, tmp_path, "enqueue", "true")

    assert_synced_before_it_was_said(cli, calls)
    assert not [call.path for call in made_before_said(calls, cli.target.home.root, "mkdir")]


def test_every_acknowledged_job_outlives_a_power_cut(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "many").write_text(f"true {'x' * 2000}\n" * 2200)  # more than a supervisor leaves in the log
    session = run_session(
        cli,
        tmp_path,
        f"""
        say enqueue true; say enqueue true
        {QUOTED} config set worker_heartbeat_interval 1
        {QUOTED} worker start -n 2 2>/dev/null &
        for each in 1 2 3; do say enqueue 'sleep 0.2'; done
        say enqueue --delay 1d --from many
        while test $(stat -c %s {cli.target.home.database}) -lt 4000000; do sleep 0.1; done
        for each in 1 2 3; do say enqueue 'sleep 0.2'; done
        {QUOTED} worker stop
        wait
        say enqueue true; say enqueue true
        """,
    )

    found = [
        after_power_cuts(session, tmp_path / name, keeps)
        for name, keeps in {"none": nothing, "all": everything, "some": by_chance(1), "more": by_chance(2)}.items()
    ]

    assert len(session.acknowledged[-1][1]) == 2 + 3 + 2200 + 3 + 2
    assert found == [(set(), {"ok"})] * 4


@pytest.mark.parametrize("level", ["OFF", "NORMAL"])
def test_a_power_cut_takes_what_was_not_synced(cli: Cli, tmp_path: Path, level: str) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        f"""
from queuectl.store.sqlite import SqliteDialect

opened = SqliteDialect.__init__
def open_with_less(self, *args, **kwargs):
    opened(self, *args, **kwargs)
    self.connection.execute("PRAGMA synchronous = {level}")
SqliteDialect.__init__ = open_with_less
"""
    )

    session = run_session(cli, tmp_path, f"export PYTHONPATH={tmp_path}; say enqueue true; say enqueue true")
    lost, _ = after_power_cuts(session, tmp_path / "cuts", nothing)

    assert lost == {"1", "2"}


class Session:
    """What strace saw of people and workers at work on one home: the disk, and when which ids had been printed."""

    def __init__(self, home: Path, said: Path, calls: list[Call]) -> None:
        self.disk = Disk(home, calls)
        self.acknowledged: list[tuple[int, set[str]]] = []
        text = b""
        for call in calls:
            if call.name == "write" and call.fd_path == str(said):
                text += call.text
                self.acknowledged.append((call.began, set(text.decode().split())))


def run_session(cli: Cli, folder: Path, script: str) -> Session:
    """Run a shell script under strace, in which `say` is the program and what it prints is an acknowledgement."""
    said, log = folder / "said", folder / "strace.log"
    whole = f'say() {{ {QUOTED} "$@" >>{said}; }}\n{script}'
    argv = [*STRACE, "-o", str(log), "sh", "-e", "-c", whole]
    subprocess.run(argv, env=cli.environ, cwd=folder, check=True, stdout=subprocess.DEVNULL, timeout=100)
    return Session(Path(cli.target.home.root), said, calls_in(log))


def after_power_cuts(session: Session, folder: Path, keeps: Callable[[], bool]) -> tuple[set[str], set[str]]:
    """Cut the power at each acknowledgement; return the acknowledged ids that were lost, and what SQLite says of it."""
    lost: set[str] = set()
    wrong: set[str] = set()
    for number, (moment, acknowledged) in enumerate(session.acknowledged):
        database = folder / str(number) / "queue.db"
        database.parent.mkdir(parents=True)
        for name, content in session.disk.after_power_cut(moment, keeps):
            database.with_name(name).write_bytes(content)
        wrong.add(damage(str(database)))
        lost |= acknowledged - jobs_in(database)
    return lost, wrong


def traced(cli: Cli, folder: Path, *words: str, stdin: str = "") -> list[Call]:
    """Run a command line that must succeed under strace and return what it asked of the kernel."""
    log = folder / "strace.log"
    cli.prefix = (*STRACE, "-o", str(log))
    try:
        cli.ok(*words, stdin=stdin)
    finally:
        cli.prefix = ()
    return calls_in(log)


def assert_synced_before_it_was_said(cli: Cli, calls: list[Call]) -> None:
    """The log was written, and synced after its last write, before the first word on standard output."""
    said = said_at(calls)
    log = [call for call in calls if call.path == f"{cli.target.home.database}-wal" and call.began < said]
    writes = [call for call in log if call.name == "pwrite64"]
    assert writes
    assert any(call.name in SYNCS and writes[-1].ended < call.began and call.ended < said for call in log)


def made_before_said(calls: list[Call], home: str, how: str) -> list[Call]:
    """Return what of a home was made before the first word was said, in a folder that was not synced in between."""
    said = said_at(calls)
    syncs = [call for call in calls if call.name in SYNCS and call.ended < said]
    made = [call for call in calls if call.name == how and call.began < said and call.path.startswith(home)]
    if how == "openat":
        made = [
            call for call in made if "O_CREAT" in call.rest and Path(call.path).name in ("queue.db", "queue.db-wal")
        ]
    assert made
    return [
        call for call in made
        if not any(sync.path == str(Path(call.path).parent) and call.ended < sync.began for sync in syncs)
    ]  # fmt: skip


def said_at(calls: list[Call]) -> int:
    """Return when the first word on standard output was said."""
    return next(call.began for call in calls if call.name == "write" and call.fd == 1)


def jobs_in(database: Path) -> set[str]:
    """Return the ids of all jobs in a SQLite file; none when not even the table is there."""
    connection = apsw.Connection(str(database))
    try:
        return {str(given_id or seq) for given_id, seq in connection.execute("SELECT given_id, seq FROM jobs")}
    except apsw.SQLError:
        return set()
    finally:
        connection.close()
