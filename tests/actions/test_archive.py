"""Backup and restore: a whole copy or none, into either kind of store, at once or not at all."""

import errno
import os
import tempfile
from collections.abc import Callable
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import apsw
import pytest

from queuectl.actions.archive import Backup, backup
from queuectl.actions.connect import Target, connect, locate
from queuectl.actions.gatekeeping import set_limit, set_queue
from queuectl.actions.rescue import Rescuer
from queuectl.actions.restore import Restored, restore
from queuectl.actions.tokens import add_token
from queuectl.errors import BadInput, NotAStore, NotFound, QueuectlError, Refused, StoreNewer
from queuectl.model.asked import new_schedule
from queuectl.model.group import Group
from queuectl.model.schedule import Fire, FireOutcome
from queuectl.model.states import State
from queuectl.store import (
    archive,
    audit,
    config,
    edges,
    groups,
    inputs,
    jobs,
    migrate,
    removing,
    requests,
    schedules,
    unique_keys,
    workers,
)
from queuectl.store import sessions as store_sessions
from queuectl.store.database import Database, Tx
from queuectl.store.postgres import PostgresDialect
from queuectl.store.sqlite import APPLICATION_ID, SqliteDialect
from queuectl.system.parts import Part
from tests.scenarios.faults import damage
from tests.store.rows import add_dead_worker, add_job, add_worker, last_act

if TYPE_CHECKING:
    from queuectl.store.dialect import Row, Table

WHO = "ann@here"


@pytest.fixture
def filled(target: Target) -> Target:
    """A store with jobs in several states, runs, a dead worker that holds one of them, settings and acts; closed."""
    database = connect(target)
    add_dead_worker(database, target.home.run)
    for state in State:
        add_job(database, state, given_id=f"the-{state}", queue="mail" if state is State.DEAD else "default",
                env='{"A": "ü"}', tags='["x"]', held_at=5 if state is State.BLOCKED else None)  # fmt: skip
    add_runs(database, 500)
    last = add_job(database)
    database.write(lambda tx: removing.delete(tx, [last.seq]))
    database.write(lambda tx: config.put(tx, "max_retries", "7"))
    set_queue(database, "default", {"concurrency": 4, "rate": "10/m", "timeout": "5m", "priority": -1}, who=WHO)
    set_limit(database, "api", 0, who=WHO)
    database.write(lambda tx: inputs.insert(tx, [(1, b"\xff\x00\n"), (2, b"")]))
    add_ties(database)
    add_schedule(database)
    add_token(database, "ci", "submit", who=WHO)
    database.write(lambda tx: requests.take(tx, "ü key", "f", tx.now + 1))
    database.write(lambda tx: audit.record(tx, "bob@there", "config set", None, 1))
    database.close()
    return target


def add_schedule(database: Database) -> None:
    """Let a job come again and again, with an instant that was missed."""
    schedule = new_schedule("nightly", {"cron": "30 2 * * *"}, {"command": "ü"}, zone="Europe/Oslo", now=5)
    missed = Fire(schedule="nightly", instant=6, outcome=FireOutcome.MISSED, is_manual=0, fired_at=7, why="ü")
    database.write(lambda tx: (schedules.insert(tx, schedule), schedules.record(tx, missed)))


def add_ties(database: Database) -> None:
    """Let a job run after another, have a key, and be of a group."""
    group = Group(
        name="g", jobs=3, max_failures="10%", on_done='{"command": "ü"}', stopped_at=5, done_at=None, created_at=4
    )

    def work(tx: Tx) -> None:
        edges.insert_as_they_are(tx, [(2, 1, "any", "waiting"), (3, 1, "ok", "broken")])
        unique_keys.take_as_it_was(tx, "ü key", 1, is_held=True, expires_at=None)
        unique_keys.take_as_it_was(tx, "k", 2, is_held=False, expires_at=tx.now + 1)
        groups.create_as_it_was(tx, group)

    database.write(work)


