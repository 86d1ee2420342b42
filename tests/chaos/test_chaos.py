"""A slice of chaos in every run of the tests, on both databases; `make chaos` runs more of it."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.chaos.processes import users_of
from tests.program import wait_for
from tests.scenarios.working import is_running

ROOT = Path(__file__).parents[2]
SECONDS = 45
# The same choices in every run, so that a failure can be repeated: make chaos SEED=... SECONDS=45 DATABASE=...
SEED = 7
BUSY = 12


@contextmanager
def chaos(tmp_path: Path, *words: str) -> Iterator["subprocess.Popen[str]"]:
    """Start a run with all its files in a folder of the test."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.chaos", "--folder", str(tmp_path), *words], cwd=ROOT,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as run:  # fmt: skip
        try:
            yield run
        finally:
            run.terminate()


@pytest.mark.timeout(600)
@pytest.mark.parametrize("database", ["sqlite", "postgres"])
def test_nothing_is_lost_or_doubled_amid_chaos(database: str, tmp_path: Path) -> None:
    words = ("--database", database, "--seconds", str(SECONDS), "--seed", str(SEED), "--json")

    with chaos(tmp_path, *words) as run:
        said, diagnosis = run.communicate()

    assert run.returncode == 0, f"seed {SEED}:\n{diagnosis}\n{said}"
    figures = json.loads(said)
    assert (figures["lost"], figures["overlapping"], figures["violations"]) == (0, 0, [])
    # A run in which nothing happened would prove nothing. How much does is up to the machine, so this asks for little.
    assert figures["rounds"] >= 1
    assert figures["jobs"] > 5
    assert sum(figures["faults"].values()) > 5


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_however_it_ends_no_process_is_left(number: signal.Signals, tmp_path: Path) -> None:
    with chaos(tmp_path, "--database", "postgres", "--seconds", "60", "--seed", "1") as run:
        busy = wait_for(lambda: _busy(tmp_path) or run.poll(), "workers and a server at work")

        run.send_signal(number)
        said = run.communicate()

    assert run.returncode == (-number if number == signal.SIGKILL else 130), said
    assert isinstance(busy, list)
    wait_for(lambda: not any(is_running(pid) for pid in busy), f"{busy} to be gone")
    assert _processes(tmp_path) == []
    wait_for(lambda: not os.path.exists(tmp_path / "postgres" / "server"), "the files of the server to be gone")


def _busy(tmp_path: Path) -> list[int] | None:
    """Return the processes of a run once its server, its supervisors and some workers are there."""
    found = _processes(tmp_path)
    return found if len(found) >= BUSY else None


def _processes(tmp_path: Path) -> list[int]:
    return [
        pid for name in ("home", "locks", "server") for pid in users_of(os.path.realpath(tmp_path / "postgres" / name))
    ]
