"""Log folders: which output files lie in a home, by the number of their job, and to which store they belong."""

import os
import re
from itertools import islice

from queuectl.errors import StoreUnreachable
from queuectl.model.value import Value
from queuectl.system.home import RUNS_PER_FOLDER, Home, setup_lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

# The output of a run, its standard error where that is apart, their segments, and what another run of the name left.
_NAME = re.compile(r"(\d{1,18})\.\d+\.(err\.)?log(\.part)?(\.\d+)?")


class LogFile(Value):
    """One output file: its path, the number of its job, and when it was written last."""

    path: str
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
    """Return the folders of a home that hold output, by number."""
    try:
        names = [name for name in os.listdir(home.logs) if name.isascii() and name.isdigit() and len(name) < 16]
    except OSError:
        return []
    folders = [LogFolder(path=os.path.join(home.logs, name), first=int(name) * RUNS_PER_FOLDER) for name in names]
    return sorted(folders, key=lambda folder: folder.first)


def log_files(folder: LogFolder, most: int) -> list[LogFile]:
    """Return up to `most` output files of a folder; what is not named as one, or lies in the wrong place, is not."""
    try:
        with os.scandir(folder.path) as entries:
            return list(islice(_log_files(entries, folder), most))
    except OSError:
        return []


def _log_files(entries: "Iterator[os.DirEntry[str]]", folder: LogFolder) -> "Iterator[LogFile]":
    for entry in entries:
        named = _NAME.fullmatch(entry.name)
        if named is None or not folder.first <= int(named[1]) <= folder.last:
            continue
        try:
            written_ms = entry.stat(follow_symlinks=False).st_mtime_ns // 1_000_000
        except OSError:
            continue  # just removed
        yield LogFile(path=entry.path, number=int(named[1]), written_ms=written_ms)


def remove_empty(folder: LogFolder) -> None:
    """Remove a folder that has nothing in it."""
    try:
        os.rmdir(folder.path)
    except OSError:
        pass  # it has, or somebody was quicker


def note_store(home: Home, mark: str, now_ms: int) -> None:
    """Write down that a store has workers in a home from now on; call it before the first of them runs anything."""
    if mark in _stores(home):
        return
    with setup_lock(home):
        if mark in _stores(home):
            return
        try:
            _append(home.stores, f"{now_ms} {mark}\n".encode())
        except OSError as error:
            raise StoreUnreachable(
                f"cannot write {home.stores}: {error.strerror}", hint="check the folder and the disk"
            ) from None


def alone_since(home: Home, mark: str) -> int | None:
    """Return since when every output file of a home is of one store; None means others put theirs there too."""
    stores = _stores(home)
    return stores[mark] if stores.keys() == {mark} else None


def _stores(home: Home) -> dict[str, int]:
    """Return what is written down of the stores of a home; a line that cannot be read stands for one nobody knows."""
    try:
        with open(home.stores, encoding="utf-8", errors="replace") as file:
            lines = file.read().splitlines()
    except FileNotFoundError:
        return {}
    found: dict[str, int] = {}
    for line in lines:
        since, _, mark = line.partition(" ")
        if since.isascii() and since.isdigit() and mark:
            found.setdefault(mark, int(since))
        else:
            found[""] = 0
    return found


def _append(path: str, line: bytes) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        os.write(fd, line)
        os.fsync(fd)
    finally:
        os.close(fd)
