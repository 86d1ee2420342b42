"""What every test may ask for: an empty home, an empty PostgreSQL database, no QUEUECTL_* from outside."""

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import pytest

from queuectl.actions.connect import Target, connect, locate
from queuectl.store.database import Database
from tests import postgres
from tests.program import Cli, running_cli

SERVER = postgres.Server()
OPENED = {"db", "race", "stepping"}
"""The fixtures that open the store of a test before it begins."""
WAIT_FOR_LONG = {"test_chaos", "test_time", "test_outages", "test_disks", "test_rescue", "test_gates", "test_graphs"}


class Node(Protocol):
    """A worker of pytest-xdist, as seen by the process that starts it."""

    workerinput: dict[str, str]


def pytest_configure() -> None:
    """Hear Ctrl-C and hang-ups also in the background: what is ignored there, programs under test would ignore, too."""
    for number in (signal.SIGINT, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Node) -> None:
    """Start the one PostgreSQL of a parallel run before its workers, and tell each where it is."""
    node.workerinput["postgres_server_url"] = _server_url()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Let half of the workers of a parallel run begin with the tests that wait for long, so that none of them ends it.

    The other half has the processors meanwhile: if all began with them, all would wait at once.
    """
    handed_down: dict[str, int] = getattr(config, "workerinput", {})
    workers = int(handed_down.get("workercount", 1))
    waiting = -(-workers // 2)
    patient = [item for item in items if item.path.stem in WAIT_FOR_LONG]
    quick = [item for item in items if item.path.stem not in WAIT_FOR_LONG]
    shares = [patient[number::waiting] for number in range(waiting)]
    items[:] = [item for number in range(workers) for item in _share(number, workers, len(items), shares, quick)]


def _share(
    number: int, workers: int, total: int, patient: list[list[pytest.Item]], quick: list[pytest.Item]
) -> list[pytest.Item]:
    """Take from the quick tests what a worker has to do beside its patient ones, if it has any."""
    begins_with = patient[number] if number < len(patient) else []
    size = total * (number + 1) // workers - total * number // workers
    rest = quick[: max(0, size - len(begins_with))] if number < workers - 1 else quick[:]
    del quick[: len(rest)]
    return [*begins_with, *rest]


def pytest_unconfigure() -> None:
    postgres.hang_up()
    SERVER.stop()


def pytest_runtest_setup(item: pytest.Item) -> None:
    for marker in item.iter_markers("needs"):
        for program in marker.args:
            if shutil.which(program) is None:
                (pytest.fail if "CI" in os.environ else pytest.skip)(f"needs {program}, which is not installed")


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("QUEUECTL_")]:
        monkeypatch.delenv(name)


@pytest.fixture
def sqlite_home(tmp_path: Path) -> Path:
    """A fresh, empty home directory."""
    home = tmp_path / "home"
    home.mkdir()
    return home


@pytest.fixture(scope="session")
def postgres_server_url(request: pytest.FixtureRequest) -> str:
    """The address of the maintenance database of the run's PostgreSQL."""
    handed_down: dict[str, str] | None = getattr(request.config, "workerinput", None)
    return handed_down["postgres_server_url"] if handed_down else _server_url()


@pytest.fixture
def postgres_url(postgres_server_url: str) -> Iterator[str]:
    """The address of an empty database of this test's own."""
    with postgres.fresh_database(postgres_server_url) as url:
        yield url


def _server_url() -> str:
    try:
        return SERVER.url()
    except Exception as error:  # noqa: BLE001 - whatever the reason, half the tests cannot run: never a skip
        pytest.exit(f"PostgreSQL did not start, so the tests cannot run: {error!r}", returncode=1)


@pytest.fixture(params=["sqlite", "postgres"])
def target(request: pytest.FixtureRequest, sqlite_home: Path) -> Iterator[Target]:
    """An empty store of each kind, with a home of its own; nothing is set up in it yet, unless the test opens it first.

    What every test of an open store would do is done once: it gets a copy, or what the last one left, without its rows.
    """
    is_open = not OPENED.isdisjoint(request.fixturenames)
    if request.param == "sqlite":
        target = locate(None, {"QUEUECTL_HOME": str(sqlite_home)})
        if is_open:
            _copy_set_up(target, request.getfixturevalue("set_up_file"))
        yield target
        return
    if "postgres_url" in request.fixturenames or not is_open:
        yield _on_postgres(sqlite_home, request.getfixturevalue("postgres_url"))
        return
    server_url = request.getfixturevalue("postgres_server_url")
    with postgres.fresh_database(server_url, lambda url: connect(_on_postgres(sqlite_home, url)).close()) as url:
        yield _on_postgres(sqlite_home, url)


def _on_postgres(home: Path, url: str) -> Target:
    return locate(None, {"QUEUECTL_HOME": str(home), "QUEUECTL_DATABASE_URL": url})


@pytest.fixture(scope="session")
def set_up_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SQLite store that is set up and otherwise empty, to copy."""
    target = locate(None, {"QUEUECTL_HOME": str(tmp_path_factory.mktemp("set-up"))})
    connect(target).close()
    assert target.sqlite_path is not None
    return Path(target.sqlite_path)


def _copy_set_up(target: Target, source: Path) -> None:
    assert target.sqlite_path is not None
    target.home.make()
    for suffix in ("", "-wal"):  # each with its mode, and the log as long as a store that was set up leaves it
        shutil.copy(f"{source}{suffix}", f"{target.sqlite_path}{suffix}")


@pytest.fixture
def sqlite_target(sqlite_home: Path) -> Target:
    """An empty SQLite store, for what does not depend on the kind."""
    return locate(None, {"QUEUECTL_HOME": str(sqlite_home)})


@pytest.fixture
def db(target: Target) -> Iterator[Database]:
    """An open store of each kind."""
    database = connect(target)
    yield database
    database.close()


@pytest.fixture
def cli(target: Target, tmp_path: Path) -> Iterator[Cli]:
    """The program itself, pointed at an empty store of each kind; workers it started are ended with the test."""
    with running_cli(target, tmp_path) as cli:
        yield cli
