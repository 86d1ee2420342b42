"""`queuectl prune`: what it says, what its flags do, and what it refuses."""

import apsw
import pytest

from queuectl.actions.connect import connect
from queuectl.model.states import State
from queuectl.model.units import DAY_MS
from tests.program import Cli
from tests.store.rows import add_job, last_act


@pytest.fixture
def kept(cli: Cli) -> Cli:
    """A store with two completed jobs, one of them old, and an old cancelled and an old dead one."""
    database = connect(cli.target)
    now = database.read(lambda tx: tx.now)
    for state, days in ((State.COMPLETED, 2), (State.COMPLETED, 10), (State.CANCELLED, 10), (State.DEAD, 10)):
        add_job(database, state, finished_at=now - days * DAY_MS, given_id=f"{state}-{days}")
    database.close()
    return cli


def left(cli: Cli) -> set[object]:
    """Return the ids of the jobs that are there."""
    return {job["id"] for job in cli.json("list")}


def test_prune_applies_the_retention_of_the_settings_and_is_on_record(kept: Cli) -> None:
    said = kept.ok("prune")

    assert said == "2 jobs pruned: 1 completed, 1 cancelled, 0 dead\n"
    assert left(kept) == {"completed-2", "dead-10"}
    database = connect(kept.target)
    assert last_act(database)[1:] == ("prune", "completed for 7d, cancelled for 7d", 2)
    database.close()


def test_acts_of_long_ago_are_told(kept: Cli) -> None:
    kept.ok("config", "set", "max_retries", "4")
    database = connect(kept.target)
    database.write(lambda tx: tx.changed("UPDATE audit SET at = 1"))
    database.close()

    would, did = kept.ok("prune", "--dry-run"), kept.ok("prune")

    assert would.splitlines()[1] == "1 act of more than a year ago would be, too"
    assert did.splitlines()[1] == "1 act of more than a year ago forgotten"
    assert [act["action"] for act in kept.json("audit")] == ["prune"]


def test_a_dry_run_says_what_would_go_and_lets_it_stay(kept: Cli) -> None:
    said = kept.ok("prune", "--dry-run")

    assert said == "2 jobs would be pruned: 1 completed, 1 cancelled, 0 dead\n"
    assert len(left(kept)) == 4


def test_stored_settings_and_the_environment_count(kept: Cli) -> None:
    kept.ok("config", "set", "retention_dead", "3d")

    counted = kept.ok("prune", "--dry-run", "--json", env={"QUEUECTL_RETENTION_COMPLETED": "1d"})

    assert counted == '{"completed": 2, "cancelled": 1, "dead": 1, "workers": 0, "acts": 0, "dry_run": true}\n'


def test_a_state_and_an_age_go_beyond_the_settings(kept: Cli) -> None:
    kept.ok("prune", "--state", "dead,completed", "--older-than", "1d")

    assert left(kept) == {"cancelled-10"}


def test_a_state_alone_goes_by_its_own_retention(kept: Cli) -> None:
    kept.ok("prune", "--state", "cancelled")

    assert left(kept) == {"completed-2", "completed-10", "dead-10"}


@pytest.mark.parametrize(
    "words, message",
    [
        ("--older-than 1d", "which jobs"),
        ("--state dead", "kept for ever"),
        ("--state pending --older-than 1d", "not over"),
        ("--state done --older-than 1d", "unknown state 'done'"),
        ("--state , --older-than 1d", "no state is named"),
        ("--state dead --older-than soon", "bad duration 'soon'"),
        ("--state dead --older-than 0", "0 is no age"),
        ("--dry-run --vacuum", "changes nothing"),
    ],
)
def test_what_is_not_clear_is_refused_and_nothing_goes(kept: Cli, words: str, message: str) -> None:
    done = kept.run("prune", *words.split())

    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert len(left(kept)) == 4


def make_old_file(cli: Cli) -> None:
    """Make a SQLite file one of those that keep their free space, as files of schema 1 do."""
    connection = apsw.Connection(cli.target.home.database)
    connection.execute("PRAGMA auto_vacuum = NONE; VACUUM")
    connection.close()


def auto_vacuum(cli: Cli) -> object:
    connection = apsw.Connection(cli.target.home.database)
    try:
        return connection.pragma("auto_vacuum")
    finally:
        connection.close()


def test_vacuum_rewrites_a_file_that_cannot_give_space_back(local: Cli) -> None:
    local.ok("enqueue", "--from", "-", stdin=f"true {'x' * 2000}\n" * 500)
    make_old_file(local)
    ids = local.ok("list", "--limit", "1000", "-q").split()
    local.ok("cancel", *ids)
    local.ok("config", "set", "retention_cancelled", "1ms")

    done = local.run("prune", "--vacuum")

    assert done.returncode == 0
    assert done.stdout.startswith("500 jobs pruned")
    assert "MiB and is" in done.stderr
    assert "KiB now" in done.stderr
    assert auto_vacuum(local) == 2


def test_vacuum_is_refused_while_workers_run_and_nothing_is_pruned(local: Cli) -> None:
    local.ok("worker", "start", "-d")
    pids = [str(worker["pid"]) for worker in local.json("worker", "list")]

    done = local.run("prune", "--vacuum")

    assert (done.returncode, done.stdout) == (6, "")
    assert pids[0] in done.stderr
    assert "queuectl worker stop" in done.stderr


def test_vacuum_is_for_sqlite(cli: Cli) -> None:
    done = cli.run("prune", "--vacuum")

    assert done.returncode == (0 if cli.target.sqlite_path else 2)
    assert ("autovacuum" in done.stderr) == (cli.target.sqlite_path is None)
