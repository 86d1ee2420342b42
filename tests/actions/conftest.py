"""Fixtures of the tests of actions: a second store beside the first."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from queuectl.actions.connect import connect, locate
from queuectl.store.database import Database
from tests import postgres


@pytest.fixture(params=["sqlite", "postgres"])
def other(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """Another store of each kind, open and empty: with `db`, all four pairs."""
    environ = {"QUEUECTL_HOME": str(tmp_path / "other")}
    if request.param == "sqlite":
        yield from _opened(environ)
        return

    def set_up(url: str) -> None:
        connect(locate(None, {**environ, "QUEUECTL_DATABASE_URL": url})).close()

    with postgres.fresh_database(request.getfixturevalue("postgres_server_url"), set_up) as url:
        yield from _opened({**environ, "QUEUECTL_DATABASE_URL": url})


def _opened(environ: dict[str, str]) -> Iterator[Database]:
    database = connect(locate(None, environ))
    yield database
    database.close()
