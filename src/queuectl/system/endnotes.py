"""End notes: how runs ended that are not settled yet, in a file beside the lock of their worker.

A worker that works off short commands settles several at once. What ended meanwhile is on record here from the moment
it ended: should the worker die, its rescuer settles these runs as they ended instead of running them again. Like the
lock, the file is not synced: it outlives every process, and after a power cut such a run counts as lost.

That the file is there also says that the notes of commands in the lock are complete: a job of a dead worker that stands
in neither was never begun.
"""

import json
import os

from queuectl.system.home import remove_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from queuectl.system.home import Home

SUFFIX = ".ended"


class EndNotes:
    """The notes of one worker, made when they are first needed."""

    def __init__(self, lock_path: str) -> None:
        self._path = path_of(lock_path)
        self._fd = -1
        self._is_empty = True
        self._is_cut = False
        """Whether the last line has no end: the disk was full."""

    def open(self) -> bool:
        """Make the file if it is not there; False means that none can be made just now."""
        if self._fd < 0:
            try:
                self._fd = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600)
            except OSError:
                return False
        return True

    def add(self, seq: int, run: int, note: str) -> bool:
        """Write down how a run ended, in JSON; False means that it could not be, and must be settled at once."""
        if self._fd < 0:
            return False
        line = b"\n" * self._is_cut + f"[{seq}, {run}, {note}]\n".encode()
        self._is_empty = False
        try:
            self._is_cut = os.write(self._fd, line) != len(line)
        except OSError:
            return False
        return not self._is_cut

    def lend(self) -> int:
        """Return the descriptor, for who adds lines in our place, the last perhaps cut off; -1: there is none."""
        if self._fd >= 0:
            self._is_empty, self._is_cut = False, True
        return self._fd

    def clear(self) -> None:
        """Forget everything: it is settled."""
        if self._is_empty:
            return
        try:
            os.ftruncate(self._fd, 0)
            self._is_empty, self._is_cut = True, False
        except OSError:
            self.remove()

    def remove(self) -> None:
        """Remove the file: it must not say any more that the notes are complete, or its worker leaves."""
        if self._fd >= 0:
            remove_file(self._path)
            os.close(self._fd)
            self._fd = -1
            self._is_empty = True


def path_of(lock_path: str) -> str:
    """Return where the worker that holds a lock keeps its end notes."""
    return f"{os.path.splitext(lock_path)[0]}{SUFFIX}"


def remove_left_notes(home: "Home", names: "Collection[str]") -> None:
    """Remove the notes, among the files of a home, beside which there is no lock: a lock comes before and goes after.

    An earlier version that finds a worker dead removes its lock alone.
    """
    for name in names:
        stem, suffix = os.path.splitext(name)
        if suffix == SUFFIX and not os.path.exists(os.path.join(home.run, f"{stem}.lock")):
            remove_file(os.path.join(home.run, name))


def read_end_notes(lock_path: str) -> "dict[tuple[int, int], Mapping[str, object]] | None":
    """Return how runs of a worker ended, by number and run; None where it never wrote such notes.

    A line that was cut off by a full disk or a power cut says nothing.
    """
    try:
        with open(path_of(lock_path), "rb") as file:
            lines = file.read().splitlines()
    except OSError:
        return None
    notes: dict[tuple[int, int], Mapping[str, object]] = {}
    for line in lines:
        try:
            seq, run, note = json.loads(line)
            notes[int(seq), int(run)] = dict(note)
        except (ValueError, TypeError):
            continue
    return notes
