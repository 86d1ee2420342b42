"""The venv of the Python peers: what is installed there, and what a peer with an app of its own shares with others."""

import functools
import json
import subprocess
from contextlib import AbstractContextManager
from pathlib import Path

from benchmarks.peers.peer import APPS, Asker, Peer, Room, asking_through_an_app

BIN = Path(__file__).parents[2] / ".venv-peers" / "bin"
PYTHON = str(BIN / "python")
LIST_PACKAGES = """
import importlib.metadata, json
print(json.dumps({each.name: each.version for each in importlib.metadata.distributions()}))
"""


@functools.cache
def packages() -> dict[str, str]:
    """Return the packages of the venv with their versions; none where there is no venv."""
    if not Path(PYTHON).exists():
        return {}
    found: dict[str, str] = json.loads(subprocess.check_output([PYTHON, "-c", LIST_PACKAGES]))
    return found


class PythonPeer(Peer):
    """A peer that is a Python package of the venv."""

    package: str

    def why_missing(self) -> str:
        """Say whether the package is there."""
        return "" if self.package in packages() else f"the package {self.package} is not installed in .venv-peers"

    def version(self) -> str:
        """Return the version of the package."""
        return packages()[self.package]


class AppRoom(Room):
    """A room whose commands are added through an app in apps/."""

    app: str

    def __init__(self, folder: Path, workers: int, store: str) -> None:
        super().__init__(folder, workers, store)
        self.environ["PYTHONPATH"] = str(APPS)

    def adding_one(self, command: str) -> list[str]:
        """Run a script that calls the API, as there is no quicker way."""
        return [PYTHON, str(APPS / "add.py"), self.app, "one", command]

    def adding_many(self) -> list[str]:
        """Run a script that calls the API."""
        return [PYTHON, str(APPS / "add.py"), self.app, "many"]

    def asker(self) -> AbstractContextManager[Asker]:
        """Give a process that holds the API open."""
        return asking_through_an_app(self, PYTHON, self.app)


def program(name: str) -> str:
    """Return a program of the venv."""
    return str(BIN / name)
