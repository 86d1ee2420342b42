"""Output files of jobs that were deleted elsewhere: found and removed, and nothing else is."""

import os
import time
from pathlib import Path

import pytest

from queuectl.actions import sweep as sweeping
from queuectl.actions.archive import backup
from queuectl.actions.connect import Target, connect, locate
from queuectl.actions.restore import restore
from queuectl.actions.sweep import Sweeper
from queuectl.model.states import State
from queuectl.store import audit, removing
from queuectl.store.database import Database
from queuectl.system.home import log_path, stderr_path
from queuectl.system.liveness import Leader, LifeLock
from tests.store.rows import add_job
from tests.system.printing import LIMIT, Command, numbered, pending


@pytest.fixture(autouse=True)
def _used(db: Database) -> None:
    use(db)


def use(db: Database) -> None:
    """Put a first act on record, as whoever enqueues does."""
    db.write(lambda tx: audit.record(tx, "me", "enqueue", None, 1))


def put(target: Target, *names: str) -> list[Path]:
    """Write output files, a moment after all else."""
    paths = [Path(target.home.own_logs, name) for name in names]
    then = time.time() + 60
    for path in paths:
        path.parent.mkdir(exist_ok=True)
        path.write_text("output")
        os.utime(path, (then, then))
    return paths


def there(target: Target) -> list[str]:
    """Return all that is in the log folders of a store."""
    logs = Path(target.home.own_logs)
    return sorted(str(path.relative_to(logs)) for path in logs.rglob("*"))


def sweep(db: Database, target: Target, steps: int = 1) -> int:
    """Look through so many folders."""
    sweeper = Sweeper(db, target.home)
    return sum(sweeper.step() for _ in range(steps))


def test_the_files_of_a_job_that_is_gone_are_removed_and_those_of_others_stay(db: Database, target: Target) -> None:
    kept, running, gone = add_job(db, State.COMPLETED), add_job(db, State.PROCESSING), add_job(db, State.DEAD)
    db.write(lambda tx: removing.delete(tx, [gone.seq]))
    endings = ("1.log", "2.log", "1.err.log", "1.log.2", "1.log.part.7.7", "1.log.2.part.7.7", "1.err.log.part.7.7.2")
    put(target, *(f"0/{job.seq}.{ending}" for job in (kept, running, gone) for ending in endings))

    removed = sweep(db, target)

    assert removed == len(endings)
    assert there(target) == sorted(["0", *(f"0/{job.seq}.{end}" for job in (kept, running) for end in endings)])


def test_all_that_the_output_of_a_run_makes_is_known_as_such(db: Database, target: Target) -> None:
    for path in (log_path(target.home, 1, 1), stderr_path(target.home, 1, 1)) * 2:
        command = Command(Path(path))
        command.prints(numbered(3 * LIMIT))
        while pending(command.output.read_fd):
            command.output.pump()
    made = there(target)
    then = time.time() + 60
    for name in made[1:]:
        os.utime(Path(target.home.own_logs, name), (then, then))

    removed = sweep(db, target)

    assert [name for name in made if ".err.log.2.part." in name]
    assert len([name for name in made if ".part." in name]) == 8
    assert (removed, there(target)) == (len(made) - 1, ["0"])


def test_what_is_no_output_of_a_run_is_left_alone(db: Database, target: Target) -> None:
    names = ["0/notes.txt", "0/1.1.log.bak", "0/1.log", "0/x1.1.log", "0/1001.1.log", "mine/1.1.log", "5", "README"]
    put(target, *names)
    add_job(db)

    removed = sweep(db, target, steps=3)

    assert removed == 0
    assert set(names) <= set(there(target))


def test_folders_are_looked_through_in_turn_one_at_a_time(db: Database, target: Target) -> None:
    put(target, "0/1.1.log", "7/7001.1.log", "12/12001.1.log")
    sweeper = Sweeper(db, target.home)

    seen = []
    for _ in range(4):
        sweeper.step()
        seen.append([name for name in there(target) if name.endswith(".log")])
        put(target, "0/1.1.log") if len(seen) == 3 else None

    assert seen == [["12/12001.1.log", "7/7001.1.log"], ["12/12001.1.log"], [], []]


