"""Peers: what needs none of them installed. That those installed run is seen by benchmarks/peers/check.py."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from benchmarks.bench import SQLITE, Bench
from benchmarks.figures import Figure, Value
from benchmarks.peers import driver, lineup, venv, workload
from benchmarks.peers.driver import Drained
from benchmarks.peers.finish import FinishLine
from benchmarks.peers.marks import marked
from benchmarks.peers.own import Own
from benchmarks.peers.peer import Peer, Room
from benchmarks.peers.table import table
from benchmarks.peers.xargs import Xargs


class Absent(Xargs):
    """A tool that nobody has."""

    name = "absent"
    program, package = "no-such-program", "no-such-package"


class Broken(Xargs):
    """A tool that runs nothing of what it is given."""

    name = "broken"

    def version(self) -> str:
        """Return the version of the moment it breaks."""
        return "0"


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(is_quick=True, server_url="", folder=tmp_path)


@pytest.fixture
def no_venv(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.setattr(venv, "PYTHON", str(tmp_path / "python"))
    venv.packages.cache_clear()
    yield
    venv.packages.cache_clear()


@pytest.mark.parametrize("peer", [Xargs(), Own(SQLITE, drain_jobs=3)], ids=lambda peer: peer.name)
def test_a_drain_ends_when_every_command_has_run(bench: Bench, peer: Peer) -> None:
    drained = driver.drain(bench, peer, workers=2, jobs=3)

    assert drained.jobs == 3
    assert 0 < drained.first_s <= drained.whole_s
    assert list(bench.folder.iterdir()) == []


def test_a_drain_leaves_no_process_behind(bench: Bench) -> None:
    folders = []

    class Watched(Own):
        """queuectl, its folder noted."""

        @contextmanager
        def room(self, bench: Bench, folder: Path, workers: int) -> Iterator[Room]:
            folders.append(folder)
            with super().room(bench, folder, workers) as room:
                yield room

    driver.drain(bench, Watched(SQLITE, drain_jobs=1), workers=1, jobs=1)

    assert marked(str(folders[0])) == []


def test_queuectl_goes_through_every_measure(bench: Bench) -> None:
    peer = Own(SQLITE, drain_jobs=1)
    peer.bulk_jobs = 500

    added, picked_up, weighed = driver.add(bench, peer), driver.pick_up(bench, peer), driver.weigh(bench, peer)

    assert len(added.one_s) == len(added.python_s) == driver.ADDS
    assert len(picked_up.own_s) == len(picked_up.spawn_s) == driver.PICKUPS
    assert weighed.workers_mb > weighed.python_mb
    assert weighed.broker_mb == 0


def test_a_command_that_never_ends_is_told(tmp_path: Path) -> None:
    line = FinishLine(tmp_path / "line")

    with pytest.raises(TimeoutError, match="0 of 1 commands"):
        line.wait(1, deadline_s=0.01)
    line.close()


def test_a_program_that_is_missing_is_named_with_its_package() -> None:
    assert Absent().why_missing() == "no program no-such-program; on Debian: apt-get install no-such-package"


@pytest.mark.usefixtures("no_venv")
def test_every_python_peer_says_that_it_is_not_installed() -> None:
    peers = [peer for peer in lineup.LINEUP if isinstance(peer, venv.PythonPeer)]

    assert len(peers) == 8
    assert all(f"{peer.package} is not installed in .venv-peers" in peer.why_missing() for peer in peers)


@pytest.mark.usefixtures("no_venv")
def test_every_peer_carries_a_short_word_for_its_durability() -> None:
    tags = {peer.name: workload._identity(peer, "drain")["durability_tag"] for peer in lineup.LINEUP}

    assert all(0 < len(str(tag)) < 36 for tag in tags.values())
    assert tags["Huey, SQLite"] == "SQLite FULL, deleted when taken"
    assert tags["queuectl, PostgreSQL"] == tags["Procrastinate, PostgreSQL"] == "PostgreSQL, fsync"


def test_what_is_missing_has_a_line_with_its_reason(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_drains", "_additions", "_pick_ups", "_memory"):
        monkeypatch.setattr(workload, name, lambda *_: iter(()))

    (figure,) = workload.measure(bench, [Absent()])

    assert figure.is_missing
    assert figure.note.startswith("missing: no program no-such-program")
    assert "| absent |  | missing |" in table([figure])
    assert "- absent: all: missing: no program no-such-program" in table([figure])


def test_a_peer_that_breaks_is_reported_and_the_others_are_measured(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def drain(bench: Bench, peer: Peer, workers: int, jobs: int) -> Drained:
        if isinstance(peer, Broken):
            raise TimeoutError("0 of 5 commands had ended after 40 s")
        return Drained(jobs=jobs, first_s=0.1, whole_s=1.1)

    monkeypatch.setattr(driver, "drain", drain)

    figures = list(workload.measure(bench, [lineup.UNIT, Broken()]))

    assert [(figure.values["peer"], figure.is_missing) for figure in figures] == [
        ("xargs", False),
        ("broken", True),
        ("xargs", False),
        ("broken", True),
    ]
    assert "- broken: drain 2: missing: TimeoutError: 0 of 5 commands had ended after 40 s" in table(figures)


@pytest.mark.parametrize("peer", [lineup.UNIT, lineup.OWN_SQLITE], ids=lambda peer: peer.name)
def test_neither_queuectl_nor_the_unit_may_break(bench: Bench, monkeypatch: pytest.MonkeyPatch, peer: Peer) -> None:
    def drain(bench: Bench, asked: Peer, workers: int, jobs: int) -> Drained:
        if asked is peer:
            raise TimeoutError("0 of 5 commands had ended after 40 s")
        return Drained(jobs=jobs, first_s=0.1, whole_s=1.1)

    monkeypatch.setattr(driver, "drain", drain)

    with pytest.raises(TimeoutError):
        list(workload.measure(bench, [lineup.UNIT, lineup.OWN_SQLITE]))


def test_the_table_has_a_cell_for_what_was_measured_alone() -> None:
    values: dict[str, Value] = {
        "peer": "huey",
        "version": "3",
        "durability": "a file",
        "measure": "drain 2",
        "jobs": 9,
        "running_ratios": [0.5],
    }
    figure = Figure(what="huey: drain", unit="x", ratios=[0.4, 0.3, 0.5], values=values)

    assert table([figure]).splitlines()[2] == "| huey 3 | 9 | 0.4 (0.3 to 0.5) |  | 0.5 |  |  |  |  | a file |"
