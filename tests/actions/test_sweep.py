"""Output files of jobs that were deleted elsewhere: found and removed, and nothing else is."""

import os
from pathlib import Path

import pytest

from queuectl.actions.connect import Target, connect, locate
from queuectl.actions.sweep import Sweeper, home_mark, note_store
from queuectl.model.states import State
from queuectl.store import jobs
from queuectl.store.database import Database
from queuectl.system import logfolders
from queuectl.system.liveness import Leader, LifeLock
from tests.store.rows import add_job


@pytest.fixture(autouse=True)
def _noted(db: Database, target: Target) -> None:
    note_store(db, target.home)


def put(target: Target, *names: str) -> list[Path]:
    """Write output files."""
    paths = [Path(target.home.logs, name) for name in names]
    for path in paths:
        path.parent.mkdir(exist_ok=True)
        path.write_text("output")
    return paths


def there(target: Target) -> list[str]:
    """Return all that is in the log folders."""
    logs = Path(target.home.logs)
    return sorted(str(path.relative_to(logs)) for path in logs.rglob("*"))


def sweep(db: Database, target: Target, steps: int = 1) -> int:
    """Look through so many folders."""
    sweeper = Sweeper(db, target.home)
    return sum(sweeper.step() for _ in range(steps))


def test_the_files_of_a_job_that_is_gone_are_removed_and_those_of_others_stay(db: Database, target: Target) -> None:
    kept, running, gone = add_job(db, State.COMPLETED), add_job(db, State.PROCESSING), add_job(db, State.DEAD)
    db.write(lambda tx: jobs.delete(tx, [gone.seq]))
    endings = ("1.log", "2.log", "1.err.log", "1.log.2", "1.log.part", "1.log.part.2", "1.err.log.part")
    put(target, *(f"0/{job.seq}.{ending}" for job in (kept, running, gone) for ending in endings))

    removed = sweep(db, target)

    assert removed == len(endings)
    assert there(target) == sorted(["0", *(f"0/{job.seq}.{end}" for job in (kept, running) for end in endings)])


def test_what_is_no_output_of_a_run_is_left_alone(db: Database, target: Target) -> None:
    names = ["0/notes.txt", "0/1.1.log.bak", "0/1.log", "0/x1.1.log", "0/1001.1.log", "mine/1.1.log", "5", "README"]
    Path(target.home.logs, "mine").mkdir()
    Path(target.home.logs, "5").write_text("a file")
    put(target, *(name for name in names if "/" in name))
    Path(target.home.logs, "README").write_text("a file")
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


def test_a_home_in_which_another_store_has_workers_is_left_alone(db: Database, target: Target) -> None:
    put(target, "0/1.1.log")
    logfolders.note_store(target.home, "another", 0)

    assert sweep(db, target) == 0
    assert "0/1.1.log" in there(target)


def test_a_home_whose_stores_are_not_known_is_left_alone(db: Database, target: Target) -> None:
    put(target, "0/1.1.log")
    Path(target.home.stores).unlink()

    assert sweep(db, target) == 0

    Path(target.home.stores).write_text("what is this\n")

    assert sweep(db, target) == 0
    assert "0/1.1.log" in there(target)


def test_files_from_before_the_stores_of_a_home_were_written_down_are_left_alone(db: Database, target: Target) -> None:
    old, _ = put(target, "0/1.1.log", "0/2.1.log")
    os.utime(old, (1, 1))

    sweep(db, target)

    assert there(target) == ["0", "0/1.1.log"]


def test_a_home_that_serves_both_kinds_of_store_is_left_alone_by_both(
    db: Database, target: Target, postgres_url: str
) -> None:
    environ = {"QUEUECTL_HOME": target.home.root}
    if target.sqlite_path is not None:
        environ["QUEUECTL_DATABASE_URL"] = postgres_url
    other = connect(locate(None, environ))
    put(target, "0/1.1.log")

    note_store(other, target.home)

    assert home_mark(other.dialect) != home_mark(db.dialect)
    assert sweep(db, target) + sweep(other, target) == 0
    assert "0/1.1.log" in there(target)
    other.close()


def test_a_store_is_written_down_once(db: Database, target: Target) -> None:
    before = Path(target.home.stores).read_text()

    note_store(db, target.home)

    assert Path(target.home.stores).read_text() == before
    assert len(before.splitlines()) == 1