def test_a_folder_of_many_files_is_looked_through_bit_by_bit(
    db: Database, target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweeping, "MOST_FILES", 2)
    kept = [add_job(db).seq for _ in range(5)]
    put(target, *(f"0/{seq}.1.log" for seq in kept), "0/9.1.log", "1/1001.1.log")

    removed = sweep(db, target, steps=5)

    assert removed == 2
    assert there(target) == ["0", *(f"0/{seq}.1.log" for seq in kept), "1"]


def test_a_folder_goes_when_it_is_empty_and_no_number_of_it_will_be_used_again(db: Database, target: Target) -> None:
    add_job(db, seq=1500)
    put(target, "0/1.1.log", "1/1499.1.log", "2/2001.1.log")

    sweep(db, target, steps=3)

    assert there(target) == ["1", "2"]


def test_the_file_of_a_run_under_way_stays_though_its_job_is_gone(db: Database, target: Target) -> None:
    put(target, "0/1.1.log", "0/2.1.log")
    lock = LifeLock(target.home, "w1")
    lock.note_start(Leader(pid=os.getpid(), since=1.0, seq=2, run=1))

    sweep(db, target)

    assert there(target) == ["0", "0/2.1.log"]
    lock.release()


def test_files_from_before_the_first_act_of_a_store_are_left_alone(db: Database, target: Target) -> None:
    old, _ = put(target, "0/1.1.log", "0/2.1.log")
    os.utime(old, (1, 1))

    sweep(db, target)

    assert there(target) == ["0", "0/1.1.log"]


def test_a_store_in_which_nobody_did_anything_yet_sweeps_nothing(db: Database, target: Target) -> None:
    db.write(lambda tx: tx.changed("DELETE FROM audit"))
    put(target, "0/1.1.log")

    assert sweep(db, target) == 0

    use(db)

    assert sweep(db, target) == 1


def test_files_from_before_a_restore_are_left_alone(db: Database, target: Target, tmp_path: Path) -> None:
    path = str(tmp_path / "empty.db")
    backup(target, path, who="me")
    add_job(db)
    db.close()
    before = put(target, "0/1.1.log")[0]
    os.utime(before)

    restore(target, path, who="me", confirm=lambda *_: None)
    put(target, "0/2.1.log")
    again = connect(target)
    removed = sweep(again, target)
    again.close()

    assert (removed, there(target)) == (1, ["0", "0/1.1.log"])


def test_a_restore_while_a_sweeper_was_cut_off_is_noticed(db: Database, target: Target) -> None:
    sweeper = Sweeper(db, target.home)
    sweeper.step()
    old = put(target, "0/1.1.log")[0]
    os.utime(old)

    db.write(lambda tx: tx.changed("UPDATE audit SET at = at - 1000"))
    db.write(lambda tx: audit.record(tx, "me", "restore", "x.db", 1))
    db.write(lambda tx: tx.changed("UPDATE audit SET at = at + 1000 WHERE action = 'restore'"))

    assert sweeper.step() == 0
    assert old.exists()


def test_stores_that_share_a_home_leave_each_others_files_alone(
    db: Database, target: Target, postgres_url: str
) -> None:
    environ = {"QUEUECTL_HOME": target.home.root}
    if target.sqlite_path is not None:
        environ["QUEUECTL_DATABASE_URL"] = postgres_url
    there_too = locate(None, environ)
    other = connect(there_too)
    use(other)
    mine, others = put(target, "0/1.1.log")[0], put(there_too, "0/1.1.log")[0]

    assert sweep(db, target, steps=2) == 1
    assert (mine.exists(), others.exists()) == (False, True)

    assert sweep(other, there_too, steps=2) == 1
    assert (mine.exists(), others.exists()) == (False, False)
    other.close()
