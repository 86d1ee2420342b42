"""Sweep: removing output files whose job is gone. A job may be deleted on another host than the one that ran it."""

from queuectl import clock
from queuectl.store import audit, jobs
from queuectl.system import logfolders
from queuectl.system.home import remove_file
from queuectl.system.liveness import numbers_under_way

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queuectl.store.database import Database, Tx
    from queuectl.system.home import Home
    from queuectl.system.logfolders import LogFile, LogFolder

MOST_FILES = 3000  # of one folder at a time


class Sweeper:
    """Goes through the log folders of a store in turn, one at a time.

    Job numbers are all that files and jobs have in common, so it acts only on files that were written since what is in
    the store began: those from before a restore belong to what is kept of that time, or to an earlier store. Never
    touched is what belongs to a run under way.
    """

    def __init__(self, database: "Database", home: "Home") -> None:
        self._database = database
        self._home = home
        self._place = (0, "")
        self._last_act = 0
        self._begun_at: int | None = None

    def step(self) -> int:
        """Look through the next folder, or through so many files of it; return how many files were removed."""
        since_ms = self._since()
        folder = self._next_folder()
        return 0 if folder is None or since_ms is None else self._sweep(folder, since_ms)

    def _since(self) -> int | None:
        """Return from when on files are this store's, by the clock of this host; None means it has none yet."""

        def look(tx: "Tx") -> int:
            self._last_act, begun_at = audit.begun_at(tx, self._last_act)
            if begun_at is not None:
                self._begun_at = max(begun_at, self._begun_at or 0)
            return clock.wall_ms() - tx.now  # the clock of a distant database may differ

        ahead_ms = self._database.read(look)
        return None if self._begun_at is None else self._begun_at + ahead_ms

    def _next_folder(self) -> "LogFolder | None":
        folders = logfolders.log_folders(self._home)
        later = [folder for folder in folders if folder.first >= self._place[0]]
        return next(iter(later or folders), None)

    def _sweep(self, folder: "LogFolder", since_ms: int) -> int:
        first, after = self._place
        # The files first and the jobs after: a file that is there belongs to a job that was there before it.
        files = logfolders.log_files(folder, MOST_FILES, after if folder.first == first else "")
        is_end = len(files) < MOST_FILES
        self._place = (folder.last + 1, "") if is_end else (folder.first, files[-1].name)
        under_way = numbers_under_way(self._home)

        def look(tx: "Tx") -> tuple[set[int], bool]:
            return jobs.seqs_between(tx, folder.first, folder.last), jobs.has_beyond(tx, folder.last)

        living, is_past = self._database.read(look)

        def is_left(file: "LogFile") -> bool:
            return file.number not in living and file.number not in under_way and file.written_ms >= since_ms

        left = [file for file in files if is_left(file)]
        for file in left:
            remove_file(file.path)
        if is_past and is_end and not living:
            logfolders.remove_empty(folder)  # no job will ever have one of its numbers again
        return len(left)