def add_runs(database: Database, count: int) -> None:
    """Write many runs, of which some have output that no text could hold."""
    columns = ("job_seq", "run", "attempt", "worker_id", "host", "started_at", "finished_at", "outcome",
               "output_bytes", "output_file", "output_tail", "stderr_tail")  # fmt: skip
    rows = [
        (1 + number % 7, number, 1, "w1", "here", 1, 2, "exited", 3, None, b"\xff\x00\n", b"" if number % 2 else None)
        for number in range(1, count + 1)
    ]
    database.write(lambda tx: tx.insert_many("attempts", columns, rows))


def agreed(_going: int, _coming: int) -> None:
    """Have nothing against it."""


def put_back(target: Target, path: Path) -> Restored:
    """Restore without being asked."""
    return restore(target, str(path), who=WHO, confirm=agreed)


def take(target: Target, path: Path, *, force: bool = False) -> Backup:
    """Make a backup."""
    return backup(target, str(path), who=WHO, force=force)


@cache
def tables() -> "list[Table]":
    """Return all tables of a store."""
    with tempfile.TemporaryDirectory() as folder, closing(connect(locate(f"sqlite:///{folder}/x.db", {}))) as database:
        assert isinstance(database.dialect, SqliteDialect)
        return database.dialect.tables()


def contents(target: Target) -> dict[str, list["Row"]]:
    """Return every row of every table, but for the acts of backup and restore themselves."""
    database = connect(target)
    found = {}
    for table in tables():
        sql = f"SELECT {', '.join(table.columns)} FROM {table.name}"
        found[table.name] = sorted(database.read(lambda tx, sql=sql: tx.rows(sql)), key=repr)  # type: ignore[misc]
    database.close()
    found["audit"] = [row for row in found["audit"] if row[3] not in ("backup", "restore")]
    return found


def test_what_is_filled_in_has_something_of_every_kind_that_must_survive(filled: Target) -> None:
    found = contents(filled)

    filled_ones = (
        "jobs", "attempts", "queues", "lanes", "limits", "inputs", "config", "edges", "unique_keys", "job_groups",
        "tokens", "requests",
    )  # fmt: skip
    assert [name for name in filled_ones if not found[name]] == []
    assert found["inputs"] == [(1, b"\xff\x00\n"), (2, b"")]


def next_number(target: Target) -> int:
    """Return the number the next job would get."""
    database = connect(target)
    seq = database.write(lambda tx: tx.dialect.reserve_seqs(1))[0]
    database.close()
    return seq


def other_kind(target: Target, folder: Path, url: str) -> Target:
    """Return an empty store of the other kind."""
    environ = {"QUEUECTL_HOME": str(folder / "other")}
    return locate(None, environ if target.sqlite_path is None else {**environ, "QUEUECTL_DATABASE_URL": url})


def test_a_backup_is_one_file_for_its_owner_alone_that_can_be_opened_as_a_store(filled: Target, tmp_path: Path) -> None:
    path = tmp_path / "copy.db"

    made = take(filled, path)

    assert made == Backup(file=str(path), jobs=8, bytes=path.stat().st_size)
    assert path.stat().st_mode & 0o777 == 0o600
    assert sorted(tmp_path.glob("*copy.db*")) == [path]
    assert damage(str(path)) == "ok"
    assert contents(locate(f"sqlite://{path}", {})) == contents(filled)
    assert sorted(tmp_path.glob("*copy.db*")) == [path]


def test_a_backup_is_on_record_in_the_store_and_not_in_itself(filled: Target, tmp_path: Path) -> None:
    path = tmp_path / "copy.db"

    take(filled, path)

    database, copy = connect(filled), connect(locate(f"sqlite://{path}", {}))
    assert last_act(database) == (WHO, "backup", str(path), 8)
    assert last_act(copy) == ("bob@there", "config set", None, 1)
    database.close()
    copy.close()


def test_a_file_that_exists_is_replaced_only_by_force(filled: Target, tmp_path: Path) -> None:
    path = tmp_path / "copy.db"
    path.write_text("precious")

    with pytest.raises(Refused, match="exists") as refused:
        take(filled, path)

    assert "--force" in refused.value.hint
    assert path.read_text() == "precious"
    take(filled, path, force=True)
    assert damage(str(path)) == "ok"


