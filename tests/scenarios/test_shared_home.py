"""A SQLite file and PostgreSQL in one home: each shows, sweeps and removes its own output alone."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from queuectl.actions.connect import connect, locate
from queuectl.actions.sweep import Sweeper
from tests.program import PROGRAM, Cli, running_cli
from tests.scenarios.working import last_run, on_postgres

LONG = "".join(f"{number}\n" for number in range(1, 20_001))


@pytest.fixture
def neighbour(cli: Cli, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Cli]:
    """The program, pointed at a store of the other kind in the same home."""
    environ = {"QUEUECTL_HOME": cli.target.home.root}
    if cli.target.sqlite_path is not None:
        environ["QUEUECTL_DATABASE_URL"] = request.getfixturevalue("postgres_url")
    with running_cli(locate(None, environ), tmp_path) as other:
        yield other


def file_of(cli: Cli, job_id: str = "1") -> Path:
    """Return where the output of the newest run of a job lies."""
    name = last_run(cli, job_id)["output_file"]
    assert isinstance(name, str)
    return Path(cli.target.home.logs, name)


def sweep(cli: Cli) -> int:
    """Do what a supervisor does beside its workers, until it has seen every folder."""
    with closing(connect(cli.target)) as database:
        sweeper = Sweeper(database, cli.target.home)
        return sum(sweeper.step() for _ in range(3))


def test_a_run_shows_its_own_output_though_another_store_has_a_file_of_its_number(cli: Cli, neighbour: Cli) -> None:
    neighbour.ok("run", "seq 20000")

    own = cli.ok("run", "echo first; sleep 0.4; echo second")

    assert own == cli.ok("logs", "1") == cli.ok("logs", "-f", "1") == "first\nsecond\n"
    assert neighbour.ok("logs", "1") == LONG
    assert file_of(cli) != file_of(neighbour)


def test_output_of_a_store_that_never_had_a_worker_is_not_swept_by_its_neighbour(cli: Cli, neighbour: Cli) -> None:
    neighbour.ok("run", "seq 20000")
    cli.enqueue("--id", "gone", "true")
    cli.drain()
    cli.ok("delete", "gone")

    removed = sweep(cli)

    assert removed == 0
    assert neighbour.ok("logs", "1") == LONG


@pytest.mark.parametrize("way", ["import", "restore"])
def test_a_job_that_came_from_a_neighbour_shows_its_file_and_never_removes_it(
    cli: Cli, neighbour: Cli, way: str
) -> None:
    neighbour.ok("run", "--max-retries", "0", "seq 20000")
    if way == "import":
        cli.ok("import", "-", stdin=neighbour.ok("export"))
    else:
        neighbour.ok("backup", "copy.db")
        cli.ok("restore", "copy.db", "--yes")
    shown = cli.ok("logs", "1")

    cli.ok("delete", "1")
    sweep(cli)

    assert shown == LONG
    assert neighbour.ok("logs", "1") == LONG


def test_a_job_from_elsewhere_does_not_show_the_file_of_a_neighbour(cli: Cli, neighbour: Cli, tmp_path: Path) -> None:
    neighbour.ok("run", "seq 30000")
    environ = {**cli.environ, "QUEUECTL_HOME": str(tmp_path / "far"), "QUEUECTL_DATABASE_URL": ""}
    with running_cli(locate(None, environ), tmp_path) as far:
        far.ok("run", "seq 20000")
        lines = far.ok("export")
    name = last_run(neighbour, "1")["output_file"]

    cli.ok("import", "-", stdin=lines.replace('"0/1.1.log"', f'"{name}"'))
    done = cli.run("logs", "1")

    assert LONG.endswith(done.stdout)
    assert "Its end:" in done.stderr
    assert (len(done.stdout), neighbour.ok("logs", "1").splitlines()[-1]) == (16 << 10, "30000")


def test_an_undone_restore_brings_the_whole_output_back(cli: Cli) -> None:
    cli.ok("config", "set", "max_retries", "5")
    cli.ok("backup", "empty.db")
    cli.ok("run", "seq 20000")
    cli.ok("restore", "empty.db", "--yes")
    cli.enqueue("true")
    cli.drain()

    removed = sweep(cli)
    [kept] = os.listdir(cli.target.home.backups)
    cli.ok("restore", os.path.join(cli.target.home.backups, kept), "--yes")

    assert removed == 0
    assert cli.ok("logs", "1") == LONG


@on_postgres
def test_a_run_of_a_worker_that_spells_the_url_in_another_way_is_shown_as_it_comes(cli: Cli) -> None:
    url = f"{cli.target.url}{'&' if '?' in cli.target.url else '?'}connect_timeout=9"
    cli.ok("worker", "start", "-d")
    cli.enqueue("echo first; until [ -e go ]; do sleep 0.02; done; seq 20000")
    environ = {**cli.environ, "QUEUECTL_DATABASE_URL": url}
    process = subprocess.Popen([PROGRAM, "logs", "-f", "1"], env=environ, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None

    first = process.stdout.readline()
    (cli.folder / "go").touch()

    assert first + process.communicate(timeout=60)[0] == "first\n" + LONG
    assert locate(None, environ).home.folder != cli.target.home.folder
