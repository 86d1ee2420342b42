"""Sweep: removing output files whose job is gone. A job may be deleted on another host than the one that ran it."""

from queuectl import clock
from queuectl.actions.liveness import store_mark
from queuectl.store import jobs
from queuectl.system import logfolders
from queuectl.system.home import remove_file
from queuectl.system.liveness import numbers_under_way

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queuectl.store.database import Database, Tx
    from queuectl.store.dialect import Dialect
    from queuectl.system.home import Home
    from queuectl.system.logfolders import LogFile, LogFolder

MOST_FILES = 3000  # of one folder at a time


def note_store(database: "Database", home: "Home") -> None:
    """Write down in a home which store has workers there, before they run anything."""
    logfolders.note_store(home, home_mark(database.dialect), clock.wall_ms())


def home_mark(dialect: "Dialect") -> str:
    """Return what a home calls a store: of local ones it has but one, which stays the same when both are moved."""
    return dialect.name if dialect.is_local else f"{dialect.name}:{store_mark(dialect)}"


class Sweeper:
    """Goes through the log folders of a home in turn, one at a time, for one store.

    Job numbers are all that files and jobs have in common, so it acts only where no other store has had workers in
    the home, and only on files written since that is known. Never touched is what belongs to a run under way.
    """

    def __init__(self, database: "Database", home: "Home") -> None:
        self._database = database
        self._home = home
        self._next_first = 0

    def step(self) -> int:
        """Look through the next folder; return how many files were removed."""
        since_ms = logfolders.alone_since(self._home, home_mark(self._database.dialect))
        if since_ms is None:
            return 0
        folder = self._next_folder()
        return 0 if folder is None else self._sweep(folder, since_ms)

    def _next_folder(self) -> "LogFolder | None":
        folders = logfolders.log_folders(self._home)
        later = [folder for folder in folders if folder.first >= self._next_first]
        if not folders:
            return None
        folder = (later or folders)[0]
        self._next_first = folder.last + 1
        return folder

    def _sweep(self, folder: "LogFolder", since_ms: int) -> int:
        # The files first and the jobs after: a file that is there belongs to a job that was there before it.
        files = logfolders.log_files(folder, MOST_FILES)
        under_way = numbers_under_way(self._home)

        def look(tx: "Tx") -> tuple[set[int], bool]:
            return jobs.seqs_between(tx, folder.first, folder.last), jobs.has_beyond(tx, folder.last)

        living, is_past = self._database.read(look)

        def is_left(file: "LogFile") -> bool:
            return file.number not in living and file.number not in under_way and file.written_ms >= since_ms

        left = [file for file in files if is_left(file)]
        for file in left:
            remove_file(file.path)
        if is_past and not living and len(left) == len(files):
            logfolders.remove_empty(folder)  # no job will ever have one of its numbers again
        return len(left)
