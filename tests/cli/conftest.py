"""What tests of the command line may ask for beside the store of each kind."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from queuectl.actions.connect import locate
from tests.program import Cli, running_cli


@pytest.fixture
def local(sqlite_home: Path, tmp_path: Path) -> Iterator[Cli]:
    """The program on SQLite alone, for what does not depend on the store."""
    with running_cli(locate(None, {"QUEUECTL_HOME": str(sqlite_home)}), tmp_path) as cli:
        yield cli
