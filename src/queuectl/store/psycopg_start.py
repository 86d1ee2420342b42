"""The start of psycopg: imported with less work, since every command on PostgreSQL begins with it.

Of the 70 ms that the import takes, 7 go into asking `importlib.metadata` (with `email` and `zipfile`) for two version
numbers that also stand in the names of two folders, and 4 into searching for garbage among what was just made. The
rest is what psycopg is made of: asyncio, logging and its types are used while it is imported, and cannot come later.
"""

import gc
import os
import re
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

_PLAIN_VERSION = re.compile(r"\d+(\.\d+)+")
"""One that has a single spelling, so that a folder's name and what is in it agree."""
_VERSION_MODULES = ("psycopg.version", "psycopg_binary.version")


def start() -> None:
    """Import psycopg, the whole of it; raises what the import raises."""
    if "psycopg" in sys.modules:
        return
    was_collecting = gc.isenabled()
    gc.disable()
    sys.meta_path.insert(0, VersionFinder)
    try:
        import psycopg  # noqa: F401
    finally:
        sys.meta_path.remove(VersionFinder)
        if was_collecting:
            gc.enable()


class VersionFinder:
    """Finds the modules that hold nothing but a version, where it can be read off; all others are left to Python."""

    @staticmethod
    def find_spec(name: str, path: "Sequence[str] | None", _target: "ModuleType | None" = None) -> "ModuleSpec | None":
        """Return how to make a module of versions; None for any other, and where the version is in doubt."""
        if name not in _VERSION_MODULES or path is None:
            return None
        version = version_beside(list(path), name.partition(".")[0])
        if version is None:
            return None
        from importlib.machinery import ModuleSpec

        return ModuleSpec(name, _Version(version), origin=f"{path[0]}/version.py")  # type: ignore[arg-type]


class _Version:
    """Makes a module of what it was given."""

    def __init__(self, version: str) -> None:
        self._version = version

    def create_module(self, _spec: "ModuleSpec") -> None:
        """Leave it to Python."""

    def exec_module(self, module: "ModuleType") -> None:
        """Write the version down."""
        module.__dict__["__version__"] = self._version


def version_beside(path: "Sequence[str]", package: str) -> str | None:
    """Return the version in the name of the one folder that describes a package, beside it; None if in doubt."""
    if len(path) != 1:
        return None
    try:
        names = os.listdir(os.path.dirname(path[0]))
    except OSError:
        return None
    found = [name for name in names if name.startswith(f"{package}-") and name.endswith((".dist-info", ".egg-info"))]
    if len(found) != 1 or not found[0].endswith(".dist-info"):
        return None
    version = found[0].removeprefix(f"{package}-").removesuffix(".dist-info")
    return version if _PLAIN_VERSION.fullmatch(version) else None
