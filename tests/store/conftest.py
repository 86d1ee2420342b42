"""What the tests of the store may ask for beside what all may."""

from collections.abc import Iterator

import pytest

from queuectl.actions.connect import Target
from tests.store.racing import Race
from tests.store.stepping import Stepping
from tests.store.templates import Templates


@pytest.fixture(scope="session")
def templates(tmp_path_factory: pytest.TempPathFactory, postgres_server_url: str) -> Iterator[Templates]:
    """Big stores to copy."""
    templates = Templates(tmp_path_factory.mktemp("templates"), postgres_server_url)
    yield templates
    templates.remove()


@pytest.fixture
def race(target: Target, monkeypatch: pytest.MonkeyPatch) -> Iterator[Race]:
    """A race on an empty store of each kind."""
    race = Race(target, monkeypatch)
    yield race
    race.close()


@pytest.fixture
def stepping(target: Target) -> Iterator[Stepping]:
    """Two acts that meet before every statement of the first."""
    stepping = Stepping(target)
    yield stepping
    stepping.close()
