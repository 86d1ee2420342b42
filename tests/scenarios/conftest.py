"""What scenarios may ask for beside the program: locks that whole trees of processes hold."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.scenarios.processes import Guard, Guards, send


@pytest.fixture
def guards(tmp_path: Path) -> Iterator[Guards]:
    """Locks for commands of this test, each under a name; whoever still holds one is ended with the test."""
    guards = Guards(tmp_path)
    yield guards
    send(signal.SIGKILL, *(holder.pid for holder in guards.holders()))


@pytest.fixture
def guard(guards: Guards) -> Guard:
    """The lock of the one command a test is about."""
    return guards("job")
