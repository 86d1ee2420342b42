"""What the tests of the store may ask for beside what all may."""

from collections.abc import Iterator

import pytest

from queuectl.actions.connect import Target
from tests.store.racing import Race


@pytest.fixture
def race(target: Target, monkeypatch: pytest.MonkeyPatch) -> Iterator[Race]:
    """A race on an empty store of each kind."""
    race = Race(target, monkeypatch)
    yield race
    race.close()
