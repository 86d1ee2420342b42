"""Log folders: which output files of a store lie in a home, by the number of their job."""

import os
import re

from queuectl.model.value import Value
from queuectl.system.home import RUNS_PER_FOLDER, Home

# The output of a run, or its standard error where that is apart; the same of a later run of the name; their segments.
_NAME = re.compile(r"(\d{1,18})\.\d+\.(err\.)?log(\.\d+)?(\.part(\.\d+)*)?")


class LogFile(Value):
    """One output file: its path and name, the number of its job, and when it was written last."""

    path: str
    name: str
    number: int
    written_ms: int


class LogFolder(Value):
    """The folder of a thousand numbers."""

    path: str
    first: int

    @property
    def last(self) -> int:
        """The last number whose output belongs here."""
        return self.first + RUNS_PER_FOLDER - 1


def log_folders(home: Home) -> list[LogFolder]:
    """Return the folders of a home that hold output of its store, by number."""
    try:
        names = [name for name in os.listdir(home.own_logs) if name.isascii() and name.isdigit() and len(name) < 16]
    except OSError:
        return []
    folders = [LogFolder(path=os.path.join(home.own_logs, name), first=int(name) * RUNS_PER_FOLDER) for name in names]
    return sorted(folders, key=lambda folder: folder.first)


def log_files(folder: LogFolder, most: int, after: str = "") -> list[LogFile]:
    """Return up to `most` output files of a folder by name, from behind a name on.

    What is not named as an output file, or lies in the wrong place, is none.
    """
    try:
        names = sorted(name for name in os.listdir(folder.path) if name > after)
    except OSError:
        return []
    found: list[LogFile] = []
    for name in names:
        if len(found) == most:
            break
        if (file := _log_file(folder, name)) is not None:
            found.append(file)
    return found


def _log_file(folder: LogFolder, name: str) -> LogFile | None:
    named = _NAME.fullmatch(name)
    if named is None or not folder.first <= int(named[1]) <= folder.last:
        return None
    path = os.path.join(folder.path, name)
    try:
        written_ms = os.lstat(path).st_mtime_ns // 1_000_000
    except OSError:
        return None  # just removed
    return LogFile(path=path, name=name, number=int(named[1]), written_ms=written_ms)


def remove_empty(folder: LogFolder) -> None:
    """Remove a folder that has nothing in it."""
    try:
        os.rmdir(folder.path)
    except OSError:
        pass  # it has, or somebody was quicker