@pytest.mark.parametrize("end", ["-wal", "-journal"])
def test_a_file_in_use_as_a_database_is_not_replaced_even_by_force(filled: Target, tmp_path: Path, end: str) -> None:
    path = tmp_path / "copy.db"
    path.write_text("precious")
    Path(f"{path}{end}").touch()

    with pytest.raises(Refused, match="in use as a database"):
        take(filled, path, force=True)

    assert path.read_text() == "precious"


@pytest.mark.parametrize("target", ["sqlite"], indirect=True)
@pytest.mark.parametrize("name", ["queue.db", "queue.db-wal", "sub/../queue.db", "link.db"])
def test_the_store_itself_is_no_place_for_its_backup(filled: Target, name: str) -> None:
    home = Path(filled.home.root)
    (home / "sub").mkdir()
    (home / "link.db").symlink_to(home / "queue.db")

    with pytest.raises(Refused, match="is the store itself"):
        take(filled, home / name, force=True)

    assert len(contents(filled)["jobs"]) == 8


def test_a_missing_folder_is_named(filled: Target, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no folder") as refused:
        take(filled, tmp_path / "none" / "copy.db")

    assert refused.value.hint == f"create it: mkdir -p {tmp_path / 'none'}"


def test_a_folder_is_no_file(filled: Target, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="is a folder"):
        take(filled, tmp_path)


def test_a_backup_that_fails_leaves_nothing(filled: Target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SqliteDialect, "damage", lambda _: ["page 7 is lost"])

    with pytest.raises(NotAStore, match="page 7 is lost"):
        take(filled, tmp_path / "copy.db")

    assert [path.name for path in tmp_path.iterdir()] == ["home"]


@pytest.mark.parametrize("number", [errno.EPERM, errno.EOPNOTSUPP, errno.ENOTSUP])
def test_a_file_system_without_links_takes_a_backup_too(
    filled: Target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuse(_part: str, path: str) -> None:
        raise OSError(number, os.strerror(number), path)

    monkeypatch.setattr(os, "link", refuse)

    take(filled, tmp_path / "copy.db")

    assert damage(str(tmp_path / "copy.db")) == "ok"


def test_a_file_that_came_meanwhile_is_not_replaced_without_links_either(
    filled: Target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def come_and_refuse(_part: str, path: str) -> None:
        Path(path).write_text("precious")
        raise OSError(errno.EPERM, "no links", path)

    monkeypatch.setattr(os, "link", come_and_refuse)

    with pytest.raises(Refused, match="exists"):
        take(filled, tmp_path / "copy.db")

    assert (tmp_path / "copy.db").read_text() == "precious"


@pytest.mark.parametrize("act", ["backup", "restore"])
def test_what_killed_backups_and_restores_left_is_removed(filled: Target, tmp_path: Path, act: str) -> None:
    take(filled, tmp_path / "copy.db")
    os.mkdir(filled.home.backups)
    left = [
        Path(filled.home.root, ".restore-0123.part"),
        Path(filled.home.backups, ".before-restore-20260101T000000Z.db.0123.part"),
    ]
    for path in left:
        path.touch()

    if act == "backup":
        (tmp_path / ".copy.db.0123.part").touch()
        take(filled, tmp_path / "copy.db", force=True)
    else:
        put_back(filled, tmp_path / "copy.db")

    assert [path for path in (*left, *tmp_path.glob(".copy.db.*")) if path.exists()] == []


def test_a_backup_under_way_at_the_same_place_is_left_alone(filled: Target, tmp_path: Path) -> None:
    with closing(Part(str(tmp_path), ".copy.db.")) as under_way:
        take(filled, tmp_path / "copy.db")

        assert os.path.exists(under_way.path)


def test_a_restore_puts_everything_back_and_keeps_what_was_there(filled: Target, tmp_path: Path) -> None:
    path = tmp_path / "copy.db"
    take(filled, path)
    before = contents(filled)
    original = path.read_bytes()
    database = connect(filled)
    add_job(database, given_id="later")
    database.write(lambda tx: removing.delete(tx, [1, 2]))
    database.write(lambda tx: config.put(tx, "max_retries", "9"))
    Rescuer(database, filled.home, {}).look()
    database.close()
    later = contents(filled)

    done = put_back(filled, path)

    assert done == Restored(file=str(path), jobs=8, replaced=7, kept=done.kept)
    assert given_up(before) == contents_but_ends(filled)
    assert path.read_bytes() == original
    assert done.kept is not None
    assert contents(locate(f"sqlite://{done.kept}", {})) == later
    assert os.stat(done.kept).st_mode & 0o777 == 0o600
    assert [name for name in os.listdir(filled.home.root) if name.startswith(".")] == []


def given_up(found: dict[str, list["Row"]]) -> dict[str, list["Row"]]:
    """Return contents as a restore leaves them: no worker lives; when it was given up is left out."""
    states = {"live": "lost"}
    rows = [(*row[:2], states.get(str(row[2]), row[2]), *row[3:16], None, *row[17:]) for row in found["workers"]]
    return {**found, "workers": rows}


def contents_but_ends(target: Target) -> dict[str, list["Row"]]:
    """Return contents without the times at which workers ended."""
    return given_up(contents(target))


def test_a_restore_is_on_record_in_what_it_restored(filled: Target, tmp_path: Path) -> None:
    take(filled, tmp_path / "copy.db")

    put_back(filled, tmp_path / "copy.db")

    database = connect(filled)
    assert last_act(database) == (WHO, "restore", str(tmp_path / "copy.db"), 8)
    database.close()


def test_numbers_are_never_given_out_again_whichever_store_used_them(filled: Target, tmp_path: Path) -> None:
    take(filled, tmp_path / "low.db")
    database = connect(filled)
    highest = [add_job(database) for _ in range(20)][-1].seq
    database.write(lambda tx: removing.delete(tx, [highest]))
    database.close()
    take(filled, tmp_path / "high.db")

    put_back(filled, tmp_path / "low.db")
    after_low = next_number(filled)
    put_back(filled, tmp_path / "high.db")

    assert after_low == highest + 1
    assert next_number(filled) >= after_low


def test_a_number_used_in_the_backup_alone_is_not_given_out_again(
    filled: Target, tmp_path: Path, postgres_url: str
) -> None:
    take(filled, tmp_path / "copy.db")
    empty = other_kind(filled, tmp_path, postgres_url) if filled.sqlite_path else filled.replace(
        url=f"sqlite://{tmp_path}/x/queue.db", home=filled.home.replace(root=f"{tmp_path}/x"),
        sqlite_path=f"{tmp_path}/x/queue.db",
    )  # fmt: skip
    Path(empty.home.root).mkdir()

    put_back(empty, tmp_path / "copy.db")

    assert next_number(empty) == 10  # eight are there; a ninth was deleted
    database = connect(empty)
    assert database.write(lambda tx: audit.record(tx, WHO, "test", None, 0)) > 2
    assert add_job(database, queue="new").lane_id == 3
    database.close()


def test_nothing_is_kept_of_an_empty_store(filled: Target, tmp_path: Path, postgres_url: str) -> None:
    take(filled, tmp_path / "copy.db")
    other = other_kind(filled, tmp_path, postgres_url)

    done = put_back(other, tmp_path / "copy.db")

    assert (done.replaced, done.kept) == (0, None)
    assert not os.path.exists(other.home.backups)


def test_tokens_alone_are_worth_keeping(filled: Target, tmp_path: Path, postgres_url: str) -> None:
    take(filled, tmp_path / "copy.db")
    other = other_kind(filled, tmp_path, postgres_url)
    with closing(connect(other)) as database:
        add_token(database, "ci", "submit", who=WHO)

    assert put_back(other, tmp_path / "copy.db").kept is not None


def test_a_queue_moves_to_the_other_kind_and_back_row_for_row(
    filled: Target, tmp_path: Path, postgres_url: str
) -> None:
    other = other_kind(filled, tmp_path, postgres_url)
    before = contents(filled)

    take(filled, tmp_path / "there.db")
    put_back(other, tmp_path / "there.db")
    there = contents(other)
    take(other, tmp_path / "back.db")
    put_back(filled, tmp_path / "back.db")

    assert given_up(there) == given_up(before)
    assert contents(filled) == there


def test_workers_of_the_backup_are_lost_so_that_their_jobs_are_rescued(filled: Target, tmp_path: Path) -> None:
    take(filled, tmp_path / "copy.db")

    put_back(filled, tmp_path / "copy.db")

    database = connect(filled)
    assert database.read(workers.live) == []
    Rescuer(database, filled.home, {}).look()
    job = database.read(lambda tx: jobs.find(tx, "the-processing"))
    assert job is not None
    assert (job.state, job.losses) == (State.PENDING, 1)
    database.close()


def test_jobs_of_dead_workers_are_settled_before_what_was_there_is_kept(filled: Target, tmp_path: Path) -> None:
    take(filled, tmp_path / "copy.db")

    done = put_back(filled, tmp_path / "copy.db")

    with closing(connect(locate(f"sqlite://{done.kept}", {}))) as kept:
        job = kept.read(lambda tx: jobs.find(tx, "the-processing"))
        assert job is not None
        assert (job.state, job.losses) == (State.PENDING, 1)


def test_a_restore_is_refused_while_a_worker_out_of_sight_may_run_a_job(target: Target, tmp_path: Path) -> None:
    database = connect(target)
    add_worker(database, "far-away", host="elsewhere", namespace="another")
    add_job(database, State.PROCESSING, given_id="busy", worker_id="far-away")
    database.close()
    take(target, tmp_path / "copy.db")
    before = contents(target)

    with pytest.raises(Refused, match=r"busy.*far-aw.*elsewhere") as refused:
        put_back(target, tmp_path / "copy.db")

    assert "restore again" in refused.value.hint
    assert contents(target) == before
    assert not os.path.exists(target.home.backups)


def test_a_job_claimed_after_the_rescue_is_seen_once_nobody_can_claim(
    filled: Target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    take(filled, tmp_path / "copy.db")
    look = Rescuer.look

    def claim_afterwards(rescuer: Rescuer) -> list[str]:
        notes = look(rescuer)
        add_worker(rescuer._database, "late", host="elsewhere", namespace="another")
        add_job(rescuer._database, State.PROCESSING, given_id="busy", worker_id="late")
        return notes

    monkeypatch.setattr(Rescuer, "look", claim_afterwards)
    monkeypatch.setattr("queuectl.actions.restore._end_what_is_left", only_look)
    with pytest.raises(Refused, match=r"busy.*late"):
        put_back(filled, tmp_path / "copy.db")

    with closing(connect(filled)) as database:
        assert database.read(lambda tx: jobs.find(tx, "busy")) is not None


def only_look(target: Target, database: Database) -> None:
    """Rescue without looking at what is still running afterwards."""
    Rescuer(database, target.home, {}).look()


def test_nothing_happens_before_it_is_confirmed(filled: Target, tmp_path: Path) -> None:
    take(filled, tmp_path / "copy.db")
    before = contents(filled)
    asked: list[tuple[int, int]] = []

    def refuse(going: int, coming: int) -> None:
        asked.append((going, coming))
        raise BadInput("no")

    with pytest.raises(BadInput, match="no"):
        restore(filled, str(tmp_path / "copy.db"), who=WHO, confirm=refuse)

    assert asked == [(8, 8)]
    assert contents(filled) == before
    assert not os.path.exists(filled.home.backups)


def test_a_restore_is_refused_while_another_connection_is_open(filled: Target, tmp_path: Path) -> None:
    take(filled, tmp_path / "copy.db")
    other = connect(filled)
    count = other.read(lambda tx: jobs.count_matching(tx, jobs.Filter()))

    with pytest.raises(Refused, match=r"open in another process|1 other session of queuectl"):
        put_back(filled, tmp_path / "copy.db")

    assert other.read(lambda tx: jobs.count_matching(tx, jobs.Filter())) == count
    other.close()
    put_back(filled, tmp_path / "copy.db")


@pytest.mark.parametrize("target", ["postgres"], indirect=True)
def test_a_session_that_is_just_leaving_does_not_hold_up_a_restore(filled: Target, tmp_path: Path) -> None:
    take(filled, tmp_path / "copy.db")
    leaving = connect(filled)
    seen: list[int] = []

    def look_and_let_leave(dialect: PostgresDialect) -> list[tuple[int, str]]:
        seen.append(len(sessions := other_sessions(dialect)))
        leaving.close()
        return sessions

    other_sessions = store_sessions.other_sessions
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store_sessions, "other_sessions", look_and_let_leave)
        put_back(filled, tmp_path / "copy.db")

    assert (seen[0], seen[-1]) == (1, 0)


def test_a_restore_is_refused_when_somebody_came_while_it_was_confirmed(filled: Target, tmp_path: Path) -> None:
    take(filled, tmp_path / "copy.db")
    late: list[Database] = []

    def come(_going: int, _coming: int) -> None:
        late.append(connect(filled))
        late[0].read(lambda tx: tx.now)

    with pytest.raises(Refused):
        restore(filled, str(tmp_path / "copy.db"), who=WHO, confirm=come)

    late[0].close()
    assert not os.path.exists(filled.home.backups)


def test_nobody_slips_in_while_a_restore_is_under_way(
    filled: Target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    take(filled, tmp_path / "copy.db")
    refused: list[QueuectlError] = []
    begin_after = archive.begin_after

    def try_to_enter(*args: object) -> None:
        try:
            intruder = connect(filled, is_patient=False)
            add_job(intruder)
        except QueuectlError as error:
            refused.append(error)
        begin_after(*args)  # type: ignore[arg-type]

    taken = tmp_path / "copy.db"
    monkeypatch.setattr("queuectl.actions.restore._keep", lambda *_: None)
    monkeypatch.setattr("queuectl.actions.restore._keep_rows", lambda *_: None)
    monkeypatch.setattr(archive, "begin_after", try_to_enter)
    put_back(filled, taken)

    assert [error.exit_code for error in refused] == [5]
    assert len(contents(filled)["jobs"]) == 8


def test_a_restore_that_fails_half_way_leaves_the_old_state(
    filled: Target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    take(filled, tmp_path / "copy.db")
    database = connect(filled)
    add_job(database, given_id="later")
    Rescuer(database, filled.home, {}).look()
    database.close()
    before = contents(filled)

    def fail(*_: object) -> int:
        raise RuntimeError("half way")

    monkeypatch.setattr("queuectl.actions.restore._finish", fail)
    with pytest.raises(RuntimeError):
        put_back(filled, tmp_path / "copy.db")

    assert contents(filled) == before
    assert [name for name in os.listdir(filled.home.root) if name.startswith(".")] == []


def no_file(path: Path) -> None:
    """Nothing at all."""
    path.unlink()


def a_text(path: Path) -> None:
    """No database."""
    path.write_text("milk, eggs and a long enough list of other things to buy, longer than the header of a file is\n")


def cut_short(path: Path) -> None:
    """The first half of a copy."""
    os.truncate(path, path.stat().st_size // 2)


def emptied(path: Path) -> None:
    """What a full disk leaves."""
    os.truncate(path, 0)


def scratched(path: Path) -> None:
    """A copy with a page in which nothing makes sense."""
    with path.open("r+b") as file:
        file.seek(3 * 4096)
        file.write(b"\xa5" * 4096)


def anothers(path: Path) -> None:
    """A database of another program."""
    path.unlink()
    connection = apsw.Connection(str(path))
    connection.execute("CREATE TABLE songs (title TEXT)")
    connection.close()


def newer(path: Path) -> None:
    """A copy made by a later version."""
    connection = apsw.Connection(str(path))
    connection.execute(f"PRAGMA user_version = {migrate.LATEST + 1}")
    connection.close()


@pytest.mark.parametrize(
    "spoil, error",
    [
        (no_file, NotFound),
        (a_text, NotAStore),
        (cut_short, NotAStore),
        (emptied, NotAStore),
        (scratched, NotAStore),
        (anothers, NotAStore),
        (newer, StoreNewer),
    ],
)
def test_what_is_no_whole_backup_is_refused_and_changes_nothing(
    filled: Target, tmp_path: Path, spoil: Callable[[Path], None], error: type[QueuectlError]
) -> None:
    path = tmp_path / "copy.db"
    take(filled, path)
    spoil(path)
    before = contents(filled)

    with pytest.raises(error) as refused:
        put_back(filled, path)

    assert refused.value.hint
    assert contents(filled) == before
    assert not os.path.exists(filled.home.backups)


@pytest.mark.parametrize("target", ["sqlite"], indirect=True)
def test_the_store_itself_is_no_backup(filled: Target) -> None:
    with pytest.raises(BadInput, match="is the store itself"):
        put_back(filled, Path(filled.home.database))


def test_a_backup_of_an_older_schema_is_brought_up_without_touching_it(filled: Target, tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    make_old_store(path)
    original = path.read_bytes()

    done = put_back(filled, path)

    assert done.jobs == 1
    assert path.read_bytes() == original
    assert sorted(tmp_path.glob("old.db*")) == [path]
    database = connect(filled)
    job = database.read(lambda tx: jobs.get(tx, 1))
    assert job is not None
    assert (job.command, job.held_at) == ("echo from before", None)
    assert next_number(filled) == 10
    database.close()


def make_old_store(path: Path) -> None:
    """Make a store as the first schema had it, in WAL mode with nothing beside it."""
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute(Path(migrate.FOLDER, "0001_kernel.sqlite.sql").read_text())
    connection.execute(
        "INSERT INTO queues (name, created_at) VALUES ('default', 1); INSERT INTO lanes (queue) VALUES ('default');"
        "INSERT INTO jobs (state, queue, lane_id, max_retries, created_at, updated_at, command)"
        " VALUES ('pending', 'default', 1, 3, 1, 1, 'echo from before')"
    )
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = 1")
    connection.close()


@pytest.mark.parametrize("target", ["sqlite"], indirect=True)
def test_a_restored_file_gives_space_back_whatever_the_backup_came_from(filled: Target, tmp_path: Path) -> None:
    make_old_store(tmp_path / "old.db")

    put_back(filled, tmp_path / "old.db")

    dialect = SqliteDialect(filled.home.database, is_durable=True)
    assert (dialect.gives_space_back(), dialect.is_wal(), dialect.damage()) == (True, True, [])
    dialect.close()


@pytest.mark.parametrize("target", ["sqlite"], indirect=True)
def test_a_damaged_store_is_to_be_moved_aside_first(filled: Target, tmp_path: Path) -> None:
    take(filled, tmp_path / "copy.db")
    for end in ("-wal", "-shm"):
        Path(f"{filled.home.database}{end}").unlink(missing_ok=True)
    a_text(Path(filled.home.database))

    with pytest.raises(NotAStore) as refused:
        put_back(filled, tmp_path / "copy.db")

    assert f"mv {filled.home.database} {filled.home.database}.damaged" in refused.value.hint
    os.rename(filled.home.database, f"{filled.home.database}.damaged")
    assert put_back(filled, tmp_path / "copy.db").jobs == 8


@pytest.mark.parametrize("target", ["postgres"], indirect=True)
def test_a_transaction_may_rest_while_files_are_written_and_checked(
    filled: Target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits: list[object] = []
    copy_rows = archive.copy_rows

    def look_and_copy(source: Tx, to: Tx, found: "list[Table]") -> None:
        served = source if source.dialect.name == "postgres" else to
        limits.append(served.rows("SHOW idle_in_transaction_session_timeout")[0][0])
        copy_rows(source, to, found)

    monkeypatch.setattr(archive, "copy_rows", look_and_copy)

    take(filled, tmp_path / "copy.db")
    put_back(filled, tmp_path / "copy.db")

    assert limits == ["0", "0", "0"]  # the backup, what is kept, and what comes
