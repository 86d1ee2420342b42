"""Templates: a big store is filled once per process of a test run, and each test that needs one gets a copy."""

import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from queuectl.actions.connect import Target, connect, locate
from queuectl.store.database import Database
from tests import postgres

Fill = Callable[[Database], object]


class Templates:
    """The stores that were filled by this process, by kind and by what filled them."""

    def __init__(self, folder: Path, server_url: str) -> None:
        self._folder = folder
        self._server_url = server_url
        self._made: dict[tuple[bool, Fill], Target] = {}

    def copy_to(self, target: Target, fill: Fill) -> None:
        """Put a copy of a store that was filled so in the place of an empty one that nobody has opened yet."""
        key = (target.sqlite_path is not None, fill)
        if key not in self._made:
            self._made[key] = self._make(len(self._made), *key)
        source = self._made[key]
        if source.sqlite_path is not None and target.sqlite_path is not None:
            target.home.make()
            shutil.copyfile(source.sqlite_path, target.sqlite_path)
        else:
            postgres.put_copy(self._server_url, source.url, target.url)

    def remove(self) -> None:
        """Remove the databases; the files go with their folder."""
        for target in self._made.values():
            if target.sqlite_path is None:
                postgres.remove(self._server_url, target.url)

    def _make(self, number: int, is_sqlite: bool, fill: Fill) -> Target:
        environ = {"QUEUECTL_HOME": str(self._folder / f"template-{number}")}
        if not is_sqlite:
            environ["QUEUECTL_DATABASE_URL"] = postgres.make(self._server_url)
        target = locate(None, environ)
        with closing(connect(target)) as database:
            fill(database)
            if is_sqlite:
                database.dialect.script("PRAGMA wal_checkpoint(TRUNCATE)")  # all of it into the file that is copied
        return target
